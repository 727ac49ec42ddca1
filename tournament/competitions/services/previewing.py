"""What a change would do, shown before it is done.

The change itself is run and taken back, so the preview cannot differ from what it shows: a savepoint is
rolled back after results, standings and ratings have been read a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.db import transaction

from engine.ratings import Rating as EngineRating
from tournament.competitions.models import Pairing, Tournament, TournamentState
from tournament.competitions.selectors.engine_values import PARTS, stage_format, stage_view
from tournament.competitions.services.rulings import spell_result
from tournament.leaderboards.models import Rating

ABSENT, TAKEN_BACK = "–", "taken back"


@dataclass(frozen=True, slots=True)
class Changed:
    """One line of what would change."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Preview:
    """All that a change would change; an empty one changes nothing that counts."""

    state: tuple[Changed, ...]
    """At most one line: the state of the tournament."""
    pairings: tuple[Changed, ...]
    standings: tuple[Changed, ...]
    ratings: tuple[Changed, ...]
    """The biggest change first."""


@dataclass(frozen=True, slots=True)
class _Picture:
    state: Mapping[str, str]
    pairings: Mapping[str, str]
    standings: Mapping[str, str]
    ratings: Mapping[str, tuple[float, float]]


def preview(tournament: Tournament, act: Callable[[], object]) -> Preview:
    """What `act` would change in a tournament, its standings and the ratings of its pool.

    Whatever `act` raises is raised here, too, so a change that is not possible has no preview.
    """
    with transaction.atomic():
        Tournament.objects.select_for_update().get(pk=tournament.pk)
        before = _look_at(tournament)
        with transaction.atomic():
            act()
            after = _look_at(tournament)
            transaction.set_rollback(True)
    return Preview(
        state=_differences(before.state, after.state),
        pairings=_differences(before.pairings, after.pairings, gone=TAKEN_BACK),
        standings=_differences(before.standings, after.standings),
        ratings=_rating_differences(before.ratings, after.ratings),
    )


def _look_at(tournament: Tournament) -> _Picture:
    fresh = Tournament.objects.get(pk=tournament.pk)
    names = dict(fresh.entrants.values_list("pk", "name"))
    return _Picture(
        state={fresh.name: fresh.get_state_display()},
        pairings=_pairings(fresh),
        standings=_standings(fresh, names),
        ratings={
            f"{bot} {version}": (mu, sigma)
            for bot, version, mu, sigma in Rating.objects.filter(
                pool__game=fresh.game, pool__kind=fresh.kind
            ).values_list("bot__name", "version__version", "mu", "sigma")
        },
    )


def _pairings(tournament: Tournament) -> dict[str, str]:
    rows = (
        Pairing.objects.filter(tournament=tournament)
        .prefetch_related(PARTS)
        .order_by("round__stage__index", "round__index", "slot")
    )
    return {
        pairing.key: (
            f"{' – '.join(part.entrant.name for part in pairing.entrants.all())}: "
            f"{spell_result(pairing)}{' (again)' if pairing.edition > 1 else ''}"
        )
        for pairing in rows
    }


def _standings(tournament: Tournament, names: Mapping[int, str]) -> dict[str, str]:
    if tournament.state not in {TournamentState.RUNNING, TournamentState.FINISHED}:
        return {}
    table = {}
    stages = list(tournament.stages.select_related("tournament"))
    for stage in stages:
        if not stage.rounds.exists():
            continue
        fmt, where = stage_format(stage), f"of stage {stage.number}, " if len(stages) > 1 else ""
        for row in fmt.standings(stage_view(stage)):
            said = row.note if fmt.knocks_out else f"score {row.score}"
            table[f"{where}{names[row.entrant]}"] = f"place {row.place}, {said}"
    return table


def _differences(
    before: Mapping[str, str], after: Mapping[str, str], *, gone: str = ABSENT
) -> tuple[Changed, ...]:
    return tuple(
        Changed(what, before.get(what, ABSENT), after.get(what, gone))
        for what in dict.fromkeys([*before, *after])
        if before.get(what) != after.get(what)
    )


def _rating_differences(
    before: Mapping[str, tuple[float, float]], after: Mapping[str, tuple[float, float]]
) -> tuple[Changed, ...]:
    changed = [
        version
        for version in dict.fromkeys([*before, *after])
        if before.get(version) != after.get(version)
    ]
    shown = {
        version: tuple(
            None if values is None else EngineRating(*values).shown
            for values in (before.get(version), after.get(version))
        )
        for version in changed
    }
    changed.sort(key=lambda version: (-_size(*shown[version]), version))
    lines = (Changed(version, *map(_spell, shown[version])) for version in changed)
    return tuple(line for line in lines if line.before != line.after)


def _size(before: float | None, after: float | None) -> float:
    return float("inf") if before is None or after is None else abs(after - before)


def _spell(shown: float | None) -> str:
    return "no rating" if shown is None else f"{shown:.2f}"
