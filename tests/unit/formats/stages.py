"""Runs stages for the tests: publishes each planned round, decides its pairings, looks at every rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from engine.formats import Format, Pairing, Round, SeededEntrant, StageView
from engine.outcome import Outcome, Termination, places_by

Decider = Callable[[Pairing], Outcome | None]
"""The outcome of a pairing's match; None: it is walked over, as someone has left."""


def seeded(count: int) -> tuple[SeededEntrant, ...]:
    """Entrants 101, 102, … with seeds 1, 2, …."""
    return tuple(SeededEntrant(id=100 + seed, seed=seed) for seed in range(1, count + 1))


def start(fmt: Format, count: int, lot: bytes = b"lot", **options: object) -> StageView:
    entrants = seeded(count)
    made = fmt.make_options(options)
    fmt.check(entrants, made)
    return StageView(entrants=entrants, options=made, lot=lot)


def with_an_end(fmt: Format, options: dict[str, object]) -> dict[str, object]:
    """`options` with few matches each, for a format that would go on for ever with them."""
    if fmt.ends(fmt.make_options(options)):
        return options
    return {**options, "matches_each": 3}


def won_by(index: int, count: int = 2) -> Outcome:
    return scored(tuple((count if i == index else -1) for i in range(count)))


def scored(points: tuple[int, ...]) -> Outcome:
    return Outcome(
        termination=Termination.COMPLETED, faults=(), points=points, places=places_by(points)
    )


def better_seed_wins(pairing: Pairing) -> Outcome:
    return won_by(pairing.entrants.index(min(pairing.entrants)), len(pairing.entrants))


def publish(view: StageView, planned: Round) -> StageView:
    return msgspec.structs.replace(view, rounds=(*view.rounds, planned))


def settle(view: StageView, results: dict[str, object]) -> StageView:
    """`view` with these results in its last round, by key."""
    last = view.rounds[-1]
    pairings = tuple(
        msgspec.structs.replace(p, result=results[p.key]) if p.key in results else p
        for p in last.pairings
    )
    return msgspec.structs.replace(
        view, rounds=(*view.rounds[:-1], msgspec.structs.replace(last, pairings=pairings))
    )


def leave(view: StageView, ids: Iterable[int]) -> StageView:
    gone = set(ids)
    return msgspec.structs.replace(
        view,
        entrants=tuple(
            msgspec.structs.replace(e, active=e.active and e.id not in gone) for e in view.entrants
        ),
    )


def play_round(fmt: Format, view: StageView, decide: Decider) -> StageView | None:
    """Publishes and decides one more round; None when the stage is over."""
    planned = fmt.next_round(view)
    if planned is None:
        return None
    view = publish(view, planned)
    results: dict[str, object] = {}
    for pairing in planned.pairings:
        if pairing.result is None:
            results[pairing.key] = fmt.walkover(view, pairing) or fmt.decide(
                view, pairing, decide(pairing)
            )
    return settle(view, results)


def play_stage(fmt: Format, view: StageView, decide: Decider = better_seed_wins) -> StageView:
    while (after := play_round(fmt, view, decide)) is not None:
        view = after
    return view


def seeds_of(view: StageView, index: int) -> list[tuple[int, ...]]:
    """The pairings of a round (from 1) by seed."""
    return [tuple(e - 100 for e in p.entrants) for p in view.rounds[index - 1].pairings]
