"""Quarantine: how many crashes are too many, and what its owner and the staff then see and do."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.tournament_factories import accept, make_bot, make_player, submit
from tournament.players import services
from tournament.players.models import BotVersion, Player, VersionState
from tournament.players.selectors import version_log, version_log_parts
from tournament.store.services import put_blob

pytestmark = pytest.mark.django_db

CRASH = services.Crash(
    match="cup/SE/R1/M1",
    detail="raised ValueError while choosing an action",
    log="ValueError: <b>no idea</b>",
)


@pytest.fixture
def version() -> BotVersion:
    return make_bot("alpha", make_player("ann")).versions.get()


def count(version: BotVersion, results: str) -> list[bool]:
    """Count matches in order, ``x`` a crash: for each whether it was set aside by it."""
    set_aside = [
        services.count_match(version_id=version.pk, crash=CRASH if result == "x" else None)
        for result in results
    ]
    version.refresh_from_db()
    return set_aside


@pytest.mark.parametrize(
    ("results", "is_set_aside"),
    [
        ("xxx", True),  # three in a row
        (".....xxx", True),  # after whatever
        ("xx", False),  # only two
        ("xx.xx", False),  # never three in a row
        ("....x" * 10, True),  # 10 of 50
        ("....x" * 9 + ".....", False),  # 9 of 50
        ("x." * 20 + ".........", False),  # 20 of 49: not enough matches yet
        ("x." * 20 + "..........x", True),  # 21 of 51
        ("." * 100 + "x." * 10, False),  # 10 of 120
    ],
)
def test_three_in_a_row_or_a_fifth_of_fifty_are_too_many(version, results, is_set_aside):
    set_aside = count(version, results)
    assert (version.state == VersionState.QUARANTINED) is is_set_aside
    assert set_aside == [False] * (len(results) - 1) + [is_set_aside]
    assert (version.matches_played, version.crashes) == (len(results), results.count("x"))


def test_reason_names_the_crashes_and_the_last_one(version):
    count(version, "xxx")
    assert version.reason.startswith(
        "it crashed in 3 matches in a row; the last time in cup/SE/R1/M1: raised ValueError while "
        "choosing an action."
    )
    other = make_bot("beta").versions.get()
    count(other, "....x" * 10)
    assert other.reason.startswith("it crashed in 10 of 50 matches; ")


def test_log_of_the_check_stays_below_the_match_that_set_it_aside(version):
    BotVersion.objects.filter(pk=version.pk).update(log_sha256=put_blob(b"checked\n"))
    count(version, "xxx")
    log = version_log(version)
    assert log.startswith(
        "##### The match that caused its quarantine: cup/SE/R1/M1: raised ValueError"
    )
    (cause, crash), (check, said) = version_log_parts(version)
    assert crash.endswith("ValueError: <b>no idea</b>")
    assert said == "checked"
    assert cause.startswith("The match that caused its quarantine: cup/SE/R1/M1: ")
    assert check == "What it wrote while it was checked"
    assert log.rstrip().endswith("\nchecked")


def test_damaged_log_keeps_nothing_from_being_recorded(version):
    BotVersion.objects.filter(pk=version.pk).update(log_sha256="0" * 64)
    count(version, "xxx")
    assert version.state == VersionState.QUARANTINED
    assert "(the log of its check cannot be read)" in version_log(version)


@pytest.mark.parametrize("state", [VersionState.WITHDRAWN, VersionState.QUARANTINED])
def test_only_an_accepted_version_is_set_aside(version, state):
    if state == VersionState.WITHDRAWN:
        services.withdraw_version(version=version, reason="old")
    else:
        services.quarantine_version(version=version, reason="old")
    assert count(version, "xxxx") == [False] * 4
    assert (version.state, version.reason) == (state, "old")


def test_accepted_again_it_begins_without_a_crash(version):
    count(version, "xxx")
    services.release_version(version=version)
    assert count(version, "xx") == [False, False]
    assert version.state == VersionState.ACCEPTED
    assert count(version, "x") == [True]


def test_new_version_begins_without_a_crash(version):
    count(version, "xx")
    newer = accept(submit(version.bot.owner, "alpha", "1.1"))
    assert count(newer, "x") == [False]


def test_owner_reads_state_reason_and_log(version):
    count(version, "xxx")
    owner = Client()
    owner.force_login(version.bot.owner)
    page = owner.get("/account/bots/").content.decode()
    assert "set aside" in page
    assert "it crashed in 3 matches in a row" in page
    log = owner.get(f"/account/versions/{version.pk}/log/")
    shown = owner.get(f"/account/versions/{version.pk}/").content.decode()
    assert "Mend it and upload" in shown
    assert "&lt;b&gt;no idea" in log.content.decode()
    assert "<b>no idea" not in log.content.decode()

    _, token = services.create_token(player=version.bot.owner)
    program = Client(headers={"Authorization": f"Bearer {token}"})
    status = program.get(f"/api/versions/{version.pk}").json()
    assert status["state"] == "quarantined"
    assert status["reason"] == version.reason
    assert "no idea" in program.get(f"/api/versions/{version.pk}/log").content.decode()


def test_nobody_else_reads_its_log(version):
    count(version, "xxx")
    stranger = Client()
    stranger.force_login(make_player())
    for visitor in (stranger, Client()):
        answer = visitor.get(f"/account/versions/{version.pk}/log/")
        assert answer.status_code in {302, 404}


def test_staff_lift_it_in_the_admin(version):
    count(version, "xxx")
    staff = Player.objects.create_superuser("root", password="correct horse 9")
    client = Client()
    client.force_login(staff)
    address = f"/admin/players/botversion/operate/release/?ids={version.pk}"
    page = client.get(f"/admin/players/botversion/{version.pk}/change/").content.decode()
    assert "Accept again" in page
    client.post(address)
    version.refresh_from_db()
    assert (version.state, version.reason) == (VersionState.ACCEPTED, "")
    assert (version.crashes, version.crashes_in_a_row, version.matches_played) == (0, 0, 0)
