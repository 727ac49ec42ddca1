"""A backup of a site that goes on, and what comes of it in an empty home."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile
import tracemalloc
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.tournament_factories import make_bot, make_player, make_tournament, play_all, start
from tournament.competitions.models import Match, Tournament
from tournament.competitions.services import play_match
from tournament.operations import backups
from tournament.operations.backups import write_backup
from tournament.operations.errors import OperationsError
from tournament.store.services import put_blob

pytestmark = pytest.mark.django_db(transaction=True)
MANAGE = Path(__file__).parents[3] / "manage.py"
GO_ON = """
import json
from django.contrib.sessions.models import Session
from tests.tournament_factories import play_all
from tournament.competitions.models import Match, Tournament
from tournament.leaderboards.selectors import pools
from tournament.leaderboards.services import verify_ratings
from tournament.players.models import Player
cup = play_all(Tournament.objects.get())
print(json.dumps({
    "digests": dict(Match.objects.values_list("pairing__key", "digest")),
    "state": cup.state,
    "sessions": Session.objects.count(),
    "players": list(Player.objects.filter(erased_at=None).values_list("username", flat=True)),
    "true": all(not verify_ratings(game=pool.game, kind=pool.kind) for pool in pools()),
}))
"""


ASK_WHERE = """
import json
from django.db import connection
from tournament.competitions.models import Match
schemas = {"public"}
if connection.vendor == "postgresql":
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema)'")
        schemas = set(cursor.fetchall())
print(json.dumps({"matches": Match.objects.count(), "schemas": len(schemas)}))
"""


def digests() -> dict[str, str]:
    return dict(Match.objects.values_list("pairing__key", "digest"))


@pytest.fixture
def cup() -> Tournament:
    """A cup of four, one of whose first matches has been played."""
    tournament = start(make_tournament([make_bot(f"bot{number}") for number in range(4)]))
    play_match(match_id=tournament.matches.order_by("pk").first().pk, trusted=True)
    return tournament


@pytest.fixture
def elsewhere(tmp_path) -> Iterator[dict[str, str]]:
    """The environment of a site that has nothing yet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARENA_")}
    environ = {
        **kept,
        "ARENA_BOOTSTRAP": "0",
        "ARENA_HOME": str(tmp_path / "restored"),
        "PYTHONPATH": str(MANAGE.parent),
        "DJANGO_SETTINGS_MODULE": "tournament.settings",
    }
    if connection.vendor == "sqlite":
        yield environ
        return
    name = f"restored_{uuid.uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    server = connection.settings_dict
    place = f"{server['USER']}:{server['PASSWORD']}@{server['HOST']}:{server['PORT']}"
    yield {**environ, "ARENA_DATABASE": f"postgresql://{place}/{name}"}
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def manage(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, MANAGE, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_backup_taken_in_the_middle_of_a_cup_finishes_with_the_digests_of_the_original(
    cup, elsewhere, tmp_path
):
    gone, stays = make_player("gone"), make_player("stays")
    for player in (gone, stays):
        Client().force_login(player)
    folder = tmp_path / "backups"
    folder.mkdir()
    call_command("backup", str(folder))
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    play_all(cup)  # as if nothing had happened
    erased = tmp_path / "erasures.jsonl"
    erased.write_text(json.dumps({"player": str(gone.key), "at": "2026-01-01T00:00:00Z"}) + "\n")

    done = manage(elsewhere, "restore", str(file), "--erasures", str(erased))
    assert done.returncode == 0, done.stderr
    assert "Erased again: " in done.stdout
    assert "No list of erasures" not in done.stdout
    kept = Path(elsewhere["ARENA_HOME"]) / "erasures.jsonl"
    assert kept.read_text() == erased.read_text(), "the next restore must not bring anybody back"
    played = manage(elsewhere, "shell", "-c", GO_ON)
    assert played.returncode == 0, played.stderr
    found = json.loads(played.stdout.splitlines()[-1])
    assert stays.username in found["players"]
    assert gone.username not in found.pop("players")
    assert found == {"digests": digests(), "state": "finished", "true": True, "sessions": 1}
    key = Path(elsewhere["ARENA_HOME"]) / "secret_key"
    assert key.read_text().strip() == settings.SECRET_KEY


def sealed_anew(name: str, data: bytes, members: dict[str, bytes]) -> bytes:
    """The manifest that belongs to these members of the database."""
    if name != "manifest.json":
        return data
    manifest = json.loads(data)
    hashes = {each: hashlib.sha256(content).hexdigest() for each, content in members.items()}
    return json.dumps({**manifest, "members": {**manifest["members"], **hashes}}).encode()


def test_restore_that_fails_half_way_leaves_a_database_in_which_the_next_one_succeeds(
    cup, elsewhere, tmp_path
):
    """The database itself does not take what the backup holds, whose hashes are right."""
    write_backup(tmp_path / "whole.tar")
    broken: dict[str, bytes] = {}

    def spoil_table(name: str, data: bytes) -> bytes:
        if name in {"database/arena.sqlite3", "database/competitions_match"}:
            broken[name] = b"no row of any table, no page of any database\n" * 100
            return broken[name]
        return sealed_anew(name, data, broken)

    failed = manage(elsewhere, "restore", str(rewritten(tmp_path / "whole.tar", spoil_table)))
    assert failed.returncode != 0
    assert "competitions_match" in failed.stderr or "not a database" in failed.stderr
    if connection.vendor == "postgresql":  # what a killed one left
        left = "from django.db import connection as c; c.cursor().execute('CREATE SCHEMA arena_restoring CREATE TABLE t ()')"
        assert manage(elsewhere, "shell", "-c", left).returncode == 0
    done = manage(elsewhere, "restore", str(tmp_path / "whole.tar"))
    assert done.returncode == 0, done.stderr
    looked_at = Path(elsewhere["ARENA_HOME"]) / "erasures.jsonl"
    assert f"No list of erasures found at {looked_at}: whoever was erased since" in done.stdout
    asked = manage(elsewhere, "shell", "-c", ASK_WHERE)
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout.splitlines()[-1]) == {"matches": 2, "schemas": 1}


