"""Questions about pools and ratings; answers are QuerySets or frozen rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from engine import ratings
from engine.games import GAMES
from engine.games.base import Game
from engine.ratings import Member, Team
from tournament.leaderboards.errors import LogError
from tournament.leaderboards.models import (
    EventKind,
    PoolKind,
    Rating,
    RatingEvent,
    RatingPool,
    RatingStep,
)
from tournament.players.models import Bot, BotVersion
from tournament.players.selectors import ancestors_of, version_ids
from tournament.store.clock import read_clock

PAGE_SIZE = 50
TOP_SIZE = 5
INACTIVE_AFTER = timedelta(days=30)
"""A bot without a rated match for so long is marked inactive. Its rating and its rank stay what they are: they
follow from the log alone, and the log knows no time."""


@dataclass(frozen=True, slots=True)
class LeaderboardName:
    """A leaderboard that the site can have."""

    game: str
    kind: str
    title: str
    summary: str
    """Who meets whom."""


@dataclass(frozen=True, slots=True)
class RatingLine:
    """A version's rating as people see it."""

    version: str
    mu: float
    sigma: float
    shown: float
    low: float
    high: float
    """The interval that holds the strength with 95 % confidence."""
    is_settled: bool
    matches: int
    wins: int
    ties: int
    changed_at: datetime
    last_match_at: datetime | None
    """When the last match that counts was rated."""

    @property
    def losses(self) -> int:
        """Matches in which somebody did better."""
        return self.matches - self.wins - self.ties

    @property
    def win_rate(self) -> float | None:
        """The share of the matches that were won; None without any."""
        return self.wins / self.matches if self.matches else None


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A bot's line on a leaderboard."""

    rank: int
    bot: str
    owner: str
    owner_slug: str
    line: RatingLine
    """Of the version that stands for the bot."""
    provisional: RatingLine | None
    """Of a newer version that is not settled yet."""
    last_match_at: datetime | None
    """When a match of either was last rated."""
    is_inactive: bool
    """Whether that is longer ago than `INACTIVE_AFTER`."""


@dataclass(frozen=True, slots=True)
class LeaderboardPage:
    """Some rows of a leaderboard in order, and where the next page begins."""

    rows: tuple[LeaderboardRow, ...]
    after: str | None
    """Give it to `leaderboard_page` for the next page; None at the end."""
    total: int
    """How many bots the leaderboard (or the search) has."""


@dataclass(frozen=True, slots=True)
class LeaderboardTop:
    """The beginning of a leaderboard."""

    name: LeaderboardName
    rows: tuple[LeaderboardRow, ...]
    total: int


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A version's rating after an event."""

    seq: int
    match_key: str
    at: datetime
    version: str
    mu: float
    sigma: float
    shown: float
    low: float
    high: float
    """The interval that holds the strength with 95 % confidence."""


def pools() -> QuerySet[RatingPool]:
    """All pools by game and kind."""
    return RatingPool.objects.order_by("game", "kind")


def leaderboards() -> tuple[LeaderboardName, ...]:
    """Every leaderboard that the site can have, those without a rated match too."""
    return tuple(
        LeaderboardName(game.name, kind, leaderboard_title(game.name, kind), kind.label)
        for game in GAMES.values()
        for kind in kinds_of(game)
    )


def leaderboard_title(game: str, kind: str) -> str:
    """What a leaderboard is called: ``Eighty, pairs``; just ``Podkidnoe``, where there is but one kind."""
    if game not in GAMES:
        return f"{game}, {kind}"
    title = GAMES[game].title
    if len(kinds_of(GAMES[game])) == 1:
        return title
    return f"{title}, {'pairs' if kind == PoolKind.PAIR else 'single bots'}"


def kinds_of(game: Game) -> tuple[PoolKind, ...]:
    """The kinds of matches that a game can have, the usual one first."""
    fewest = game.entrant_counts[0]
    if game.seats(fewest) > fewest:
        return (PoolKind.MONO, PoolKind.PAIR)
    return (PoolKind.FFA,)


