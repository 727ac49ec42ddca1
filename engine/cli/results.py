"""What a match says of its bots: the numbers, as a JSON object and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import msgspec

from engine.cli.output import Signed, print_table, say
from engine.games import get_game
from engine.outcome import Termination
from engine.record import BoardsContest, EntrantRef, MatchRecord
from engine.record.contest import by_entrant

if TYPE_CHECKING:
    from engine.cli.play import LocalMatch
    from engine.referee import SeatLog

LOG_LINES = 30
"""So much of a faulty bot's log is shown, from its end."""
_Z95 = 1.96


class Mean(msgspec.Struct, frozen=True):
    """The mean of a sample with its 95 % interval; no interval from a single value."""

    mean: float
    low: float | None
    high: float | None


class EntrantResult(msgspec.Struct, frozen=True, kw_only=True):
    """One entrant's part of the result."""

    name: str
    bots: tuple[Any, ...]
    place: int
    points: int
    """Over all finished games: (k-1) times its own score minus the others'."""
    mean_points: Mean | None
    """Points per board (the sum of its mirrored plays), or per game; None before one is finished."""
    won: int
    """Boards or games with more points than each other entrant."""
    tied: int
    """Boards or games that share the most points."""
    lost: int


def describe_match(match: LocalMatch) -> dict[str, object]:
    """The JSON object of `arena play --json`; its keys are those of the page "The command line"."""
    record = match.played.record
    sets = points_of_sets(record)
    return {
        "game": record.game,
        "ruleset": record.ruleset,
        "contest": msgspec.to_builtins(record.contest),
        "time_control": record.time_control.name,
        "seed": match.seed,
        "sandboxed": match.is_sandboxed,
        "entrants": [msgspec.to_builtins(result) for result in entrant_results(record, sets)],
        "outcome": msgspec.to_builtins(record.outcome),
        _unit(record) + "s": len(sets),
        "faults": [describe_fault(log) for log in fault_logs(match)],
        "digest": record.digest,
        "records": [str(path) for path in match.records],
        "seconds": round(match.seconds, 3),
    }


def print_match(match: LocalMatch) -> None:
    """The result for people."""
    record = match.played.record
    sets = points_of_sets(record)
    unit = _unit(record)
    say(
        f"{get_game(record.game).title}, {len(sets)} {unit}{'' if len(sets) == 1 else 's'}, "
        f"seed {printable(match.seed)}, time control {record.time_control.name}, "
        f"{match.seconds:.1f} s" + ("" if match.is_sandboxed else ", not sandboxed")
    )
    if record.outcome.termination is not Termination.COMPLETED:
        for line in _fault_lines(match):
            say(line)
        _print_records(match)
        return
    rows = sorted(entrant_results(record, sets), key=lambda result: result.place)
    print_table(
        ("place", "entrant", "version", "points", f"per {unit}", "won", "tied", "lost"),
        [_row(result) for result in rows],
    )
    say(_conclusion(rows, unit))
    _print_records(match)


def points_of_sets(record: MatchRecord) -> list[tuple[int, ...]]:
    """By entrant, the points of each finished mirrored set; of each finished game in a games match."""
    game, entrants = get_game(record.game), len(record.entrants)
    finished: dict[int, list[tuple[int, ...]]] = {}
    for number, entry in enumerate(record.games):
        if all(deal.score is not None for deal in entry.deals):
            key = number if entry.board is None else entry.board
            scores = by_entrant(game, entry.seating, entry.score)
            points = tuple(entrants * own - sum(scores) for own in scores)
            finished.setdefault(key, []).append(points)
    plays = entrants if isinstance(record.contest, BoardsContest) else 1
    return [
        tuple(map(sum, zip(*finished[key], strict=True)))
        for key in sorted(finished)
        if len(finished[key]) == plays
    ]


def entrant_results(record: MatchRecord, sets: Sequence[tuple[int, ...]]) -> list[EntrantResult]:
    """Each entrant's result, in the order of the record."""
    return [
        _entrant_result(record, index, entrant, sets)
        for index, entrant in enumerate(record.entrants)
    ]


