"""Dispatch: looks at the rows, moves on what is due, and says which messages to publish.

It runs every second, and at once when a round empties whose tournament has nothing else waiting. Duplicates, several at once and late ones
are harmless: every step is a guarded update or holds the tournament's lock. It publishes nothing
itself; `tournament.tasks` does, after commit.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Count, Exists, OuterRef, Prefetch, Q
from django.db.models.functions import Now

from engine.errors import UsageError
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    IN_FLIGHT,
    MATCH_TRANSITIONS,
    RULES_VERSION,
    AttemptEnding,
    Match,
    MatchState,
    Pairing,
    PauseCause,
    QueueClock,
    Round,
    RoundState,
    Stage,
    StageState,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.waiting import (
    UNKNOWN_MATCH_SECONDS,
    measured_match_seconds,
)
from tournament.competitions.services.bundles import note_bundle_digests
from tournament.competitions.services.entries import join_waiting_entrants, renew_ladder_entrants
from tournament.competitions.services.lifecycle import (
    close_tournament,
    open_tournament,
    pause_tournament,
    start_tournament,
)
from tournament.competitions.services.playing import count_failure
from tournament.competitions.services.rounds import advance_round, publish_results
from tournament.competitions.services.series import run_due_series
from tournament.competitions.services.tallying import tally_attempts
from tournament.competitions.services.trials import (
    queue_trials,
    request_due_trials,
    return_expired_trials,
)
from tournament.players.services import queue_versions, return_expired_versions
from tournament.store.clock import in_seconds, read_clock
from tournament.store.leases import Lease, expired
from tournament.store.queues import Capacity, match_queue
from tournament.store.services import beat, guard_each

logger = logging.getLogger(__name__)

MIN_SECONDS_BETWEEN = 0.5
SELDOM_SECONDS = 5.0
"""So often is done what can wait, or six times in the length of a lease if that is oftener."""
BLOCK_SECONDS = 1.0
"""A message carries about so much work: less is all overhead, more waits too long behind others."""
MIN_BLOCK_SECONDS = 0.1
"""Where there is room for all that waits, blocks are cut in pieces of not less: a piece for each slot."""
MAX_BLOCK = 200
BLOCKS_PER_SLOT = 4
"""How many blocks are in flight for each worker slot, so that the broker holds little."""
STALE_SECONDS = 15.0
"""A match queued for longer (or for three times the expected wait) is queued again."""
MOST_STALE = 1000
"""So many are queued again at a time; the others at the next."""
MOST_AT_ONCE = 5000
"""So many rows an UPDATE names at most."""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be published now."""

    versions: tuple[int, ...] = ()
    """BotVersion ids to check, one message each."""
    trials: tuple[int, ...] = ()
    """EntryTrial ids to play, one message each."""
    blocks: tuple[tuple[int, ...], ...] = ()
    """Match ids to play, one message a block; each block is of one tournament."""


class _Block(NamedTuple):
    """Matches of one tournament that make a message."""

    control: str
    """The time control that all of them are played with."""
    ids: tuple[int, ...]
    match_seconds: float
    """How long each lasts."""


class _Durations:
    """How long a match lasts, by tournament: as known from a moment ago, else measured when asked for."""

    def __init__(self, known: Mapping[str, float]) -> None:
        self.known = dict(known)
        """By the tournament's id, as JSON has it: seconds."""

    def of(self, tournament: Tournament) -> float:
        """The seconds of a match of this tournament; as long as none is finished, a guess that is not kept."""
        key = str(tournament.pk)
        if key not in self.known:
            measured = measured_match_seconds(tournament)
            if measured is None:
                return UNKNOWN_MATCH_SECONDS
            self.known[key] = measured
        return self.known[key]