def leaderboard_tops(size: int = TOP_SIZE) -> tuple[LeaderboardTop, ...]:
    """The first rows of every leaderboard."""
    pages = (
        (name, leaderboard_page(game=name.game, kind=name.kind, size=size))
        for name in leaderboards()
    )
    return tuple(LeaderboardTop(name, page.rows, page.total) for name, page in pages)


def leaderboard_page(
    *, game: str, kind: str, search: str = "", after: str | None = None, size: int = PAGE_SIZE
) -> LeaderboardPage:
    """One page of a leaderboard, from the rank after the cursor `after` on.

    `search` narrows it to bots whose name, or whose owner's, contains it. A pool without a log is an
    empty page. Raises LogError for a cursor that is none.
    """
    pool = RatingPool.objects.filter(game=game, kind=kind).first()
    # By the pool's own key, so that the index gives the rows in order and the first page reads no others.
    listed = Rating.objects.filter(pool=pool, is_listed=True, rank__isnull=False)
    if search:
        listed = listed.filter(
            Q(bot__name__icontains=search) | Q(bot__owner__username__icontains=search)
        )
    rows = with_last_match(listed).select_related("bot__owner", "version").order_by("rank", "pk")
    if after is not None:
        rank, pk = _read_cursor(after)
        rows = rows.filter(Q(pk__gt=pk) | Q(rank__gt=rank), rank__gte=rank)
    found = list(rows[: size + 1])
    shown = found[:size]
    newer, now = _newer_versions(shown), read_clock()
    return LeaderboardPage(
        rows=tuple(_leaderboard_row(row, newer.get(row.bot_id), now) for row in shown),
        after=f"{shown[-1].rank}-{shown[-1].pk}" if len(found) > size else None,
        total=listed.count(),
    )


def ratings_of_bot(bot: Bot) -> QuerySet[Rating]:
    """The ratings of a bot's versions in all pools, the newest version first."""
    rows = with_last_match(bot.ratings.all())
    return rows.select_related("pool", "version").order_by("pool", "-version")


def with_last_match(rows: QuerySet[Rating]) -> QuerySet[Rating]:
    """The rows with `last_match_at`: when the event was appended that last changed them by a match."""
    events = RatingEvent.objects.filter(pool=OuterRef("pool"), seq=OuterRef("last_seq"))
    return rows.annotate(last_match_at=Subquery(events.values("at")[:1]))


def is_inactive(last_match_at: datetime | None, now: datetime) -> bool:
    """Whether a bot whose last rated match was then is marked inactive `now`."""
    return last_match_at is not None and now - last_match_at > INACTIVE_AFTER


def rating_line(row: Rating) -> RatingLine:
    """A stored rating as people see it; give it `with_last_match`."""
    rating = ratings.Rating(row.mu, row.sigma)
    low, high = rating.interval
    return RatingLine(
        version=row.version.version,
        mu=row.mu,
        sigma=row.sigma,
        shown=row.shown,
        low=low,
        high=high,
        is_settled=rating.is_settled,
        matches=row.matches,
        wins=row.wins,
        ties=row.ties,
        changed_at=row.changed_at,
        last_match_at=getattr(row, "last_match_at", None),
    )


def rating_history(*, bot: Bot, game: str, kind: str, limit: int = 500) -> tuple[HistoryPoint, ...]:
    """The last `limit` steps of a bot's ratings in a pool, in the order of the log."""
    steps = (
        RatingStep.objects.filter(version__bot=bot, event__pool__game=game, event__pool__kind=kind)
        .select_related("event", "version")
        .order_by("-event__seq")[:limit]
    )
    return tuple(_history_point(step) for step in reversed(steps))


def _history_point(step: RatingStep) -> HistoryPoint:
    rating = ratings.Rating(step.mu, step.sigma)
    low, high = rating.interval
    return HistoryPoint(
        seq=step.event.seq,
        match_key=step.event.match_key,
        at=step.event.at,
        version=step.version.version,
        mu=step.mu,
        sigma=step.sigma,
        shown=rating.shown,
        low=low,
        high=high,
    )