def test_site_that_is_there_is_not_overwritten(cup, tmp_path):
    write_backup(tmp_path / "whole.tar")
    with pytest.raises(CommandError, match="is not empty") as error:
        call_command("restore", str(tmp_path / "whole.tar"))
    assert error.value.returncode == 2
    assert Tournament.objects.get() == cup


def test_backup_without_blobs_says_which_are_missing_where_it_is_restored(
    cup, tmp_path, monkeypatch, settings
):
    file = tmp_path / "named.tar"
    call_command("backup", str(file), "--without-blobs")
    with tarfile.open(file) as tar:
        assert not [name for name in tar.getnames() if name.startswith("blobs/")]
    monkeypatch.setattr(backups, "_refuse_if_taken", lambda: None)
    monkeypatch.setattr(backups, "_new_database", nullcontext)
    monkeypatch.setattr(backups, "_load", lambda *_: None)
    monkeypatch.setenv("ARENA_SECRET_KEY_FILE", str(tmp_path / "key"))
    call_command("restore", str(file))  # the store has all
    empty = {**settings.STORAGES["blobs"], "OPTIONS": {"location": str(tmp_path / "empty")}}
    settings.STORAGES = {**settings.STORAGES, "blobs": empty}
    with pytest.raises(CommandError, match="blobs that the site needs are nowhere") as error:
        call_command("restore", str(file))
    assert error.value.returncode == 1


def rewritten(source: Path, change) -> Path:
    """A copy of a backup in which `change` gives each member's new bytes; None leaves it out."""
    target = source.with_name("changed.tar")
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for info in old:
            data = change(info.name, old.extractfile(info).read())
            if data is not None:
                info.size = len(data)
                new.addfile(info, io.BytesIO(data))
    return target


def spoil(part: str):
    """Change a bit at the end of all that is in that part and not empty."""
    return lambda name, data: data[:-1] + bytes([data[-1] ^ 1]) if data and part in name else data


def newer(name: str, data: bytes) -> bytes:
    if name != "about.json":
        return data
    about = json.loads(data)
    return json.dumps({**about, "migrations": [*about["migrations"], ["players", "9999"]]}).encode()