def mean_of(values: Sequence[float]) -> Mean | None:
    """The mean and its 95 % interval; None of no values."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) == 1:
        return Mean(mean, None, None)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    error = _Z95 * (variance / len(values)) ** 0.5
    return Mean(mean, mean - error, mean + error)


def fault_logs(match: LocalMatch) -> list[SeatLog]:
    """The logs of the seats whose fault ended the match: of their last sitting."""
    at_fault = {(fault.entrant, fault.seat) for fault in match.played.record.outcome.faults}
    last = max((log.sitting for log in match.played.logs), default=0)
    return [
        log
        for log in match.played.logs
        if log.sitting == last and (log.entrant, log.seat) in at_fault
    ]


def describe_fault(log: SeatLog) -> dict[str, object]:
    """What a bot at fault left behind."""
    return {
        "entrant": log.entrant,
        "seat": log.seat,
        "log": log.log.text,
        "log_truncated": log.log.truncated,
        "traceback": log.log.traceback,
        "saw": log.fault,
    }


def printable(text: str) -> str:
    """Text of a bot made harmless for a terminal: control characters are spelled out."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in text
    )


def _entrant_result(
    record: MatchRecord, index: int, entrant: EntrantRef, sets: Sequence[tuple[int, ...]]
) -> EntrantResult:
    best = [points[index] == max(points) for points in sets]
    alone = [points.count(max(points)) == 1 for points in sets]
    won = sum(is_best and is_alone for is_best, is_alone in zip(best, alone, strict=True))
    return EntrantResult(
        name=entrant.name,
        bots=tuple(msgspec.to_builtins(bot) for bot in entrant.bots),
        place=record.outcome.places[index],
        points=record.outcome.points[index],
        mean_points=mean_of([points[index] for points in sets]),
        won=won,
        tied=sum(best) - won,
        lost=len(sets) - sum(best),
    )


def _unit(record: MatchRecord) -> str:
    return "board" if isinstance(record.contest, BoardsContest) else "game"


def _row(result: EntrantResult) -> tuple[object, ...]:
    versions = "+".join(bot["version"] or "local" for bot in result.bots)
    return (
        result.place,
        result.name,
        versions,
        Signed(f"{result.points:+d}"),
        Signed(spell_mean(result.mean_points)),
        result.won,
        result.tied,
        result.lost,
    )


def spell_mean(mean: Mean | None) -> str:
    """``+12.3 ± 4.5``."""
    if mean is None:
        return "-"
    if mean.high is None:
        return f"{mean.mean:+.2f}"
    return f"{mean.mean:+.2f} ± {mean.high - mean.mean:.2f}"


def _conclusion(rows: Sequence[EntrantResult], unit: str) -> str:
    """What the interval allows to say."""
    best = rows[0]
    if best.place == rows[1].place:
        return "No winner: the first places are tied."
    if best.mean_points is None or best.mean_points.low is None:
        return f"{best.name} won; one {unit} says little: play more."
    if best.mean_points.low > 0:
        return f"{best.name} won, beyond chance: its interval lies above 0 (95 %)."
    return f"{best.name} won, but its interval holds 0: play more {unit}s to be sure."


def _fault_lines(match: LocalMatch) -> Iterator[str]:
    record = match.played.record
    yield f"The match ended by a fault: {record.outcome.termination}"
    for fault in record.outcome.faults:
        seat = "" if fault.seat is None else f" (seat {fault.seat})"
        yield f"{record.entrants[fault.entrant].name}{seat}: {printable(fault.detail)}"
    for log in fault_logs(match):
        yield from _log_lines(record, log)


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
            yield from _last_lines(printable(text))


def _last_lines(text: str) -> Iterator[str]:
    lines = text.rstrip().splitlines()
    if len(lines) > LOG_LINES:
        yield f"({len(lines) - LOG_LINES} lines more above)"
    yield from lines[-LOG_LINES:]


def _print_records(match: LocalMatch) -> None:
    for path in match.records:
        say(f"record: {path}")