@dataclass
class _Load:
    """A running tournament as the sharing out sees it."""

    tournament: Tournament
    in_flight: int
    controls: Mapping[int, str]
    """By stage the time control that its matches are played with, and so their queue."""
    durations: _Durations
    taken: list[int] = field(default_factory=list)
    """Matches that have been chosen by now."""

    @cached_property
    def match_seconds(self) -> float:
        """How long a match of it lasts, by the last ones finished; asked only of who is served or in flight."""
        return self.durations.of(self.tournament)

    @property
    def block_size(self) -> int:
        """How many matches make a message."""
        return max(1, min(MAX_BLOCK, int(BLOCK_SECONDS / self.match_seconds)))

    @property
    def is_mixed(self) -> bool:
        """Whether its stages have different time controls."""
        return len(set(self.controls.values())) > 1

    def stages_of(self, controls: Collection[str]) -> list[int]:
        """Its stages that are played with one of these time controls."""
        return [stage for stage, control in self.controls.items() if control in controls]

    def cost_of(self, block: Sequence[int]) -> float:
        """The seconds of work in a block, by the tournament's weight."""
        return len(block) * self.match_seconds / self.tournament.weight


def dispatch(*, rung: bool = False, capacity: Capacity | None = None) -> Due:
    """Do all that is due by the database's clock; what to publish.

    Returns at once, with nothing, if it ran less than half a second ago, unless `rung`: a block has
    emptied a round. What can wait is done every few seconds, and when rung. `capacity` is what the workers
    take (by default what the settings assume): nothing is published that none of them takes.
    """
    if not beat(name="dispatch", at_least_seconds=0 if rung else MIN_SECONDS_BETWEEN):
        return Due()
    seldom = min(SELDOM_SECONDS, settings.ARENA_LEASE_SECONDS / 6)
    is_thorough = beat(name="dispatch.seldom", at_least_seconds=0 if rung else seldom)
    now = read_clock()
    return_expired_matches()
    if is_thorough:
        return_expired_versions()
        return_expired_trials()
        run_due_series(now=now)
        request_due_trials()
    move_due_tournaments(now=now)
    if is_thorough:
        join_waiting_entrants()
        renew_ladder_entrants()
        advance_decided_rounds()  # after these: who joins now plays the next round
        publish_due_results(now=now)
        note_bundle_digests()
        tally_attempts()
    return Due(
        versions=queue_versions(capacity=capacity).ids,
        blocks=queue_matches(capacity=capacity, measure=is_thorough),
        trials=queue_trials(capacity=capacity),
    )


def return_expired_matches() -> int:
    """Give back the matches whose worker shows no sign of life; how many those were."""
    rows = Match.objects.filter(expired(), state=MatchState.RUNNING)
    found = list(rows.values_list("pk", "fence", "lease_owner")[:1000])
    return guard_each(found, lambda row: _return_expired(Lease(*row)))


def _return_expired(lease: Lease) -> bool:
    still_expired = expired() & Q(state=MatchState.RUNNING)
    detail = "its worker showed no sign of life"
    return count_failure(lease, AttemptEnding.LOST, detail, only_if=still_expired)


def move_due_tournaments(*, now: datetime) -> int:
    """Open, close, seal and start what is due at `now`; how many moved."""
    due = Tournament.objects.filter(
        Q(state=TournamentState.DRAFT, opens_at__lte=now, paused_reason="")
        | Q(state=TournamentState.OPEN, closes_at__lte=now)
        | Q(state=TournamentState.CLOSED)
    ).exclude(pause_cause=PauseCause.FAILURE)
    return _each(due.order_by("starts_at", "pk"), lambda tournament: _move_due(tournament, now))


def _each(tournaments: Iterable[Tournament], act: Callable[[Tournament], bool]) -> int:
    """Act on each; how many moved. One that cannot go on is paused, and the others go on."""

    def act_or_pause(tournament: Tournament) -> bool:
        try:
            return act(tournament)
        except TournamentStateError:
            logger.info("tournament %s was moved by another", tournament.slug)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            logger.exception("tournament %s cannot go on", tournament.slug)
            _pause(tournament, error)
        return False

    return guard_each(tournaments, act_or_pause)


