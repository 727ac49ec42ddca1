"""Whatever comes out of a bot's process ends as an answer or as that seat's own fault, never as an error of ours."""

from __future__ import annotations

import resource
import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import wire
from engine.agents import BotSource, Failure, Reply, never
from engine.outcome import Termination
from engine.record import BoardsContest, BotRef, DealSource, EntrantRef, make_spec, replay
from engine.referee import play_match
from engine.sandbox.agent import sandbox_factory
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import local_prk
from tests.hostile.puppets import PuppetLauncher, greet, sleeping_process
from tests.hostile.stage import GENEROUS, first_question, game_info, make_agent

SOURCE = BotSource(bot="puppet", version=None, wheel=None, folder="/usr", entry_point="x")
QUESTION = first_question()
MOST_NEW_BYTES = 256 * 1024
"""What reading one packet may take at its height: the packet, and what is made of it."""


@pytest.fixture(scope="module")
def pid():
    with sleeping_process() as pid:
        yield pid


def ask(pid, packets):
    """What the agent makes of these packets as the answer to its first question."""

    def script(puppet, packet):
        if len(puppet.heard) <= 2:
            return greet(packet)
        return packets if isinstance(TURNS.decode(packet), wire.Turn) else []

    agent = make_agent(SOURCE, launcher=PuppetLauncher(script, pid))
    try:
        agent.start()
        assert agent.wait_ready(GENEROUS) == 0
        agent.begin_game(game_info())
        return agent.ask(QUESTION, QUESTION.legal, GENEROUS, deal=0, turn=0, move=1)
    finally:
        agent.close()


TURNS = wire.turns_of(type(QUESTION))
BLAMED = {Termination.PROTOCOL, Termination.CRASH, Termination.ILLEGAL_ACTION, Termination.MEMORY}


def check(pid, packet):
    """A legal answer to this very turn, or a fault of the seat with a detail that can stand anywhere."""
    result = ask(pid, [packet])
    if isinstance(result, Reply):
        answer = wire.decode_reply(packet)
        assert answer == wire.Answer(1, result.index)
        assert 0 <= result.index < len(QUESTION.legal)
    else:
        assert isinstance(result, Failure)
        assert result.kind in BLAMED
        assert len(result.detail) < 200
        assert result.detail.isprintable()


# What looks like an answer and is none


INTEGERS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**63, -1])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | INTEGERS
    | st.floats()
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(st.text(max_size=8) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=12,
)
TAGS = st.sampled_from(
    [
        "hello",
        "ready",
        "declined",
        "answer",
        "illegal",
        "nonsense",
        "crashed",
        "turn",
        "begingame",
        "start",
        "walls",
        "kill",
        "Answer",
    ]
)
MESSAGES = st.builds(lambda tag, values: [tag, *values], TAGS, st.lists(VALUES, max_size=5))
MAPS = st.builds(
    lambda tag, turn, index: {"type": tag, "turn": turn, "index": index}, TAGS, VALUES, VALUES
)


@st.composite
def mutated(draw):
    """A good answer with bytes changed, put in, left out, doubled or cut."""
    good = [
        wire.Answer(1, draw(st.integers(0, 40))),
        wire.Illegal(1, draw(st.text(max_size=200))),
        wire.Nonsense(1, draw(st.text(max_size=200))),
        wire.Crashed(1, draw(st.text(max_size=200)), draw(st.booleans())),
    ]
    packet = bytearray(wire.encode(draw(st.sampled_from(good))))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(packet)))
        match draw(st.sampled_from(["change", "insert", "remove", "double", "cut"])):
            case "change" if place < len(packet):
                packet[place] = draw(st.integers(0, 255))
            case "insert":
                packet[place:place] = draw(st.binary(min_size=1, max_size=9))
            case "remove":
                del packet[place : place + 1]
            case "double":
                packet += packet[:place]
            case "cut":
                del packet[place:]
    return bytes(packet)


PACKETS = (
    st.binary(max_size=wire.ANSWER_BYTES)
    | mutated()
    | st.builds(msgspec.msgpack.encode, MESSAGES | MAPS | VALUES)
)


@settings(max_examples=100)
@given(packet=PACKETS)
def test_any_packet_is_an_answer_or_the_seat_s_own_fault(pid, packet):
    check(pid, packet)


@pytest.mark.exhaustive
@pytest.mark.slow
@settings(max_examples=3000)
@given(packet=PACKETS)
def test_so_are_many_more_packets(pid, packet):
    check(pid, packet)


@settings(max_examples=30)
@given(packets=st.lists(PACKETS, min_size=1, max_size=6))
def test_any_number_of_packets_is_an_answer_or_the_seat_s_own_fault(pid, packets):
    result = ask(pid, packets)
    assert isinstance(result, Reply) or result.kind in BLAMED


