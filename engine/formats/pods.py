"""Pods: each round everyone sits in a match of three or four, and a table decides.

Pods are of four, the rest of three; five make three and two, and two or three all there is. So
nobody ever has a bye. A pod scores (beaten + ½ tied)/(k - 1), so that sizes compare.

Who sits together follows from who has sat together before, never from results: a pair costs the
square of how often it has met, and the pods of a round are those of the least cost that a local search
finds from several starts (`seat_together`). In round 1 the seeds go into the pods as a snake, so the
pods are equally strong. Keys: ``PD/R2/M1``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations
from typing import ClassVar

from engine.formats.base import (
    Format,
    FormatOptions,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
)
from engine.formats.options import FormatOption, tie_breaks_option
from engine.formats.results import (
    absent_result,
    check_entrants,
    collect_meetings,
    outcome_result,
    require_complete,
)
from engine.outcome import Outcome
from engine.shuffle import Stream
from engine.standings import (
    DEFAULT_ORDER,
    StandingRow,
    TieBreak,
    check_order,
    draw_lot,
    rank_entrants,
)

LARGEST = 4
MAX_ROUNDS = 60


class PodsOptions(FormatOptions, frozen=True):
    """The options of pods."""

    rounds: int | None = None
    tie_breaks: tuple[TieBreak, ...] = DEFAULT_ORDER


class Pods(Format):
    """Rounds of matches of three and four, meetings kept even."""

    name: ClassVar[str] = "pods"
    title: ClassVar[str] = "Pods"
    summary: ClassVar[str] = (
        "For games of three and four: each round everyone sits in a pod, with those met least so far, "
        "and a table decides. Any number of entrants, nobody rests."
    )
    options_type: ClassVar[type[FormatOptions]] = PodsOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="rounds",
            default=None,
            minimum=1,
            maximum=MAX_ROUNDS,
            doc="How many rounds; if not given, ⌈log2 n⌉ + 1 for n entrants.",
        ),
        tie_breaks_option(),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2, 3, 4)
    knocks_out: ClassVar[bool] = False
    takes_late_entries: ClassVar[bool] = True

    def check(self, entrants: Sequence[SeededEntrant], options: PodsOptions) -> None:
        """Two entrants, and tie-breaks that begin with the score."""
        check_entrants(self.title, entrants)
        check_order(options.tie_breaks)

    def round_count(self, entrants: int, options: PodsOptions) -> int:
        """As given, else ⌈log2 n⌉ + 1."""
        return options.rounds or max(entrants - 1, 1).bit_length() + 1

    def match_count(self, entrants: int, options: PodsOptions) -> int:
        """One a pod."""
        return len(pod_sizes(entrants)) * self.round_count(entrants, options)

    def next_round(self, view: StageView) -> Round | None:
        """Pods of all who are active, with whom each has met least."""
        require_complete(view)
        active = [entrant.id for entrant in view.active]
        index = len(view.rounds) + 1
        if len(active) < 2 or index > self.round_count(len(view.entrants), view.options):
            return None
        past = _Past(view)
        lots = [draw_lot(view.lot, f"pods/{index}/{start}") for start in range(_starts(active))]
        pods = seat_together(active, past.met, past.sat_small, lots)
        return Round(
            index=index,
            pairings=tuple(
                Pairing(key=f"PD/R{index}/M{slot}", slot=slot, entrants=_rotate(pod, past.sat_at))
                for slot, pod in enumerate(pods, start=1)
            ),
        )

    def decide(
        self,
        view: StageView,  # noqa: ARG002 - Format's signature
        pairing: Pairing,  # noqa: ARG002 - Format's signature
        outcome: Outcome,
    ) -> PairingResult:
        """The pod's places; who was at fault scores nothing."""
        return outcome_result(outcome)

    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """Who is alone left of a pod scores 1; while two are, the pod plays with all who were seated."""
        return absent_result(view, pairing)

    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """The table of pod scores."""
        return rank_entrants(
            {entrant.id: entrant.seed for entrant in view.entrants},
            collect_meetings(view, count_byes=True),
            view.options.tie_breaks,
            lot=view.lot,
            notes={entrant.id: "withdrawn" for entrant in view.entrants if not entrant.active},
        )


