"""Ladder: without end, whoever's match teaches most about the ratings plays next.

Rounds are batches: one is published whenever fewer matches are open than may be, whatever became of
those before. Who plays follows from the ratings as they stand: those with which the entrants came
(`StageView.strengths`), and what the ladder's own matches made of them. So a batch can be picked
again by anyone from the published ones.

`pick_matches` is the choice itself. Each match has a *lead*, the most urgent of those who are free:
σ² · (1 + batches waited). The uncertain come first, yet whoever waits gets more urgent from batch
to batch, so nobody starves. Against it sit those from whom the ratings learn most (`information`), rather
some it has not met lately. Everyone plays one match at a time: a slow bot holds up those at its own
table and nobody else. Matches in which all are settled are a *trickle* of those that are open at once.

Keys: ``LD/R12/M1``, the first match of batch 12.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import ClassVar

import msgspec

from engine.formats.base import (
    DecidedBy,
    Format,
    FormatOptions,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
)
from engine.formats.options import FormatOption
from engine.formats.results import (
    absent_result,
    check_entrants,
    collect_meetings,
    outcome_result,
    require_complete,
)
from engine.outcome import Outcome
from engine.ratings import BETA, Rating, rate
from engine.standings import StandingRow, TieBreak, draw_lot, rank_entrants

RECENT = 10
"""Whom one met in so many of its last matches it meets again less readily."""


class LadderOptions(FormatOptions, frozen=True):
    """The options of a ladder."""

    table: int = 2
    at_once: int = 8
    trickle: int = 1
    matches_each: int | None = None


class Ladder(Format):
    """Matches without end, picked to make the ratings certain."""

    name: ClassVar[str] = "ladder"
    title: ClassVar[str] = "Ladder"
    summary: ClassVar[str] = (
        "Goes on without rounds: whoever's match teaches most about the ratings plays next, new bots first. "
        "Bots may come and go at any time."
    )
    options_type: ClassVar[type[FormatOptions]] = LadderOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="table",
            default=2,
            choices=(2, 3, 4),
            doc="How many a match brings together.",
        ),
        FormatOption(
            name="at_once",
            default=8,
            minimum=1,
            maximum=500,
            doc="How many matches may be open at once: the ladder's share of the machines.",
        ),
        FormatOption(
            name="trickle",
            default=1,
            minimum=1,
            maximum=500,
            doc="How many of them may be between bots whose ratings are settled already.",
        ),
        FormatOption(
            name="matches_each",
            default=None,
            minimum=1,
            maximum=100_000,
            doc="It ends when everyone has so many matches; if not given, when the organiser ends it.",
        ),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2, 3, 4)
    knocks_out: ClassVar[bool] = False
    is_continuous: ClassVar[bool] = True
    reads_strengths: ClassVar[bool] = True
    takes_late_entries: ClassVar[bool] = True

    def sizes(self, options: LadderOptions) -> tuple[int, ...]:
        """Every match has a full table."""
        return (options.table,)

    def ends(self, options: LadderOptions) -> bool:
        """If everyone's matches are limited."""
        return options.matches_each is not None

    def check(self, entrants: Sequence[SeededEntrant], options: LadderOptions) -> None:
        """A full table of entrants."""
        check_entrants(self.title, entrants, at_least=options.table)

    def round_count(self, entrants: int, options: LadderOptions) -> None:
        """None: how many batches there are depends on what is decided when."""

    def match_count(self, entrants: int, options: LadderOptions) -> None:
        """None: how many matches there are depends on how they come out."""

    def next_round(self, view: StageView) -> Round | None:
        """The next batch: as many matches as may still be opened and find free entrants.

        None once everyone has all his matches, or too few are left for a table. Raises FormatError
        while there is nobody to seat before an open match is decided.
        """
        options, index = view.options, len(view.rounds) + 1
        past = _past_of(view)
        standing, busy = past.standing(view), past.busy
        open_trickle = sum(
            all(past.rating(entrant).is_settled for entrant in pairing.entrants)
            for pairing in past.open
        )
        tables = pick_matches(
            [entrant for entrant in standing if entrant.id not in busy],
            size=options.table,
            budget=options.at_once - len(past.open),
            trickle=options.trickle - open_trickle,
        )
        if not tables:
            if len(view.active) >= options.table and any(e.wants_match for e in standing):
                require_complete(view)
            return None
        return Round(
            index=index,
            pairings=tuple(
                Pairing(
                    key=f"LD/R{index}/M{slot}",
                    slot=slot,
                    entrants=tuple(sorted(table, key=past.named_first.__getitem__)),
                )
                for slot, table in enumerate(tables, start=1)
            ),
        )

    def decide(
        self,
        view: StageView,  # noqa: ARG002 - Format's signature
        pairing: Pairing,  # noqa: ARG002 - Format's signature
        outcome: Outcome,
    ) -> PairingResult:
        """The match's places, as they are."""
        return outcome_result(outcome)

    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """Who is alone left of a table scores 1; it moves no rating."""
        return absent_result(view, pairing)

    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """By the shown rating μ - 3σ, as it stands."""
        past, known = _past_of(view), view.by_id
        ratings = {entrant: past.rating(entrant) for entrant in known}
        rows = rank_entrants(
            {entrant.id: entrant.seed for entrant in view.entrants},
            collect_meetings(view, count_byes=True),
            (TieBreak.SCORE,),
        )
        shown = {entrant: rating.shown for entrant, rating in ratings.items()}
        ordered = sorted(shown.values(), reverse=True)
        return tuple(
            msgspec.structs.replace(
                row,
                place=ordered.index(shown[row.entrant]) + 1,
                tie_breaks=(),
                note=_note(ratings[row.entrant], known[row.entrant]),
            )
            for row in sorted(rows, key=lambda row: (-shown[row.entrant], known[row.entrant].seed))
        )


