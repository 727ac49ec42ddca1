"""What a match says of its bots: the numbers, as a JSON object and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

from engine.cli.output import Signed, print_table, say
from engine.comparison import scores_of_sets, spell_elo, spell_estimate
from engine.games import get_game
from engine.outcome import Termination
from engine.record import BoardsContest, BotRef, MatchRecord, replay
from engine.record.contest import by_entrant
from engine.statistics import Comparison, EntrantSummary, Estimate, compare_sets, estimate

if TYPE_CHECKING:
    from engine.cli.play import LocalMatch
    from engine.referee import SeatLog

_Sets = Sequence[Sequence[tuple[int, ...]]]
FEW_SETS = 8
"""From fewer sets nothing is concluded: the intervals are those of large samples."""
LOG_LINES = 30
"""So much of a faulty bot's log is shown, from its end."""


class EntrantResult(msgspec.Struct, frozen=True, kw_only=True):
    """One entrant's part of the result."""

    name: str
    bots: tuple[BotRef, ...]
    place: int
    points: int
    """Over all finished games: (k-1) times its own score minus the others'."""
    mean_points: Estimate | None
    """A play's own score less the mean of the others', by board (or game); None before one is finished."""
    score: Estimate | None
    """(beaten + ½ tied) / (entrants - 1) a play, by board (or game): 1 if it always won."""


def describe_match(match: LocalMatch) -> dict[str, object]:
    """The JSON object of `arena play --json`; its keys are those of the page "The command line"."""
    record = match.played.record
    sets = scores_of_sets(record)
    compared = compare(record, sets) if sets else None
    return {
        "game": record.game,
        "ruleset": record.ruleset,
        "contest": record.contest,
        "time_control": record.time_control.name,
        "seed": match.seed,
        "sandboxed": match.is_sandboxed,
        "entrants": entrant_results(record, compared),
        "outcome": record.outcome,
        "sets": len(sets),
        "elo": compared and compared.elo,
        "superiority": compared and compared.superiority,
        "mirroring": compared and compared.mirroring,
        "faults": [describe_fault(match, log) for log in fault_logs(match)],
        "digest": record.digest,
        "records": [str(path) for path in match.records],
        "logs": [str(path) for path in match.logs],
        "seconds": round(match.seconds, 3),
    }


def print_match(match: LocalMatch) -> None:
    """The result for people."""
    record = match.played.record
    sets = scores_of_sets(record)
    say(
        f"{get_game(record.game).title}, {_count(len(sets), _unit(record))}, "
        f"seed {printable(match.seed)}, time control {record.time_control.name}, "
        f"{match.seconds:.1f} s" + ("" if match.is_sandboxed else ", not sandboxed")
    )
    if record.outcome.termination is Termination.COMPLETED:
        _print_result(record, sets)
    else:
        for line in fault_lines(match):
            say(line)
    for path in match.records:
        say(f"record: {path}")
    for path in match.logs:
        say(f"log: {path}")


def compare(record: MatchRecord, sets: Sequence[Sequence[tuple[int, ...]]]) -> Comparison:
    """What the finished sets say of the entrants; who won a game of a games match, its rules say."""
    return _compare(record, sets, _decisive_sets(record, sets))


def _compare(record: MatchRecord, sets: _Sets, decisive: _Sets) -> Comparison:
    by_points = compare_sets(sets)
    if isinstance(record.contest, BoardsContest):
        return by_points
    by_places = compare_sets(decisive)
    summaries = zip(by_points.entrants, by_places.entrants, strict=True)
    return msgspec.structs.replace(
        by_places, entrants=tuple(EntrantSummary(p.points, r.score) for p, r in summaries)
    )


def _decisive_sets(record: MatchRecord, sets: _Sets) -> _Sets:
    """What decides who won: the points of boards, the places of games."""
    return sets if isinstance(record.contest, BoardsContest) else _ranks_of_games(record)


def _ranks_of_games(record: MatchRecord) -> list[list[tuple[int, ...]]]:
    """By entrant and finished game, a number that is the higher the better its place in it."""
    found = replay(record)
    ranks = []
    for number, entry in enumerate(record.games):
        *_, last = (deal for deal in found.deals if deal.game == number)
        state = found.game.start(found.ruleset, last.board)
        for _, action in last.actions:
            state.apply(found.game.encode(action))
        places = found.game.game_places(found.ruleset, entry.score, len(entry.deals), state)
        if places is not None:
            by_side = [-place for place in places]
            ranks.append([by_entrant(found.game, entry.seating, by_side)])
    return ranks


def entrant_results(record: MatchRecord, compared: Comparison | None) -> list[EntrantResult]:
    """Each entrant's result, in the order of the record."""
    return [
        EntrantResult(
            name=entrant.name,
            bots=entrant.bots,
            place=record.outcome.places[index],
            points=record.outcome.points[index],
            mean_points=compared.entrants[index].points if compared else None,
            score=compared.entrants[index].score if compared else None,
        )
        for index, entrant in enumerate(record.entrants)
    ]


