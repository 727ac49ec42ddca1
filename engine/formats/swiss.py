"""Swiss: in each round those meet who have done equally well so far, and nobody meets anyone twice.

It is not FIDE's Dutch system. Who stands where in a round is told by (score, seed) alone; of all the
ways to pair them the one with the least cost is taken, where costs are compared level by level:

1. rematches: their number, then how long ago the two met (the oldest first);
2. the bye's place from the end, among those with the fewest byes;
3. the sum of the squared differences of the scores;
4. repeated floats: who met a better (or a worse) score in the last round does so again;
5. clashes: both have sat first more often than second, or both less often;
6. the distance from the fold: in a score group of 2k, number i meets number i + k; across groups
   neighbours meet;
7. a tie-break that makes the result one and the same everywhere (`engine.formats.matching`).

Up to 256 entrants this is the best of all pairings. Above it the table is cut into windows, each
paired so by itself: see `_windows`. Keys: ``SW/R3/M7``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import ClassVar

from engine.errors import FormatError
from engine.formats.base import (
    Format,
    FormatOptions,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
)
from engine.formats.matching import match_all
from engine.formats.options import FormatOption, tie_breaks_option
from engine.formats.results import (
    absent_result,
    bye_result,
    check_entrants,
    collect_meetings,
    outcome_result,
    require_complete,
)
from engine.outcome import Outcome
from engine.standings import (
    DEFAULT_ORDER,
    Meeting,
    MeetingKind,
    StandingRow,
    TieBreak,
    check_order,
    rank_entrants,
)

MAX_ENTRANTS = 16_384
MAX_ROUNDS = 128
COMPLETE_UP_TO = 256
"""So many entrants are paired as a whole; more of them window by window."""
WINDOW = 64
"""Entrants of a window at least: 32 of the upper and 32 of the lower half of a score group."""


class SwissOptions(FormatOptions, frozen=True):
    """The options of a Swiss stage."""

    rounds: int | None = None
    tie_breaks: tuple[TieBreak, ...] = DEFAULT_ORDER


class Swiss(Format):
    """A given number of rounds, each between equals; the table decides."""

    name: ClassVar[str] = "swiss"
    title: ClassVar[str] = "Swiss"
    summary: ClassVar[str] = (
        "A few rounds, each between entrants with equal scores, and a table decides. Takes many "
        "entrants, also late ones. It is not FIDE's Dutch system."
    )
    options_type: ClassVar[type[FormatOptions]] = SwissOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="rounds",
            default=None,
            minimum=1,
            maximum=MAX_ROUNDS,
            doc="How many rounds; ⌈log2 n⌉ + 1 of n entrants if none are given.",
        ),
        tie_breaks_option(),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2,)
    knocks_out: ClassVar[bool] = False
    takes_late_entries: ClassVar[bool] = True
    spares_rematches: ClassVar[bool] = True

    def check(self, entrants: Sequence[SeededEntrant], options: SwissOptions) -> None:
        """2 to 16 384 entrants, no more rounds than opponents, and tie-breaks that begin with the score."""
        check_entrants(self.title, entrants)
        opponents = len(entrants) - 1
        if options.rounds is not None and options.rounds > opponents:
            raise FormatError(
                f"a Swiss stage of {len(entrants)} entrants takes at most {opponents} rounds, since "
                f"nobody has more opponents; give fewer than {options.rounds}, or choose a round robin"
            )
        if len(entrants) > MAX_ENTRANTS:
            raise FormatError(
                f"a Swiss stage takes at most {MAX_ENTRANTS} entrants, and there are "
                f"{len(entrants)}: limit the entries"
            )
        check_order(options.tie_breaks)

    def round_count(self, entrants: int, options: SwissOptions) -> int:
        """The rounds asked for, else ⌈log2 n⌉ + 1, but no more than there are opponents."""
        if options.rounds is not None:
            return options.rounds
        return max(min((entrants - 1).bit_length() + 1, entrants - 1), 0)

    def match_count(self, entrants: int, options: SwissOptions) -> int:
        """⌊n/2⌋ a round."""
        return entrants // 2 * self.round_count(entrants, options)

    def next_round(self, view: StageView) -> Round | None:
        """The best pairing of who is still active; who came late has the last seed and no score yet."""
        require_complete(view)
        index = len(view.rounds) + 1
        if len(view.active) < 2 or index > self.round_count(len(view.entrants), view.options):
            return None
        pairs, bye = _pair(_ranked(view))
        pairings = [
            Pairing(key=f"SW/R{index}/M{slot}", slot=slot, entrants=pair)
            for slot, pair in enumerate(pairs, start=1)
        ]
        if bye is not None:
            pairings.append(_plan_bye(index, len(pairs) + 1, bye))
        return Round(index=index, pairings=tuple(pairings))

    def decide(
        self,
        view: StageView,  # noqa: ARG002 - Format's signature
        pairing: Pairing,  # noqa: ARG002 - Format's signature
        outcome: Outcome,
    ) -> PairingResult:
        """The match's places, as they are: ties stay ties, a double forfeit scores nothing."""
        return outcome_result(outcome)

    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """Who is still active scores 1."""
        return absent_result(view, pairing)

    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """The table. A bye scores 1; rounds before a late entry score nothing."""
        return rank_entrants(
            {entrant.id: entrant.seed for entrant in view.entrants},
            [*collect_meetings(view, count_byes=True), *_absences(view)],
            view.options.tie_breaks,
            lot=view.lot,
            notes={entrant.id: "withdrawn" for entrant in view.entrants if not entrant.active},
        )


