"""`arena strength`: how strong bots are against each other, as a table for a page.

Each two meet in mirrored sets of the same deals, in this process and so only as trusted code.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean

import msgspec

from engine.cli.exits import ExitCode
from engine.cli.output import note, progress, say
from engine.cli.play import play_locally
from engine.cli.results import compare, printable
from engine.comparison import scores_of_sets, spell_estimate
from engine.errors import UsageError
from engine.games import GAMES, get_game
from engine.outcome import Termination
from engine.plugins import installed_plugins
from engine.record import BoardsContest, MatchRecord
from engine.statistics import Estimate


class Duel(msgspec.Struct, frozen=True):
    """What two bots did against each other."""

    first: str
    second: str
    points: Estimate | None
    """Points a board of the first over the second; None if a fault ended their match."""
    fault: str = ""


def run(bots: Sequence[str], *, games: Sequence[str], boards: int, seed: str) -> ExitCode:
    """Play and print a table for each game; NOT_GOOD if a fault ended a match. Raises ArenaError."""
    names = list(bots) or [plugin.name for plugin in installed_plugins() if plugin.problem is None]
    if len(names) < 2:
        raise UsageError("strength is measured between bots: name at least two")
    if len(set(names)) < len(names):
        raise UsageError("a bot is named twice: name each one once")
    chosen = [get_game(name) for name in games or GAMES]
    note("not sandboxed: the bots run in this process, as trusted code")
    is_good = True
    for place, rules in enumerate(chosen):
        duels = play_all(names, game=rules.name, boards=boards, seed=seed)
        lines = make_table(rules.title, names, duels, boards=boards, seed=seed)
        say("\n".join([""] * (place > 0) + lines))
        for duel in duels:
            if duel.points is None:
                is_good = False
                note(f"{rules.name}, {duel.first} against {duel.second}: {printable(duel.fault)}")
    return ExitCode.OK if is_good else ExitCode.NOT_GOOD


def play_all(names: Sequence[str], *, game: str, boards: int, seed: str) -> list[Duel]:
    """Each two of `names` over the same deals."""
    pairs = list(itertools.combinations(names, 2))
    with progress(game, len(pairs)) as show:
        duels = []
        for number, (first, second) in enumerate(pairs, start=1):
            match = play_locally(
                [first, second],
                game=game,
                contest=BoardsContest(boards=boards),
                seed=seed,
                trusted=True,
            )
            duels.append(_read(first, second, match.played.record))
            show(number)
    return duels


def _read(first: str, second: str, record: MatchRecord) -> Duel:
    if record.outcome.termination is not Termination.COMPLETED:
        faults = "; ".join(
            f"{record.entrants[fault.entrant].name}: {fault.detail}"
            for fault in record.outcome.faults
        )
        return Duel(first, second, None, f"{record.outcome.termination}: {faults}")
    return Duel(first, second, compare(record, scores_of_sets(record)).entrants[0].points)


def make_table(
    title: str, names: Sequence[str], duels: Sequence[Duel], *, boards: int, seed: str
) -> list[str]:
    """A Markdown table: the points a board of each row's bot over each column's, the best on top."""
    cells: dict[tuple[str, str], Estimate | None] = {}
    for duel in duels:
        cells[duel.first, duel.second] = duel.points
        cells[duel.second, duel.first] = None if duel.points is None else _turned(duel.points)
    ranked = sorted(names, key=lambda name: (-_average(name, cells), name))
    head = f"{title}: points a board, with the 95 % interval; {boards} mirrored sets, seed `{seed}`"
    return [
        head,
        "",
        "| | " + " | ".join(ranked) + " | average |",
        "|---|" + "--:|" * (len(ranked) + 1),
        *(
            f"| **{name}** | "
            + " | ".join(_spell(name, other, cells) for other in ranked)
            + f" | {_average(name, cells):+.2f} |"
            for name in ranked
        ),
    ]


def _turned(points: Estimate) -> Estimate:
    low = None if points.high is None else -points.high
    high = None if points.low is None else -points.low
    return Estimate(-points.mean, low, high, points.sets)


def _average(name: str, cells: dict[tuple[str, str], Estimate | None]) -> float:
    """The mean over the opponents; what a fault ended is left out."""
    means = [found.mean for (own, _), found in cells.items() if own == name and found is not None]
    return fmean(means) if means else 0.0


def _spell(name: str, other: str, cells: dict[tuple[str, str], Estimate | None]) -> str:
    if name == other:
        return ""
    found = cells[name, other]
    return "fault" if found is None else spell_estimate(found, "+.2f")
