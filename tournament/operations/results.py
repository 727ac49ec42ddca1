"""What came of tournaments, as values that print as tables and as one JSON object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from engine.record import encode_record
from engine.standings import StandingRow
from tournament.competitions.models import Match, Tournament
from tournament.competitions.selectors import (
    StagePage,
    TournamentPage,
    match_record,
    tournament_page,
)
from tournament.competitions.selectors.engine_values import stage_view
from tournament.leaderboards.selectors import leaderboard_page, pools
from tournament.operations.brackets import draw_bracket


class MatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """A match and how it ended; lists follow `entrants`."""

    key: str
    entrants: Sequence[str]
    points: Sequence[int]
    places: Sequence[int]
    termination: str
    decided_by: str
    digest: str
    record: str | None
    """The file that its record was written to."""


class StandingLine(msgspec.Struct, frozen=True, kw_only=True):
    """An entrant's line of the final standings."""

    place: int
    entrant: str
    matches: int
    wins: int
    ties: int
    losses: int
    score: str
    points_difference: int
    note: str


class TournamentLine(msgspec.Struct, frozen=True, kw_only=True):
    """A finished tournament, with all that it takes to recompute its deals."""

    slug: str
    id: str
    """What its deals are derived from; the slug."""
    name: str
    game: str
    kind: str
    format: str
    state: str
    commitment: str
    pub: str
    secret: str | None
    """In hex."""
    standings: Sequence[StandingLine]
    matches: Sequence[MatchLine]


class LeaderboardLine(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line on a leaderboard."""

    rank: int
    bot: str
    version: str
    mu: float
    sigma: float
    shown: float
    matches: int
    wins: int
    ties: int
    losses: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    seed: str | None
    tournaments: Sequence[TournamentLine]
    leaderboards: Mapping[str, Sequence[LeaderboardLine]]
    """By pool: ``eighty/mono``."""
    terminations: Mapping[str, int]
    """How many matches ended how."""
    seconds: float


def tournament_line(tournament: Tournament, records: Path | None) -> TournamentLine:
    """A tournament's results; the records of its matches are written into the folder `records`, if given."""
    page = tournament_page(tournament.slug, for_staff=True)
    names = {row.pk: row.name for row in page.entrants}
    return TournamentLine(
        slug=page.tournament.slug,
        id=page.tournament.slug,
        name=page.tournament.name,
        game=page.tournament.game,
        kind=page.tournament.kind,
        format=", ".join(stage.format for stage in page.stages),
        state=page.tournament.state,
        commitment=page.tournament.commitment,
        pub=page.tournament.pub,
        secret=page.secret,
        standings=[
            standing_line(row, names)
            for stage in [each for each in page.stages if each.standings][-1:]
            for row in stage.standings
        ],
        matches=[match_line(match, records) for match in finished_matches(page.tournament)],
    )


def finished_matches(tournament: Tournament) -> Iterator[Match]:
    """The tournament's played matches in the order of its rounds and keys."""
    return iter(
        tournament.matches.exclude(record_sha256="")
        .select_related("tournament", "pairing__round")
        .prefetch_related("pairing__entrants__entrant")
        .order_by("pairing__round__index", "pairing__slot")
    )


def standing_line(row: StandingRow, names: Mapping[int, str]) -> StandingLine:
    """A line of the standings with the entrant's name."""
    return StandingLine(
        place=row.place,
        entrant=names[row.entrant],
        matches=row.matches,
        wins=row.wins,
        ties=row.ties,
        losses=row.losses,
        score=str(row.score),
        points_difference=row.points_difference,
        note=row.note,
    )


def match_line(match: Match, records: Path | None) -> MatchLine:
    """A match's line; its record is written into the folder `records`, if given."""
    parts = list(match.pairing.entrants.all())
    return MatchLine(
        key=match.pairing.key,
        entrants=[part.entrant.name for part in parts],
        points=[part.points or 0 for part in parts],
        places=[part.place or 0 for part in parts],
        termination=match.termination,
        decided_by=match.pairing.decided_by,
        digest=match.digest,
        record=None if records is None else str(write_record(match, records)),
    )


def write_record(match: Match, records: Path) -> Path:
    """Write a match's record, its deal keys revealed if the tournament is over; the file."""
    record = match_record(match)
    assert record is not None, "only matches with a record are listed"
    path = records / f"{match.tournament.slug}.{match.pairing.key.replace('/', '-')}.json"
    path.write_bytes(encode_record(record))
    return path


def leaderboard_lines() -> Mapping[str, Sequence[LeaderboardLine]]:
    """The first page of every leaderboard, by pool."""
    return {
        f"{pool.game}/{pool.kind}": [
            LeaderboardLine(
                rank=row.rank,
                bot=row.bot,
                version=row.line.version,
                mu=row.line.mu,
                sigma=row.line.sigma,
                shown=row.line.shown,
                matches=row.line.matches,
                wins=row.line.wins,
                ties=row.line.ties,
                losses=row.line.losses,
            )
            for row in leaderboard_page(game=pool.game, kind=pool.kind).rows
        ]
        for pool in pools()
    }


def count_terminations(tournaments: Sequence[TournamentLine]) -> Mapping[str, int]:
    """How many matches ended how."""
    endings = Counter(match.termination for line in tournaments for match in line.matches)
    return dict(sorted(endings.items()))


def results_text(results: Results) -> str:
    """The results for people: brackets, standings, leaderboards."""
    blocks = []
    for line in results.tournaments:
        page = tournament_page(line.slug, for_staff=True)
        blocks.append(f"{line.name} ({line.game}, {page.format_title.lower()})")
        blocks.extend(bracket_text(stage, page) for stage in page.stages if stage.knocks_out)
        blocks.append(standings_text(line))
    for pool, rows in results.leaderboards.items():
        blocks.append(f"Leaderboard {pool}\n{leaderboard_text(rows)}")
    endings = ", ".join(f"{number} {ending}" for ending, number in results.terminations.items())
    blocks.append(f"Matches: {endings}. All of it took {results.seconds:.0f} s.")
    return "\n\n".join(blocks)


def bracket_text(stage: StagePage, page: TournamentPage) -> str:
    """The bracket of one of a tournament's stages."""
    return draw_bracket(stage_view(stage.stage), {row.pk: row.name for row in page.entrants})


def standings_text(line: TournamentLine) -> str:
    """The final standings as a table."""
    return table(
        ("place", "entrant", "played", "won", "tied", "lost", "difference", ""),
        [
            (
                str(row.place),
                row.entrant,
                str(row.matches),
                str(row.wins),
                str(row.ties),
                str(row.losses),
                f"{row.points_difference:+d}",
                row.note,
            )
            for row in line.standings
        ],
    )


def leaderboard_text(rows: Sequence[LeaderboardLine]) -> str:
    """A leaderboard as a table."""
    return table(
        ("rank", "bot", "version", "rating", "μ", "σ", "played", "won", "tied", "lost"),
        [
            (
                str(row.rank),
                row.bot,
                row.version,
                f"{row.shown:.2f}",
                f"{row.mu:.2f}",
                f"{row.sigma:.2f}",
                str(row.matches),
                str(row.wins),
                str(row.ties),
                str(row.losses),
            )
            for row in rows
        ],
    )


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, numbers to the right."""
    lines = [titles, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    numeric = [all(is_number(row[column]) for row in rows) for column in range(len(titles))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def is_number(text: str) -> bool:
    """Whether a cell holds a number."""
    return text.lstrip("+-").replace(".", "", 1).isdecimal()