def other_kind(name: str, data: bytes) -> bytes:
    return (
        json.dumps({**json.loads(data), "vendor": "oracle"}).encode() if "about" in name else data
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (spoil("blobs/"), "is damaged: the blob"),  # a bit of a wheel or record has changed
        (spoil("database/"), "is damaged: database/"),  # or one of the database
        (spoil("secret_key"), "is damaged: secret_key"),  # or of the key
        (lambda name, data: None if "manifest" in name else data, "was cut"),  # the disk was full
        (lambda name, data: None if "blobs/" in name else data, "is damaged"),  # somebody took them out
        (lambda name, data: None if "about" in name else data, "no backup of a site"),  # another tar file
        (newer, "newer than this one: it knows the migration players.9999"),  # of a later version
        (other_kind, "is a backup of a oracle database"),  # of another kind
    ],
)  # fmt: skip
def test_backup_that_cannot_be_restored_is_refused_and_changes_nothing(
    cup, tmp_path, monkeypatch, change, told
):
    write_backup(tmp_path / "whole.tar")
    monkeypatch.setattr(backups, "_refuse_if_taken", lambda: None)
    monkeypatch.setattr(backups, "_load", lambda *_: pytest.fail("the database was touched"))
    with pytest.raises(CommandError, match=told) as error:
        call_command("restore", str(rewritten(tmp_path / "whole.tar", change)))
    assert error.value.returncode == 2


def test_list_of_erasures_that_cannot_be_read_keeps_the_backup_out(cup, tmp_path, monkeypatch):
    write_backup(tmp_path / "whole.tar")
    (tmp_path / "erasures.jsonl").write_text('{"player": "nobody"}\n')
    monkeypatch.setattr(backups, "_refuse_if_taken", lambda: None)
    monkeypatch.setattr(backups, "_load", lambda *_: pytest.fail("people would be back"))
    with pytest.raises(CommandError, match="line 1 of the list of erasures"):
        call_command(
            "restore",
            str(tmp_path / "whole.tar"),
            "--erasures",
            str(tmp_path / "erasures.jsonl"),
        )