def _plan_bye(index: int, slot: int, entrant: int) -> Pairing:
    return Pairing(
        key=f"SW/R{index}/M{slot}",
        slot=slot,
        entrants=(entrant,),
        is_bye=True,
        result=bye_result(Fraction(1), advances=False),
    )


def _absences(view: StageView) -> list[Meeting]:
    """The complete rounds in which an entrant was not paired: before a late entry, or after he left."""
    absences = []
    has_come: set[int] = set()
    for published in view.rounds:
        paired = {entrant for pairing in published.pairings for entrant in pairing.entrants}
        has_come |= paired
        if published.is_complete:
            absences += [
                Meeting(
                    kind=MeetingKind.WITHDRAWN if entrant.id in has_come else MeetingKind.UNPLAYED,
                    entrants=(entrant.id,),
                    scores=(Fraction(0),),
                )
                for entrant in view.entrants
                if entrant.id not in paired
            ]
    return absences


# What a pairing looks at


class _Player:
    """An entrant as the pairing sees him, from the published rounds."""

    __slots__ = ("balance", "byes", "firsts", "floated", "halves", "id", "met", "seed")

    def __init__(self, entrant: SeededEntrant) -> None:
        self.id = entrant.id
        self.seed = entrant.seed
        self.halves = 0
        """The score, in half points."""
        self.met: dict[int, int] = {}
        """The round in which he was last paired with whom, however it came out."""
        self.byes = 0
        self.balance = 0
        """How much more often he sat first than second."""
        self.firsts: list[bool] = []
        """Where he sat in each of his pairings."""
        self.floated = 0
        """1 if he met a better score in the last round, -1 for a worse one or a bye."""


def _ranked(view: StageView) -> list[_Player]:
    """Who is still active, in order of (score, seed)."""
    players = {entrant.id: _Player(entrant) for entrant in view.entrants}
    for published in view.rounds:
        is_last = published is view.rounds[-1]
        for pairing in published.pairings:
            _sit_down(
                [players[entrant] for entrant in pairing.entrants], published, is_last=is_last
            )
        for pairing in published.pairings:
            assert pairing.result is not None
            for entrant, score in zip(pairing.entrants, pairing.result.scores, strict=True):
                players[entrant].halves += 2 * score.numerator // score.denominator
    active = (players[entrant.id] for entrant in view.entrants if entrant.active)
    return sorted(active, key=lambda player: (-player.halves, player.seed))


def _sit_down(paired: Sequence[_Player], published: Round, *, is_last: bool) -> None:
    """Note who met whom, before the scores of that round are added."""
    if len(paired) == 1:
        paired[0].byes += 1
        paired[0].floated = -1 if is_last else 0
        return
    first, second = paired
    first.met[second.id] = second.met[first.id] = published.index
    first.balance += 1
    second.balance -= 1
    first.firsts.append(True)
    second.firsts.append(False)
    if is_last:
        first.floated = (second.halves > first.halves) - (second.halves < first.halves)
        second.floated = -first.floated


def _named(upper: _Player, lower: _Player) -> tuple[int, int]:
    """The two in the order of their seats: first sits who did so less often, then who did not so of late.

    Of two who always sat alike it is the better placed; the other one if both have sat first too often.
    """
    if upper.balance != lower.balance:
        is_upper_first = upper.balance < lower.balance
    else:
        recent = zip(reversed(upper.firsts), reversed(lower.firsts), strict=False)
        is_upper_first = next((b for a, b in recent if a != b), upper.balance <= 0)
    return (upper.id, lower.id) if is_upper_first else (lower.id, upper.id)


# The pairing


def _pair(ranked: list[_Player]) -> tuple[list[tuple[int, int]], int | None]:
    """The pairs in the order of their better placed, and who has the bye."""
    if _is_any_bye_free(ranked):
        bye = _bye_candidates(ranked)[-1] if len(ranked) % 2 else None
        pairs = _pair_without_rematches(ranked, bye)
    else:
        pairs, bye = _pair_with_rematches(ranked)
    named = [_named(ranked[i], ranked[j]) for i, j in pairs]
    return named, None if bye is None else ranked[bye].id