LONG = b"\xa6answer"
CLAIMS = [
    pytest.param(b"\xdd\xff\xff\xff\xff", id="an array of four thousand million"),
    pytest.param(b"\xdd\xff\xff\xff\xff" + LONG, id="an answer of four thousand million fields"),
    pytest.param(b"\xdf\xff\xff\xff\xff", id="a map of four thousand million"),
    pytest.param(b"\xdb\xff\xff\xff\xff", id="a text of 4 GB"),
    pytest.param(b"\xc6\xff\xff\xff\xff", id="bytes of 4 GB"),
    pytest.param(b"\xc9\xff\xff\xff\xff\x01", id="an extension of 4 GB"),
    pytest.param(b"\x93" + LONG + b"\x01\xdd\xff\xff\xff\xff", id="an index that is such an array"),
    pytest.param(b"\x93\xa7illegal\x01\xdb\xff\xff\xff\xff", id="an action that is such a text"),
    pytest.param(b"\x91" * wire.ANSWER_BYTES, id="nested as deep as there is room"),
    pytest.param(b"\x81\xa1x" * (wire.ANSWER_BYTES // 3), id="nested maps as deep as there is room"),
    pytest.param(b"\xdc\xff\xff" * (wire.ANSWER_BYTES // 3), id="nested arrays of 65535 each"),
    pytest.param(b"x" * (wire.ANSWER_BYTES + 1), id="a byte too long"),
    pytest.param(b"x" * 150_000, id="much too long"),
    pytest.param(b"\x93" + LONG + b"\x01\xcf" + b"\xff" * 8, id="an index of 64 bits"),
    pytest.param(b"\x93" + LONG + b"\x01\xd0\xff", id="an index below zero"),
    pytest.param(b"\x93" + LONG + b"\x01\xcb\x7f\xf8" + bytes(6), id="NaN for an index"),
    pytest.param(b"\x93" + LONG + b"\x01\xcb\x7f\xf0" + bytes(6), id="infinity for an index"),
    pytest.param(b"\x93" + LONG + b"\x01\xcb" + bytes(8), id="a float for an index"),
    pytest.param(b"\x93" + LONG + b"\x01\xc3", id="true for an index"),
    pytest.param(b"\x93" + LONG + b"\x01\xa10", id="a text for an index"),
    pytest.param(b"\x94" + LONG + b"\x01\x00\x00", id="a field too many"),
    pytest.param(b"\x92" + LONG + b"\x01", id="a field too few"),
    pytest.param(b"\x93" + LONG + b"\x01\x00\x00", id="a byte after the answer"),
    pytest.param(b"\xef\xbb\xbf\x93" + LONG + b"\x01\x00", id="a byte order mark"),
    pytest.param(b"\x00\x93" + LONG + b"\x01\x00", id="a NUL before the answer"),
    pytest.param(b'["answer",1,0]', id="JSON"),
    pytest.param(b'["answer",1,NaN]', id="JSON with NaN"),
    pytest.param(b'["answer",1,1e999]', id="JSON with 1e999"),
    pytest.param(b'["answer",1,' + b"1" * 4000 + b"]", id="JSON with an integer of 4000 digits"),
    pytest.param(
        b"\x83\xa4type" + LONG + b"\xa4turn\x01\xa4turn\x01", id="a map with a key that stands twice"
    ),
    pytest.param(b"\x93\xa7illegal\x01\xa2\xed\xa0", id="a text that is no UTF-8"),
    pytest.param(b"\x80\x04\x95c__builtin__\neval\n.", id="a pickle"),
    pytest.param(b"", id="nothing"),
]  # fmt: skip


@pytest.mark.parametrize("packet", CLAIMS)
def test_packet_that_claims_too_much_is_a_violation_and_takes_no_memory(pid, packet):
    ask(pid, [wire.encode(wire.Answer(1, 0))])  # what is made once is made
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        result = ask(pid, [packet])
        _, height = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(result, Failure)
    assert result.kind is Termination.PROTOCOL
    assert height < MOST_NEW_BYTES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident < 8 * 1024  # KiB


@settings(max_examples=25)
@given(packet=PACKETS, first=st.integers(0, 3))
def test_match_with_such_a_packet_in_it_has_a_true_record(pid, packet, first):
    """The others' result stands: they are not at fault, and the record judges true."""

    def script(puppet, heard):
        if len(puppet.heard) <= 2:
            return greet(heard)
        request = TURNS_OF_PODKIDNOE.decode(heard)
        if not isinstance(request, wire.Turn):
            return []
        return [packet if puppet.number == first else wire.encode(wire.Answer(request.turn, 0))]

    spec = make_spec(
        game="podkidnoe",
        entrants=[EntrantRef(name, (BotRef("puppet", None, None),)) for name in "abcd"],
        contest=BoardsContest(1),
        time_control=TimeControl("endless", 10**6, 10**6, 0, 60_000),
        deals=DealSource(local_prk("fuzz"), "local", reveal=True),
    )
    factory = sandbox_factory(PuppetLauncher(script, pid))
    record = play_match(spec, [(SOURCE,)] * 4, factory, never).record
    replay(record)
    assert {fault.entrant for fault in record.outcome.faults} <= {first}


TURNS_OF_PODKIDNOE = wire.turns_of(type(first_question("podkidnoe", 4)))
