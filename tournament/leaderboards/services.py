"""What can be done with rating pools: append to the log, void, rebuild, verify.

The log is the truth; ratings, steps and ranks are what its fold (`engine.ratings`) makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models.functions import Now

from engine import ratings
from engine.ratings import RatedVersion
from tournament.leaderboards.errors import LogError
from tournament.leaderboards.models import (
    EventKind,
    Rating,
    RatingEvent,
    RatingPool,
    RatingStep,
)
from tournament.leaderboards.selectors import engine_events, engine_log
from tournament.players.models import BotVersion

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class RatedTeam:
    """One entrant of a rated match: its versions as (bot, version), and its place."""

    members: tuple[tuple[str, str], ...]
    place: int


@dataclass(frozen=True, slots=True)
class RatedResult:
    """A match that is to be rated. `match_key`: the tournament's slug, a slash, the key in it."""

    match_key: str
    teams: tuple[RatedTeam, ...]


@dataclass(frozen=True, slots=True)
class RatingDifference:
    """A version whose stored rating is not what the log says; None: it has none there."""

    version_id: int
    stored: RatedVersion | None
    replayed: RatedVersion | None


@transaction.atomic
def append_results(*, game: str, kind: str, results: Sequence[RatedResult]) -> int:
    """Append results in their order and fold them into the ratings; how many were new.

    A match that is in the log already is left out, so a repetition is harmless. The pool's row is
    locked meanwhile: whoever else appends waits, and the numbers have no gaps.
    """
    pool = _locked_pool(game, kind)
    known = set(
        RatingEvent.objects.filter(
            kind=EventKind.RESULT, match_key__in=[result.match_key for result in results]
        ).values_list("match_key", flat=True)
    )
    new = [result for result in results if result.match_key not in known]
    if new:
        events = _append(
            pool, EventKind.RESULT, [(result.match_key, _teams_json(result)) for result in new]
        )
        _fold_in(pool, events)
    return len(new)


@transaction.atomic
def void_results(*, game: str, kind: str, match_keys: Sequence[str]) -> None:
    """Let results count no more; they stay in the log. Raises LogError for one that does not count."""
    _change_validity(game, kind, match_keys, EventKind.VOID)


@transaction.atomic
def unvoid_results(*, game: str, kind: str, match_keys: Sequence[str]) -> None:
    """Let voided results count again, in their old place. Raises LogError for one that is not void."""
    _change_validity(game, kind, match_keys, EventKind.UNVOID)


@transaction.atomic
def rebuild_ratings(*, game: str, kind: str) -> int:
    """Make the pool's ratings, steps and ranks anew from its log; how many versions have one."""
    pool = _locked_pool(game, kind)
    fold = ratings.fold(engine_log(pool))
    event_ids = dict(pool.events.values_list("seq", "pk"))
    RatingStep.objects.filter(event__pool=pool).delete()
    RatingStep.objects.bulk_create(
        (
            RatingStep(
                event_id=event_ids[step.seq],
                version_id=step.version,
                mu=step.rating.mu,
                sigma=step.rating.sigma,
            )
            for step in fold.steps
        ),
        batch_size=_BATCH,
    )
    pool.ratings.exclude(version__in=fold.versions).delete()
    _store(pool, fold.versions)
    _rank(pool)
    return len(fold.versions)


def verify_ratings(*, game: str, kind: str) -> tuple[RatingDifference, ...]:
    """Replay the pool's log and compare: what differs from the stored ratings (nothing, if all is well)."""
    pool = RatingPool.objects.get(game=game, kind=kind)
    replayed = ratings.fold(engine_log(pool)).versions
    stored = {row.version_id: _line(row) for row in pool.ratings.all()}
    return tuple(
        RatingDifference(version, stored.get(version), replayed.get(version))
        for version in sorted(stored.keys() | replayed.keys())
        if stored.get(version) != replayed.get(version)
    )


def _locked_pool(game: str, kind: str) -> RatingPool:
    RatingPool.objects.get_or_create(game=game, kind=kind)
    return RatingPool.objects.select_for_update().get(game=game, kind=kind)


def _teams_json(result: RatedResult) -> list[dict[str, object]]:
    return [
        {"members": [list(member) for member in team.members], "place": team.place}
        for team in result.teams
    ]


