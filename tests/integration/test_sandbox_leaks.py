"""No information leaks: what a seat is sent depends on nothing that it may not know.

Pairs of deals that a seat cannot tell apart are played with the same actions through the referee's real
agents; every byte that the seat is sent must be the same. Its remaining time is exempt: here clocks stand still.
"""

from __future__ import annotations

import random
from unittest import mock

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine import wire
from engine.agents import AgentLog
from engine.games import GAMES
from engine.games.base import Board
from engine.games.eighty import EightyState
from engine.games.podkidnoe import PodkidnoeState
from engine.record import BoardsContest, GamesContest
from engine.shuffle import deal_key
from engine.tiles import high_to_low, parse_tile, tile_set
from tests.hostile.knowledge import (
    MATCH_KEY,
    MOST_DEALS,
    PRK,
    TOURNAMENT,
    Past,
    Table,
    Taken,
    choose_kind_first,
    could_have_been,
)
from tests.hostile.puppets import sleeping_process


@pytest.fixture(scope="module")
def pid():
    with sleeping_process() as pid:
        yield pid


def rulesets(game):
    """Any options of a game that go together."""
    options = {
        option.name: st.sampled_from(option.choices)
        if option.choices
        else st.integers(option.minimum, min(option.maximum, option.minimum + 200))
        for option in GAMES[game].options
    }
    return st.fixed_dictionaries(options).filter(lambda chosen: _go_together(game, chosen))


def _go_together(game, options):
    if game == "podkidnoe":
        return (options["top_up"], options["empty_hand"]) != ("off", "top_up")
    return options["nello_value"] >= options["min_bid"]


@st.composite
def tables(draw):
    """A game, its options, how many entrants, and a contest."""
    game = draw(st.sampled_from(sorted(GAMES)))
    entrants = draw(st.sampled_from(GAMES[game].entrant_counts))
    contest = draw(
        st.sampled_from([BoardsContest(1), BoardsContest(2), GamesContest(1), GamesContest(2)])
    )
    options = draw(rulesets(game))
    if game == "eighty" and isinstance(contest, GamesContest):
        options["target"] = 2 if options["scoring"] == "marks" else 100  # a game of few deals
    return game, options, entrants, contest


class LeakError(AssertionError):
    """A seat is sent other bytes in deals that it may not tell apart."""


def check_one_pair(pid, table, rng):
    """Play, pick a question, find what looks the same, and compare; whether there was something to compare."""
    table = Table(pid, *table)
    boards = table.boards(rng)
    played, puppets = table.play(boards, choose_kind_first(rng))
    record = played.record
    questions = table.questions(puppets)
    if not questions:
        return False
    asked = rng.choice(questions)
    others = table.find_alike(record, boards, asked, rng)
    sent = puppets[asked.sitting * table.seats + asked.seat].heard[: asked.number + 1]
    heard = table.heard_up_to(record, others, asked, rng)
    if heard != sent:
        raise LeakError(
            asked, [pair for pair in zip(heard, sent, strict=True) if pair[0] != pair[1]]
        )
    return others[asked.deal] != boards[asked.deal]


def check_pairs(pid, table, seeds):
    """How many of the pairs that were compared differ in the deal that is asked about."""
    return sum(check_one_pair(pid, table, random.Random(seed)) for seed in seeds)


@settings(max_examples=30)
@given(table=tables(), seed=st.integers(0, 2**32))
def test_bytes_to_a_seat_depend_on_nothing_that_it_may_not_know(pid, table, seed):
    check_one_pair(pid, table, random.Random(seed))


@pytest.mark.exhaustive
@pytest.mark.slow
@settings(max_examples=600)
@given(table=tables(), seed=st.integers(0, 2**32))
def test_they_do_not_in_many_more_deals(pid, table, seed):
    check_one_pair(pid, table, random.Random(seed))


def hidden_pips(state):
    """A number that depends on every tile that the seat may not know."""
    others = [hand for seat, hand in enumerate(state._hands) if seat != state.seat]
    return hash((*others, *getattr(state, "_reserve", ()))) % 1000


def tells(game_state, **changes):
    """The game with an observation that has these fields changed, each by what is hidden in the state."""
    honest = game_state.observe

    def observe(state, clock_ms, history=()):
        observation = honest(state, clock_ms, history)
        return msgspec.structs.replace(
            observation, **{name: change(state, observation) for name, change in changes.items()}
        )

    return mock.patch.object(game_state, "observe", observe)


def either_way(state):
    """1 or -1, by what is hidden: a step through a tuple."""
    return 1 - 2 * (hidden_pips(state) % 2)


