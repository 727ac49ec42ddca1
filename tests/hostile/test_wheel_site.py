"""Wheels that attack, on the way that they take at a site: upload, check in the sandbox, verdict; page and API."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from engine.wheels import mark_of
from engine.wheels.archive import read_files
from engine.wheels.unpacking import holds
from tests.hostile.wheel_makers import (
    ENTRY,
    METADATA,
    Entry,
    bomb,
    declaring,
    requiring,
    wheel,
    with_file,
)
from tests.tournament_factories import make_player, make_wheel, submit
from tournament.competitions.services.playing import wheel_source_of
from tournament.players import services as players
from tournament.players.models import Bot, BotVersion, VersionState

HERE = Path(__file__).parent

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return make_player("ann")


@pytest.fixture
def form(owner):
    """Uploads by the form: the status, and what the page says."""
    client = Client()
    client.force_login(owner)

    def upload(data: bytes) -> tuple[int, str]:
        file = SimpleUploadedFile("bot-1.0-py3-none-any.whl", data)
        answer = client.post("/account/upload/", {"wheel": file}, follow=True)
        return answer.status_code, html.unescape(answer.content.decode())

    return upload


@pytest.fixture
def api(owner):
    """Uploads by the API: the status, and what it says."""
    _, token = players.create_token(player=owner, scope="submit")
    client = Client(headers={"Authorization": f"Bearer {token}"})

    def upload(data: bytes) -> tuple[int, str]:
        answer = client.post("/api/versions", data, "application/octet-stream")
        return answer.status_code, str(answer.json())

    return upload


@pytest.fixture(params=["form", "api"])
def upload(request):
    return request.getfixturevalue(request.param)


def blobs() -> set[str]:
    return {path.name for path in Path(storages["blobs"].location).rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"no zip", "a wheel is a zip file"),
        (lambda: wheel()[:-9], "is cut"),
        (lambda: wheel(bomb(300 << 20)), "at most 20971520 are allowed"),
        (lambda: with_file("../../x.py"), "must not contain .."),
        (lambda: with_file("my.pth"), "would run at every start of Python"),
        (lambda: with_file("json.py"), "would stand in for another module"),
        (lambda: with_file("<script>alert(1)</script>.so"), "is compiled code"),
        (lambda: with_file(b"\xff\0\x1b[2J\xe2\x80\xae"), "printable ASCII"),
        (lambda: requiring("torch>=2"), "copy what you need into your package"),
        (lambda: declaring("my-bot = os"), "names the module os, which is not in the wheel"),
        (lambda: declaring("My-Bot = my_bot"), "must be 2 to 32 of a-z"),
        (lambda: declaring("random = my_bot"), "is reserved for a reference bot"),
        (lambda: wheel(metadata=METADATA.replace("1.0", "9" * 5000)), "such as 1.0.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wheel_that_cannot_be_taken_is_told_why_and_leaves_nothing(upload, make, words):
    before = blobs()
    status, told = upload(make())
    assert 400 <= status < 500
    assert words in told
    assert not Bot.objects.exists()
    assert blobs() == before


def test_hostile_name_in_a_reason_is_no_html(owner):
    client = Client()
    client.force_login(owner)
    file = SimpleUploadedFile("b.whl", with_file("<script>alert(1)</script>.so"))
    answer = client.post("/account/upload/", {"wheel": file})
    assert b"<script>alert" not in answer.content
    assert b"&lt;script&gt;alert" in answer.content


def test_what_a_wheel_says_of_itself_fits_every_database(upload):
    summary = "Plays\0 \x1b[2J\u202e" + "well " * 200
    upload(wheel(metadata=METADATA.replace("Plays", summary)))
    version = BotVersion.objects.get()
    assert version.summary.isprintable()
    assert len(version.summary) <= 300


def test_same_wheel_again_is_the_version_that_is_there(upload):
    for _ in range(2):
        assert upload(wheel())[0] in {200, 201}
    assert BotVersion.objects.count() == 1


def test_same_version_with_other_content_must_raise_its_number(upload):
    upload(wheel())
    status, told = upload(with_file("pkg/more.py"))
    assert status in {409, 422}
    assert "raise the version number" in told
    assert BotVersion.objects.count() == 1


def test_version_spelled_otherwise_is_the_same_version(upload):
    upload(wheel())
    spelled = METADATA.replace("1.0", "v1.0")
    status, told = upload(wheel(metadata=spelled, dist="my_bot-v1.0.dist-info"))
    assert status in {409, 422}
    assert "raise the version number" in told


def test_name_of_somebody_elses_bot_is_refused_in_any_case(upload):
    Bot.objects.create(owner=make_player("bob"), name="MY-BOT")  # as no wheel could name it
    status, told = upload(wheel())
    assert status in {409, 422}
    assert "belongs to someone else" in told


def test_two_bots_of_two_owners_may_have_one_module(upload):
    """Names of modules cannot collide: each bot has a folder of its own."""
    other = wheel(entry=ENTRY.replace("my-bot", "other"))
    players.submit_wheel(owner=make_player("bob"), data=other)
    assert upload(wheel())[0] in {200, 201}
    assert Bot.objects.count() == 2


@pytest.mark.sandbox
def test_hostile_bot_is_checked_in_the_sandbox_and_its_owner_told(form, owner, tmp_path):
    source = (HERE / "read_passwd.py").read_text()
    assert form(make_wheel("thief", "1.0", source, tmp_path))[0] == 200
    version = BotVersion.objects.get()
    assert players.run_validation(version_id=version.pk, trusted=False)
    version.refresh_from_db()
    assert version.state == VersionState.REJECTED
    client = Client()
    client.force_login(owner)
    told = client.get(f"/account/versions/{version.pk}/").content.decode()
    assert "it raised FileNotFoundError while choosing an action" in told
    assert "root:" not in told


def test_unpacked_wheel_with_which_somebody_tampered_is_not_played(settings, tmp_path):
    settings.WHEEL_CACHE = tmp_path / "wheels"
    version = submit(make_player(), "alpha")
    files = read_files(make_wheel("alpha", "1.0"))
    folder = Path(wheel_source_of(f"sha256:{version.wheel_sha256}").folder)
    mark = mark_of(folder)
    assert wheel_source_of(f"sha256:{version.wheel_sha256}").folder == str(folder)
    assert mark_of(folder) == mark  # it is left as it is
    (folder / "chance.py").write_bytes(b"import os\n")
    wheel_source_of(f"sha256:{version.wheel_sha256}")
    assert holds(folder, files)


@pytest.mark.parametrize("how", ["whole", "one file"])
def test_unpacked_wheel_that_was_deleted_is_there_again(settings, tmp_path, how):
    settings.WHEEL_CACHE = tmp_path / "wheels"
    version = submit(make_player(), "alpha")
    folder = Path(wheel_source_of(f"sha256:{version.wheel_sha256}").folder)
    (folder / "chance.py").unlink()
    if how == "whole":
        folder.rename(tmp_path / "gone")
    wheel_source_of(f"sha256:{version.wheel_sha256}")
    assert (folder / "chance.py").is_file()


def test_member_of_a_wheel_is_never_named_by_two(upload):
    status, told = upload(wheel(Entry("a.py", b"1"), Entry("a.py", b"2")))
    assert status == 422
    assert "2 times" in told
