"""A site as it is after a season, for questions about queries: rows are multiplied in the database, not played.

20 leagues of 500 matches each run, the last round of each is open; 480 cups are over. PostgreSQL only.
"""

from __future__ import annotations

from typing import Any

from django.core.management.color import no_style
from django.db import connection
from django.db.models import Model, UUIDField

from tests.site_factory import Site, copy_site
from tournament.competitions.models import (
    Attempt,
    Entrant,
    EntrantBot,
    EntryTrial,
    Match,
    Notice,
    Pairing,
    PairingEntrant,
    Round,
    Ruling,
    Stage,
    StageEntrant,
    Tournament,
    TournamentSecret,
)
from tournament.leaderboards.models import Rating, RatingEvent, RatingPool, RatingStep
from tournament.players.models import Bot, BotVersion, Player, VersionGame
from tournament.scrimmages.models import Batch

BASE = 100_000
"""Multiplied rows have keys from here on: the first is BASE + 1."""
LEAGUES, ROUNDS, PAIRS, ENTRANTS, IN_CUP = 20, 10, 50, 100, 8
MATCHES = LEAGUES * ROUNDS * PAIRS
PLAYERS, BOTS, VERSIONS, CUPS = 1000, 2000, 6000, 480
IN_ROUND = f"((n - 1) / {PAIRS} % {ROUNDS} + 1)"
IS_OPEN = f"{IN_ROUND} = {ROUNDS}"
"""Whether the n-th match is of a last round."""
HASH = "md5(n::text) || md5(n::text)"


def fill_big_site() -> Site:
    """Make it, from the rows of `copy_site`."""
    site = copy_site()
    _multiply_players(site)
    _multiply_tournaments(site)
    _multiply_matches(site)
    _multiply_ratings()
    _multiply_the_rest(site)
    models = [Player, Bot, BotVersion, Tournament, Stage, Round, Entrant, Pairing, Match, Attempt]
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute("ANALYZE")
    return site


