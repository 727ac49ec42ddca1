"""The matrix attack × wall: which attack goes through when one wall is missing. ``python -m tests.hostile.matrix``.

The walls of the referee's side (clocks, stopping, the look before a question) are switched off in their code.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec

from engine import referee, wire
from engine.agents import Limits, Reply
from engine.record import BoardsContest, BotRef, DealSource, EntrantRef, make_spec
from engine.referee import play_match
from engine.sandbox import agent as sandbox_agent
from engine.sandbox import memory
from engine.sandbox.agent import sandbox_factory
from engine.sandbox.policy import Level
from engine.sandbox.zygote_launcher import ZygoteLauncher, shared_launcher
from engine.shuffle import local_prk
from tests.hostile.aftermath import MOST_SECONDS, print_aftermath
from tests.hostile.attempts import Attempt, attempts_here, write_attempt
from tests.hostile.stage import (
    CONTROL,
    GENEROUS,
    close_zygotes,
    first_question,
    game_info,
    make_agent,
    perform,
    source_in,
)
from tests.hostile.test_verdicts import VERDICTS
from tests.hostile.weaken import WHOLE, WITHOUT
from tests.hostile.wheel_walls import WHEEL_WALLS

ALL = "nothing"
"""The column in which no wall is missing."""
PATIENT = Limits(cpu_us=1_000_000, wall_ms=60_000)


def goes_through(attempt: Attempt, folder: Path, missing: str) -> bool:
    """Whether an attack succeeds while that wall is missing."""
    source = write_attempt(folder / ("0" * 64), attempt)
    launcher = WITHOUT.get(missing, WHOLE)
    # What is said at the second question is heard at the third.
    show = perform(make_agent(source, launcher=launcher), questions=3, limits=PATIENT)
    return "it went through" in show.log.text and show.fault is None


# The referee's walls: an attack each, which tells whether it succeeds with the wall and without.


def thinks_on(folder: Path) -> bool:
    """Uses CPU time while others think."""
    agent = make_agent(source_in(folder, "think_on"))
    question = first_question()
    try:
        agent.start()
        agent.wait_ready(GENEROUS)
        agent.begin_game(game_info())
        agent.ask(question, question.legal, GENEROUS, deal=0, turn=0, move=1)
        time.sleep(0.05)  # what it did until it was stopped
        before_us = agent._bot.cpu_us()
        time.sleep(0.3)
        return agent._bot.cpu_us() > before_us
    finally:
        agent.close()


def answers_unasked(folder: Path) -> bool:
    """Lays an answer ready before it has seen the question."""
    agent = make_agent(source_in(folder, "pre_answer"))
    question = first_question()
    try:
        agent.start()
        agent.wait_ready(GENEROUS)
        agent._bot.resume()
        assert agent._bot._poll.poll(60_000)
        return isinstance(
            agent.ask(question, question.legal, GENEROUS, deal=0, turn=0, move=1), Reply
        )
    finally:
        agent.close()


def _plays(folder: Path, code: str, limits: Limits) -> bool:
    source = write_attempt(folder / "bot", Attempt("time", "takes its time", code))
    return perform(make_agent(source), questions=1, limits=limits).fault is None


def thinks_too_long(folder: Path) -> bool:
    """Uses more CPU time than it has."""
    code = "end = time.process_time() + 0.6\nwhile time.process_time() < end: pass"
    return _plays(folder, code, Limits(cpu_us=200_000, wall_ms=60_000))


def sleeps_too_long(folder: Path) -> bool:
    """Lets everybody wait, without using CPU time."""
    return _plays(folder, "time.sleep(1.5)", Limits(cpu_us=5_000_000, wall_ms=500))


def answers_another_turn(folder: Path) -> bool:
    """Answers a turn that is not asked."""
    return _plays(folder, "os.write(3, wire.encode(wire.Answer(7, 0)))", PATIENT)


def counts_from_the_end(folder: Path) -> bool:
    """Chooses an action by an index below zero."""
    return _plays(folder, "os.write(3, wire.encode(wire.Answer(1, -1)))", PATIENT)


def fills_the_referee(folder: Path) -> bool:
    """Makes the referee hold a message of 100 KB."""
    sizes = [0]
    whole = wire.decode_reply

    def noting(packet):
        sizes.append(len(packet))
        return whole(packet)

    with mock.patch.object(wire, "decode_reply", noting):
        _plays(folder, "os.write(3, bytes(100_000))", PATIENT)
    return max(sizes) >= 100_000


def remembers_hands(folder: Path) -> bool:
    """Knows the opponent's hand from the rotation before."""
    return _plays_otherwise(folder, "remember_hands")


