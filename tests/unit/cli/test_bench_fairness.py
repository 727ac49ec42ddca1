"""``arena bench fairness``: what it plays, counts and tells."""

from __future__ import annotations

import json

import pytest

from engine.cli import bench_fairness
from engine.cli.bench_fairness import PLANTED, THINKER, Plan, Played, find, make_plans, run
from engine.cli.exits import ExitCode
from engine.games import GAMES

QUIET = Played(Plan(0, "eighty", ("greedy", "steady"), None), (), ())
SPUN = Plan(1, "podkidnoe", ("greedy", "spins"), "spins")
ON_TIME = ("time", "used up its CPU time")


def test_as_many_matches_as_asked_are_of_bots_that_behave():
    plans = make_plans(300)
    assert sum(plan.planted is None for plan in plans) == 300
    assert [plan.number for plan in plans] == list(range(len(plans)))


def test_every_misdeed_game_and_seat_is_among_the_planted():
    planted = [plan for plan in make_plans(300) if plan.planted is not None]
    assert {plan.planted for plan in planted} == set(PLANTED)
    assert {plan.game for plan in planted} == set(GAMES)
    assert {plan.bots.index(plan.planted) for plan in planted} >= {0, 1}
    assert all(sum(bot in PLANTED for bot in plan.bots) == 1 for plan in planted)


def test_bots_that_behave_also_think_long():
    assert any(THINKER in plan.bots for plan in make_plans(2))


def test_claim_holds_where_only_who_spins_loses_on_time():
    spun = Played(SPUN, (("spins", *ON_TIME),), ("attempt 1 of 5 is void",))
    found = find([QUIET, spun])
    assert found.holds
    assert (found.matches, found.time_forfeits, found.void_attempts) == (1, 0, 1)
    assert found.planted == found.caught == {"spins": 1}


@pytest.mark.parametrize(
    "played",
    [
        pytest.param(Played(QUIET.plan, (("steady", *ON_TIME),), ()), id="one that behaves lost"),
        pytest.param(Played(SPUN, (("greedy", *ON_TIME),), ()), id="the wrong one lost"),
        pytest.param(Played(SPUN, (), ()), id="one that spins got away"),
        pytest.param(Played(SPUN, (("spins", "crash", "raised"),), ()), id="not on time"),
        pytest.param(
            Played(QUIET.plan, (("steady", "crash", "raised"),), ()),
            id="another fault of a good one",
        ),
        pytest.param(Played(QUIET.plan, (), ("void",) * 4, "no result"), id="never played"),
    ],
)
def test_claim_does_not_hold(played):
    assert not find([QUIET, played]).holds


@pytest.mark.sandbox
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param({}, id="as they are"),
        pytest.param({"nice": 19}, id="at the lowest priority"),
        pytest.param({"freeze_seconds": 11.0}, id="stopped for longer than a bot may take"),
    ],
)
def test_time_is_fair_on_a_busy_machine(capsys, conditions):
    settings = {"nice": 0, "freeze_seconds": 0.0, **conditions}
    assert run(matches=11, busy=4, workers=2, as_json=True, **settings) is ExitCode.OK
    answer = json.loads(capsys.readouterr().out)
    assert answer["matches"] == 11
    assert answer["caught"] == answer["planted"] == {"spins": 1, "sleeps": 1}


def test_claim_that_fails_is_told_and_exits_so(monkeypatch, capsys):
    lost = Played(QUIET.plan, (("steady", *ON_TIME),), ())
    monkeypatch.setattr("engine.sandbox.probe.require_sandbox", lambda: None)
    monkeypatch.setattr(bench_fairness._Crew, "play", lambda *_: iter([lost]))
    settings = {"matches": 1, "busy": 0, "workers": 1, "nice": 0, "freeze_seconds": 0.0}
    assert run(**settings, as_json=False) is ExitCode.NOT_GOOD
    told = capsys.readouterr().out
    assert "1 matches of bots that behave: 1 lost on time" in told
    assert "the claim does not hold" in told
