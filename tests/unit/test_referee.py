"""The referee with agents that do as they are told."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.agents import AgentLog, Declined, Failure, Limits, Reply
from engine.errors import ContestError, InfrastructureError
from engine.outcome import Termination
from engine.record import (
    BoardsContest,
    DealSource,
    GamesContest,
    GivenDeal,
    encode_record,
    replay,
)
from engine.referee import play_match, spell_observation
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import bot_seed, local_prk
from tests.match_fakes import (
    FakeAgent,
    FakeFactory,
    at_random,
    entrant,
    fails_at,
    fails_on_seat,
    first_legal,
    last_legal,
    play,
    sources_of,
    spec_of,
)

CRASH = Failure(Termination.CRASH, "raised ValueError while choosing an action", 11)
SLOW = Failure(Termination.TIME, "used up its CPU time while starting")


def games_of(match) -> list[tuple[int | None, int]]:
    return [(game.board, game.rotation) for game in match.record.games]


# --- who sits down when ------------------------------------------------------------------------------------


def test_all_agents_are_started_before_one_is_waited_for_and_one_is_asked():
    _, factory = play(spec_of("podkidnoe", BoardsContest(1), entrants=3))
    kinds = [entry.split()[0] for entry in factory.diary]
    assert kinds[:6] == ["start"] * 3 + ["ready"] * 3
    assert kinds[6] == "ask"
    assert [entry.split()[1] for entry in factory.diary[:3]] == ["alpha", "beta", "gamma"]


def test_each_rotation_of_boards_is_played_by_fresh_agents():
    _, factory = play(spec_of("eighty", BoardsContest(3)))
    assert len(factory.agents) == 2 * 4
    assert [len(agent.infos) for agent in factory.agents] == [3] * 8
    assert [info.number for info in factory.agents[0].infos] == [0, 1, 2]


def test_each_game_of_a_games_match_is_played_by_fresh_agents():
    match, factory = play(spec_of("podkidnoe", GamesContest(3), entrants=2))
    assert len(factory.agents) == 3 * 2
    assert games_of(match) == [(None, 0), (None, 1), (None, 0)]


def test_each_rotation_of_an_extra_board_is_played_by_fresh_agents():
    match, factory = play(spec_of("eighty", BoardsContest(2, 2)), first_legal)
    assert games_of(match) == [(b, r) for b in range(4) for r in range(2)]
    assert len(factory.agents) == 2 * 4 + 2 * 2 * 4
    assert {log.sitting for log in match.logs} == set(range(6))


def test_one_sitting_ends_before_the_next_begins():
    _, factory = play(spec_of("eighty", BoardsContest(2, 1)), first_legal)
    living = 0
    for entry in factory.diary:
        living += {"start": 1, "close": -1}.get(entry.split()[0], 0)
        assert 0 <= living <= 4
    assert living == 0


def test_a_match_is_played_rotation_by_rotation_and_listed_by_board():
    match, factory = play(spec_of("podkidnoe", BoardsContest(2), entrants=2))
    asked = [entry.split()[2].split("/")[0] for entry in factory.diary if entry.startswith("ask")]
    changes = [deal for i, deal in enumerate(asked) if i == 0 or asked[i - 1] != deal]
    assert changes == ["0", "1", "0", "1"]
    assert games_of(match) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_pairs_bots_sit_in_the_order_of_its_seats():
    spec = spec_of("eighty", entrants=[entrant("alpha", "beta", name="P"), entrant("gamma")])
    match, factory = play(spec)
    assert [agent.bot for agent in factory.agents] == [
        *("alpha", "gamma", "beta", "gamma"),
        *("gamma", "alpha", "gamma", "beta"),
    ]
    assert [(log.entrant, log.bot, log.seat) for log in match.logs[4:]] == [
        (1, 0, 0), (0, 0, 1), (1, 0, 2), (0, 1, 3),
    ]  # fmt: skip


def test_each_seat_learns_its_own_random_seed_and_the_names_by_seat():
    spec = spec_of("podkidnoe", BoardsContest(1), entrants=3)
    _, factory = play(spec)
    infos = [agent.infos[0] for agent in factory.agents]
    assert [info.random_seed for info in infos] == [
        int.from_bytes(bot_seed(local_prk("tests"), "podkidnoe", "local", "M1", rotation, seat))
        for rotation in range(3)
        for seat in range(3)
    ]
    assert infos[3].players == ("Beta", "Gamma", "Alpha")
    assert [info.seat for info in infos] == [0, 1, 2] * 3


# --- questions and clocks --------------------------------------------------------------------------------------


def test_what_is_forced_is_recorded_but_not_asked():
    match, factory = play(spec_of("eighty", BoardsContest(1)))
    asked = [entry.split("/")[1] for entry in factory.diary if entry.startswith("ask")]
    actions = sum(len(game.deals[0].actions) for game in match.record.games)
    assert len(asked) < actions
    assert all(len(o.legal) > 1 for agent in factory.agents for o in agent.asked)


@pytest.mark.parametrize("game", ["eighty", "podkidnoe"])
def test_what_an_agent_chose_is_what_is_recorded(game):
    chosen = []

    def noting(agent, observation, legal) -> int:
        index = at_random(agent, observation, legal)
        chosen.append(f"{observation.seat} {legal[index]}")
        return index

    match, _ = play(spec_of(game, GamesContest(1)), noting)
    actions = [action for deal in match.record.games[0].deals for action in deal.actions]
    recorded = iter(actions)
    assert all(choice in recorded for choice in chosen), "in this order"
    assert len(chosen) > len(actions) / 3


CONTROL = TimeControl("own", start_cpu_ms=3, game_cpu_ms=100, action_cpu_ms=10, action_wall_ms=77)


def test_each_question_adds_to_the_clock_and_each_answer_takes_from_it():
    spends = {"alpha": lambda _, __, legal: Reply(len(legal) - 1, 4000), "beta": last_legal}
    spec = spec_of("eighty", BoardsContest(2), control=CONTROL)
    factory = FakeFactory(spends)
    match = play_match(spec, sources_of(spec), factory)
    agent = factory.agents[0]
    second = agent.asked_in.index(1)
    assert [limit.cpu_us for limit in agent.limits[:3]] == [110_000, 116_000, 122_000]
    assert agent.limits[second].cpu_us == 110_000, "nothing is carried into the next board"
    assert [o.clock_ms for o in agent.asked[:2]] == [110, 116]
    assert {limit.wall_ms for limit in agent.limits} == {77}
    assert agent.start_limits == Limits(3000, 77)
    assert match.record.timing.cpu_us[0][0] == 4000 * second


def test_on_a_slow_machine_every_budget_of_cpu_time_is_longer_and_the_record_tells():
    spec = spec_of("eighty", BoardsContest(1), control=CONTROL)
    factory = FakeFactory({"alpha": first_legal, "beta": last_legal})
    match = play_match(spec, sources_of(spec), factory, budget_percent=150)
    agent = factory.agents[0]
    assert agent.start_limits == Limits(4500, 77)
    assert [limit.cpu_us for limit in agent.limits[:2]] == [165_000, 165_000 + 15_000 - 7]
    assert agent.asked[0].clock_ms == 165
    assert match.record.timing.budget_percent == 150


def test_every_action_has_its_cpu_time_and_forced_ones_cost_nothing():
    spends = {"alpha": lambda _, __, ___: Reply(0, 4000), "beta": first_legal}
    spec = spec_of("podkidnoe", BoardsContest(2))
    factory = FakeFactory(spends)
    record = play_match(spec, sources_of(spec), factory).record
    times = record.timing.action_cpu_us
    assert [[len(deal) for deal in game] for game in times] == [
        [len(deal.actions) for deal in game.deals] for game in record.games
    ]
    for game, by_deal, by_seat in zip(record.games, times, record.timing.cpu_us, strict=True):
        spent = [0, 0]
        for action, cost in zip(game.deals[0].actions, by_deal[0], strict=True):
            spent[int(action[0])] += cost
        assert spent == by_seat
    asked = sum(len(agent.asked) for agent in factory.agents)
    assert sum(cost > 0 for by_deal in times for deal in by_deal for cost in deal) == asked


def test_in_a_games_match_the_clock_runs_through_the_deals_of_a_game():
    spec = spec_of("eighty", GamesContest(1), control=CONTROL)
    factory = FakeFactory({"alpha": first_legal, "beta": last_legal})
    play_match(spec, sources_of(spec), factory)
    agent = factory.agents[0]
    assert [limit.cpu_us for limit in agent.limits] == [
        110_000 + (10_000 - 7) * i for i in range(len(agent.limits))
    ]
    assert len(agent.limits) > 10, "more than one deal"


def test_the_lease_is_kept_alive_at_every_question():
    """However quick each answer is, a deal of many can last longer than a lease."""
    beats = []
    _, factory = play(spec_of("podkidnoe", BoardsContest(2)), keep_alive=lambda: beats.append(1))
    assert len(beats) == sum(len(agent.asked) for agent in factory.agents)


def test_progress_is_told_after_each_game():
    told = []
    spec = spec_of("eighty", BoardsContest(2))
    play_match(
        spec,
        sources_of(spec),
        FakeFactory({"alpha": at_random, "beta": at_random}),
        progress=told.append,
    )
    assert told == [1, 2, 3, 4]


def test_a_lost_lease_ends_the_play_and_leaves_no_agent_behind():
    class LostLeaseError(Exception):
        pass

    def lose() -> None:
        raise LostLeaseError

    spec = spec_of()
    factory = FakeFactory({"alpha": at_random, "beta": at_random})
    with pytest.raises(LostLeaseError):
        play_match(spec, sources_of(spec), factory, lose)
    assert [agent.is_closed for agent in factory.agents] == [True] * 4


# --- faults ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "termination"),
    [(kind, kind.value) for kind in Termination if kind not in {"completed", "forfeit"}],
)
def test_a_fault_ends_the_match_with_the_offender_last(kind, termination):
    match, factory = play(
        spec_of("podkidnoe", BoardsContest(2), entrants=4),
        at_random,
        fails_at(1, Failure(kind, "did it")),
        at_random,
    )
    outcome = match.record.outcome
    assert outcome.termination == termination
    assert [(f.entrant, f.seat, f.kind, f.detail) for f in outcome.faults] == [
        (1, 1, kind, "did it")
    ]
    assert outcome.points == (0, 0, 0, 0)
    assert outcome.places == (1, 4, 1, 1)
    assert match.record.games[-1].deals[-1].score is None
    assert all(agent.is_closed for agent in factory.agents)
    replay(match.record)


def test_what_a_failed_answer_cost_is_counted():
    match, _ = play(spec_of("podkidnoe", BoardsContest(1)), fails_at(0, CRASH), at_random)
    assert match.record.timing.cpu_us[0][0] == 11


def test_everybody_who_fails_to_start_is_named_whoever_was_first():
    match, factory = play(
        spec_of("podkidnoe", BoardsContest(1), entrants=4),
        ready={"beta": SLOW, "delta": Failure(Termination.CRASH, "raised X while starting")},
    )
    outcome = match.record.outcome
    assert [(f.entrant, f.kind) for f in outcome.faults] == [(1, "time"), (3, "crash")]
    assert outcome.termination == "time"
    assert outcome.places == (1, 3, 1, 3)
    assert match.record.games == []
    assert not any(entry.startswith("ask") for entry in factory.diary)
    replay(match.record)


@pytest.mark.parametrize(
    ("spec", "sitting", "games"),
    [
        (spec_of("eighty", BoardsContest(2)), 1, [(0, 0), (1, 0)]),  # a rotation
        (spec_of("eighty", BoardsContest(1, 2)), 3, [(0, 0), (0, 1), (1, 0)]),  # of an extra board
        (spec_of("podkidnoe", GamesContest(4)), 2, [(None, 0), (None, 1)]),  # a game
    ],
    ids=["rotation", "extra board", "game"],
)
def test_who_fails_to_start_later_leaves_what_was_finished(spec, sitting, games):
    match, factory = play(spec, last_legal, ready={"beta": SLOW, "alpha": SLOW}, ready_from=sitting)
    assert games_of(match) == games
    assert all(deal.score is not None for game in match.record.games for deal in game.deals)
    assert match.record.outcome.places == (1, 1)
    assert {log.sitting for log in match.logs} == set(range(sitting + 1))
    assert all(agent.is_closed for agent in factory.agents)
    replay(match.record)


def test_who_does_not_play_this_is_at_fault():
    match, _ = play(spec_of(), ready={"alpha": Declined(3)})
    fault = match.record.outcome.faults[0]
    assert fault.kind == "protocol"
    assert fault.detail == "does not play eighty at a table of 4 by these rules"
    assert [f.seat for f in match.record.outcome.faults] == [0, 2]


def test_when_all_fail_they_tie():
    match, _ = play(spec_of(), ready={"alpha": SLOW, "beta": SLOW})
    assert match.record.outcome.places == (1, 1)
    assert len(match.record.outcome.faults) == 4


def test_a_fault_in_a_later_game_leaves_the_finished_ones():
    match, _ = play(
        spec_of("eighty", GamesContest(5)), at_random, fails_on_seat(0, 0, CRASH), at_random
    )
    assert [(game.rotation, game.deals[-1].score is None) for game in match.record.games] == [
        (0, False),
        (1, True),
    ]
    replay(match.record)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("two\nlines\tand \x1b[31mred", "two lines and [31mred"),  # one line, no control characters
        ("x" * 300, "x" * 199 + "…"),  # cut where it is too long
        ("No such file: '/home/me/bots/a.py'", "No such file: 'a.py'"),  # no paths
        (r"in C:\Users\me\a.py", "in a.py"),
        ("<Bot object at 0x7f3a5c0d1e50>", "<Bot object at 0x…>"),  # no addresses
        ("1/2 and/or", "1/2 and/or"),
        ("see https://example.org/page", "see https://example.org/page"),
        ("\u202eright to left", "right to left"),
    ],
)
def test_the_detail_of_a_fault_is_one_short_line_without_paths(text, clean):
    match, _ = play(spec_of(), fails_at(0, Failure(Termination.CRASH, text)), at_random)
    assert match.record.outcome.faults[0].detail == clean


def test_the_owner_of_the_fault_sees_what_the_bot_saw_and_others_do_not():
    match, factory = play(spec_of("podkidnoe"), fails_at(0, CRASH), at_random)
    notes = {log.seat: log.fault for log in match.logs}
    assert f"random_seed: {factory.agents[0].infos[0].random_seed}" in notes[0]
    assert notes[0].startswith("match M1, deal 0, action ")
    assert notes[0].splitlines()[0].endswith(", move 1")
    assert "hand: [" in notes[0]
    assert "legal: [" in notes[0]
    assert notes[1] == ""


# --- our own failures ----------------------------------------------------------------------------------------------


class _BrokenAgent(FakeAgent):
    """An agent whose own machinery fails, where `policy` says."""

    def close(self) -> AgentLog:
        super().close()
        raise InfrastructureError("the process cannot be ended")


def test_all_agents_are_closed_though_closing_one_fails():
    spec = spec_of()
    made = []

    def factory(source, **_):
        made.append((_BrokenAgent if not made else FakeAgent)(source.bot, first_legal, 1, []))
        return made[-1]

    with pytest.raises(InfrastructureError, match="cannot be ended"):
        play_match(spec, sources_of(spec), factory)
    assert [agent.is_closed for agent in made] == [True] * 4


def test_our_own_failure_is_no_result():
    def fail(*_: object) -> int:
        raise InfrastructureError("the sandbox is gone")

    spec = spec_of()
    factory = FakeFactory({"alpha": fail, "beta": fail})
    with pytest.raises(InfrastructureError, match="gone"):
        play_match(spec, sources_of(spec), factory)
    assert all(agent.is_closed for agent in factory.agents)


def test_agents_that_cannot_be_made_leave_none_behind():
    spec = spec_of()
    inner = FakeFactory({"alpha": at_random, "beta": at_random})

    def factory(source, **options):
        if len(inner.agents) == 2:
            raise InfrastructureError("no more processes")
        return inner(source, **options)

    with pytest.raises(InfrastructureError):
        play_match(spec, sources_of(spec), factory)
    assert [agent.is_closed for agent in inner.agents] == [True] * 2


def test_the_sources_must_be_those_of_the_entrants():
    spec = spec_of()
    factory = FakeFactory({})
    with pytest.raises(ContestError, match="alpha"):
        play_match(spec, sources_of(spec)[::-1], factory)
    with pytest.raises(ContestError, match="alpha"):
        play_match(spec, sources_of(spec)[:1], factory)


# --- laws ----------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["eighty", "podkidnoe"]), st.integers(1, 3))
def test_equal_bots_and_deals_give_an_equal_record(game, boards):
    spec = spec_of(game, BoardsContest(boards))
    one, other = play(spec)[0].record, play(spec)[0].record
    other.timing = one.timing
    assert encode_record(one) == encode_record(other)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.sampled_from([first_legal, last_legal]))
def test_the_same_bot_on_both_sides_of_mirrored_boards_scores_zero(boards, policy):
    """Who does not throw dice gains nothing from where he sits."""
    match, _ = play(spec_of("eighty", BoardsContest(boards)), policy)
    assert match.record.outcome.points == (0, 0)
    assert match.record.outcome.places == (1, 1)


def test_the_record_is_plain_json_with_integers_only():
    match, _ = play(spec_of("podkidnoe", BoardsContest(1), entrants=3))

    def scalars(value):
        if isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                yield from scalars(part)
        else:
            yield value

    kinds = {type(value) for value in scalars(json.loads(encode_record(match.record)))}
    assert kinds <= {int, str, bool, type(None)}


def test_given_deals_are_played_instead_of_drawn_ones():
    drawn, _ = play(spec_of(contest=BoardsContest(2)))
    boards = [deal.board for deal in replay(drawn.record).deals[::2]]
    other = DealSource(local_prk("another"), "local", reveal=True)
    spec = msgspec.structs.replace(
        spec_of(contest=BoardsContest(2), deals=other),
        given=tuple(GivenDeal(board, None) for board in boards),
    )
    found, _ = play(spec)
    assert [g.deals[0].hands for g in found.record.games] == [
        g.deals[0].hands for g in drawn.record.games
    ]
    assert {g.deals[0].key for g in found.record.games} == {None}
    replay(found.record)


@pytest.mark.parametrize(
    ("contest", "says"),
    [
        (GamesContest(1), "whole games draw theirs"),
        (BoardsContest(1, extra_boards=1), "1 for 2 boards"),
    ],
)
def test_given_deals_must_fit_the_contest(contest, says):
    known = (GivenDeal(replay(play(spec_of())[0].record).deals[0].board, None),)
    with pytest.raises(ContestError, match=says):
        play(msgspec.structs.replace(spec_of(contest=contest), given=known))


def test_given_deals_must_fit_the_table():
    three = play(spec_of("podkidnoe", entrants=3))[0].record
    known = (GivenDeal(replay(three).deals[0].board, None),)
    with pytest.raises(ContestError, match="3 hands for 2 seats"):
        play(msgspec.structs.replace(spec_of("podkidnoe"), given=known))


@pytest.mark.parametrize(
    ("game", "entrants"),
    [("eighty", 2), ("podkidnoe", 3)],  # calls, contract and tricks; a log with top-ups
)
def test_observation_is_spelled_in_notation(game, entrants):
    _, factory = play(spec_of(game, BoardsContest(2), entrants=entrants))
    spelled = []
    for agent in factory.agents:
        for observation in agent.asked:
            lines = spell_observation(observation)
            assert [line.split(":")[0] for line in lines] == list(observation.__struct_fields__)
            assert not any("=" in line or " ()" in line for line in lines)
            spelled += lines
    assert (game == "podkidnoe") == any(re.search(r"\d top-up", line) for line in spelled)
