"""`manage.py revalidate` tells what an upgrade would break, and changes nothing."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures.process import BrokenProcessPool

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command

from engine.checking import AcceptedGame, CheckReport
from engine.errors import InfrastructureError
from tests.tournament_factories import accept, make_bot, make_player, submit
from tournament.operations import revalidation
from tournament.operations.management.commands import revalidate
from tournament.players.models import BotVersion, VersionState

pytestmark = pytest.mark.django_db
EIGHTY, PODKIDNOE = "eighty", "podkidnoe"


def accepted(**games) -> CheckReport:
    found = tuple(AcceptedGame(game=name, options=options) for name, options in games.items())
    return CheckReport(verdict="accepted", games=found)


@pytest.fixture
def would_be(monkeypatch):
    """What each check comes to, in order."""
    reports = []

    def check(_data, **_):
        report = reports.pop(0)
        if isinstance(report, Exception):
            raise report
        return report

    monkeypatch.setattr(revalidation, "check_wheel", check)
    monkeypatch.setattr(revalidate, "require_sandbox", lambda: None)
    return reports


def run(capsys, *arguments: str) -> tuple[int, str]:
    try:
        call_command("revalidate", "--jobs", "1", *arguments)
    except SystemExit as end:
        return end.code, capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_what_stays_as_it_is_is_only_counted(would_be, capsys):
    make_bot("alpha")
    would_be += [accepted(eighty={"players": [4]}, podkidnoe={"players": [2, 3, 4]})]
    code, told = run(capsys)
    assert code == 0
    assert told.startswith("1 versions checked with Python ")
    assert told.endswith("none would break\n")


@pytest.mark.parametrize(
    ("report", "outcome", "told"),
    [
        (
            CheckReport(verdict="rejected", reasons=("it imports tomllib2, which is gone",)),
            "rejected",
            "it imports tomllib2, which is gone",
        ),
        (
            accepted(eighty={"players": [4]}),
            "less",
            "would not be accepted for Podkidnoe",
        ),
        (
            accepted(eighty={"players": [4]}, podkidnoe={"players": [2, 4]}),
            "less",
            "would not be accepted for Podkidnoe with players = 3",
        ),
        (InfrastructureError("no memory"), "unknown", "InfrastructureError: no memory"),
    ],
)
def test_what_would_break_is_listed_with_its_reason_and_nothing_is_changed(
    would_be, capsys, report, outcome, told
):
    make_bot("alpha")
    before = list(BotVersion.objects.values())
    would_be += [report]
    code, said = run(capsys, "--json")
    answer = json.loads(said)
    assert code == 1
    assert answer["checked"] == 1
    assert answer["broken"] == [
        {"bot": "alpha", "version": "1.0", "outcome": outcome, "reasons": [told]}
    ]
    assert list(BotVersion.objects.values()) == before


def test_wheel_that_is_lost_is_told_and_the_others_are_checked(would_be, capsys):
    lost = make_bot("alpha").versions.get().wheel_sha256
    make_bot("beta")
    storages["blobs"].delete(f"{lost[:2]}/{lost[2:]}")
    would_be += [CheckReport(verdict="rejected", reasons=("gone",))]
    code, told = run(capsys)
    assert code == 1
    assert f"no blob {lost}" in told
    assert "rejected beta 1.0" in told
    assert "2 would break" in told


def test_only_what_may_play_is_checked_and_with_newest_only_the_last_of_each_bot(would_be):
    owner = make_player()
    accept(submit(owner, "alpha", "1.0"))
    accept(submit(owner, "alpha", "2.0"))
    submit(owner, "alpha", "3.0")
    accept(submit(owner, "beta", "1.0"))
    assert BotVersion.objects.filter(state=VersionState.SUBMITTED).count() == 1

    def names(**choice) -> list[str]:
        return [f"{row.bot} {row.version}" for row in revalidation.accepted_versions(**choice)]

    assert names() == ["alpha 1.0", "alpha 2.0", "beta 1.0"]
    assert names(newest=True) == ["alpha 2.0", "beta 1.0"]
    assert names(bot="beta") == ["beta 1.0"]


class Killed(contextlib.nullcontext):
    """Processes of which one was killed."""

    def __init__(self, *_, **__):
        super().__init__(self)

    def submit(self, *_):
        raise BrokenProcessPool


def test_killed_process_of_ours_is_told_and_is_no_bots_fault(would_be, monkeypatch):
    make_bot("alpha")
    monkeypatch.setattr(revalidation, "ProcessPoolExecutor", Killed)
    with pytest.raises(CommandError, match="Try fewer --jobs") as error:
        call_command("revalidate", "--jobs", "2")
    assert error.value.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--bot", "gone"], "'gone' has no accepted version"),  # a slip of the pen
        (["--jobs", "0"], "at least 1"),  # nobody would check
    ],
)
def test_usage_errors_are_told(would_be, arguments, told):
    with pytest.raises(CommandError, match=told) as error:
        call_command("revalidate", *arguments)
    assert error.value.returncode == 2


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.exhaustive
def test_real_checks_run_beside_each_other(capsys):
    make_bot("alpha")
    make_bot("beta")
    call_command("revalidate", "--jobs", "2")
    assert "2 versions checked" in capsys.readouterr().out
