"""``manage.py ratings verify|rebuild``: are the stored ratings what their logs say, and make them so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from engine import ratings
from engine.errors import UsageError
from engine.ratings import RatedVersion
from tournament.leaderboards import selectors
from tournament.leaderboards.models import RatingPool
from tournament.leaderboards.services import (
    Place,
    RatingDifference,
    rebuild_ratings,
    verify_ratings,
)
from tournament.players.models import BotVersion

MOST_LINES = 50
"""So many differences of a pool are printed; ``--json`` has them all."""


class Difference(msgspec.Struct, frozen=True):
    """Something of a version that was not as the log says."""

    bot: str
    version: str
    what: str
    """``rating``, ``place``, or ``step`` for its rating after the event `seq`."""
    seq: int | None
    stored: dict[str, Any] | None
    """None: there was nothing."""
    replayed: dict[str, Any] | None
    """None: there should be nothing."""


class PoolReport(msgspec.Struct, frozen=True):
    """What was found in a pool."""

    game: str
    kind: str
    events: int
    differences: list[Difference]


class Command(BaseCommand):
    """Verify ratings, histories and places against the logs, or make them anew."""

    help = (
        "Replay the logs of the rating pools. verify prints what is stored otherwise than the log says, and ends "
        "with 1 if there is anything; rebuild stores what the log says, and prints what that changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do, and in which pools."""
        parser.add_argument("action", choices=("verify", "rebuild"))
        parser.add_argument("--game", help="only this game, e.g. eighty")
        parser.add_argument("--kind", help="only this kind: mono, pair or ffa")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it, pool by pool; each is a transaction of its own."""
        act = verify_ratings if options["action"] == "verify" else rebuild_ratings
        reports = []
        for pool in chosen_pools(options["game"], options["kind"]):
            try:
                found = act(game=pool.game, kind=pool.kind)
            except UsageError as error:
                raise CommandError(f"{pool}: the log cannot be replayed: {error}") from error
            reports.append(PoolReport(pool.game, pool.kind, pool.last_seq, describe(found)))
            if not options["json"]:
                self.stdout.write("\n".join(spell(reports[-1], options["action"])))
        differs = any(report.differences for report in reports)
        if options["json"]:
            answer = {"action": options["action"], "good": not differs, "pools": reports}
            self.stdout.write(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
        elif not reports:
            self.stdout.write("Nothing was ever rated there.")
        if differs and options["action"] == "verify":
            raise SystemExit(1)


def chosen_pools(game: str | None, kind: str | None) -> Sequence[RatingPool]:
    """The pools with these names. Raises CommandError, exit code 2, for names that no leaderboard has."""
    boards = [
        board
        for board in selectors.leaderboards()
        if game in {None, board.game} and kind in {None, board.kind}
    ]
    pools = [
        pool
        for pool in selectors.pools()
        if game in {None, pool.game} and kind in {None, pool.kind}
    ]
    if not boards and not pools:
        known = ", ".join(f"{board.game}/{board.kind}" for board in selectors.leaderboards())
        raise CommandError(
            f"there is no leaderboard {game or '*'}/{kind or '*'}; there are: {known}", returncode=2
        )
    return pools


def describe(found: Sequence[RatingDifference]) -> list[Difference]:
    """The differences with the names of their versions."""
    ids = {difference.version_id for difference in found}
    rows = BotVersion.objects.filter(pk__in=ids).values_list("pk", "bot__name", "version")
    names = {pk: (bot, version) for pk, bot, version in rows}
    return [
        Difference(
            *names[difference.version_id],
            what=_kind_of(difference),
            seq=difference.seq,
            stored=_values(difference.stored),
            replayed=_values(difference.replayed),
        )
        for difference in found
    ]


def _kind_of(difference: RatingDifference) -> str:
    if difference.seq is not None:
        return "step"
    is_place = isinstance(difference.stored or difference.replayed, Place)
    return "place" if is_place else "rating"


def _values(value: RatedVersion | ratings.Rating | Place | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, Place):
        return {"is_listed": value.is_listed, "rank": value.rank}
    if isinstance(value, ratings.Rating):
        return {"mu": value.mu, "sigma": value.sigma}
    return {
        "mu": value.rating.mu,
        "sigma": value.rating.sigma,
        "matches": value.matches,
        "wins": value.wins,
        "ties": value.ties,
        "last_seq": value.last_seq,
    }


def spell(report: PoolReport, action: str) -> Iterator[str]:
    """A pool's report for people."""
    name = f"{report.game}/{report.kind}, {report.events} events"
    count = len(report.differences)
    if not count:
        yield f"{name}: all is as the log says."
        return
    spelled = f"{count} difference{'' if count == 1 else 's'}"
    yield f"{name}: {spelled}" + (", mended" if action == "rebuild" else "")
    for difference in report.differences[:MOST_LINES]:
        what = f"after event {difference.seq}" if difference.what == "step" else difference.what
        yield (
            f"  {difference.bot} {difference.version}, {what}: "
            f"stored {_spell(difference.stored)}; the log says {_spell(difference.replayed)}"
        )
    if count > MOST_LINES:
        yield f"  … and {count - MOST_LINES} more; --json has them all"


def _spell(values: dict[str, Any] | None) -> str:
    if values is None:
        return "nothing"
    return ", ".join(f"{key} {value}" for key, value in values.items())