class LadderEntrant(msgspec.Struct, frozen=True, kw_only=True):
    """What the choice of matches knows of an entrant."""

    id: int
    rating: Rating
    waited: int
    """Batches since it was last seated; all, if it never was."""
    lot: bytes
    """Decides between equals; of this batch alone."""
    recent: Mapping[int, int] = msgspec.field(default_factory=dict)
    """How often it met whom in its last matches."""
    wants_match: bool = True
    """Whether it may lead; else it only sits where another leads."""

    @property
    def urgency(self) -> float:
        """σ² · (1 + batches waited)."""
        return self.rating.sigma**2 * (1 + self.waited)


def pick_matches(
    free: Sequence[LadderEntrant], *, size: int, budget: int, trickle: int
) -> list[tuple[int, ...]]:
    """At most `budget` matches of `size` of those who are free, each of them in one at most.

    At most `trickle` of them bring together none but settled ones. The lead of each is named first.
    """
    left = sorted(free, key=lambda entrant: (-entrant.urgency, entrant.lot))
    tables: list[tuple[int, ...]] = []
    while len(tables) < budget and len(left) >= size:
        table = _seat(left, size, may_trickle=trickle > 0)
        if table is None:
            break
        trickle -= all(entrant.rating.is_settled for entrant in table)
        seated = tuple(entrant.id for entrant in table)
        tables.append(seated)
        left = [entrant for entrant in left if entrant.id not in seated]
    return tables


def _seat(
    left: Sequence[LadderEntrant], size: int, *, may_trickle: bool
) -> list[LadderEntrant] | None:
    """The most urgent lead and those who teach most with it; None if nobody may lead."""
    for lead in left:
        if not lead.wants_match or (lead.rating.is_settled and not may_trickle):
            continue
        others = [entrant for entrant in left if entrant is not lead]
        table = [lead]
        while len(table) < size:
            best = max(others, key=lambda other: (_worth(table, other), other.lot))
            table.append(best)
            others = [entrant for entrant in others if entrant is not best]
        return table
    return None


def _worth(table: Collection[LadderEntrant], other: LadderEntrant) -> float:
    """What the ratings learn if `other` joins, divided by one more than how often they met lately."""
    return sum(
        information(entrant.rating, other.rating) / (1 + entrant.recent.get(other.id, 0))
        for entrant in table
    )


def information(a: Rating, b: Rating) -> float:
    """How much of their variances a match between two is expected to remove.

    By the update of `engine.ratings`: σ² shrinks by p(1 - p) · σ⁵/c³ with c² = σ_a² + σ_b² + 2β² and p the
    chance that `a` wins. It is large for the uncertain, and for equals.
    """
    c = math.sqrt(a.sigma**2 + b.sigma**2 + 2 * BETA**2)
    p = 1 / (1 + math.exp(min((b.mu - a.mu) / c, 700)))
    return p * (1 - p) * (a.sigma**5 + b.sigma**5) / c**3