def remembers_by_caches(folder: Path) -> bool:
    """Finds out by what the kernel's caches remember that a board was played before."""
    return any(_plays_otherwise(folder, "remember_by_names") for _ in range(3))


def _plays_otherwise(folder: Path, bot: str) -> bool:
    """Whether a bot that plays otherwise when it remembers does so, against itself, in a mirrored match."""
    return _actions_of(folder, bot) != _actions_of(folder, "well_behaved")


def _actions_of(folder: Path, bot: str) -> list[list[str]]:
    source = source_in(folder / hashlib.sha256(bot.encode()).hexdigest(), bot)
    spec = make_spec(
        game="podkidnoe",
        entrants=[EntrantRef(name, (BotRef(bot, None, None),)) for name in "ab"],
        contest=BoardsContest(2),
        time_control=CONTROL,
        deals=DealSource(local_prk("matrix"), "local", reveal=True),
    )
    launcher = ZygoteLauncher("bubblewrap")
    try:
        record = play_match(spec, [(source,), (source,)], sandbox_factory(launcher)).record
    finally:
        launcher.close()
    assert record.outcome.faults == ()
    return [deal.actions for game in record.games for deal in game.deals]


def _without_clock() -> object:
    return mock.patch.object(sandbox_agent._BotProcess, "cpu_us", return_value=0)


def _without_stopping() -> object:
    return mock.patch.object(sandbox_agent._BotProcess, "stop", return_value=None)


def _without_look() -> object:
    return mock.patch.object(sandbox_agent._BotProcess, "has_spoken", return_value=False)


@contextmanager
def _without_cap() -> Iterator[None]:
    whole = sandbox_agent.SandboxAgent._await_packet

    def patient(self, bot, limits, before_us):
        return whole(self, bot, Limits(limits.cpu_us, 60_000), before_us)

    with mock.patch.object(sandbox_agent.SandboxAgent, "_await_packet", patient):
        yield


class _AnyTurn(int):
    """Equal to every number."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def _without_turns() -> object:
    whole = wire.decode_reply

    def decode(packet):
        reply = whole(packet)
        is_answer = isinstance(reply, wire.Answer)
        return msgspec.structs.replace(reply, turn=_AnyTurn()) if is_answer else reply

    return mock.patch.object(wire, "decode_reply", decode)


def _without_types() -> object:
    kinds = {kind.__name__.lower(): kind for kind in (wire.Hello, wire.Ready, wire.Answer)}

    def decode(packet):
        kind, *fields = msgspec.msgpack.decode(packet)
        return kinds[kind](*fields)

    return mock.patch.object(wire, "decode_reply", decode)


def _without_bound() -> object:
    return mock.patch.object(wire, "ANSWER_BYTES", 1 << 20)


@contextmanager
def _without_fresh_processes() -> Iterator[None]:
    start, close = referee._Table.start, referee._Table.close
    kept: dict[int, object] = {}

    def start_again(table, sources, factory, keep_alive):
        if not kept:
            start(table, sources, factory, keep_alive)
            kept.update(zip(table.seating, table.agents, strict=True))
        table.agents = [kept[entrant] for entrant in table.seating]

    def close_last(table):
        if table.rotation == 0:
            return []  # they sit down again
        kept.clear()
        return close(table)

    with (
        mock.patch.object(referee._Table, "start", start_again),
        mock.patch.object(referee._Table, "close", close_last),
    ):
        yield


def _without_memory() -> object:
    return mock.patch.object(memory, "memory_folder", return_value=None)


class Kept(NamedTuple):
    """A wall of the referee's side."""

    kind: str
    """The row of the table in docs/sandbox.md."""
    attack: Callable[[Path], bool]
    """Whether it succeeds."""
    take_away: Callable[[], object]


