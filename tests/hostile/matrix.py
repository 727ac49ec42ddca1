"""The matrix attack × wall: which attack goes through when one wall is missing. ``python -m tests.hostile.matrix``.

The walls of the referee's side (clocks, stopping, the look before a question) are switched off in their code.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from engine.agents import Limits, Reply
from engine.sandbox import agent as sandbox_agent
from tests.hostile.attempts import Attempt, attempts_here, write_attempt
from tests.hostile.stage import (
    GENEROUS,
    close_zygotes,
    first_question,
    game_info,
    make_agent,
    perform,
    source_in,
)
from tests.hostile.weaken import WHOLE, WITHOUT

ALL = "nothing"
"""The column in which no wall is missing."""
PATIENT = Limits(cpu_us=1_000_000, wall_ms=60_000)


def goes_through(attempt: Attempt, folder: Path, missing: str) -> bool:
    """Whether an attack succeeds while that wall is missing."""
    source = write_attempt(folder / ("0" * 64), attempt)
    launcher = WITHOUT.get(missing, WHOLE)
    show = perform(make_agent(source, launcher=launcher), questions=1, limits=PATIENT)
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
        agent.ask(question, question.legal, GENEROUS, deal=0, turn=0)
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
        return isinstance(agent.ask(question, question.legal, GENEROUS, deal=0, turn=0), Reply)
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


REFEREE: dict[str, tuple[Callable[[Path], bool], Callable[[], object]]] = {
    "stopping between turns": (thinks_on, _without_stopping),
    "the look before a question": (answers_unasked, _without_look),
    "the clock of CPU time": (thinks_too_long, _without_clock),
    "the cap of real time": (sleeps_too_long, _without_cap),
}
"""By the wall: its attack, and what takes the wall away."""


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
    for wall, (attack, take_away) in REFEREE.items():
        name = f"time: {attack.__doc__.rstrip('.').lower()}"
        matrix[wall] = set()
        if attack(folder / "with"):
            matrix[ALL].add(name)
        with take_away():
            if attack(folder / "without"):
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


def main() -> None:
    """Print the matrix."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        (room / "with").mkdir()
        (room / "without").mkdir()
        print(spell(make_matrix(room)))
    close_zygotes()


if __name__ == "__main__":
    main()
