"""The deals of a match that was played, to play them again with other bots, and what that changed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from engine.cli.output import Signed, print_table, say
from engine.cli.records import naming, read_record
from engine.errors import ContestError
from engine.games import get_game
from engine.record import (
    BoardsContest,
    GivenDeal,
    MatchRecord,
    Replay,
    replay,
)
from engine.record.contest import by_entrant
from engine.statistics import Estimate, estimate


class KnownDeals(msgspec.Struct, frozen=True, kw_only=True):
    """What a record lets be played again."""

    file: Path
    record: MatchRecord
    contest: BoardsContest
    """That of the record, less the boards that it does not hold."""
    given: tuple[GivenDeal, ...]


class BoardChange(msgspec.Struct, frozen=True, kw_only=True):
    """One board, then and now: by entrant its own score less the mean of the others', a play."""

    board: int
    before: tuple[float, ...]
    now: tuple[float, ...]


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """A match beside the one whose deals it played."""

    record: str
    """The file of the earlier one."""
    digest: str
    boards: tuple[BoardChange, ...]
    """Those that were finished both times."""
    mean_change: tuple[Estimate, ...] | None
    """By entrant, points a board; None if no board was finished both times."""


def read_deals(file: Path) -> KnownDeals:
    """The deals of a boards match. Raises UsageError for any other, UntrueFileError if the record is untrue."""
    record = read_record(file)
    with naming(file):
        found = replay(record)
    if not isinstance(record.contest, BoardsContest):
        raise ContestError(
            f"{file} is a match of whole games: how many deals a game has depends on how it is played; "
            "give the record of a match of boards"
        )
    given = _given_deals(record, found)
    if not given:
        raise ContestError(f"{file} holds no deal: a fault ended the match before its first")
    boards = min(record.contest.boards, len(given))
    contest = BoardsContest(boards=boards, extra_boards=len(given) - boards)
    return KnownDeals(file=file, record=record, contest=contest, given=given)


def _given_deals(record: MatchRecord, found: Replay) -> tuple[GivenDeal, ...]:
    """By board; a record that is true holds all boards up to its last one."""
    deals: dict[int, GivenDeal] = {}
    for replayed in found.deals:
        deal = record.games[replayed.game].deals[replayed.deal]
        known = deals.get(deal.number)
        if known is None or known.key is None:
            key = None if deal.key is None else bytes.fromhex(deal.key)
            deals[deal.number] = GivenDeal(replayed.board, key)
    return tuple(deals[number] for number in sorted(deals))


def check_bots(known: KnownDeals, bots: int) -> None:
    """Raise ContestError unless so many bots can sit down to these deals: pairs are a bot a seat."""
    game, entrants = get_game(known.record.game), len(known.record.entrants)
    allowed = sorted({entrants, game.seats(entrants)})
    if bots not in allowed:
        raise ContestError(
            f"the deals of {known.file} are for {' or '.join(map(str, allowed))} bots, "
            f"and {bots} {'was' if bots == 1 else 'were'} given"
        )


def find_changes(known: KnownDeals, record: MatchRecord) -> Changes:
    """What became different, board by board."""
    before, now = points_by_board(known.record), points_by_board(record)
    boards = tuple(
        BoardChange(board=board, before=before[board], now=now[board])
        for board in sorted(before.keys() & now.keys())
    )
    entrants = range(len(record.entrants))
    return Changes(
        record=str(known.file),
        digest=known.record.digest,
        boards=boards,
        mean_change=tuple(
            estimate([each.now[entrant] - each.before[entrant] for each in boards])
            for entrant in entrants
        )
        if boards
        else None,
    )


def points_by_board(record: MatchRecord) -> dict[int, tuple[float, ...]]:
    """By entrant, the mean points a play of each board that was finished in every seating."""
    game, entrants = get_game(record.game), len(record.entrants)
    plays: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
    for entry in record.games:
        if entry.board is not None and all(deal.score is not None for deal in entry.deals):
            plays[entry.board].append(by_entrant(game, entry.seating, entry.score))
    return {
        board: _points([sum(scores) for scores in zip(*scored, strict=True)])
        for board, scored in plays.items()
        if len(scored) == entrants
    }


def _points(totals: list[int]) -> tuple[float, ...]:
    """From the sums over k plays: (k-1) own less the others', for one play and one other."""
    count = len(totals)
    return tuple((count * own - sum(totals)) / (count * (count - 1)) for own in totals)


def limits_of(known: KnownDeals) -> list[str]:
    """What of the record cannot be played again, a line each."""
    contest, lines = known.record.contest, []
    assert isinstance(contest, BoardsContest)
    if known.contest.boards < contest.boards:
        lines.append(
            f"{known.file} holds {known.contest.boards} of its {contest.boards} boards "
            "(a fault ended it): these are played"
        )
    elif known.contest.extra_boards < contest.extra_boards:
        lines.append(
            f"{known.file} holds {known.contest.extra_boards} of at most {contest.extra_boards} "
            "extra boards: a tie after these stands"
        )
    return lines


def print_changes(known: KnownDeals, record: MatchRecord, changes: Changes) -> None:
    """The changes for people: between two entrants the first one's points say all."""
    say()
    say(f"The same deals as in {changes.record}; points a board, then and now:")
    names = [entrant.name for entrant in record.entrants]
    earlier = [entrant.name for entrant in known.record.entrants]
    shown = range(1 if len(names) == 2 else len(names))
    changed = [each for each in changes.boards if each.before != each.now]
    if changed:
        header = [f"{whose} {when}" for e in shown for whose, when in _columns(earlier, names, e)]
        print_table(("board", *header), [_row(each, shown) for each in changed])
    if not changes.boards:
        say("No board was finished in every seating both times, so there is nothing to compare.")
        return
    same = len(changes.boards) - len(changed)
    say(f"{same} of {len(changes.boards)} boards ended as before.")
    for entrant, change in enumerate(changes.mean_change or ()):
        if entrant in shown:
            spread = "" if change.high is None else f" ± {change.high - change.mean:.2f}"
            say(f"{names[entrant]}: {change.mean:+.2f}{spread} points a board")


def _columns(earlier: list[str], names: list[str], entrant: int) -> list[tuple[str, str]]:
    return [(earlier[entrant], "then"), (names[entrant], "now")]


def _row(change: BoardChange, shown: range) -> tuple[Any, ...]:
    points = [(change.before[e], change.now[e]) for e in shown]
    return (change.board, *(Signed(f"{value:+.1f}") for pair in points for value in pair))
