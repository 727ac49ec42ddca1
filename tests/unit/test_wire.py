"""Whatever a bot's process sends, the referee's side reads a message of the protocol or refuses it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import wire
from engine.games import GAMES
from engine.sdk.timecontrol import time_control
from engine.shuffle import Stream

COUNTERS = st.integers(0, 2**31 - 1)
TEXTS = st.text(max_size=200)
REPLIES = st.one_of(
    st.just(wire.Hello()),
    st.just(wire.Ready()),
    st.just(wire.Declined()),
    st.builds(wire.Answer, turn=COUNTERS, index=COUNTERS),
    st.builds(wire.Illegal, turn=COUNTERS, action=TEXTS),
    st.builds(wire.Nonsense, turn=COUNTERS, kind=TEXTS),
    st.builds(wire.Crashed, turn=COUNTERS, error=TEXTS, out_of_memory=st.booleans()),
)


@settings(deadline=None)
@given(REPLIES)
def test_reply_is_read_as_it_was_written(reply):
    packet = wire.encode(reply)
    assert len(packet) <= wire.ANSWER_BYTES
    assert wire.decode_reply(packet) == reply


@settings(deadline=None)
@given(st.binary(max_size=5000))
def test_any_bytes_are_a_reply_or_unreadable(packet):
    try:
        reply = wire.decode_reply(packet)
    except wire.UnreadableMessageError:
        return
    assert isinstance(reply, msgspec.Struct)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
        max_leaves=10,
    )
)
def test_any_value_is_a_reply_or_unreadable(value):
    try:
        reply = wire.decode_reply(msgspec.msgpack.encode(value))
    except wire.UnreadableMessageError:
        return
    assert isinstance(reply, msgspec.Struct)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"type": "answer", "turn": 1, "index": -1}, id="a negative index"),
        pytest.param({"type": "answer", "turn": 1, "index": 2**31}, id="an index of 32 bits"),
        pytest.param({"type": "answer", "turn": 1, "index": 1.0}, id="a float"),
        pytest.param({"type": "answer", "turn": 1, "index": float("nan")}, id="no number"),
        pytest.param({"type": "answer", "turn": 1, "index": "1"}, id="a number as text"),
        pytest.param({"type": "answer", "turn": 1, "index": True}, id="a boolean"),
        pytest.param({"type": "answer", "turn": 1}, id="a field that lacks"),
        pytest.param({"type": "answer", "turn": 1, "index": 1, "x": 1}, id="a field too many"),
        pytest.param({"turn": 1, "index": 1}, id="no tag"),
        pytest.param({"type": "turn", "turn": 1}, id="a message of the other side"),
        pytest.param({"type": "illegal", "turn": 1, "action": "x" * 201}, id="a long text"),
        pytest.param([1, 2], id="a list"),
        pytest.param(None, id="nothing"),
    ],
)
def test_reply_out_of_bounds_is_unreadable(value):
    with pytest.raises(wire.UnreadableMessageError):
        wire.decode_reply(msgspec.msgpack.encode(value))


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"", id="an empty packet"),
        pytest.param(b"\x91" * 4000, id="nested too deep"),
        pytest.param(b"\x85\xa4type", id="a cut packet"),
        pytest.param(wire.encode(wire.Ready()) * 2, id="two messages in one packet"),
        pytest.param(b"\x81\xa4type\xa5\xff\xff\xff\xff\xff", id="text that is not UTF-8"),
    ],
)
def test_broken_packet_is_unreadable(packet):
    with pytest.raises(wire.UnreadableMessageError):
        wire.decode_reply(packet)


def test_too_long_a_packet_is_unreadable_whatever_it_says():
    packet = wire.encode(wire.Ready()) + b"x" * wire.ANSWER_BYTES
    with pytest.raises(wire.UnreadableMessageError, match="longer than 4096 bytes"):
        wire.decode_reply(packet)


def requests():
    control = time_control("standard")
    yield wire.Walls(b"\0" * 8, {"RLIMIT_AS": 2**40}, 7, ("/usr", "/bot"))
    yield wire.Start("eighty", wire.encode_value({"a": 1}), 4, control, "/bot", "my_bot:plugin")


@pytest.mark.parametrize("request_", list(requests()), ids=lambda request: type(request).__name__)
def test_request_is_read_as_it_was_written(request_):
    packet = wire.encode(request_)
    assert wire.encode(wire.decode_request(packet)) == packet
    assert type(wire.decode_request(packet)) is type(request_)


def test_news_of_a_game_is_read_as_it_was_written():
    news = wire.BeginGame(1, 2, ("a", "b"), b"\xff" * 32, 0)
    for game in GAMES.values():
        assert wire.turns_of(game.observation_type).decode(wire.encode(news)) == news


@pytest.mark.parametrize(
    "packet",
    [wire.Hello(), wire.Ended(3, 139)],
    ids=["hello", "ended"],
)
def test_news_of_a_zygote_is_read_as_it_was_written(packet):
    assert wire.decode_news(wire.encode(packet)) == packet


@pytest.mark.parametrize("packet", [wire.Fork(1), wire.Kill(2**31 - 1)], ids=["fork", "kill"])
def test_order_to_a_zygote_is_read_as_it_was_written(packet):
    assert wire.decode_order(wire.encode(packet)) == packet


@pytest.mark.parametrize(
    ("game", "seats"),
    [(game, game.seats(entrants)) for game in GAMES.values() for entrants in game.entrant_counts],
    ids=lambda value: getattr(value, "name", value),
)
@settings(deadline=None)
@given(key=st.binary(min_size=32, max_size=32), choices=st.randoms(use_true_random=False))
def test_every_observation_arrives_whole_and_fits_in_a_packet(game, seats, key, choices):
    ruleset = game.make_ruleset()
    state = game.start(ruleset, game.deal(Stream(key), ruleset, seats))
    while not state.is_over:
        observation = state.observe(1000)
        turn = wire.Turn(2**31 - 1, 10**4, 10**4, 10**4, observation)
        packet = wire.encode(turn)
        assert len(packet) < wire.REQUEST_BYTES
        assert wire.turns_of(game.observation_type).decode(packet) == turn
        state.apply(choices.choice(state.legal()))