MUTATIONS = [
    pytest.param(
        "podkidnoe",
        lambda: tells(
            PodkidnoeState, reserve_size=lambda state, _: (state._reserve or [0])[-1]
        ),
        id="the next tile of the reserve",
    ),
    pytest.param(
        "podkidnoe",
        lambda: tells(PodkidnoeState, penalties=lambda state, _: (sum(state._hands) % 97,)),
        id="the hands of others in one number",
    ),
    pytest.param(
        "podkidnoe",
        lambda: tells(PodkidnoeState, hand_sizes=lambda state, seen: seen.hand_sizes[:: either_way(state)]),
        id="the order of what is public",
    ),
    pytest.param(
        "eighty",
        lambda: tells(EightyState, scores=lambda state, _: (sum(state._hands) % 97, 0)),
        id="the dead pair and the hands of others in one number",
    ),
    pytest.param(
        "eighty",
        lambda: tells(EightyState, hand=lambda state, seen: seen.hand[:: either_way(state)]),
        id="the order of its own hand",
    ),
    pytest.param(
        "eighty",
        lambda: tells(EightyState, clock_ms=lambda state, _: 5000 + hidden_pips(state)),
        id="the clock",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("game", "mutation"), MUTATIONS)
def test_comparison_finds_a_game_that_tells(pid, game, mutation):
    table = (game, {}, GAMES[game].entrant_counts[-1], BoardsContest(1))
    with mutation(), pytest.raises(LeakError):
        check_pairs(pid, table, range(40))


@pytest.mark.parametrize("game", sorted(GAMES))
def test_most_pairs_differ_in_the_deal_that_is_asked_about(pid, game):
    table = (game, {}, GAMES[game].entrant_counts[-1], BoardsContest(1))
    assert check_pairs(pid, table, range(16)) >= 8


LED_FIVE = ("1 bid 50", "2 pass", "3 pass", "0 pass", "1 trump 1", "1 play 5-2", "2 play 6-6")
"""Seat 2 has no five, since it threw 6-6 on one."""


@pytest.mark.parametrize(
    ("given", "could_be"),
    [
        ("4-4", True),
        ("5-4", False),  # it would have had to follow
        ("5-1", True),  # a trump, and so no five
    ],
)
def test_pairs_respect_who_did_not_follow_suit(given, could_be):
    game = GAMES["eighty"]
    wanted = [(1, "5-2"), (2, "6-6"), (2, given)]
    rng = random.Random(80)
    tiles = [str(tile) for tile in tile_set(1) for _ in range(2)]
    hands = [[], [], [], []]
    for seat, tile in wanted:
        tiles.remove(tile)
        hands[seat].append(tile)
    no_fives = [tile for tile in tiles if "5" not in tile or "1" in tile]
    rng.shuffle(no_fives)
    for tile in no_fives[:8]:
        tiles.remove(tile)
        hands[2].append(tile)
    rng.shuffle(tiles)
    for hand in hands:
        while len(hand) < 10:
            hand.append(tiles.pop())
    board = Board(
        hands=tuple(high_to_low(map(parse_tile, hand)) for hand in hands),
        dead=high_to_low(map(parse_tile, tiles)),
        first=0,
    )
    taken = tuple(Taken(int(text[0]), text[2:]) for text in LED_FIVE)
    past = Past(taken, is_over=False)
    assert could_have_been(game, game.make_ruleset(), board, past) is could_be


# What each message says


def conversation(pid, game, contest, entrants, seed=1):
    """A whole match, and all messages to each process in it, decoded."""
    table = Table(pid, game, {}, entrants, contest)
    rng = random.Random(seed)
    boards = table.boards(rng)
    _, puppets = table.play(boards, choose_kind_first(rng))
    heard = [
        [
            *map(wire.decode_request, puppet.heard[:2]),
            *map(table.turns.decode, puppet.heard[2:]),
        ]
        for puppet in puppets
    ]
    return boards, puppets, heard


CONVERSATIONS = [
    ("eighty", BoardsContest(2), 2),
    ("podkidnoe", BoardsContest(2), 3),
    ("eighty", GamesContest(1), 2),
    ("podkidnoe", GamesContest(3), 4),
]


@pytest.mark.parametrize(("game", "contest", "entrants"), CONVERSATIONS)
def test_only_these_messages_are_sent_and_in_this_order(pid, game, contest, entrants):
    _, _, heard = conversation(pid, game, contest, entrants)
    for messages in heard:
        kinds = [type(message).__name__ for message in messages]
        assert kinds[:3] == ["Walls", "Start", "BeginGame"]
        assert set(kinds[3:]) <= {
            "BeginGame",
            "Turn",
        }  # nothing tells how a deal or a game has ended


@pytest.mark.parametrize(("game", "contest", "entrants"), CONVERSATIONS)
def test_walls_and_start_are_the_same_for_every_seat_and_sitting(pid, game, contest, entrants):
    _, puppets, _ = conversation(pid, game, contest, entrants)
    assert len({tuple(puppet.heard[:2]) for puppet in puppets}) == 1


@pytest.mark.parametrize(("game", "contest", "entrants"), CONVERSATIONS)
def test_beginning_of_a_game_says_the_same_on_any_deal(pid, game, contest, entrants):
    runs = [conversation(pid, game, contest, entrants, seed=seed) for seed in (1, 2)]
    assert runs[0][0] != runs[1][0]
    firsts = [[messages[2] for messages in heard] for *_, heard in runs]
    length = min(map(len, firsts))  # a match of games may end after fewer
    assert firsts[0][:length] == firsts[1][:length]


@pytest.mark.parametrize(("game", "contest", "entrants"), CONVERSATIONS)
def test_random_seed_is_each_process_own_and_stays_the_same_in_all_its_games(
    pid, game, contest, entrants
):
    _, _, heard = conversation(pid, game, contest, entrants)
    seeds = [
        {message.random_seed for message in messages if isinstance(message, wire.BeginGame)}
        for messages in heard
    ]
    assert [len(own) for own in seeds] == [1] * len(seeds)
    assert len(set.union(*seeds)) == len(seeds)


@pytest.mark.parametrize(("game", "contest", "entrants"), CONVERSATIONS)
def test_no_key_of_the_deals_and_no_name_of_the_match_is_sent(pid, game, contest, entrants):
    _, puppets, _ = conversation(pid, game, contest, entrants)
    sent = b"".join(packet for puppet in puppets for packet in puppet.heard)
    keys = [deal_key(PRK, game, TOURNAMENT, MATCH_KEY, number) for number in range(MOST_DEALS)]
    for secret in (PRK, *keys):
        assert secret not in sent
        assert secret.hex().encode() not in sent
    assert TOURNAMENT.encode() not in sent
    assert MATCH_KEY.encode() not in sent
    assert b"Anna" in sent  # who the opponents are is no secret


@pytest.mark.parametrize("game", sorted(GAMES))
def test_rotations_are_told_apart_by_the_names_at_the_table_alone(pid, game):
    _, _, heard = conversation(pid, game, BoardsContest(2), 2)
    first, *_ = heard
    second = heard[len(heard) // 2]
    begins = [
        [message for message in messages if isinstance(message, wire.BeginGame)]
        for messages in (first, second)
    ]
    assert [message.number for message in begins[0]] == [message.number for message in begins[1]]
    assert {message.players[0] for message in begins[0]} == {"Anna"}
    assert {message.players[0] for message in begins[1]} == {"Boris"}
    for one, other in zip(*begins, strict=True):
        told_apart = msgspec.structs.replace(
            one, players=other.players, random_seed=other.random_seed, turn=other.turn
        )
        assert told_apart == other


# What is told of a fault


def told_of(played, seat, sitting):
    """Fault, log and notes of the match, as far as a seat's owner and everybody else may see them."""
    outcome = played.record.outcome
    return [(fault.entrant, fault.seat, fault.kind, fault.detail) for fault in outcome.faults], [
        log for log in played.logs if (log.seat, log.sitting) == (seat, sitting)
    ]


@settings(max_examples=15)
@given(table=tables(), seed=st.integers(0, 2**32))
def test_what_is_told_of_a_fault_depends_on_nothing_that_the_seat_may_not_know(pid, table, seed):
    table, rng = Table(pid, *table), random.Random(seed)
    boards = table.boards(rng)
    played, puppets = table.play(boards, choose_kind_first(rng))
    questions = table.questions(puppets)
    assume(questions)
    asked = rng.choice(questions)
    others = table.find_alike(played.record, boards, asked, rng)
    crashes = [
        told_of(
            table.play_and_crash(played.record, these, asked, random.Random(seed)),
            asked.seat,
            asked.sitting,
        )
        for these in (boards, others)
    ]
    assert crashes[0] == crashes[1]
    faults, (log,) = crashes[0]
    assert [fault[1] for fault in faults] == [asked.seat]
    assert "hand: " in log.fault


def test_others_are_told_nothing_of_a_fault(pid):
    table, rng = Table(pid, "eighty", {}, 2, BoardsContest(1)), random.Random(5)
    boards = table.boards(rng)
    played, puppets = table.play(boards, choose_kind_first(rng))
    asked = table.questions(puppets)[-1]
    crashed = table.play_and_crash(played.record, boards, asked, rng)
    others = [log for log in crashed.logs if (log.seat, log.sitting) != (asked.seat, asked.sitting)]
    assert len(others) == 7
    assert {(log.log, log.fault, log.debug) for log in others} == {(AgentLog(), "", "")}
