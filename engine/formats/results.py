"""Results of pairings: by places, by fault, by walkover or bye; and what a table makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from engine.errors import FormatError
from engine.formats.base import DecidedBy, Pairing, PairingResult, SeededEntrant, StageView
from engine.outcome import Fault, Outcome, Termination
from engine.standings import Meeting, MeetingKind, draw_lot


def forfeit_outcome(entrants: int, offenders: Sequence[int], detail: str) -> Outcome:
    """The outcome of an organiser's decision against `offenders` (indexes in the pairing)."""
    guilty = frozenset(offenders)
    if not guilty or not guilty <= frozenset(range(entrants)):
        raise FormatError(
            f"name at least one offender by its index, 0 to {entrants - 1}; got {sorted(guilty)}"
        )
    innocent = entrants - len(guilty)
    return Outcome(
        termination=Termination.FORFEIT,
        faults=tuple(
            Fault(entrant=index, seat=None, kind=Termination.FORFEIT, detail=detail)
            for index in sorted(guilty)
        ),
        points=(0,) * entrants,
        places=tuple(innocent + 1 if index in guilty else 1 for index in range(entrants)),
    )


def bye_result(score: Fraction, *, advances: bool) -> PairingResult:
    """The result of a bye; `score` is what the format's table gives for it."""
    return PairingResult(
        decided_by=DecidedBy.BYE, places=(1,), points=(0,), scores=(score,), advances=(advances,)
    )


def void_result(result: PairingResult) -> PairingResult:
    """`result` annulled: no scores and no points. Who advanced has advanced: rounds stay published."""
    count = len(result.places)
    return PairingResult(
        decided_by=DecidedBy.VOID,
        places=(1,) * count,
        points=(0,) * count,
        scores=(Fraction(0),) * count,
        advances=result.advances,
    )


def scores_by_places(
    places: Sequence[int], offenders: frozenset[int] = frozenset()
) -> tuple[Fraction, ...]:
    """(beaten + ½ tied) / (k - 1) for each of k entrants; an offender scores 0."""
    others = len(places) - 1
    return tuple(
        Fraction(0)
        if index in offenders
        else Fraction(
            2 * sum(place < other for other in places)
            + sum(place == other for other in places)
            - 1,
            2 * others,
        )
        for index, place in enumerate(places)
    )


def outcome_result(outcome: Outcome) -> PairingResult:
    """The result of a match by its places alone, with nobody advancing."""
    offenders = frozenset(fault.entrant for fault in outcome.faults)
    return PairingResult(
        decided_by=_decider(outcome, offenders),
        places=outcome.places,
        points=outcome.points,
        scores=scores_by_places(outcome.places, offenders),
        advances=(False,) * len(outcome.places),
    )


def _decider(outcome: Outcome, offenders: frozenset[int]) -> DecidedBy:
    if len(offenders) == len(outcome.places):
        return DecidedBy.DOUBLE_FORFEIT
    if outcome.termination is Termination.FORFEIT:
        return DecidedBy.FORFEIT
    return DecidedBy.FAULT if offenders else DecidedBy.PLAY


def walkover_result(active: Sequence[bool]) -> PairingResult:
    """The result of a pairing that the inactive do not play: the only active one wins, or nobody scores."""
    absent = sum(not present for present in active)
    present = len(active) - absent
    places = tuple(1 if here else present + 1 for here in active)
    return PairingResult(
        decided_by=DecidedBy.WALKOVER,
        places=places,
        points=(0,) * len(active),
        scores=scores_by_places(
            places, frozenset(index for index, here in enumerate(active) if not here)
        ),
        advances=(False,) * len(active),
    )


def knock_out(view: StageView, pairing: Pairing, result: PairingResult) -> PairingResult:
    """`result` with the one entrant who advances.

    It is who has the best place alone; of several tied there, whom the lot chooses: the tied stand
    in order of seed, and `draw_lot(view.lot, "match/KEY")` as a big-endian number modulo their
    count is the index of the chosen one. Where nobody scored, it is the better seed, as by a bye.
    """
    known = view.by_id
    best = sorted(
        (index for index, place in enumerate(result.places) if place == 1),
        key=lambda index: known[pairing.entrants[index]].seed,
    )
    decided_by, chosen = result.decided_by, best[0]
    if len(best) > 1 and any(result.scores):
        decided_by = DecidedBy.LOT
        drawn = int.from_bytes(draw_lot(view.lot, f"match/{pairing.key}"), "big")
        chosen = best[drawn % len(best)]
    return PairingResult(
        decided_by=decided_by,
        places=result.places,
        points=result.points,
        scores=result.scores,
        advances=tuple(index == chosen for index in range(len(result.places))),
    )


def absent_result(view: StageView, pairing: Pairing) -> PairingResult | None:
    """The walkover of a pairing, or None while it has to be played: two of its entrants are active."""
    gone = view.inactive
    active = [entrant not in gone for entrant in pairing.entrants]
    return walkover_result(active) if sum(active) < 2 else None


def collect_meetings(view: StageView, *, count_byes: bool) -> list[Meeting]:
    """All decided pairings as a table counts them; without `count_byes` a bye is no round at all."""
    return [
        meeting
        for published in view.rounds
        for pairing in published.pairings
        if pairing.result is not None and (count_byes or not pairing.is_bye)
        for meeting in _meetings_of(pairing, pairing.result)
    ]


_MET = frozenset({DecidedBy.PLAY, DecidedBy.LOT, DecidedBy.FAULT})


def _meetings_of(pairing: Pairing, result: PairingResult) -> list[Meeting]:
    if result.decided_by in _MET:
        return [
            Meeting(
                kind=MeetingKind.PLAYED,
                entrants=pairing.entrants,
                scores=result.scores,
                points=result.points,
                places=result.places,
            )
        ]
    return [
        Meeting(kind=_absence(result, index), entrants=(entrant,), scores=(result.scores[index],))
        for index, entrant in enumerate(pairing.entrants)
    ]


def _absence(result: PairingResult, index: int) -> MeetingKind:
    is_absent = result.decided_by is DecidedBy.WALKOVER and not result.scores[index]
    return MeetingKind.WITHDRAWN if is_absent else MeetingKind.UNPLAYED


def check_entrants(what: str, entrants: Sequence[SeededEntrant], *, at_least: int = 2) -> None:
    """Raise FormatError for too few active entrants, or for ids or seeds that occur twice."""
    active = sum(entrant.active for entrant in entrants)
    if active < at_least:
        have = f"there is {active}" if active == 1 else f"there are {active}"
        raise FormatError(
            f"{what} needs at least {at_least} entrants, and {have}: "
            "let more enter, or choose another format"
        )
    for kind, values in (
        ("id", [entrant.id for entrant in entrants]),
        ("seed", [entrant.seed for entrant in entrants]),
    ):
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise FormatError(f"{kind} {twice[0]} is given to {Counter(values)[twice[0]]} entrants")


def require_complete(view: StageView) -> None:
    """Raise FormatError, naming the open matches, unless every published round is complete."""
    waiting = [
        pairing.key
        for published in view.rounds
        for pairing in published.pairings
        if pairing.result is None
    ]
    if waiting:
        raise FormatError(
            f"the next round cannot be paired before these are decided: {', '.join(waiting[:10])}"
            + (" …" if len(waiting) > 10 else "")
        )
