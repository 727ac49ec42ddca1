"""What `manage.py bench-queue` measures, once Django knows the temporary site."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from django.db import connections
from django.db.models import Count, Sum
from django.db.models.functions import Now

from engine.agents import BotSource
from engine.record import MatchSpec
from engine.runner import run_match
from tournament.competitions.models import (
    IN_FLIGHT,
    TRIAL_TRANSITIONS,
    Entrant,
    EntrantBot,
    EntryTrial,
    Match,
    MatchState,
    Tournament,
    TrialState,
)
from tournament.competitions.selectors.engine_values import match_spec, match_to_play
from tournament.competitions.services import (
    Plan,
    close_tournament,
    create_tournament,
    dispatch,
    open_tournament,
    start_tournament,
)
from tournament.competitions.services.playing import _claim, release_match, wheel_source_of
from tournament.competitions.services.trials import request_trials
from tournament.operations import broker
from tournament.operations.bench_queue import Measurement
from tournament.operations.console import Console
from tournament.operations.errors import OperationsError
from tournament.operations.home import Home
from tournament.operations.house import reference_plugins, reference_wheel
from tournament.operations.stack import (
    WORKER_STOP,
    beat_command,
    control_command,
    playing_command,
)
from tournament.operations.supervisor import ChildSpec, Supervisor
from tournament.players.models import (
    VERSION_TRANSITIONS,
    Bot,
    BotVersion,
    Player,
    VersionGame,
    VersionState,
)
from tournament.players.services import ensure_house, submit_wheel
from tournament.store.clock import read_clock
from tournament.store.leases import FREE_FIELDS

TOURNAMENTS = 20
BOTS = 33
"""A round robin of so many is 528 matches: 20 of them are more than 10 000."""
GAME = "eighty"
CLAIM_GOAL_MS = 50.0
SHARE_GOAL_PERCENT = 20.0
MEMORY_GOAL_MB = 1.0
THROUGHPUT_GOAL = 0.85
WARM_UP_SECONDS = 3.0
TICK_SECONDS = 2.0
"""A tick of dispatch is over after so long, also on a busy machine."""
PATIENCE_SECONDS = 120.0

BareMatch = tuple[int, MatchSpec, Sequence[Sequence[BotSource]]]


class Bench:
    """A temporary site and what is measured on it."""

    def __init__(
        self,
        home: Home,
        socket_path: Path,
        slots: int,
        console: Console,
        *,
        boards: int,
        trusted: bool,
        database_pids: Sequence[int] = (),
    ) -> None:
        self.home, self.socket_path, self.slots = home, socket_path, slots
        self.console, self.boards, self.trusted = console, boards, trusted
        self.database_pids = database_pids
        self.tournaments: list[Tournament] = []

    # What there is to play

    def fill(self) -> None:
        """Twenty running tournaments with all their matches waiting."""
        self.console.say("Filling the queue …")
        house = ensure_house()
        bots = [self._bot(house, number) for number in range(BOTS)]
        for number in range(TOURNAMENTS):
            self.tournaments.append(self._tournament(house, bots, number))
        self.console.say(
            f"{Match.objects.count()} matches of {TOURNAMENTS} tournaments wait "
            f"(after {self.console.seconds:.0f} s)"
        )

    def _bot(self, house: Player, number: int) -> Bot:
        """One of the reference bots by turns, under a name of its own, as if its check had been passed."""
        plugins = reference_plugins()
        data = reference_wheel(plugins[number % len(plugins)], name=f"bench{number}")
        version = submit_wheel(owner=house, data=data)
        rows = BotVersion.objects.filter(pk=version.pk)
        VERSION_TRANSITIONS.move(rows, VersionState.RUNNING, lease_owner="bench", lease_until=Now())
        VERSION_TRANSITIONS.move(rows, VersionState.ACCEPTED, decided_at=Now(), **FREE_FIELDS)
        VersionGame.objects.create(version=version, game=GAME, options={"players": [4]})
        return version.bot

    def _tournament(self, house: Player, bots: Sequence[Bot], number: int) -> Tournament:
        """A round robin of all bots with its only round published, as if its times had come."""
        now = read_clock()
        plan = Plan(
            name=f"Bench {number}",
            game=GAME,
            opens_at=now - timedelta(minutes=1),
            closes_at=now + timedelta(hours=1),
            starts_at=now + timedelta(hours=2),
            format="round_robin",
            contest={"kind": "boards", "boards": self.boards},
            time_control="standard",
            rated=False,
        )
        made = open_tournament(tournament=create_tournament(organiser=house, plan=plan))
        entrants = Entrant.objects.bulk_create(
            Entrant(tournament=made, name=bot.name) for bot in bots
        )
        EntrantBot.objects.bulk_create(
            EntrantBot(tournament=made, entrant=entrant, position=0, bot=bot)
            for entrant, bot in zip(entrants, bots, strict=True)
        )
        request_trials(tournament=made)
        trials = EntryTrial.objects.filter(state=TrialState.PENDING)
        TRIAL_TRANSITIONS.move(trials, TrialState.RUNNING, lease_owner="bench", lease_until=Now())
        TRIAL_TRANSITIONS.move(
            EntryTrial.objects.filter(state=TrialState.RUNNING),
            TrialState.PASSED,
            decided_at=Now(),
            **FREE_FIELDS,
        )
        made = close_tournament(tournament=made, now=made.closes_at)
        return start_tournament(tournament=made, now=made.starts_at)

    # What is measured

    def measure(self, *, claims: int, pairs: int, seconds: float) -> Iterator[Measurement]:
        """All measurements."""
        yield self._measure_claims(claims)
        supervisor = Supervisor(self.console.say)
        try:
            for spec in self._children():
                supervisor.start(spec)
            watched = [self._watch(supervisor, seconds) for _ in range(pairs)]
        finally:
            supervisor.stop()
        yield self._shares()
        yield self._memory(watched)
        yield self._throughput(watched)
        yield self._cpu(watched)

    def _measure_claims(self, claims: int) -> Measurement:
        """Claims by as many processes as play, while another dispatches; each is given back again."""
        ids = list(Match.objects.order_by("?").values_list("pk", flat=True)[:claims])
        told = _in_processes(
            [
                *[partial(_time_claims, ids[number :: self.slots]) for number in range(self.slots)],
                partial(_dispatch_for_a_while, len(ids) / self.slots),
            ]
        )
        times = [milliseconds for part in told for milliseconds in part]
        *_, p95 = quantiles(times, n=20)
        return Measurement(
            name="claim of a match, 95th percentile",
            unit="ms",
            value=p95,
            goal=CLAIM_GOAL_MS,
            is_at_most=True,
            detail=f"{len(times)} claims by {self.slots} processes beside dispatch, median {median(times):.2f} ms, "
            f"longest {max(times):.1f} ms",
        )

    def _watch(self, supervisor: Supervisor, seconds: float) -> Watched:
        """One pair: the workers for a while, then a bare loop of the same matches."""
        measured = Match.objects.filter(state=MatchState.FINISHED).values("tournament").distinct()
        self._await(lambda: measured.count() == len(self.tournaments), "a match of each tournament")
        time.sleep(WARM_UP_SECONDS)
        memory = [_anonymous_mb(pid) for pid in self._players(supervisor)]
        began, used = read_clock(), self._cpu_by_name(supervisor)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            supervisor.check()
            time.sleep(0.2)
        ended, used_then = read_clock(), self._cpu_by_name(supervisor)
        memory_after = [_anonymous_mb(pid) for pid in self._players(supervisor)]
        spent = {name: seconds - used[name] for name, seconds in used_then.items()}
        watched = Watched(began, ended, spent, memory, memory_after)
        with self._quiet(supervisor):
            watched.bare_seconds = self._bare_seconds(watched)
        self.console.say(
            f"{watched.matches} matches: {watched.rate:.1f}/s by the workers, {watched.bare_rate:.1f}/s bare"
        )
        return watched

    @contextlib.contextmanager
    def _quiet(self, supervisor: Supervisor) -> Iterator[None]:
        """Meanwhile nothing of the site runs: what was handed out is played to its end, and everybody stands still."""
        pids = {c.spec.name: c.process.pid for c in supervisor.children if c.process is not None}
        stopped: list[int] = []

        def stop(pid: int) -> None:
            os.killpg(pid, signal.SIGSTOP)
            stopped.append(pid)

        try:
            stop(pids.pop("beat"))  # so that nothing more is handed out
            time.sleep(
                TICK_SECONDS
            )  # stopped within one, control would keep to itself what it has marked queued
            stop(pids.pop("control"))
            in_flight = Match.objects.filter(state__in=IN_FLIGHT)
            self._await(lambda: not in_flight.exists(), "quiet")
            for pid in pids.values():
                stop(pid)
            yield
        finally:
            for pid in reversed(stopped):
                os.killpg(pid, signal.SIGCONT)

    def _bare_seconds(self, watched: Watched) -> float:
        """How long processes of our own take for the same matches, with nothing around them."""
        rows = watched.rows().values_list("pk", "digest")
        digests = dict(rows)
        matches = [_bare_match(pk) for pk in digests]
        next_one = multiprocessing.get_context("fork").Value("i", 0)
        began = time.monotonic()
        told = _in_processes(
            [partial(_play_bare, matches, next_one, trusted=self.trusted)] * self.slots
        )
        seconds = time.monotonic() - began
        watched.bare_cpu_seconds = sum(used for ((_, used),) in told)
        differing = [pk for ((part, _),) in told for pk, digest in part if digests[pk] != digest]
        if differing:
            raise OperationsError(f"matches {differing[:5]} came out otherwise in the bare loop")
        return seconds

    def _shares(self) -> Measurement:
        """Of all that was played, also before and between what was watched: a block is too much of a short while.

        A share is one of the time that playing took: that is what tournaments of equal weight get equally.
        """
        played: Counter[int] = Counter({tournament.pk: 0 for tournament in self.tournaments})
        rows = Match.objects.filter(state=MatchState.FINISHED).values_list("tournament")
        played.update(dict(rows.annotate(Sum("wall_ms"))))
        mean = played.total() / len(played)
        worst = max(abs(share - mean) for share in played.values())
        matches = [count for _, count in rows.annotate(Count("pk"))]
        return Measurement(
            name="share of a tournament, off the mean by",
            unit="%",
            value=100 * worst / mean if mean else 100.0,
            goal=SHARE_GOAL_PERCENT,
            is_at_most=True,
            detail=f"{len(played)} tournaments of equal weight, {min(played.values()) / 1000:.1f} to "
            f"{max(played.values()) / 1000:.1f} s of play each, in {min(matches)} to {max(matches)} of "
            f"{sum(matches)} matches",
        )

    def _memory(self, watched: Sequence[Watched]) -> Measurement:
        """What came in the second half: in the first caches fill, of each tournament, bot and wheel that is met."""
        half = len(watched) // 2
        before = max(watched[half - 1].memory_after_mb if half else watched[0].memory_mb)
        after = max(watched[-1].memory_after_mb)
        matches = sum(each.matches for each in watched[half:])
        return Measurement(
            name="growth of a worker's memory",
            unit="MB/1000 matches",
            value=max(0.0, after - before) * 1000 * self.slots / max(1, matches),
            goal=MEMORY_GOAL_MB,
            is_at_most=True,
            detail=f"the largest of {self.slots} processes: {before:.1f} MB at first, "
            f"{after:.1f} MB {matches} matches later",
        )

    def _throughput(self, watched: Sequence[Watched]) -> Measurement:
        ratios = [each.rate / each.bare_rate for each in watched]
        return Measurement(
            name="throughput, against a bare loop",
            unit="of its matches/s",
            value=median(ratios),
            goal=THROUGHPUT_GOAL,
            is_at_most=False,
            detail=f"{', '.join(f'{ratio:.3f}' for ratio in ratios)}; median "
            f"{median(each.rate for each in watched):.1f} matches/s by the workers",
        )

    def _cpu(self, watched: Sequence[Watched]) -> Measurement:
        """The same from CPU times, which other programs on the machine disturb less."""
        ratios = [each.cpu_ratio for each in watched]
        matches = sum(each.matches for each in watched)
        ours, bare = (
            1000 * sum(getattr(each, name) for each in watched) / max(1, matches)
            for name in ("cpu_seconds", "bare_cpu_seconds")
        )
        parts = {
            name: 1000 * sum(each.cpu_by_name[name] for each in watched) / max(1, matches)
            for name in watched[0].cpu_by_name
        }
        told = ", ".join(
            f"{name} {part:.1f}"
            for name, part in sorted(parts.items(), key=itemgetter(1), reverse=True)
        )
        return Measurement(
            name="CPU time of a bare match, of the site's",
            unit="of all that it uses",
            value=median(ratios),
            goal=THROUGHPUT_GOAL,
            is_at_most=False,
            detail=f"{', '.join(f'{ratio:.3f}' for ratio in ratios)}; a match takes {bare:.1f} ms bare, {ours:.1f} ms with "
            f"all that belongs to it ({told})",
        )

    # What runs

    def _children(self) -> Sequence[ChildSpec]:
        def spec(name: str, command: Sequence[str], stage: int, **more: Any) -> ChildSpec:
            return ChildSpec(
                name=name,
                command=command,
                environ={**os.environ, "PYTHONUNBUFFERED": "1"},
                log=self.home.logs / f"{name}.log",
                stop_stage=stage,
                **more,
            )

        server = broker.find_server()
        return (
            spec(
                "broker",
                broker.command(server, self.socket_path, self.home.broker_data),
                2,
                is_ready=lambda: broker.answers(self.socket_path),
            ),
            spec("control", control_command(), 1, stop=WORKER_STOP),
            spec("matches", playing_command("matches", self.slots), 1, stop=WORKER_STOP),
            spec("beat", beat_command(), 0),
        )

    def _players(self, supervisor: Supervisor) -> list[int]:
        """The processes that play: the pool of the worker."""
        (main,) = (child for child in supervisor.children if child.spec.name == "matches")
        assert main.process is not None
        pid = main.process.pid
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

    def _cpu_by_name(self, supervisor: Supervisor) -> dict[str, float]:
        """The CPU seconds of all whose work is for the queue: the site's children, and a database started for it."""
        used = {"database": _cpu_seconds(self.database_pids)}
        for child in supervisor.children:
            if child.process is not None:
                used[child.spec.name] = _cpu_seconds([child.process.pid])
        return used

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                logs = self.home.logs
                tails = [f"{log.name}: {log.read_text()[-500:]}" for log in sorted(logs.iterdir())]
                raise OperationsError(
                    f"waited {PATIENCE_SECONDS:g} s in vain for {what}\n" + "\n".join(tails)
                )
            time.sleep(0.05)