def _pause(tournament: Tournament, error: Exception) -> None:
    """Hold it, with a reason for everybody; the log has what is for the operator alone."""
    detail = str(error) if isinstance(error, UsageError) else "an error of the site, see its log"
    with contextlib.suppress(TournamentStateError):  # paused or ended by another meanwhile
        pause_tournament(
            tournament=tournament, reason=f"it cannot go on: {detail}", cause=PauseCause.FAILURE
        )


def _move_due(tournament: Tournament, now: datetime) -> bool:
    before = (tournament.state, tournament.pub)
    if tournament.state == TournamentState.DRAFT:
        tournament = open_tournament(tournament=tournament)
    if (tournament.state == TournamentState.OPEN and tournament.closes_at <= now) or (
        tournament.state == TournamentState.CLOSED and not tournament.pub
    ):
        tournament = close_tournament(tournament=tournament, now=now)
    if (
        tournament.state == TournamentState.CLOSED
        and tournament.pub
        and tournament.starts_at <= now
        and not tournament.paused_reason
    ):
        tournament = start_tournament(tournament=tournament, now=now)
    return (tournament.state, tournament.pub) != before


def publish_due_results(*, now: datetime) -> int:
    """Make the results public that were sealed until `now`, paused or not; of how many tournaments."""
    due = Tournament.objects.filter(results_at__lte=now).order_by("results_at", "pk")
    return guard_each(due, lambda tournament: publish_results(tournament=tournament))


def advance_decided_rounds() -> int:
    """Advance the tournaments that have an open round without an open pairing; how many moved on.

    And those whose stage has no open round, yet goes on: one that rests until it may open matches again,
    or that has been stopped.
    """
    undecided = Pairing.objects.filter(round=OuterRef("pk"), decided_by="")
    decided = Round.objects.filter(
        ~Exists(undecided),
        is_partial=False,
        state=RoundState.OPEN,
    )
    open_rounds = Round.objects.filter(stage=OuterRef("pk"), state=RoundState.OPEN)
    resting = Stage.objects.filter(~Exists(open_rounds), state=StageState.RUNNING)
    due = Tournament.objects.filter(
        Exists(decided.filter(stage__tournament=OuterRef("pk")))
        | Exists(resting.filter(tournament=OuterRef("pk"))),
        state=TournamentState.RUNNING,
        paused_reason="",
    )
    return _each(due, lambda tournament: advance_round(tournament=tournament))


@transaction.atomic
def queue_matches(
    *, capacity: Capacity | None = None, measure: bool = True
) -> tuple[tuple[int, ...], ...]:
    """Choose the blocks to publish now and mark their matches queued; each is of one time control.

    The next block is always that of the tournament whose turn it is (`QueueClock`), so that those with
    matches waiting share the workers by their weights, however many they are. No more is in flight than a
    small multiple of the worker slots, with each time control of those slots that play it. Matches queued so
    long ago that their message may be lost are chosen first, as long as a worker is there to take them.
    How long matches last is measured anew with `measure`, else taken from the last time as far as it is known.
    """
    capacity = capacity or Capacity.by_settings()
    clock = _lock_clock()
    durations = _Durations({} if measure else clock.match_seconds)
    loads = _loads(durations)
    blocks = _stale_blocks(loads, capacity) if capacity.is_known else []
    room = _Room(capacity, loads.values())
    if room.total > 0:
        blocks += _take_turns(clock, loads, room)
    if blocks or durations.known != clock.match_seconds:
        clock.match_seconds = durations.known
        clock.save(update_fields=["now", "ahead", "match_seconds"])
    return tuple(blocks)


class _Room:
    """How many more blocks may be in flight, in all and of each time control."""

    def __init__(self, capacity: Capacity, loads: Iterable[_Load]) -> None:
        self.total = capacity.total * BLOCKS_PER_SLOT
        self._of = Counter(
            {
                control: capacity.of(match_queue(control)) * BLOCKS_PER_SLOT
                for control in capacity.time_controls
            }
        )
        for load in loads:
            for control, count in _in_flight_by_control(load).items():
                self.take(control, math.ceil(count / load.block_size) if count else 0)

    @property
    def controls(self) -> set[str]:
        """The time controls with room for one more."""
        return {control for control, blocks in self._of.items() if blocks > 0}

    def of(self, control: str) -> int:
        """How many more blocks of this time control; perhaps less than none."""
        return min(self.total, self._of[control])

    def take(self, control: str, blocks: int = 1) -> None:
        """Have less of it."""
        self.total -= blocks
        self._of[control] -= blocks


