"""Something to play for a site that is going to be broken: small, quick, and the same in every run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.wheels import pack_module
from tests.faults import oracle
from tests.faults.harness import Site, connected_to, copy_store, settled
from tests.tournament_factories import CHANCE, accept, make_player, make_tournament, start
from tournament.competitions.models import Tournament
from tournament.players.models import Bot
from tournament.players.services import submit_wheel

_numbers = itertools.count(1)


def make_pacer(name: str, folder: Path, *, pause: float) -> Bot:
    """A bot that plays at random and thinks for `pause` seconds each time, without computing."""
    source = CHANCE.read_text().replace(
        "        return self.dice.choice",
        f"        time.sleep({pause})\n        return self.dice.choice",
    )
    return make_bot_of(name, source.replace("from random", "import time\nfrom random", 1), folder)


def make_bot_of(name: str, source: str, folder: Path) -> Bot:
    """A bot with one accepted version, whose module is `source`."""
    path = folder / f"{name.replace('-', '_')}.py"
    path.write_text(source)
    data = pack_module(path, bot=name, version="1.0")
    return accept(submit_wheel(owner=make_player(), data=data)).bot


@dataclass(frozen=True, slots=True)
class Event:
    """Running tournaments, and what comes of them if nothing fails."""

    tournaments: Sequence[Tournament]
    size: int
    """How many matches they come to."""
    address: str
    """Of a copy of the database as it was when they began."""
    store: Path
    """A copy of the store from then."""

    def judge(self, site: Site) -> None:
        """Let the oracle judge them; the run without faults is played now, on the copy made before."""
        with connected_to(self.address), settled(self.store, site.slots):
            expected = oracle.play_without_faults(self.tournaments)
        site.tally.judged(oracle.judge(self.tournaments, expected))


def make_event(
    site: Site, *, cups: int = 1, bots: int = 4, pause: float = 0.0, **changes: object
) -> Event:
    """Running round robins between bots that each think for `pause` seconds a turn.

    Made before anything of the site is started: nobody else may use the database while it is copied.
    """
    folder = site.folder / "sources"
    folder.mkdir(exist_ok=True)
    made = []
    for _ in range(cups):
        number = next(_numbers)
        field = [make_pacer(f"bot{number}-{n}", folder, pause=pause) for n in range(bots)]
        made.append(start_cup(field, name=f"Cup {number}", **changes))
    size = cups * bots * (bots - 1) // 2
    return Event(made, size, site.copy(), copy_store(site.store, f"copied-{next(_numbers)}"))


def start_cup(field: Sequence[Bot], **changes: object) -> Tournament:
    """A running round robin between these."""
    plan = {"format": "round_robin", "time_control": "fast", **changes}
    return start(make_tournament(field, **plan))