def _append(
    pool: RatingPool, kind: EventKind, entries: Sequence[tuple[str, list[dict[str, object]]]]
) -> list[RatingEvent]:
    first = pool.last_seq + 1
    events = RatingEvent.objects.bulk_create(
        (
            RatingEvent(pool=pool, seq=seq, kind=kind, match_key=match_key, teams=teams)
            for seq, (match_key, teams) in enumerate(entries, first)
        ),
        batch_size=_BATCH,
    )
    pool.last_seq += len(entries)
    pool.save(update_fields=["last_seq"])
    return events


def _change_validity(game: str, kind: str, match_keys: Sequence[str], change: EventKind) -> None:
    pool = _locked_pool(game, kind)
    voided = ratings.fold(engine_log(pool)).voided
    known = set(
        pool.events.filter(kind=EventKind.RESULT, match_key__in=match_keys).values_list(
            "match_key", flat=True
        )
    )
    for match_key in match_keys:
        if match_key not in known:
            raise LogError(f"there is no rated result of {match_key}")
        if (match_key in voided) is (change is EventKind.VOID):
            raise LogError(
                f"{match_key} is void already"
                if match_key in voided
                else f"{match_key} is not void"
            )
    _append(pool, change, [(match_key, []) for match_key in match_keys])
    rebuild_ratings(game=game, kind=kind)


def _fold_in(pool: RatingPool, events: Sequence[RatingEvent]) -> None:
    log = engine_events(events)
    members = [member for event in log for team in event.teams for member in team.members]
    needed = {pk for member in members for pk in (member.version, *member.ancestors)}
    lines = {row.version_id: _line(row) for row in pool.ratings.filter(version__in=needed)}
    changed: dict[int, RatedVersion] = {}
    steps: list[RatingStep] = []
    for row, event in zip(events, log, strict=True):
        new = ratings.apply_result(lines, event)
        lines.update(new)
        changed.update(new)
        steps.extend(
            RatingStep(event=row, version_id=pk, mu=line.rating.mu, sigma=line.rating.sigma)
            for pk, line in new.items()
        )
    RatingStep.objects.bulk_create(steps, batch_size=_BATCH)
    _store(pool, changed)
    _rank(pool)


def _line(row: Rating) -> RatedVersion:
    return RatedVersion(
        rating=ratings.Rating(row.mu, row.sigma),
        matches=row.matches,
        wins=row.wins,
        ties=row.ties,
        last_seq=row.last_seq,
    )


def _store(pool: RatingPool, lines: Mapping[int, RatedVersion]) -> None:
    bots = dict(BotVersion.objects.filter(pk__in=lines).values_list("pk", "bot"))
    Rating.objects.bulk_create(
        (
            Rating(
                pool=pool,
                version_id=pk,
                bot_id=bots[pk],
                mu=line.rating.mu,
                sigma=line.rating.sigma,
                shown=line.rating.shown,
                matches=line.matches,
                wins=line.wins,
                ties=line.ties,
                last_seq=line.last_seq,
                changed_at=Now(),
            )
            for pk, line in lines.items()
        ),
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["pool", "version"],
        update_fields=[
            "mu",
            "sigma",
            "shown",
            "matches",
            "wins",
            "ties",
            "last_seq",
            "changed_at",
        ],
    )
    _list_newest(pool, set(bots.values()))


def _list_newest(pool: RatingPool, bots: Iterable[int]) -> None:
    """Let the newest settled version of each bot stand for it, or else its newest."""
    chosen: dict[int, int] = {}
    settled: set[int] = set()
    rows = pool.ratings.filter(bot__in=bots).order_by("-version").only("bot", "sigma", "mu")
    for row in rows:
        is_settled = ratings.Rating(row.mu, row.sigma).is_settled
        if row.bot_id not in chosen or (is_settled and row.bot_id not in settled):
            chosen[row.bot_id] = row.pk
        if is_settled:
            settled.add(row.bot_id)
    pool.ratings.filter(bot__in=bots, is_listed=True).exclude(pk__in=chosen.values()).update(
        is_listed=False, rank=None
    )
    pool.ratings.filter(pk__in=chosen.values(), is_listed=False).update(is_listed=True)


def _rank(pool: RatingPool) -> None:
    """Store the ranks: one statement, since a page must not count who stands above whom."""
    table = Rating._meta.db_table  # noqa: SLF001 Django's name of it
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE {table} SET rank = ranked.place
            FROM (SELECT id, RANK() OVER (ORDER BY shown DESC) AS place
                  FROM {table} WHERE pool_id = %s AND is_listed) AS ranked
            WHERE {table}.id = ranked.id
              AND ({table}.rank IS NULL OR {table}.rank <> ranked.place)
            """,  # noqa: S608 the table's name is Django's
            [pool.pk],
        )