def fault_logs(match: LocalMatch) -> list[SeatLog]:
    """The logs of the seats whose fault ended the match: of their last sitting."""
    at_fault = {(fault.entrant, fault.seat) for fault in match.played.record.outcome.faults}
    last = max((log.sitting for log in match.played.logs), default=0)
    return [
        log
        for log in match.played.logs
        if log.sitting == last and (log.entrant, log.seat) in at_fault
    ]


def debug_hint(match: LocalMatch, log: SeatLog) -> str:
    """After a fault at a question: how to put it to the bot again; else empty."""
    record = str(match.records[0]) if match.records else "RECORD"
    bots = match.bots[log.entrant]
    command = log.debug_command(record, bots[log.bot % len(bots)])
    if not command:
        return ""
    return f"play it again: {command}" + ("" if match.records else " (--records DIR writes RECORD)")


def describe_fault(match: LocalMatch, log: SeatLog) -> dict[str, object]:
    """What a bot at fault left behind."""
    return {
        "entrant": log.entrant,
        "seat": log.seat,
        "log": log.log.text,
        "log_truncated": log.log.truncated,
        "traceback": log.log.traceback,
        "saw": log.fault,
        "debug": debug_hint(match, log),
    }


def printable(text: str) -> str:
    """Text of a bot made harmless for a terminal: control characters are spelled out."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in text
    )


def _print_result(record: MatchRecord, sets: Sequence[Sequence[tuple[int, ...]]]) -> None:
    unit = _unit(record)
    decisive = _decisive_sets(record, sets)
    compared = _compare(record, sets, decisive)
    rows = sorted(entrant_results(record, compared), key=lambda result: result.place)
    print_table(
        ("place", "entrant", "version", "points", f"points a {unit}", "score"),
        [_row(result) for result in rows],
    )
    if compared.elo is not None:
        first, other = record.entrants
        say(f"Elo of {first.name} over {other.name}: {spell_elo(compared.elo)}")
    say(_conclusion(record, rows, decisive))


def _row(result: EntrantResult) -> tuple[object, ...]:
    return (
        result.place,
        result.name,
        "+".join(bot.version or "local" for bot in result.bots),
        Signed(f"{result.points:+d}"),
        Signed(spell_estimate(result.mean_points, "+.2f")),
        Signed(spell_estimate(result.score, ".3f")),
    )


def _conclusion(
    record: MatchRecord,
    rows: Sequence[EntrantResult],
    decisive: _Sets,
) -> str:
    """Who won, and whether the lead over the second is more than chance."""
    best, second = rows[:2]
    if best.place == second.place:
        return "No winner: the first place is shared."
    unit = _unit(record)
    measure = "points" if isinstance(record.contest, BoardsContest) else "places"
    lead = _lead(record, best.name, second.name, decisive)
    spelled = (
        f"{best.name} won: its lead over {second.name}, "
        f"{spell_estimate(lead, '+.2f')} {measure} a {unit},"
    )
    if lead.low is None or lead.sets < FEW_SETS:
        return f"{spelled} says little after {_count(lead.sets, unit)}: play more."
    if lead.low > 0:
        return f"{spelled} is beyond chance (95 %)."
    return f"{spelled} may be chance (95 %): play more {unit}s."


def _lead(
    record: MatchRecord, best: str, second: str, sets: Sequence[Sequence[tuple[int, ...]]]
) -> Estimate:
    """How much more a play the one has than the other, by sets."""
    names = [entrant.name for entrant in record.entrants]
    one, other = names.index(best), names.index(second)
    return estimate([fmean(play[one] - play[other] for play in mirrored) for mirrored in sets])


def _unit(record: MatchRecord) -> str:
    return "board" if isinstance(record.contest, BoardsContest) else "game"


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def fault_lines(match: LocalMatch) -> Iterator[str]:
    """What ended a match before its end: who did what, and the end of that bot's log."""
    record = match.played.record
    yield f"The match ended by a fault: {record.outcome.termination}"
    for fault in record.outcome.faults:
        seat = "" if fault.seat is None else f" (seat {fault.seat})"
        yield f"{record.entrants[fault.entrant].name}{seat}: {printable(fault.detail)}"
    for log in fault_logs(match):
        yield from _log_lines(record, log)
        if hint := debug_hint(match, log):
            yield from ("", hint)


def _log_lines(record: MatchRecord, log: SeatLog) -> Iterator[str]:
    name = f"{record.entrants[log.entrant].name}, seat {log.seat}"
    parts = (
        ("what it printed", log.log.text),
        ("its traceback", log.log.traceback),
        ("what it saw", log.fault),
    )
    for title, text in parts:
        if text.strip():
            yield ""
            yield f"--- {name}: {title}"
            yield from last_lines(printable(text))


def last_lines(text: str) -> Iterator[str]:
    """The end of a log, and how much of it is left out."""
    lines = text.rstrip().splitlines()
    if len(lines) > LOG_LINES:
        yield f"({len(lines) - LOG_LINES} lines more above)"
    yield from lines[-LOG_LINES:]
