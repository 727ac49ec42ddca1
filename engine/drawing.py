"""A whole match record as text for people, at most 78 columns wide.

It judges before it draws: what it shows is true. How a deal looks is its game's own affair.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from engine.errors import UsageError
from engine.outcome import Termination
from engine.record import (
    BoardsContest,
    Contest,
    EntrantRef,
    GameRecord,
    MatchRecord,
    Replay,
    ReplayedDeal,
    replay,
)

WIDTH = 78
"""Columns of a drawing."""


def draw_record(record: MatchRecord, number: int | None = None) -> str:
    """The match as text: who played what, each deal, the result.

    `number`: show only the plays of the deal with this number. Raises RecordError if the record is not
    true, UsageError if it has no such deal.
    """
    found = replay(record)
    parts = ["\n".join(_draw_header(record, found))]
    parts += [_draw_deal(record, found, deal) for deal in _deals_shown(record, found, number)]
    parts.append("\n".join(_draw_outcome(record)))
    return "\n\n".join(parts) + "\n"


def _deals_shown(
    record: MatchRecord, found: Replay, number: int | None
) -> tuple[ReplayedDeal, ...]:
    if number is None:
        return found.deals
    shown = tuple(d for d in found.deals if record.games[d.game].deals[d.deal].number == number)
    if not shown:
        numbers = sorted({deal.number for game in record.games for deal in game.deals})
        has = f"its deals are {numbers[0]} to {numbers[-1]}" if numbers else "it has none"
        raise UsageError(f"the record has no deal {number}; {has}")
    return shown


def _draw_header(record: MatchRecord, found: Replay) -> Iterator[str]:
    yield from _wrap(
        f"{found.game.title}, match {record.match_key}: {_spell_contest(record.contest)}"
    )
    usual = msgspec.to_builtins(found.game.make_ruleset())
    unusual = [
        f"{name}={_spell_value(value)}"
        for name, value in record.ruleset.items()
        if value != usual[name]
    ]
    yield from _wrap("rules: " + (", ".join(unusual) or "as usual"))
    yield from _wrap(f"time control: {record.time_control.name}")
    for number, entrant in enumerate(record.entrants, start=1):
        yield from _wrap(f"{number}. {_spell_entrant(entrant)}", "   ")


def _draw_deal(record: MatchRecord, found: Replay, deal: ReplayedDeal) -> str:
    entry = record.games[deal.game]
    lines = [*_wrap(_title_deal(record, deal)), *_wrap(_spell_seats(record, entry), "  "), ""]
    lines.append(found.game.draw(found.ruleset, deal.board, deal.actions).rstrip("\n"))
    if deal.score is None:
        lines.append("(a fault ended the match here)")
    return "\n".join(lines)


def _title_deal(record: MatchRecord, deal: ReplayedDeal) -> str:
    entry = record.games[deal.game]
    if entry.board is not None:
        title = f"Board {entry.board + 1}, rotation {entry.rotation + 1}"
    else:
        title = f"Game {deal.game + 1}"
        if len(entry.deals) > 1:
            before = [sum(scores) for scores in zip(*_scores(entry, deal.deal), strict=True)]
            title += f", deal {deal.deal + 1}"
            title += f" at {_join_numbers(before)}" if before else ""
    return f"=== {title} (deal {entry.deals[deal.deal].number}) ==="


def _scores(entry: GameRecord, deals: int) -> list[list[int]]:
    return [deal.score for deal in entry.deals[:deals] if deal.score is not None]


def _spell_seats(record: MatchRecord, entry: GameRecord) -> str:
    seats = (
        f"seat {seat} {record.entrants[entrant].name}" for seat, entrant in enumerate(entry.seating)
    )
    return ", ".join(seats)


def _draw_outcome(record: MatchRecord) -> Iterator[str]:
    outcome = record.outcome
    yield "=== Result ==="
    if outcome.termination is not Termination.COMPLETED:
        yield f"ended by a fault: {outcome.termination.replace('_', ' ')}"
    for fault in outcome.faults:
        where = "" if fault.seat is None else f" on seat {fault.seat}"
        name = record.entrants[fault.entrant].name
        yield from _wrap(f"{name}{where}: {fault.kind.replace('_', ' ')}: {fault.detail}", "  ")
    ranked = sorted(range(len(record.entrants)), key=lambda entrant: outcome.places[entrant])
    for entrant in ranked:
        yield from _wrap(
            f"place {outcome.places[entrant]}: {record.entrants[entrant].name} "
            f"({outcome.points[entrant]:+d})",
            "  ",
        )
    yield record.digest


def _spell_contest(contest: Contest) -> str:
    if not isinstance(contest, BoardsContest):
        return "1 game" if contest.best_of == 1 else f"best of {contest.best_of} games"
    text = "1 board" if contest.boards == 1 else f"{contest.boards} boards"
    text += ", each in every seating"
    return text + (f", up to {contest.extra_boards} more on a tie" if contest.extra_boards else "")


def _spell_entrant(entrant: EntrantRef) -> str:
    bots = " with ".join(
        bot.bot + (f" {bot.version}" if bot.version is not None else "") for bot in entrant.bots
    )
    return f"{entrant.name}: {bots}"


def _spell_value(value: object) -> str:
    return (
        {True: "true", False: "false", None: "null"}[value]
        if (value is None or isinstance(value, bool))
        else str(value)
    )


def _join_numbers(numbers: list[int]) -> str:
    return "-".join(map(str, numbers))


def _wrap(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)