class Watched:
    """The workers, watched for a while."""

    def __init__(
        self,
        began: datetime,
        ended: datetime,
        cpu_by_name: Mapping[str, float],
        memory_mb: Sequence[float],
        memory_after_mb: Sequence[float],
    ) -> None:
        self.began, self.ended = began, ended
        self.cpu_by_name, self.bare_cpu_seconds = cpu_by_name, 0.0
        self.memory_mb, self.memory_after_mb = memory_mb, memory_after_mb
        self.bare_seconds = 0.0
        self.matches: int = self.rows().count()

    def rows(self) -> Any:
        """The matches that were finished meanwhile."""
        return Match.objects.filter(
            state=MatchState.FINISHED, finished_at__gt=self.began, finished_at__lte=self.ended
        )

    @property
    def rate(self) -> float:
        """Matches per second that the workers recorded."""
        return float(self.matches / (self.ended - self.began).total_seconds())

    @property
    def bare_rate(self) -> float:
        """Matches per second of the bare loop."""
        return float(self.matches / self.bare_seconds)

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of the whole site."""
        return sum(self.cpu_by_name.values())

    @property
    def cpu_ratio(self) -> float:
        """The CPU time of the bare loop's, of what the whole site used."""
        return self.bare_cpu_seconds / self.cpu_seconds