def _in_flight_by_control(load: _Load) -> Mapping[str, int]:
    controls = set(load.controls.values())
    if not load.in_flight or len(controls) == 1:
        return dict.fromkeys(controls, load.in_flight)
    rows = Match.objects.filter(tournament=load.tournament, state__in=IN_FLIGHT)
    return Counter(
        load.controls[stage] for stage in rows.values_list("pairing__round__stage", flat=True)
    )


def _lock_clock() -> QueueClock:
    """The clock of whose turn it is; whoever else shares out waits for it, so that no two fill the same room."""
    rows = QueueClock.objects.select_for_update().filter(pk=1)
    clock = rows.first()
    if clock is None:
        QueueClock.objects.get_or_create(pk=1)
        clock = rows.get()
    return clock


def _take_turns(
    clock: QueueClock, loads: Mapping[int, _Load], room: _Room
) -> list[tuple[int, ...]]:
    """As many blocks as there is room for, each of the tournament whose turn comes first."""
    turns = [(clock.turn_of(pk), pk) for pk in loads]
    heapq.heapify(turns)
    taken: list[_Block] = []
    while turns and room.total > 0:
        _, pk = heapq.heappop(turns)
        load = loads[pk]
        block = _take_block(load, room.controls)
        if block.ids:
            taken.append(block)
            room.take(block.control)
            load.taken += block.ids
            load.in_flight += len(block.ids)
            clock.serve(pk, load.cost_of(block.ids))
            heapq.heappush(turns, (clock.turn_of(pk), pk))
    blocks = _spread(taken, room)
    for ids in _chunks(list(itertools.chain.from_iterable(blocks)), MOST_AT_ONCE):
        MATCH_TRANSITIONS.move(
            Match.objects.filter(pk__in=ids),
            MatchState.QUEUED,
            only_from=MatchState.PENDING,
            queued_at=Now(),
        )
    return blocks


def _spread(blocks: Sequence[_Block], room: _Room) -> list[tuple[int, ...]]:
    """In their order, the largest in pieces while there is room for more: nobody else wants it, and no slot stands idle."""
    pieces = [1] * len(blocks)
    largest = [(-len(block.ids), number) for number, block in enumerate(blocks)]
    heapq.heapify(largest)
    while largest and room.total > 0:
        size, number = heapq.heappop(largest)
        block = blocks[number]
        if size == -1:
            break
        count = math.ceil(len(block.ids) / (-size - 1))
        smaller = math.ceil(len(block.ids) / count)
        more = count - pieces[number]
        if smaller * block.match_seconds >= MIN_BLOCK_SECONDS and more <= room.of(block.control):
            room.take(block.control, more)
            pieces[number] = count
            heapq.heappush(largest, (-smaller, number))
    return [
        piece
        for block, count in zip(blocks, pieces, strict=True)
        for piece in _chunks(block.ids, math.ceil(len(block.ids) / count))
    ]


def _loads(durations: _Durations) -> dict[int, _Load]:
    """The tournaments that may have matches played now, by id."""
    running = Tournament.objects.filter(
        state=TournamentState.RUNNING, paused_reason="", rules_version=RULES_VERSION
    )
    counts = dict(
        Match.objects.filter(state__in=IN_FLIGHT, tournament__in=running)
        .values_list("tournament")
        .annotate(Count("pk"))
    )
    waiting = Match.objects.filter(
        tournament=OuterRef("pk"), state=MatchState.PENDING, run_after__lte=Now()
    )
    active = (
        running.filter(Q(pk__in=counts) | Exists(waiting))
        .only("weight", "cap")
        .prefetch_related(Prefetch("stages", Stage.objects.only("tournament", "time_control")))
    )
    return {
        tournament.pk: _Load(
            tournament,
            counts.get(tournament.pk, 0),
            {stage.pk: stage.time_control["name"] for stage in tournament.stages.all()},
            durations,
        )
        for tournament in active
    }