def pod_sizes(entrants: int) -> list[int]:
    """The sizes of the pods of so many entrants, the largest first: as few as can be, and even."""
    pods = -(-entrants // LARGEST)
    small, larger = divmod(entrants, pods)
    return [small + 1] * larger + [small] * (pods - larger)


class _Past:
    """What has been: how often two met, how often one sat in a smaller pod, and in which of its seats."""

    def __init__(self, view: StageView) -> None:
        self.met: dict[int, Counter[int]] = {entrant.id: Counter() for entrant in view.entrants}
        self.sat_small: Counter[int] = Counter()
        self.sat_at: Counter[tuple[int, int]] = Counter()
        for published in view.rounds:
            largest = max(len(pairing.entrants) for pairing in published.pairings)
            for pairing in published.pairings:
                for a, b in permutations(pairing.entrants, 2):
                    self.met[a][b] += 1
                if len(pairing.entrants) < largest:
                    self.sat_small.update(pairing.entrants)
                self.sat_at.update((entrant, at) for at, entrant in enumerate(pairing.entrants))


def seat_together(
    entrants: Sequence[int],
    met: Mapping[int, Mapping[int, int]],
    sat_small: Mapping[int, int] | None = None,
    lots: Iterable[bytes] = (),
) -> list[tuple[int, ...]]:
    """The `entrants` (by seed) in pods with whom they have met least, each pod in order of seed.

    `met` says how often two have met, `sat_small` how often one sat in a smaller pod; each of `lots`
    gives the search another order to start from. The first of the cheapest pods found is taken, so
    the same arguments always give the same pods.
    """
    table = _Seating(entrants, met, sat_small or {})
    best = _snake(entrants)
    if table.cost(best):
        best = table.improve(table.fill(entrants))
    for number, lot in enumerate(lots):
        if not table.cost(best):
            break
        order = [entrants[index] for index in Stream(lot).permutation(len(entrants))]
        start = table.fill(order) if number % 2 == 0 else _snake(order)
        best = min(best, table.improve(start), key=table.cost)
    seed_of = {entrant: seed for seed, entrant in enumerate(entrants)}
    return sorted(
        (tuple(sorted(pod, key=seed_of.__getitem__)) for pod in best),
        key=lambda pod: seed_of[pod[0]],
    )


def _snake(entrants: Sequence[int]) -> list[list[int]]:
    """The seeds there and back over the pods, past those that are full."""
    sizes = pod_sizes(len(entrants))
    pods: list[list[int]] = [[] for _ in sizes]
    left = iter(entrants)
    for lap in range(LARGEST):
        for number in range(len(sizes))[:: -1 if lap % 2 else 1]:
            if lap < sizes[number]:
                pods[number].append(next(left))
    return pods


_SMALL = 10**6
"""Meetings outweigh by so much how often one sat in smaller pods."""


class _Seating:
    """What it costs to seat these entrants so, and how to make it cheaper."""

    def __init__(
        self,
        entrants: Sequence[int],
        met: Mapping[int, Mapping[int, int]],
        sat_small: Mapping[int, int],
    ) -> None:
        self.sizes = pod_sizes(len(entrants))
        self.sat_small = sat_small
        self.price = {
            entrant: {other: times**2 for other, times in met.get(entrant, {}).items()}
            for entrant in entrants
        }

    def cost(self, pods: Sequence[Sequence[int]]) -> int:
        """The squares of the meetings that these pods repeat; then who sits in smaller pods again."""
        repeated = sum(self.price[a].get(b, 0) for pod in pods for a, b in combinations(pod, 2))
        small = sum(self._burden(entrant, len(pod)) for pod in pods for entrant in pod)
        return _SMALL * repeated + small

    def _burden(self, entrant: int, size: int) -> int:
        return self.sat_small.get(entrant, 0) ** 2 if size < self.sizes[0] else 0

    def fill(self, order: Sequence[int]) -> list[list[int]]:
        """Pod by pod, the cheapest of those who are left, the first of `order` where equal."""
        left = list(order)
        pods: list[list[int]] = []
        for size in self.sizes:
            pod = [left.pop(0)]
            while len(pod) < size:
                pod.append(left.pop(self._cheapest(left, pod)))
            pods.append(pod)
        return pods

    def _cheapest(self, left: Sequence[int], pod: Sequence[int]) -> int:
        """The index of the first of `left` whom nobody costs less to seat in this pod."""
        best, lowest = 0, self._link(left[0], pod)
        for index, entrant in enumerate(left):
            if not lowest:
                break
            link = self._link(entrant, pod)
            if link < lowest:
                best, lowest = index, link
        return best

    def _link(self, entrant: int, pod: Iterable[int]) -> int:
        prices = self.price[entrant]
        return sum(prices.get(other, 0) for other in pod)

    def improve(self, pods: list[list[int]]) -> list[list[int]]:
        """`pods` after swapping two of different pods as long as that makes them cheaper."""
        has_swapped = True
        while has_swapped:
            has_swapped = False
            for number, pod in enumerate(pods):
                for at in range(len(pod)):
                    has_swapped |= self._swap_best(pods, number, at)
        return pods

    def _swap_best(self, pods: list[list[int]], number: int, at: int) -> bool:
        """Swap one who is better elsewhere for whom it helps most; whether there was such a swap."""
        pod = pods[number]
        one = pod[at]
        own = self._link(one, pod)
        if not own and not self._burden(one, len(pod)):
            return False
        best, where = 0, None
        for other_number, other_pod in enumerate(pods):
            if other_number == number:
                continue
            there = self._link(one, other_pod)
            for other_at, other in enumerate(other_pod):
                saved = (
                    own
                    + self._link(other, other_pod)
                    + 2 * self.price[one].get(other, 0)
                    - there
                    - self._link(other, pod)
                )
                gain = _SMALL * saved + self._eased(one, len(pod), other, len(other_pod))
                if gain > best:
                    best, where = gain, (other_pod, other_at)
        if where is None:
            return False
        other_pod, other_at = where
        pod[at], other_pod[other_at] = other_pod[other_at], one
        return True

    def _eased(self, one: int, size: int, other: int, other_size: int) -> int:
        return (
            self._burden(one, size)
            + self._burden(other, other_size)
            - self._burden(one, other_size)
            - self._burden(other, size)
        )


def _rotate(pod: Sequence[int], sat_at: Counter[tuple[int, int]]) -> tuple[int, ...]:
    """The pod in the order in which each has sat least; among equals the better seeds first."""
    return min(
        permutations(pod),
        key=lambda order: sum(sat_at[entrant, at] ** 2 for at, entrant in enumerate(order)),
    )


def _starts(active: Sequence[int]) -> int:
    """From how many orders the search starts besides its own: many where that costs nothing."""
    return 16 if len(active) <= 16 else 8 if len(active) <= 64 else 1