REFEREE: dict[str, Kept] = {
    "stopping between turns": Kept("time", thinks_on, _without_stopping),
    "the look before a question": Kept("protocol", answers_unasked, _without_look),
    "the numbers of turns": Kept("protocol", answers_another_turn, _without_turns),
    "typed decoding": Kept("protocol", counts_from_the_end, _without_types),
    "the bound of a message": Kept("protocol", fills_the_referee, _without_bound),
    "the clock of CPU time": Kept("time", thinks_too_long, _without_clock),
    "the cap of real time": Kept("time", sleeps_too_long, _without_cap),
    "fresh processes for a rotation": Kept("reading", remembers_hands, _without_fresh_processes),
    "the copy in memory": Kept("reading", remembers_by_caches, _without_memory),
    **{wall: Kept(*row) for wall, row in WHEEL_WALLS.items()},
}


def make_matrix(folder: Path) -> dict[str, set[str]]:
    """By what is missing (`ALL`: nothing), the attacks that go through."""
    matrix = {
        missing: {
            f"{attempt.kind}: {attempt.name}"
            for attempt in attempts_here()
            if goes_through(attempt, folder, missing)
        }
        for missing in (ALL, *WITHOUT)
    }
    WITHOUT["the file system"].close()
    for wall, kept in REFEREE.items():
        name = f"{kept.kind}: {kept.attack.__doc__.rstrip('.').lower()}"
        matrix[wall] = set()
        if kept.attack(folder / "with"):
            matrix[ALL].add(name)
        with kept.take_away():
            if kept.attack(folder / "without"):
                matrix[wall].add(name)
    return matrix


def spell(matrix: dict[str, set[str]]) -> str:
    """The matrix as text: a line an attack that needs a wall, a column a wall."""
    attacks = sorted(set().union(*matrix.values()))
    legend = [f"{number}  without {missing}" for number, missing in enumerate(matrix)]
    header = " ".join(f"{number:>2}" for number in range(len(matrix)))
    rows = [
        " ".join(" x" if attack in found else " ." for found in matrix.values()) + f"  {attack}"
        for attack in attacks
    ]
    held = len(attempts_here()) + len(REFEREE) - len(attacks)
    return "\n".join(
        [
            *legend,
            "",
            header,
            *rows,
            "",
            f"{held} more attacks are held by two walls or more: none of them goes through whichever is missing.",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix; or with ``--aftermath`` what is left after each attack, at both levels.

    Exit code 1 if an attack goes through, leaves anything, or lives longer than ``--within``.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.matrix", description=main.__doc__
    )
    parser.add_argument("--aftermath", action="store_true")
    parser.add_argument(
        "--within",
        type=float,
        metavar="MS",
        help="with --aftermath: the longest that may pass from a verdict until nothing lives, in milliseconds",
    )
    given = parser.parse_args(arguments)
    if given.within is not None and not given.aftermath:
        parser.error("--within goes with --aftermath")
    try:
        if given.aftermath:
            bots = [verdict[0] for verdict in VERDICTS]
            levels: tuple[Level, ...] = ("bubblewrap", "landlock")
            within = MOST_SECONDS if given.within is None else given.within / 1000
            return (
                1
                if sum(print_aftermath(x, shared_launcher(x), bots, within) for x in levels)
                else 0
            )
        with tempfile.TemporaryDirectory() as folder:
            room = Path(folder)
            (room / "with").mkdir()
            (room / "without").mkdir()
            matrix = make_matrix(room)
        print(spell(matrix))
        return 1 if matrix[ALL] or not all(matrix[wall] for wall in (*WITHOUT, *REFEREE)) else 0
    finally:
        close_zygotes()


if __name__ == "__main__":
    raise SystemExit(main())