class _Past:
    """What has been: the ratings, who is at a table, and who sat when, with whom and where."""

    def __init__(self, strengths: Mapping[int, Rating]) -> None:
        self.strengths = strengths
        self.rounds: tuple[Round, ...] = ()
        """Those that are counted in."""
        self.ratings: dict[int, Rating] = {}
        """Of those whom a match has moved."""
        self.matches: Counter[int] = Counter()
        self.named_first: Counter[int] = Counter()
        self.open: list[Pairing] = []
        self.last_seated: dict[int, int] = {}
        self.opponents: dict[int, tuple[tuple[int, ...], ...]] = {}
        """The tables of its last matches."""

    def then(self, rounds: Sequence[Round]) -> _Past:
        """What has been after these, too."""
        past = _Past(self.strengths)
        past.rounds = (*self.rounds, *rounds)
        past.ratings, past.matches = dict(self.ratings), self.matches.copy()
        past.named_first, past.open = self.named_first.copy(), list(self.open)
        past.last_seated, past.opponents = dict(self.last_seated), dict(self.opponents)
        for published in rounds:
            for pairing in published.pairings:
                past._add(pairing, published.index)
        return past

    def _add(self, pairing: Pairing, batch: int) -> None:
        self.named_first[pairing.entrants[0]] += 1
        for entrant in pairing.entrants:
            self.matches[entrant] += 1
            self.last_seated[entrant] = batch
            before = self.opponents.get(entrant, ())[1 - RECENT :]
            self.opponents[entrant] = (*before, pairing.entrants)
        if pairing.result is None:
            self.open.append(pairing)
        elif pairing.result.decided_by in _RATED:
            entered = [(self.rating(entrant),) for entrant in pairing.entrants]
            after = rate(entered, pairing.result.places)
            for entrant, (rating,) in zip(pairing.entrants, after, strict=True):
                self.ratings[entrant] = rating

    def rating(self, entrant: int) -> Rating:
        """An entrant's rating as it stands."""
        return self.ratings.get(entrant) or self.strengths.get(entrant, _NEWCOMER)

    @property
    def busy(self) -> set[int]:
        """Who is at a table."""
        return {entrant for pairing in self.open for entrant in pairing.entrants}

    def standing(self, view: StageView) -> list[LadderEntrant]:
        """Everyone who is active, for the next batch."""
        batch = len(view.rounds)
        limit = view.options.matches_each
        return [
            LadderEntrant(
                id=entrant.id,
                rating=self.rating(entrant.id),
                waited=batch - self.last_seated.get(entrant.id, 0),
                lot=draw_lot(view.lot, f"ladder/{batch + 1}/{entrant.seed}"),
                recent=Counter(
                    other
                    for table in self.opponents.get(entrant.id, ())
                    for other in table
                    if other != entrant.id
                ),
                wants_match=limit is None or self.matches[entrant.id] < limit,
            )
            for entrant in view.active
        ]


_NEWCOMER = Rating()
_remembered: list[_Past] = []
"""What the decided first batches of one ladder came to, that which was looked at last."""


def _past_of(view: StageView) -> _Past:
    """What has been in a ladder.

    What its decided first batches came to is remembered: a ladder goes on without end, and each of its
    batches would else rate all the matches before it anew. It is used only for batches equal to those that
    it came from, so what is returned follows from `view` alone.
    """
    past = _Past(view.strengths)
    for known in _remembered:
        if known.strengths == view.strengths and known.rounds == view.rounds[: len(known.rounds)]:
            past = known
    decided = list(takewhile(attrgetter("is_complete"), view.rounds[len(past.rounds) :]))
    if decided:
        past = past.then(decided)
        _remembered[:] = [past]
    return past.then(view.rounds[len(past.rounds) :])


_RATED = frozenset({DecidedBy.PLAY, DecidedBy.FAULT})


def _note(rating: Rating, entrant: SeededEntrant) -> str:
    words = f"rating {rating.mu:.1f} ± {1.96 * rating.sigma:.1f}"
    if not rating.is_settled:
        words += ", provisional"
    return words if entrant.active else f"{words}, withdrawn"
