"""``arena simulate-formats``: random tournaments of every format, and whether all that must hold does.

What is drawn and what must hold, `engine.formats.simulation` says.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from engine.cli.exits import ExitCode
from engine.cli.output import note, print_json, print_table, progress, say
from engine.formats import FORMATS, Format, get_format
from engine.formats.simulation import LARGEST, Tally, simulate

SHOWN_TROUBLES = 10

COLUMNS = (
    ("tournaments", "tournaments"),
    ("rounds", "rounds"),
    ("matches", "matches"),
    ("ties", "ties"),
    ("faults", "faults"),
    ("forfeits", "forfeits"),
    ("double_forfeits", "double"),
    ("voids", "voids"),
    ("byes", "byes"),
    ("walkovers", "walkovers"),
    ("withdrawals", "withdrawn"),
    ("late_entries", "late"),
    ("forced_rematches", "rematches"),
)


def run(names: Sequence[str], *, tournaments: int, seed: str, as_json: bool) -> ExitCode:
    """Play so many tournaments of each format and tell what was played; NOT_GOOD if anything did not hold."""
    formats = [get_format(name) for name in names] if names else list(FORMATS.values())
    started = time.perf_counter()
    tallies = _simulate_all(formats, tournaments=tournaments, seed=seed, quiet=as_json)
    troubles = [f"{tally.format}: {text}" for tally in tallies for text in tally.troubles]
    if as_json:
        print_json(
            {
                "seed": seed,
                "is_good": not troubles,
                "formats": [msgspec.to_builtins(tally) for tally in tallies],
            }
        )
    else:
        _tell(tallies, troubles, time.perf_counter() - started)
    return ExitCode.NOT_GOOD if troubles else ExitCode.OK


def _simulate_all(
    formats: Sequence[Format], *, tournaments: int, seed: str, quiet: bool
) -> list[Tally]:
    tallies = []
    with progress("tournaments", tournaments * len(formats), quiet=quiet) as show:
        for place, fmt in enumerate(formats):
            tally = Tally(format=fmt.name)
            for number in range(tournaments):
                tally.add(simulate(fmt, f"{seed}/{number}"))
                show(place * tournaments + number + 1)
            tallies.append(tally)
    return tallies


def _tell(tallies: Sequence[Tally], troubles: Sequence[str], seconds: float) -> None:
    print_table(
        ("format", *(title for _, title in COLUMNS)),
        [(tally.format, *(getattr(tally, name) for name, _ in COLUMNS)) for tally in tallies],
    )
    say()
    for text in troubles[:SHOWN_TROUBLES]:
        say(text)
    if len(troubles) > SHOWN_TROUBLES:
        say(f"and {len(troubles) - SHOWN_TROUBLES} more")
    if not troubles:
        say(
            f"Of 2 to {LARGEST} entrants each. Every round paired and decided, every table complete, no second bye "
            "or rematch where there was another way; each tournament played twice, and the same both times."
        )
    note(f"took {seconds:.0f} s")
