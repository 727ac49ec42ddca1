"""The journey: a wheel is uploaded, checked in the sandbox, entered, frozen, played, rated, published.

Everything is real here but the clock: dispatch is told the times of the tournament, and the messages it
would publish are carried by hand.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.record import compute_digest, deal_board, encode_record, replay
from engine.shuffle import commitment, deal_key, tournament_prk
from tests.tournament_factories import (
    accept,
    make_bot,
    make_plan,
    make_player,
    make_tournament,
    make_wheel,
)
from tournament.competitions import services as competitions
from tournament.competitions.models import DecidedBy, TournamentState
from tournament.competitions.selectors import match_logs, match_record, tournament_page
from tournament.competitions.services import Play
from tournament.competitions.services.dispatching import move_due_tournaments
from tournament.leaderboards.selectors import leaderboard_page
from tournament.leaderboards.services import verify_ratings
from tournament.players import services as players
from tournament.players.models import BotVersion, VersionState
from tournament.players.selectors import version_log, version_status

pytestmark = [pytest.mark.django_db, pytest.mark.sandbox, pytest.mark.slow]

EIGHTY_ONLY = """
from engine.sdk import Strategy, hookimpl


@hookimpl
def make_strategy(game, ruleset, players):
    return {choice}() if game == "eighty" else None


class First(Strategy):
    def act(self, observation):
        print("my hand is my own business")
        return observation.legal[0]


class Last(Strategy):
    def act(self, observation):
        return observation.legal[-1]


class Broken(Strategy):
    def act(self, observation):
        raise RuntimeError("out of ideas")
"""


def submit(owner, name: str, choice: str, folder: Path) -> BotVersion:
    data = make_wheel(name, source=EIGHTY_ONLY.replace("{choice}", choice), folder=folder)
    return players.submit_wheel(owner=owner, data=data)


def carry() -> None:
    """Dispatch, and carry what it publishes, until nothing is left."""
    while True:
        due = competitions.dispatch(rung=True)
        for pk in due.versions:
            players.run_validation(version_id=pk)
        for block in due.blocks:
            for pk in block:
                assert competitions.play_match(match_id=pk) is Play.RECORDED
        if due == competitions.Due():
            return


def at(moment: datetime) -> None:
    move_due_tournaments(now=moment)
    carry()


def test_from_the_wheel_to_the_leaderboard(tmp_path):
    ada, eve, bob = make_player("ada"), make_player("eve"), make_player("bob")
    versions = [
        submit(ada, "first", "First", tmp_path),
        submit(eve, "last", "Last", tmp_path),
        submit(bob, "broken", "Broken", tmp_path),
    ]
    plan = make_plan(contest={"kind": "boards", "boards": 8}, time_control="standard")
    tournament = competitions.create_tournament(organiser=ada, plan=plan)
    at(datetime.now(UTC))
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.OPEN
    published = tournament.commitment

    for version in versions:
        version.refresh_from_db()
    assert [v.state for v in versions] == ["accepted", "accepted", "rejected"]
    assert version_status(versions[0]).games["eighty"]["players"] == [4]
    assert "podkidnoe" not in version_status(versions[0]).games
    assert "out of ideas" in version_log(versions[2])
    assert versions[2].reason

    for version in versions[:2]:
        competitions.enter(tournament=tournament, bots=[version.bot], by=version.bot.owner)
    at(plan.closes_at)
    at(plan.starts_at)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED

    page = tournament_page(tournament.slug)
    assert sorted(row.place for row in page.entrants) == [1, 2]
    match = tournament.matches.get()
    assert match.rated
    assert match.is_sandboxed
    record = match_record(match)
    judged = replay(record)  # raises at the first untruth
    assert compute_digest(record) == match.digest

    # What anybody can verify from what is published: the secret, and with it every deal.
    secret = bytes.fromhex(page.secret)
    assert commitment(tournament.slug, secret) == published
    wheels = dict(json.loads(tournament.pub)["entrants"])
    assert wheels == {v.bot.name: v.wheel_sha256 for v in versions[:2]}
    prk = tournament_prk(secret, tournament.pub)
    for game in record.games:
        (deal,) = game.deals
        key = deal_key(prk, "eighty", tournament.slug, "SE/R1/M1", deal.number)
        assert deal.key == key.hex()
        board = deal_board(judged.game, judged.ruleset, 2, key)
        assert [" ".join(map(str, hand)) for hand in board.hands] == deal.hands
        assert board.first == deal.first

    assert any("own business" in log.log.text for log in match_logs(match, ada))
    assert not any("own business" in log.log.text for log in match_logs(match, eve))
    assert not re.search(rb"\bada\b", encode_record(record))  # hex may hold these letters

    rows = leaderboard_page(game="eighty", kind="mono").rows
    assert {row.bot for row in rows} == {"first", "last"}
    assert [row.rank for row in rows] == [1, 2]
    assert rows[0].bot == next(row.name for row in page.entrants if row.place == 1)
    assert verify_ratings(game="eighty", kind="mono") == ()


def test_close_waits_for_a_check_and_takes_its_version(tmp_path):
    bots = [make_bot("alpha"), make_bot("beta")]
    tournament = make_tournament(bots)
    newer = players.submit_wheel(owner=bots[0].owner, data=make_wheel("alpha", "1.1"))
    assert move_due_tournaments(now=tournament.closes_at + timedelta(seconds=1)) == 1
    tournament.refresh_from_db()
    assert (tournament.state, tournament.pub) == (TournamentState.CLOSED, "")
    carry()
    tournament.refresh_from_db()
    newer.refresh_from_db()
    assert newer.state == VersionState.ACCEPTED
    assert newer.wheel_sha256 in tournament.pub


def test_bot_that_crashes_in_play_loses_its_match(tmp_path):
    good = make_bot("good")
    bad = accept(
        submit(make_player(), "bad", "Broken", tmp_path)
    ).bot  # as if the check had missed it
    tournament = make_tournament([good, bad], contest={"kind": "boards", "boards": 8})
    at(tournament.closes_at)
    at(tournament.starts_at)
    match = tournament.matches.get()
    assert (match.termination, match.pairing.decided_by) == ("crash", DecidedBy.FAULT)
    assert tournament.entrants.get(place=1).name == "good"
    assert match.tries.count() == 1
    (log,) = [log for log in match_logs(match, bad.owner) if log.fault]
    assert "out of ideas" in log.log.traceback