def strengths(*, game: str, kind: str, versions: Sequence[BotVersion]) -> Mapping[int, float]:
    """By version the number it is seeded by: its own μ - 3σ, or the one it would begin with."""
    begun = ratings_to_begin_with(game=game, kind=kind, versions=versions)
    return {version: rating.shown for version, rating in begun.items()}


def ratings_to_begin_with(
    *, game: str, kind: str, versions: Sequence[BotVersion]
) -> Mapping[int, ratings.Rating]:
    """By version (its id) the rating with which it would begin its next rated match."""
    lines = ancestors_of(versions)
    needed = {pk for version, line in lines.items() for pk in (version, *line)}
    known = {
        row.version_id: ratings.RatedVersion(rating=ratings.Rating(row.mu, row.sigma))
        for row in Rating.objects.filter(pool__game=game, pool__kind=kind, version__in=needed)
    }
    return {
        version: ratings.first_line(known, Member(version, line)).rating
        for version, line in lines.items()
    }


def counting_results(match_keys: Sequence[str]) -> list[str]:
    """Those of the keys whose results stand in a log and are not void, in the log's order."""
    events = RatingEvent.objects.filter(match_key__in=match_keys).order_by("pool", "seq")
    last = dict(events.values_list("match_key", "kind"))
    return [key for key, kind in last.items() if kind != EventKind.VOID]


def voided_results(match_keys: Sequence[str]) -> list[str]:
    """Those of the keys whose results stand in a log and are void, in the log's order."""
    events = RatingEvent.objects.filter(match_key__in=match_keys).order_by("pool", "seq")
    last = dict(events.values_list("match_key", "kind"))
    return [key for key, kind in last.items() if kind == EventKind.VOID]


def preview_void(
    *, game: str, kind: str, match_keys: Sequence[str]
) -> tuple[ratings.RatingChange, ...]:
    """What voiding these results would change, the biggest change first; `version` is a BotVersion's id."""
    pool = RatingPool.objects.filter(game=game, kind=kind).first()
    if pool is None or not match_keys:
        return ()
    first = min(result_seqs(pool, match_keys).values())
    tail = tail_of(pool, first)
    after, _ = ratings.resume(tail.before, tail.results, tail.voided ^ set(match_keys))
    return ratings.compare_lines(
        {version: tail.now[version] for version in tail.versions if version in tail.now},
        {version: after[version] for version in tail.versions if version in after},
    )


@dataclass(frozen=True, slots=True)
class PoolTail:
    """The end of a pool's log, from a result on, and the ratings before it."""

    results: tuple[ratings.RatingEvent, ...]
    """All results from that one on, the void ones too."""
    event_ids: Mapping[int, int]
    """The ids of their rows, by sequence number."""
    voided: frozenset[str]
    """Which of them do not count, at the end of the log."""
    versions: frozenset[int]
    """Who took part in any of them."""
    now: Mapping[int, ratings.RatedVersion]
    """The stored lines of these versions and of their ancestors."""
    before: Mapping[int, ratings.RatedVersion]
    """Their lines before the first of the results."""


def result_seqs(pool: RatingPool, match_keys: Sequence[str]) -> dict[str, int]:
    """The sequence numbers of these matches' results. Raises LogError for one that is not in the log."""
    rows = pool.events.filter(kind=EventKind.RESULT, match_key__in=match_keys)
    seqs = dict(rows.values_list("match_key", "seq"))
    for key in match_keys:
        if key not in seqs:
            raise LogError(f"there is no rated result of {key}")
    return seqs


def voided_from(pool: RatingPool, first: int) -> frozenset[str]:
    """The matches that an event from `first` on voided, and none after it unvoided."""
    changes = pool.events.filter(seq__gte=first).exclude(kind=EventKind.RESULT).order_by("seq")
    last = dict(changes.values_list("match_key", "kind"))
    return frozenset(key for key, kind in last.items() if kind == EventKind.VOID)


