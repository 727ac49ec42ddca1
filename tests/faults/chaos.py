"""Chaos from a seed: kills, freezes, floods and crashes, spread evenly over what is played."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from tests.faults.cups import Event
from tests.faults.harness import LEASE_SECONDS, Program, Site, wait_until
from tournament.competitions.models import Match, MatchState


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How often what is done while the matches are played."""

    kills: int
    """SIGKILL of a pool child, of a whole worker, of a main process alone, of control or beat."""
    freezes: int
    """SIGSTOP of a worker for longer than its lease."""
    floods: int
    """FLUSHALL of the broker."""
    broker_crashes: int
    database_crashes: int


@dataclass(slots=True)
class Chaos:
    """Does what the plan says to a site; which comes when is a matter of the seed."""

    site: Site
    workers: list[Program]
    seed: int
    dice: Random = field(init=False)
    frozen: dict[Program, float] = field(default_factory=dict)
    """Until when (monotonic seconds)."""

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)

    def rage(self, event: Event, plan: Plan, *, seconds: float) -> None:
        """Break the site as planned while the event is played, and wait for its end."""
        deeds: list[Callable[[], None]] = [
            *[self._kill] * plan.kills,
            *[self._freeze] * plan.freezes,
            *[self.site.flush_broker] * plan.floods,
            *[self.site.crash_broker] * plan.broker_crashes,
            *[self.site.restart_database] * plan.database_crashes,
        ]
        self.dice.shuffle(deeds)
        deadline = time.monotonic() + seconds
        done = 0
        while not self.site.read(partial(self.site.are_finished, event.tournaments)):
            assert time.monotonic() < deadline, f"not played in {seconds} s"
            self._thaw_due()
            self._revive()
            finished = self.site.read(partial(self._count_finished, event))
            if done < len(deeds) and finished * len(deeds) >= done * event.size:
                deeds[done]()
                done += 1
            time.sleep(0.05)
        assert done == len(deeds), f"only {done} of {len(deeds)} faults fell into the play"
        self._thaw_due(everything=True)

    def _revive(self) -> None:
        """Start again what has ended, as the supervisor of a site does."""
        for program in self.site.programs.values():
            if program not in self.frozen:
                program.start()

    def _count_finished(self, event: Event) -> int:
        rows = Match.objects.filter(tournament__in=event.tournaments)
        return rows.filter(state=MatchState.FINISHED).count()

    def _kill(self) -> None:
        worker = self.dice.choice(self.workers)
        children = worker.children() if worker.is_running else []
        deed = self.dice.choices(["child", "worker", "main", "control", "beat"], [6, 2, 1, 1, 1])[0]
        if deed == "child" and children:
            os.kill(self.dice.choice(children), signal.SIGKILL)
            self.site.tally.fault("kill -9")
            return
        if deed in {"control", "beat"}:
            worker = self.site.programs[deed]
        self.frozen.pop(worker, None)
        if deed == "main":
            worker.kill_main()
            wait_until(lambda: not worker.is_running, what="its end")
        else:
            worker.kill()
        worker.start()

    def _freeze(self) -> None:
        if len(self.frozen) == len(self.workers):
            self._thaw_due(everything=True)
        worker = self.dice.choice([each for each in self.workers if each not in self.frozen])
        worker.freeze()
        self.frozen[worker] = time.monotonic() + LEASE_SECONDS + self.dice.uniform(1, 4)

    def _thaw_due(self, *, everything: bool = False) -> None:
        for worker, until in list(self.frozen.items()):
            if everything or time.monotonic() >= until:
                del self.frozen[worker]
                worker.thaw()