def test_what_is_no_file_or_was_cut_anywhere_is_refused(cup, tmp_path, monkeypatch):
    write_backup(tmp_path / "whole.tar")
    monkeypatch.setattr(backups, "_refuse_if_taken", lambda: None)
    with pytest.raises(CommandError, match=r"nothing\.tar cannot be read"):
        call_command("restore", str(tmp_path / "nothing.tar"))
    whole = (tmp_path / "whole.tar").read_bytes()
    for length in (0, 100, len(whole) // 3, len(whole) // 2, len(whole) - 20_000):
        (tmp_path / "cut.tar").write_bytes(whole[:length])
        with pytest.raises(CommandError, match=r"cut\.tar|no backup"):
            call_command("restore", str(tmp_path / "cut.tar"))


def test_site_that_has_lost_a_blob_is_backed_up_and_says_so(cup, tmp_path, capsys):
    match = Match.objects.exclude(record_sha256="").get()
    storages["blobs"].delete(f"{match.record_sha256[:2]}/{match.record_sha256[2:]}")
    with pytest.raises(CommandError, match=match.record_sha256):
        call_command("backup", str(tmp_path / "rest.tar"))
    assert "rest.tar: " in capsys.readouterr().out


def as_of_old(name: str, data: bytes) -> bytes:
    """What the first form of backups had: a list of all blobs in the manifest."""
    if name == "about.json":
        return json.dumps({**json.loads(data), "format": "arena-backup/1"}).encode()
    if name != "manifest.json":
        return data
    manifest = json.loads(data)
    del manifest["blobs_sha256"]
    return json.dumps({**manifest, "blobs": sorted(backups._named_blobs())}).encode()


def test_backup_in_the_form_of_old_is_restored(cup, tmp_path, monkeypatch):
    write_backup(tmp_path / "whole.tar")
    old = rewritten(tmp_path / "whole.tar", as_of_old).rename(tmp_path / "old.tar")
    monkeypatch.setattr(backups, "_refuse_if_taken", lambda: None)
    monkeypatch.setattr(backups, "_load", lambda *_: None)
    monkeypatch.setattr(backups, "_new_database", nullcontext)
    monkeypatch.setenv("ARENA_SECRET_KEY_FILE", str(tmp_path / "key"))
    report = backups.restore_backup(old)
    assert (report.blobs, report.lost) == (len(list(backups._named_blobs())), ())
    with pytest.raises(OperationsError, match="is damaged: it has"):
        backups.restore_backup(
            rewritten(old, lambda name, data: None if "blobs/" in name else data)
        )


def test_memory_does_not_grow_with_the_blobs_of_a_site(tmp_path, monkeypatch):
    """What a tar file remembers of each would take more than a megabyte here, and so would a list of all."""
    asked: list[str] = []

    def named(start: str = "") -> set[str]:
        asked.append(start)
        return {f"{start}{number:063x}" for number in range(200)}

    monkeypatch.setattr(backups, "blobs_in_use", named)
    monkeypatch.setattr(backups, "scrimmage_blobs", lambda _: set())
    monkeypatch.setattr(backups, "_CHUNK", 1 << 16)
    monkeypatch.setattr(backups, "read_blob", lambda sha256: sha256.encode())
    tracemalloc.start()
    try:
        report = write_backup(tmp_path / "big.tar")
        written_within = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        monkeypatch.setattr(backups, "_put", lambda _data, sha256, _source: sha256)
        with (tmp_path / "names").open("w+") as there:
            backups._read(tmp_path / "big.tar", tmp_path, there)
        read_within = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.blobs == 16 * 200
    assert "" not in asked
    assert written_within < 800_000
    assert read_within < 800_000


sorted_texts = st.lists(st.sampled_from("abcdefgh"), unique=True).map(sorted)


@given(sorted_texts, sorted_texts)
def test_hashes_in_order_are_joined_and_told_apart_as_sets_are(first, second):
    both = (set(first), set(second))
    assert list(backups._merged(iter(first), iter(second))) == sorted(both[0] | both[1])
    assert list(backups._without(iter(first), iter(second))) == sorted(both[0] - both[1])
    assert list(backups._common(iter(first), iter(second))) == sorted(both[0] & both[1])


def test_blobs_that_nobody_names_stay_out(cup, tmp_path):
    orphan = put_blob(b"left by a crash")
    write_backup(tmp_path / "site.tar")
    with tarfile.open(tmp_path / "site.tar") as tar:
        assert f"blobs/{orphan[:2]}/{orphan[2:]}" not in tar.getnames()


def test_what_a_killed_backup_left_goes_with_a_later_one(tmp_path):
    old, young = tmp_path / ".unfinished-old", tmp_path / ".unfinished-young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "arena.sqlite3").write_text("a database")
    (tmp_path / ".unfinished-file").write_text("a part")
    for left in (old, tmp_path / ".unfinished-file"):
        os.utime(left, (0, 0))
    write_backup(tmp_path / "site.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "site.tar"]


def test_only_the_newest_backups_are_kept_and_nothing_else_goes(tmp_path, monkeypatch):
    (tmp_path / "arena-thesis.tar").write_text("")
    for second in range(4):
        monkeypatch.setattr(
            "time.strftime", lambda pattern, _, second=second: f"arena-20260101-00000{second}.tar"
        )
        call_command("backup", str(tmp_path), "--keep", "2")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "arena-20260101-000002.tar",
        "arena-20260101-000003.tar",
        "arena-thesis.tar",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing/../file.tar/x"], "name another place"),  # below a file
        (["typo/dir/x.tar"], r"there is no folder /.*/typo/dir: make it first"),  # not made
        (["new.tar", "--keep", "2"], "--keep needs a folder"),  # of what?
    ],
)
def test_place_that_takes_no_backup_is_told(tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.tar").write_text("")
    (tmp_path / "missing").mkdir()
    with pytest.raises(CommandError, match=told) as error:
        call_command("backup", *arguments)
    assert error.value.returncode == 2
    assert not (tmp_path / "typo").exists()
