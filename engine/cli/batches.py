"""Plays the matches of a long comparison on several cores, and hands them over in their order.

Each core has a process of its own, in which the match is played as anywhere else. What comes out depends
on the matches alone, never on how many cores there were or which was the first to be done.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import msgspec

from engine.agents import BotSource
from engine.cli.output import note
from engine.errors import InfrastructureError, SandboxUnavailableError, UsageError
from engine.record import MatchSpec
from engine.referee import PlayedMatch
from engine.runner import repeat_if_void, run_match

Sources = Sequence[Sequence[BotSource]]
AHEAD = 4
"""So many matches for each core are begun before their turn comes, so that a slow one holds up nobody."""


def cores_here() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def play_in_order(
    specs: Sequence[MatchSpec], sources: Sources, *, jobs: int, trusted: bool
) -> Iterator[PlayedMatch]:
    """Play all `specs` with the same bots, `jobs` at a time, each on a core of its own; yield them in order.

    One job plays in this process, where a debugger can follow. Close the iterator to leave the rest
    unplayed: what was begun then ends at once. Raises what `engine.runner.run_match` raises, and
    InfrastructureError if a process of ours died.
    """
    if jobs == 1:
        for spec in specs:
            yield _play(spec, sources, trusted=trusted)
        return
    with _hands(min(jobs, len(specs)), sources, trusted=trusted) as hands:
        yield from _deal_out(specs, hands)


def _deal_out(specs: Sequence[MatchSpec], hands: Sequence[_Hand]) -> Iterator[PlayedMatch]:
    waiting = deque(enumerate(specs))
    free = deque(hands)
    done: dict[int, PlayedMatch] = {}
    turn = 0
    while turn < len(specs):
        while free and waiting and waiting[0][0] < turn + AHEAD * len(hands):
            free.popleft().begin(*waiting.popleft())
        busy = {hand.connection: hand for hand in hands if hand.number is not None}
        for connection in wait(list(busy)):
            hand = busy[connection]  # type: ignore[index] # those that were given
            number, played = hand.finish()
            done[number] = played
            free.append(hand)
        while turn in done:
            yield done.pop(turn)
            turn += 1


class _Hand:
    """A process that plays one match at a time, and the line to it."""

    def __init__(self, process: BaseProcess, connection: Connection[Any, Any]) -> None:
        self.process = process
        self.connection = connection
        self.number: int | None = None
        """Of the match that it plays."""

    def begin(self, number: int, spec: MatchSpec) -> None:
        """Let it play `spec`."""
        self.number = number
        try:
            self.connection.send(spec)
        except OSError:
            raise self._death() from None

    def finish(self) -> tuple[int, PlayedMatch]:
        """What it has played. Raises what went wrong there."""
        number, self.number = self.number, None
        assert number is not None
        try:
            answer: PlayedMatch | _Failed = self.connection.recv()
        except (EOFError, OSError):
            raise self._death() from None
        if isinstance(answer, _Failed):
            raise answer.as_error()
        return number, answer

    def _death(self) -> InfrastructureError:
        self.process.join(5)
        return InfrastructureError(
            f"a process that played matches died (exit code {self.process.exitcode}); "
            "run the command again, with --jobs 1 if it dies again"
        )


class _Failed(msgspec.Struct, frozen=True):
    """What ended a match without a result, as it is told between processes."""

    kind: str
    reasons: tuple[str, ...]

    def as_error(self) -> Exception:
        if self.kind == "sandbox":
            return SandboxUnavailableError(self.reasons)
        kind = UsageError if self.kind == "usage" else InfrastructureError
        return kind("; ".join(self.reasons))


@contextlib.contextmanager
def _hands(jobs: int, sources: Sources, *, trusted: bool) -> Iterator[list[_Hand]]:
    """Meanwhile `jobs` processes wait for matches; they are ended with the bots that they play."""
    hands: list[_Hand] = []
    try:
        with _deaf_to_ctrl_c():
            for _ in range(jobs):
                hands.append(_start(sources, trusted=trusted))  # noqa: PERF401 each is ended if the next fails
        yield hands
    finally:
        _end(hands)


def _start(sources: Sources, *, trusted: bool) -> _Hand:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, sources, trusted), daemon=True)
    process.start()
    theirs.close()
    return _Hand(process, ours)


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """What is started meanwhile never hears Ctrl-C: that is for the command, which ends its processes itself."""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def _end(hands: Sequence[_Hand]) -> None:
    for hand in hands:
        hand.connection.close()
        hand.process.terminate()
    for hand in hands:
        hand.process.join(10)
        if hand.process.is_alive():
            hand.process.kill()
            hand.process.join()


def _serve(connection: Connection[Any, Any], sources: Sources, trusted: bool) -> None:
    """Play what comes until the line is closed, as it is when the other side dies. Runs in its own process."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        with contextlib.suppress(EOFError, OSError):
            while True:
                spec: MatchSpec = connection.recv()
                connection.send(_try(spec, sources, trusted=trusted))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is leaving already, and has to tidy up


def _leave(_signal: int, _frame: object) -> None:
    """End this process in order, so that its bots are ended too."""
    sys.exit(0)


def _try(spec: MatchSpec, sources: Sources, *, trusted: bool) -> PlayedMatch | _Failed:
    try:
        return _play(spec, sources, trusted=trusted)
    except SandboxUnavailableError as error:
        return _Failed("sandbox", error.reasons)
    except UsageError as error:
        return _Failed("usage", (str(error),))
    except InfrastructureError as error:
        return _Failed("ours", (str(error),))
    except Exception:  # noqa: BLE001 a defect of ours: it goes on where the command can tell it
        return _Failed("ours", (traceback.format_exc(),))


def _play(spec: MatchSpec, sources: Sources, *, trusted: bool) -> PlayedMatch:
    if not trusted:  # it takes a core of its own
        return repeat_if_void(lambda: run_match(spec, sources), note)
    from engine.sandbox.core import one_core

    with one_core():
        return run_match(spec, sources, trusted=True)