def _is_any_bye_free(ranked: Sequence[_Player]) -> bool:
    """Whether nobody need meet anyone again, whoever has the bye.

    By Dirac's theorem (1952): where each of n vertices has n/2 neighbours or more there is a round
    trip through all of them, and every second edge of it is a perfect matching.
    """
    playing = len(ranked) - len(ranked) % 2
    return max(len(player.met) for player in ranked) <= playing // 2 - 1


def _bye_candidates(ranked: Sequence[_Player]) -> list[int]:
    """The places of those with the fewest byes."""
    fewest = min(player.byes for player in ranked)
    return [place for place, player in enumerate(ranked) if player.byes == fewest]


def _pair_with_rematches(
    ranked: Sequence[_Player],
) -> tuple[list[tuple[int, int]], int | None]:
    """The best of all pairings, and who rests: he meets one more, at the end of the table.

    It is needed where somebody has met half of the others, so there are 258 at most: twice the most rounds.
    """
    count = len(ranked)
    edges = [
        (i, j, met > 0, met, 0, *costs)
        for i, j, met, *costs in _costs(ranked, range(count), _sizes(ranked))
    ]
    if count % 2:
        edges += [(i, count, 0, 0, count - 1 - i, 0, 0, 0, 0) for i in _bye_candidates(ranked)]
    pairs = match_all(count + count % 2, edges)
    assert pairs is not None, "any two may meet, if they must"
    bye = next((i for i, j in pairs if j == count), None)
    return [pair for pair in pairs if pair[1] < count], bye


def _pair_without_rematches(ranked: Sequence[_Player], bye: int | None) -> list[tuple[int, int]]:
    """The best pairing of each window; one that has none without a rematch is joined to the next."""
    sizes = _sizes(ranked)
    places = [place for place in range(len(ranked)) if place != bye]
    groups = [list(group) for _, group in groupby(places, key=lambda i: ranked[i].halves)]
    windows = [places] if len(places) <= COMPLETE_UP_TO else _windows(groups)
    paired: list[list[tuple[int, int]]] = []
    while len(paired) < len(windows):
        window = windows[len(paired)]
        pairs = match_all(
            len(window),
            [(i, j, *costs) for i, j, met, *costs in _costs(ranked, window, sizes) if not met],
        )
        if pairs is not None:
            paired.append([(window[i], window[j]) for i, j in pairs])
            continue
        at = min(len(paired), len(windows) - 2)
        windows[at : at + 2] = [sorted(windows[at] + windows[at + 1])]
        del paired[at:]
    return sorted(pair for pairs in paired for pair in pairs)


def _windows(groups: Iterable[Sequence[int]]) -> list[list[int]]:
    """The table in pieces of even size that are paired apart; `groups` are its score groups, in order.

    A score group of more than a window is cut along its fold: a piece is as many of its upper half
    as of its lower half below them, so that it holds those whom the fold would bring together.
    Where a group is odd, its last piece and the next group's first are one window, and where groups
    are small, several are: at least `WINDOW` entrants, as long as there are more.
    """
    windows: list[list[int]] = []
    window: list[int] = []
    for group in groups:
        for piece in _pieces(group, takes_floater=len(window) % 2):
            window += piece
            if len(window) >= WINDOW and len(window) % 2 == 0:
                windows.append(sorted(window))
                window = []
    if window and windows:
        windows[-1] = sorted(windows[-1] + window)
    elif window:
        windows.append(window)
    return windows


def _pieces(group: Sequence[int], *, takes_floater: int) -> list[list[int]]:
    """A score group along its fold; the first of it may meet one from above, the last one from below."""
    if len(group) <= WINDOW:
        return [list(group)]
    rest = group[takes_floater:]
    half = len(rest) // 2
    count = -(-half // (WINDOW // 2))
    cuts = [half * piece // count for piece in range(count + 1)]
    pieces = [
        [*rest[start:stop], *rest[half + start : half + stop]] for start, stop in pairwise(cuts)
    ]
    pieces[0] = [*group[:takes_floater], *pieces[0]]
    pieces[-1] = [*pieces[-1], *rest[2 * half :]]
    return pieces


def _sizes(ranked: Sequence[_Player]) -> Counter[int]:
    """How many have so many half points."""
    return Counter(player.halves for player in ranked)


def _costs(
    ranked: Sequence[_Player], places: Sequence[int], sizes: Mapping[int, int]
) -> Iterator[tuple[int, int, int, int, int, int, int]]:
    """For each two of `places` (by their indexes there): the round they last met in or 0, and what else it costs.

    `sizes` are those of the score groups, by their half points.
    """
    for i, place in enumerate(places):
        upper = ranked[place]
        met, halves, balance = upper.met, upper.halves, upper.balance
        size, floated_down = sizes[halves], upper.floated < 0
        for j in range(i + 1, len(places)):
            lower = ranked[places[j]]
            gap, distance = halves - lower.halves, 2 * (places[j] - place)
            yield (
                i,
                j,
                met.get(lower.id, 0),
                gap * gap,
                floated_down + (lower.floated > 0) if gap else 0,
                balance * lower.balance > 0,
                distance if gap else abs(distance - size),
            )