def _bare_match(pk: int) -> BareMatch:
    spec = match_spec(match_to_play(pk))
    sources = [[wheel_source_of(bot.wheel or "") for bot in one.bots] for one in spec.entrants]
    return pk, spec, sources


def _play_bare(
    matches: Sequence[BareMatch], next_one: Any, *, trusted: bool
) -> list[tuple[list[tuple[int, str]], float]]:
    """Play whatever nobody else has begun; the digests, and the CPU seconds of this process and its bots."""
    played: list[tuple[int, str]] = []
    while True:
        with next_one.get_lock():
            number = next_one.value
            next_one.value += 1
        if number >= len(matches):
            return [(played, _cpu_seconds([os.getpid()]))]
        pk, spec, sources = matches[number]
        played.append((pk, run_match(spec, sources, trusted=trusted).record.digest))


def _time_claims(ids: Sequence[int]) -> list[float]:
    """How long each claim took, in milliseconds."""
    times = []
    for pk in ids:
        began = time.perf_counter()
        lease = _claim(pk, "bench")
        times.append((time.perf_counter() - began) * 1000)
        if lease is None:
            raise OperationsError(f"match {pk} could not be claimed")
        release_match(lease)
    return times


def _dispatch_for_a_while(claims: float) -> list[float]:
    """Tick as beat would, about as long as so many claims take; it claims nothing itself."""
    for _ in range(max(2, int(claims / 200))):
        dispatch(rung=True)
        time.sleep(1.0)
    return []


