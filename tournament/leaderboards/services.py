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
from tournament.leaderboards.selectors import (
    engine_events,
    engine_log,
    rated_version,
    result_seqs,
    tail_of,
    voided_from,
)
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
class Place:
    """Where a version stands on the leaderboard."""

    is_listed: bool
    rank: int | None


@dataclass(frozen=True, slots=True)
class RatingDifference:
    """What of a version is not stored as the log says; None: it is not there at all."""

    version_id: int
    stored: RatedVersion | ratings.Rating | Place | None
    replayed: RatedVersion | ratings.Rating | Place | None
    seq: int | None = None
    """Of a step of its history: the number of the event. None: of its rating, or of its place."""


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
def rebuild_ratings(*, game: str, kind: str) -> tuple[RatingDifference, ...]:
    """Make the pool's ratings, steps and ranks anew from its log; what was not as the log says.

    The pool's row is locked meanwhile: results that are recorded wait, and are appended to what was rebuilt.
    """
    pool = _locked_pool(game, kind)
    fold = ratings.fold(engine_log(pool))
    differences = _differences(fold, _read_stored(pool))
    event_ids = dict(pool.events.values_list("seq", "pk"))
    RatingStep.objects.filter(event__pool=pool).delete()
    _store_steps(fold.steps, event_ids)
    pool.ratings.exclude(version__in=fold.versions).delete()
    _store(pool, fold.versions)
    _list_newest(pool, set(pool.ratings.values_list("bot", flat=True)))
    pool.ratings.filter(is_listed=False, rank__isnull=False).update(rank=None)
    _rank(pool)
    return differences


def verify_ratings(*, game: str, kind: str) -> tuple[RatingDifference, ...]:
    """Replay the pool's log and compare: what differs from what is stored (nothing, if all is well).

    The pool's row is locked only while it is read, so that no result comes between. Raises LogError if
    there is no such pool.
    """
    with transaction.atomic():
        pool = RatingPool.objects.select_for_update().filter(game=game, kind=kind).first()
        if pool is None:
            raise LogError(f"nothing was ever rated in {game}/{kind}")
        log, stored = list(engine_log(pool)), _read_stored(pool)
    return _differences(ratings.fold(log), stored)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored of a pool."""

    lines: Mapping[int, RatedVersion]
    bots: Mapping[int, int]
    """By version."""
    places: Mapping[int, Place]
    steps: Mapping[tuple[int, int], ratings.Rating]
    """By event number and version."""


def _read_stored(pool: RatingPool) -> _Stored:
    rows = list(pool.ratings.all())
    steps = RatingStep.objects.filter(event__pool=pool)
    return _Stored(
        lines={row.version_id: rated_version(row) for row in rows},
        bots={row.version_id: row.bot_id for row in rows},
        places={row.version_id: Place(row.is_listed, row.rank) for row in rows},
        steps={
            (seq, version): ratings.Rating(mu, sigma)
            for seq, version, mu, sigma in steps.values_list(
                "event__seq", "version", "mu", "sigma"
            ).iterator()
        },
    )


def _differences(fold: ratings.Fold, stored: _Stored) -> tuple[RatingDifference, ...]:
    lines = [
        RatingDifference(version, stored.lines.get(version), fold.versions.get(version))
        for version in sorted(stored.lines.keys() | fold.versions.keys())
        if stored.lines.get(version) != fold.versions.get(version)
    ]
    replayed = {(step.seq, step.version): step.rating for step in fold.steps}
    steps = [
        RatingDifference(
            version, stored.steps.get((seq, version)), replayed.get((seq, version)), seq
        )
        for seq, version in sorted(stored.steps.keys() | replayed.keys())
        if stored.steps.get((seq, version)) != replayed.get((seq, version))
    ]
    due = _places_of(fold.versions, stored.bots)
    places = [
        RatingDifference(version, place, due[version])
        for version, place in sorted(stored.places.items())
        if version in due and place != due[version]
    ]
    return (*lines, *steps, *places)


def _places_of(lines: Mapping[int, RatedVersion], bots: Mapping[int, int]) -> dict[int, Place]:
    """The places that these ratings make, of the versions whose bot is known."""
    chosen: dict[int, int] = {}
    for version in sorted(lines.keys() & bots.keys()):
        standing = chosen.get(bots[version])
        if (
            standing is None
            or lines[version].rating.is_settled
            or not lines[standing].rating.is_settled
        ):
            chosen[bots[version]] = version
    listed = set(chosen.values())
    shown = sorted((lines[version].rating.shown for version in listed), reverse=True)
    first: dict[float, int] = {}
    for rank, number in enumerate(shown, start=1):
        first.setdefault(number, rank)
    return {
        version: Place(version in listed, first[line.rating.shown] if version in listed else None)
        for version, line in lines.items()
        if version in bots
    }


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
    keys = list(dict.fromkeys(match_keys))
    if not keys:
        return
    first = min(result_seqs(pool, keys).values())
    voided = voided_from(pool, first)
    for key in keys:
        if (key in voided) is (change is EventKind.VOID):
            raise LogError(f"{key} is void already" if key in voided else f"{key} is not void")
    _append(pool, change, [(key, []) for key in keys])
    _replay_from(pool, first, frozenset(keys))


def _replay_from(pool: RatingPool, first: int, changed: frozenset[str]) -> None:
    """Fold again what `changed` can have touched: everything from the result number `first` on."""
    tail = tail_of(pool, first, changed)
    lines, steps = ratings.resume(tail.before, tail.results, tail.voided)
    RatingStep.objects.filter(event__pool=pool, event__seq__gte=first).delete()
    _store_steps(steps, tail.event_ids)
    gone = pool.ratings.filter(version__in=tail.versions - lines.keys())
    bots = set(gone.values_list("bot", flat=True))
    gone.delete()
    _store(pool, {version: lines[version] for version in tail.versions & lines.keys()})
    _list_newest(pool, bots)
    _rank(pool)


def _store_steps(steps: Sequence[ratings.Step], event_ids: Mapping[int, int]) -> None:
    RatingStep.objects.bulk_create(
        (
            RatingStep(
                event_id=event_ids[step.seq],
                version_id=step.version,
                mu=step.rating.mu,
                sigma=step.rating.sigma,
            )
            for step in steps
        ),
        batch_size=_BATCH,
    )


def _fold_in(pool: RatingPool, events: Sequence[RatingEvent]) -> None:
    log = engine_events(events)
    members = [member for event in log for team in event.teams for member in team.members]
    needed = {pk for member in members for pk in (member.version, *member.ancestors)}
    lines = {row.version_id: rated_version(row) for row in pool.ratings.filter(version__in=needed)}
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


def _store(pool: RatingPool, lines: Mapping[int, RatedVersion]) -> None:
    """Store what is new in `lines`; a row that is as it was keeps the time of its last change."""
    stored = {row.version_id: row for row in pool.ratings.filter(version__in=lines)}
    lines = {
        version: line
        for version, line in lines.items()
        if version not in stored
        or rated_version(stored[version]) != line
        or stored[version].shown != line.rating.shown
    }
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