def tail_of(pool: RatingPool, first: int, changed: frozenset[str] = frozenset()) -> PoolTail:
    """The pool's log from its result number `first` on.

    `changed`: the matches whose last void or unvoid the stored lines do not yet know.
    """
    rows = list(pool.events.filter(seq__gte=first, kind=EventKind.RESULT).order_by("seq"))
    results = tuple(engine_events(rows))
    members = [member for event in results for team in event.teams for member in team.members]
    needed = {pk for member in members for pk in (member.version, *member.ancestors)}
    voided = voided_from(pool, first)
    now = {row.version_id: rated_version(row) for row in pool.ratings.filter(version__in=needed)}
    counted = [event for event in results if event.match not in voided ^ changed]
    return PoolTail(
        results=results,
        event_ids={row.seq: row.pk for row in rows},
        voided=voided,
        versions=frozenset(member.version for member in members),
        now=now,
        before=ratings.rewind(now, counted, _last_steps(pool, needed, first)),
    )


def _last_steps(pool: RatingPool, versions: set[int], first: int) -> list[ratings.Step]:
    """The last step of each of the versions before the event number `first`."""
    earlier = RatingStep.objects.filter(
        version=OuterRef("pk"), event__pool=pool, event__seq__lt=first
    )
    newest = earlier.order_by("-event__seq").values("pk")[:1]
    found = BotVersion.objects.filter(pk__in=versions).annotate(step=Subquery(newest))
    steps = RatingStep.objects.filter(pk__in=found.values("step"))
    return [
        ratings.Step(seq, version, ratings.Rating(mu, sigma))
        for seq, version, mu, sigma in steps.values_list("event__seq", "version", "mu", "sigma")
    ]


@dataclass(frozen=True, slots=True)
class RatedMemberChange:
    """A version's line before a result, and its rating after it."""

    bot: str
    version: str
    before: ratings.RatedVersion
    after: ratings.Rating


@dataclass(frozen=True, slots=True)
class RatedTeamChange:
    """One entrant of a result."""

    place: int
    members: tuple[RatedMemberChange, ...]


@dataclass(frozen=True, slots=True)
class RatedChange:
    """What a result did to the ratings."""

    match_key: str
    teams: tuple[RatedTeamChange, ...]


def rated_changes(*, game: str, kind: str, match_keys: Sequence[str]) -> Iterator[RatedChange]:
    """What those of the results that count did to the ratings, in the order of the log.

    The histories of all who took part are read through, one step after the other; the number of queries
    grows with one for each thousand keys. Raises LogError for a version that is unknown here.
    """
    pool = RatingPool.objects.filter(game=game, kind=kind).first()
    if pool is None:
        return
    rows = [
        row
        for first in range(0, len(match_keys), _KEYS_AT_ONCE)
        for row in pool.events.filter(
            kind=EventKind.RESULT, match_key__in=match_keys[first : first + _KEYS_AT_ONCE]
        )
    ]
    names = {row.seq: row.teams for row in rows}
    events = {event.seq: event for event in engine_events(rows)}
    if not events:
        return
    members = [m for event in events.values() for team in event.teams for m in team.members]
    versions = {pk for member in members for pk in (member.version, *member.ancestors)}
    lines: dict[int, ratings.RatedVersion] = {}
    for seq, after in _steps_by_event(pool, versions, max(events)):
        if seq in events:
            yield _change(events[seq], names[seq], lines, after)
        for version, rating in after.items():
            matches = lines[version].matches if version in lines else 0
            lines[version] = ratings.RatedVersion(rating=rating, matches=matches + 1)


_KEYS_AT_ONCE = 1000