def _in_processes(acts: Sequence[Callable[[], list[Any]]]) -> list[list[Any]]:
    """What each act gives, each in a process of its own. Raises OperationsError if one fails."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    connections.close_all()

    def answer(act: Callable[[], list[Any]]) -> None:
        try:
            answers.put(act())
        except Exception as error:  # noqa: BLE001 - handed on
            answers.put(f"{type(error).__name__}: {error}")

    children = [context.Process(target=answer, args=(act,)) for act in acts]
    for child in children:
        child.start()
    told = [answers.get() for _ in children]
    for child in children:
        child.join()
    failures = [each for each in told if isinstance(each, str)]
    if failures:
        raise OperationsError(failures[0])
    return told


def _cpu_seconds(pids: Sequence[int]) -> float:
    """What these processes, all below them, and all of these that have ended have used."""
    ticks = 0
    for pid in _with_descendants(pids):
        try:
            line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile: it counts with its parent
        ticks += sum(map(int, line.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _with_descendants(pids: Sequence[int]) -> Iterator[int]:
    for pid in pids:
        yield pid
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                below = (thread / "children").read_text(encoding="ascii").split()
                yield from _with_descendants(list(map(int, below)))


def _anonymous_mb(pid: int) -> float:
    """The memory of a process that holds what it has made or inherited, no files.

    Also what it still shares with the process that forked it: that a page becomes its own once it writes there is no
    growth.
    """
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    sizes = {key: value for key, _, value in (line.partition(":") for line in lines[1:])}
    return int(sizes["Anonymous"].split()[0]) / 1024
