"""The embedded database under eight processes: no "database is locked" reaches anybody."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.test import Client, override_settings
from django.urls import reverse

from tests.faults import oracle
from tests.faults.databases import Database, make_cup, play_on, published_here
from tests.faults.harness import Tally
from tests.processes import PROCESSES, at_once
from tests.tournament_factories import make_bot, make_player, make_tournament, make_wheel
from tournament import tasks
from tournament.competitions import services
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import Match, Tournament
from tournament.competitions.services.playing import _claim, release_match
from tournament.players.models import Bot, BotVersion, Player
from tournament.players.services import submit_wheel

pytestmark = [
    pytest.mark.faults,
    pytest.mark.exhaustive,
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
]
SECONDS = 6.0


class Complaints(logging.Handler):
    """Keeps what is logged about a locked database: somebody may have caught it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage() + logging.Formatter().formatException(
            record.exc_info or (None, None, None)
        )
        if "locked" in text:
            self.heard.append(text)


def repeat(act: Callable[[int], Any]) -> int:
    """Do it again and again for a while; how often. Raises AssertionError if a locked database was logged."""
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    done, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        act(done)
        done += 1
    assert not complaints.heard
    return done


def play_and_dispatch(_: int) -> None:
    with published_here() as messages:
        tasks.dispatch(rung=True)
        messages.deliver()


def visit(number: int) -> None:
    pages = ("home", "leaderboards:index", "competitions:list", "players:bots")
    response = Client().get(reverse(pages[number % len(pages)]))
    assert response.status_code == 200, response.content[:500]


def upload(number: int) -> None:
    owner = Player.objects.get(username="author")
    submit_wheel(owner=owner, data=make_wheel("uploaded", f"1.{number}"))


def sign_up(number: int) -> None:
    client, name = Client(), f"newcomer{number}"
    make_player(name)
    answer = client.post(reverse("log-in"), {"username": name, "password": "correct horse 9"})
    assert answer.status_code == 302, answer.content[:500]
    assert client.get(reverse("my-bots")).status_code == 200


def enter_and_leave(_: int) -> None:
    tournament, bot = Tournament.objects.get(name="Open"), Bot.objects.get(name="guest")
    entrant = services.enter(tournament=tournament, bots=[bot], by=bot.owner)
    services.leave(entrant=entrant, by=bot.owner)


def pause_and_resume(_: int) -> None:
    tournament = Tournament.objects.get(name="Open")
    try:
        services.pause_tournament(tournament=tournament, reason="a look at it")
        services.resume_tournament(tournament=tournament)
    except TournamentStateError:
        pass


ROLES = (
    play_and_dispatch,
    play_and_dispatch,
    play_and_dispatch,
    visit,
    upload,
    sign_up,
    enter_and_leave,
    pause_and_resume,
)


def test_eight_processes_that_play_dispatch_and_visit_meet_no_locked_database(
    database: Database, tally: Tally
):
    with database.entered():
        cup = make_cup(bots=6, format="round_robin")
        make_player("author")
        make_bot("guest")
        make_tournament(name="Open")
        connections.close_all()
    with database.tried():
        expected = oracle.play_without_faults([cup])
    with (
        database.entered(),
        override_settings(
            SIGN_UPS_AN_HOUR=10_000, ARENA_UPLOADS_A_DAY=10_000, ARENA_MAX_UNCHECKED=10_000
        ),
    ):
        done = at_once(lambda number: repeat(ROLES[number]), len(ROLES))
        assert all(done), done
        tally.fault("write beside seven others", sum(done))
        play_on([cup])
        tally.judged(oracle.judge([cup], expected))
        assert BotVersion.objects.filter(bot__name="uploaded").count() == done[ROLES.index(upload)]
        connections.close_all()


def claim_and_give_back(number: int) -> int:
    """What a worker does to the database again and again."""
    pk = Match.objects.order_by("pk").values_list("pk", flat=True)[0]
    for _ in range(60):
        lease = _claim(pk, f"worker {number}")
        if lease is not None:
            release_match(lease)
    return 1


def test_without_immediate_transactions_claims_do_meet_a_locked_database(database: Database):
    """Else the test above could not fail: it is this setting that the embedded profile stands on."""
    with database.entered():
        make_cup(bots=2)
        assert at_once(claim_and_give_back) == [1] * PROCESSES
        connections["default"].close()
        connections.settings["default"]["OPTIONS"]["transaction_mode"] = "DEFERRED"
        connections["default"].settings_dict["OPTIONS"]["transaction_mode"] = "DEFERRED"
        connections["default"].transaction_mode = "DEFERRED"
        with pytest.raises(ExceptionGroup) as met:
            at_once(claim_and_give_back)
        locked, others = met.value.split(OperationalError)
        assert locked is not None
        assert others is None
        assert "locked" in str(locked.exceptions[0])
        connections.close_all()