def _steps_by_event(
    pool: RatingPool, versions: set[int], last: int
) -> Iterator[tuple[int, dict[int, ratings.Rating]]]:
    """The results that count up to the number `last`, each with the ratings after it of those versions."""
    steps = (
        RatingStep.objects.filter(version__in=versions, event__pool=pool, event__seq__lte=last)
        .order_by("event__seq", "pk")
        .values_list("event__seq", "version", "mu", "sigma")
    )
    for seq, group in itertools.groupby(steps.iterator(), key=lambda step: step[0]):
        yield seq, {version: ratings.Rating(mu, sigma) for _, version, mu, sigma in group}


def _change(
    event: ratings.RatingEvent,
    teams: Sequence[Mapping[str, Any]],
    lines: Mapping[int, ratings.RatedVersion],
    after: Mapping[int, ratings.Rating],
) -> RatedChange:
    return RatedChange(
        match_key=event.match,
        teams=tuple(
            RatedTeamChange(
                place=team.rank,
                members=tuple(
                    RatedMemberChange(
                        bot=bot,
                        version=version,
                        before=ratings.first_line(lines, member),
                        after=after[member.version],
                    )
                    for (bot, version), member in zip(names["members"], team.members, strict=True)
                ),
            )
            for names, team in zip(teams, event.teams, strict=True)
        ),
    )


def rated_version(row: Rating) -> ratings.RatedVersion:
    """A stored line as `engine.ratings` takes it."""
    return ratings.RatedVersion(
        rating=ratings.Rating(row.mu, row.sigma),
        matches=row.matches,
        wins=row.wins,
        ties=row.ties,
        last_seq=row.last_seq,
    )


def engine_log(pool: RatingPool) -> Iterator[ratings.RatingEvent]:
    """The pool's whole log for `engine.ratings.fold`, in order."""
    yield from engine_events(list(pool.events.order_by("seq")))


def engine_events(events: Sequence[RatingEvent]) -> list[ratings.RatingEvent]:
    """Stored events as `engine.ratings` takes them. Raises LogError for a version that is unknown here."""
    names = {
        (bot, version)
        for event in events
        for team in event.teams
        for bot, version in team["members"]
    }
    ids = version_ids(sorted(names))
    if missing := names - ids.keys():
        raise LogError(f"the log names versions that are not here: {sorted(missing)[:10]}")
    ancestors = ancestors_of(list(BotVersion.objects.filter(pk__in=ids.values())))
    return [
        ratings.RatingEvent(
            seq=event.seq,
            kind=ratings.EventKind(event.kind),
            match=event.match_key,
            teams=tuple(
                Team(
                    members=tuple(
                        Member(ids[bot, version], ancestors[ids[bot, version]])
                        for bot, version in team["members"]
                    ),
                    rank=team["place"],
                )
                for team in event.teams
            ),
        )
        for event in events
    ]


def _read_cursor(text: str) -> tuple[int, int]:
    rank, _, pk = text.partition("-")
    if not (rank.isdecimal() and pk.isdecimal() and text.isascii() and len(text) < 40):
        raise LogError(f"{text!r} is no place in a leaderboard: begin at its first page")
    return int(rank), int(pk)


def _newer_versions(listed: Sequence[Rating]) -> dict[int, Rating]:
    """By bot its newest rated version, where that is not the listed one."""
    if not listed:
        return {}
    standing = {row.bot_id: row.version_id for row in listed}
    unlisted = Rating.objects.filter(pool=listed[0].pool_id, bot__in=standing, is_listed=False)
    rows = with_last_match(unlisted).select_related("version").order_by("version")
    return {row.bot_id: row for row in rows if row.version_id > standing[row.bot_id]}


def _leaderboard_row(row: Rating, newer: Rating | None, now: datetime) -> LeaderboardRow:
    line = rating_line(row)
    provisional = rating_line(newer) if newer else None
    played = [each.last_match_at for each in (line, provisional) if each and each.last_match_at]
    last = max(played, default=None)
    return LeaderboardRow(
        rank=row.rank or 0,
        bot=row.bot.name,
        owner=row.bot.owner.username,
        owner_slug=row.bot.owner.slug,
        line=line,
        provisional=provisional,
        last_match_at=last,
        is_inactive=is_inactive(last, now),
    )