def multiply(row: Model, times: int, *, first: int = 1, **changes: str) -> None:
    """Insert `times` rows like `row`, but for the columns in `changes`: SQL in which n counts from `first`."""
    table = row._meta.db_table
    columns = [field.column for field in row._meta.local_concrete_fields]
    primary = row._meta.pk.column
    keys = {
        field.column: "gen_random_uuid()"
        for field in row._meta.local_concrete_fields
        if isinstance(field, UUIDField) and field.unique
    }
    values: dict[str, str] = {primary: f"{BASE} + n", **keys, **changes}
    assert set(values) <= set(columns), set(values) - set(columns)
    chosen = ", ".join(values.get(column, f't."{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    source = f'"{table}" t, generate_series({first}, {first + times - 1}) n'
    statement = f'INSERT INTO "{table}" ({names}) SELECT {chosen} FROM {source}'
    with connection.cursor() as cursor:
        cursor.execute(f'{statement.replace("%", "%%")} WHERE t."{primary}" = %s', [row.pk])


def _in(of: int, count: str = "n") -> str:
    """The multiplied row to which the n-th belongs, where each has `of` in a row."""
    return f"{BASE} + ({count} - 1) / {of} + 1"


def _spread(over: int) -> str:
    """The multiplied row to which the n-th belongs, where they are dealt out in turn."""
    return f"{BASE} + n % {over} + 1"


def _multiply_players(site: Site) -> None:
    multiply(site.ann, PLAYERS, username="'player' || n", slug="'player' || n")
    multiply(site.bots[0], BOTS, name="'clone' || n", owner_id=_spread(PLAYERS))
    version = BotVersion.objects.get(bot=site.bots[0], version="1.0")
    multiply(
        version,
        VERSIONS,
        bot_id=_spread(BOTS),
        version="'1.' || n",
        wheel_sha256=HASH,
        state="CASE WHEN n % 600 = 0 THEN 'submitted' ELSE 'accepted' END",
    )
    multiply(VersionGame.objects.filter(version=version)[0], VERSIONS, version_id=f"{BASE} + n")


def _multiply_tournaments(site: Site) -> None:
    multiply(site.table, LEAGUES, slug="'league-' || n", name="'League ' || n")
    cups = {"slug": "'cup-' || n", "name": "'Cup ' || n", "bundle_digest": "'-'"}
    multiply(site.cup, CUPS, first=LEAGUES + 1, **cups)
    times = LEAGUES + CUPS
    secret = TournamentSecret.objects.get(tournament=site.table)
    multiply(secret, times, tournament_id=f"{BASE} + n")
    stage = site.table.stages.get()
    multiply(stage, LEAGUES, tournament_id=f"{BASE} + n")
    multiply(
        site.cup.stages.get(),
        CUPS,
        first=LEAGUES + 1,
        tournament_id=f"{BASE} + n",
    )
    number = f"(n - 1) % {ROUNDS} + 1"
    multiply(
        Round.objects.filter(stage=stage)[0],
        LEAGUES * ROUNDS,
        stage_id=_in(ROUNDS),
        index=number,
        state=f"CASE WHEN {number} = {ROUNDS} THEN 'open' ELSE 'complete' END",
    )
    entrant = site.table.entrants.first()
    times = LEAGUES * ENTRANTS
    multiply(
        entrant,
        CUPS * IN_CUP,
        first=times + 1,
        tournament_id=f"{BASE} + {LEAGUES} + (n - {times} - 1) / {IN_CUP} + 1",
        name="'entrant ' || n",
        seed=f"n % {IN_CUP} + 1",
    )
    seed = f"(n - 1) % {ENTRANTS} + 1"
    multiply(entrant, times, tournament_id=_in(ENTRANTS), name="'entrant ' || n", seed=seed)
    multiply(
        EntrantBot.objects.get(entrant=entrant),
        times,
        tournament_id=_in(ENTRANTS),
        entrant_id=f"{BASE} + n",
        bot_id=_spread(BOTS),
        version_id=f"{BASE} + n",
    )
    multiply(
        StageEntrant.objects.filter(entrant=entrant)[0],
        times,
        stage_id=_in(ENTRANTS),
        entrant_id=f"{BASE} + n",
        seed=seed,
    )


def _multiply_matches(site: Site) -> None:
    played = Match.objects.filter(tournament=site.table, state="finished")[0]
    multiply(
        played.pairing,
        MATCHES,
        tournament_id=_in(ROUNDS * PAIRS),
        round_id=_in(PAIRS),
        key=f"'RR/R' || {IN_ROUND} || '/M' || ((n - 1) % {PAIRS} + 1)",
        slot=f"(n - 1) % {PAIRS} + 1",
        decided_by=f"CASE WHEN {IS_OPEN} THEN '' ELSE 'play' END",
    )
    multiply(
        PairingEntrant.objects.filter(pairing=played.pairing)[0],
        2 * MATCHES,
        pairing_id=_in(2),
        index="(n - 1) % 2",
        entrant_id=f"{BASE} + (n - 1) / {2 * ROUNDS * PAIRS} * {ENTRANTS} + (n - 1) % {ENTRANTS} + 1",
    )
    open_or = "CASE WHEN {} THEN {} ELSE {} END".format
    multiply(
        played,
        MATCHES,
        tournament_id=_in(ROUNDS * PAIRS),
        pairing_id=f"{BASE} + n",
        state=open_or(
            IS_OPEN, "CASE WHEN n % 20 = 0 THEN 'queued' ELSE 'pending' END", "'finished'"
        ),
        queued_at=open_or(f"{IS_OPEN} AND n % 20 = 0", "now()", "NULL"),
        termination=open_or(IS_OPEN, "''", "'completed'"),
        record_sha256=open_or(IS_OPEN, "''", "t.record_sha256"),
        logs_sha256="''",
        digest=open_or(IS_OPEN, "''", "'sha256:' || md5(n::text)"),
        finished_at=open_or(IS_OPEN, "NULL", "now() - n * interval '1 minute'"),
    )
    multiply(
        Attempt.objects.filter(match=played)[0],
        MATCHES,
        match_id=f"{BASE} + n",
        is_tallied="true",
    )


def _multiply_ratings() -> None:
    event = RatingEvent.objects.filter(kind="result")[0]
    multiply(event, MATCHES, seq=f"{BASE} + n", match_key="'league/' || n")
    RatingPool.objects.filter(pk=event.pool_id).update(last_seq=BASE + MATCHES)
    step = RatingStep.objects.filter(event=event)[0]
    multiply(step, 2 * MATCHES, event_id=_in(2), version_id=_spread(BOTS))
    rating = Rating.objects.filter(pool=event.pool_id, is_listed=True)[0]
    multiply(
        rating,
        BOTS - 1,
        version_id=f"{BASE} + n",
        bot_id=_spread(BOTS),
        rank="n + 10",
        last_seq=f"{BASE} + 2 * n",
    )


def _multiply_the_rest(site: Site) -> None:
    finished = {"state": "'finished'", "answer": "'better'", "lease_owner": "''"}
    multiply(
        site.scrimmage,
        3000,
        asked_by_id=_spread(PLAYERS),
        first_id=f"{BASE} + n",
        other_id=f"{BASE} + n + 1",
        ended_at="now() - n * interval '1 minute'",
        **finished,
    )
    multiply(
        Batch.objects.get(scrimmage=site.scrimmage),
        6000,
        scrimmage_id=_in(2),
        number="(n - 1) % 2 + 1",
        played_at="now() - n * interval '1 minute'",
    )
    trial = _make_trial(site)
    multiply(trial, 3000, version_id=f"{BASE} + n", key=HASH)
    notice = Notice.objects.create(player=site.ann, tournament=site.cup, text="seen")
    seen = "CASE WHEN n % 10 = 0 THEN NULL ELSE now() END"
    multiply(notice, 5000, player_id=_spread(PLAYERS), seen_at=seen)
    ruling = Ruling.objects.create(
        tournament=site.table, kind="corrected", subject="RR/R1/M1", reason="for once"
    )
    multiply(ruling, 2000, tournament_id=_spread(LEAGUES + CUPS))


def _make_trial(site: Site) -> EntryTrial:
    values: dict[str, Any] = {"key": "0" * 64, "conditions": {"time_control": {"name": "fast"}}}
    version = BotVersion.objects.get(bot=site.bots[0], version="1.0")
    return EntryTrial.objects.create(
        version=version, due_at=site.cup.closes_at, state="passed", **values
    )