def _stale_blocks(loads: Mapping[int, _Load], capacity: Capacity) -> list[tuple[int, ...]]:
    """What was queued long ago and not begun, in blocks; queued again from now."""
    queued = Match.objects.filter(state=MatchState.QUEUED)
    if not queued.filter(queued_at__lt=in_seconds(-STALE_SECONDS)).exists():
        return []
    return [
        block
        for control in capacity.time_controls
        for block in _stale_of(control, loads, capacity.of(match_queue(control)))
    ]


def _stale_of(control: str, loads: Mapping[int, _Load], slots: int) -> list[tuple[int, ...]]:
    in_flight = [
        load for load in loads.values() if load.in_flight and control in load.controls.values()
    ]
    expected = sum(load.in_flight * load.match_seconds for load in in_flight) / slots
    limit = max(STALE_SECONDS, 3 * expected)
    stale = Match.objects.filter(
        tournament__in=[load.tournament.pk for load in in_flight],
        state=MatchState.QUEUED,
        queued_at__lt=in_seconds(-limit),
    )
    if any(load.is_mixed for load in in_flight):
        stages = [stage for load in in_flight for stage in load.stages_of({control})]
        stale = stale.filter(pairing__round__stage__in=stages)
    rows = list(
        stale.select_for_update(skip_locked=True, of=("self",))
        .order_by("tournament", "pk")
        .values_list("tournament", "pk")[:MOST_STALE]
    )
    ids = [pk for _, pk in rows]
    Match.objects.filter(pk__in=ids, state=MatchState.QUEUED).update(queued_at=Now())
    return [
        block
        for tournament, group in itertools.groupby(rows, key=itemgetter(0))
        for block in _chunks([pk for _, pk in group], loads[tournament].block_size)
    ]


def _take_block(load: _Load, controls: Collection[str]) -> _Block:
    """A block that is played with one of these time controls, its rows locked; perhaps an empty one."""
    size = load.block_size
    if load.tournament.cap is not None:
        size = min(size, load.tournament.cap - load.in_flight)
    stages = load.stages_of(controls)
    if size < 1 or not stages:
        return _Block("", (), 0.0)
    return _first_alike(load, stages, size)


def _first_alike(load: _Load, stages: Collection[int], size: int) -> _Block:
    """Lock the first waiting matches of these stages that have the same time control."""
    pending = Match.objects.filter(
        tournament=load.tournament, state=MatchState.PENDING, run_after__lte=Now()
    ).exclude(pk__in=load.taken)
    first = pending.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
    if not load.is_mixed:
        ids = tuple(first.values_list("pk", flat=True)[:size])
        return _Block(load.controls[next(iter(stages))], ids, load.match_seconds)
    rows = list(
        first.filter(pairing__round__stage__in=stages).values_list("pk", "pairing__round__stage")[
            :size
        ]
    )
    control = load.controls[rows[0][1]] if rows else ""
    ids = tuple(pk for pk, stage in rows if load.controls[stage] == control)
    return _Block(control, ids, load.match_seconds)


def _chunks(ids: Sequence[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(ids[start : start + size]) for start in range(0, len(ids), size)]


def round_is_empty(*, match_ids: Sequence[int]) -> bool:
    """Whether a round of these matches has no match left to play, and its tournament none that waits.

    Then dispatch is rung at once: workers could stand idle until the next tick.
    """
    block = Match.objects.filter(pk__in=match_ids)
    waiting = Match.objects.filter(
        tournament__in=block.values("tournament"),
        state__in=(MatchState.PENDING, MatchState.QUEUED),
    )
    if waiting.exists():  # so it is nearly always, and this is soon asked
        return False
    undecided = Pairing.objects.filter(round=OuterRef("pk"), decided_by="")
    rounds = Round.objects.filter(pairings__match__in=match_ids, state=RoundState.OPEN)
    return rounds.filter(~Exists(undecided)).exists()
