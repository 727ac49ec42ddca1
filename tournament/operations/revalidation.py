"""Checking again what has been accepted: with the Python, the SDK and the packages of this installation.

Run from a new installation beside the old site it tells what an upgrade would break, before anything is changed: it
reads the database and the store, and writes to neither.
"""

from __future__ import annotations

import itertools
import multiprocessing
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from django.conf import settings

from engine.checking import CheckReport, check_wheel
from engine.errors import ArenaError
from engine.games import GAMES
from tournament.operations.errors import OperationsError
from tournament.players.models import BotVersion, VersionGame, VersionState
from tournament.store.errors import StoreError
from tournament.store.services import read_blob

Check = Callable[[bytes], Callable[[], CheckReport]]
"""Begins the check of a wheel; what it gives waits for the report."""


@dataclass(frozen=True, slots=True)
class AcceptedVersion:
    """A version that may play, and what it was accepted for."""

    bot: str
    version: str
    wheel_sha256: str
    games: Mapping[str, Mapping[str, Sequence[Any]]]
    """By game the values of each option, numbers of players among them."""


class Verdict(msgspec.Struct, frozen=True):
    """What would become of a version."""

    bot: str
    version: str
    outcome: Literal["same", "less", "rejected", "unknown"]
    """``less``: accepted for less than it was; ``unknown``: it could not be checked, by no fault of its own."""
    reasons: list[str]

    @property
    def is_same(self) -> bool:
        """Whether nothing would change for it."""
        return self.outcome == "same"


def accepted_versions(*, newest: bool = False, bot: str = "") -> list[AcceptedVersion]:
    """All versions that may play, by bot and from the oldest; `newest`: of each bot the last one only.

    Asks for no column that a migration of a newer version has brought.
    """
    rows = BotVersion.objects.filter(state=VersionState.ACCEPTED).order_by("bot__name", "pk")
    if bot:
        rows = rows.filter(bot__name=bot)
    found = list(rows.values_list("pk", "bot__name", "version", "wheel_sha256"))
    if newest:
        found = list({row[1]: row for row in found}.values())
    games: dict[int, dict[str, Any]] = {}
    accepted = VersionGame.objects.filter(version__in=[pk for pk, *_ in found])
    for pk, game, options in accepted.values_list("version", "game", "options"):
        games.setdefault(pk, {})[game] = options
    return [
        AcceptedVersion(bot=bot, version=version, wheel_sha256=sha256, games=games.get(pk, {}))
        for pk, bot, version, sha256 in found
    ]


def revalidate(versions: Iterable[AcceptedVersion], *, jobs: int) -> Iterator[Verdict]:
    """Check each version again, `jobs` at a time, and tell in their order what would become of them.

    Raises SandboxUnavailableError where no bot can be held, OperationsError if a process of ours was killed.
    """
    with _checks(jobs) as check:
        remaining = iter(versions)
        while window := list(itertools.islice(remaining, 2 * jobs)):
            begun = [(version, _begin(check, version)) for version in window]
            for version, report in begun:
                yield _judge(version, report)


def _begin(check: Check, version: AcceptedVersion) -> Callable[[], CheckReport]:
    try:
        return check(read_blob(version.wheel_sha256))
    except StoreError as error:
        return partial(_raise, error)


def _raise(error: Exception) -> CheckReport:
    raise error


def _judge(version: AcceptedVersion, report: Callable[[], CheckReport]) -> Verdict:
    verdict = partial(Verdict, version.bot, version.version)
    try:
        found = report()
    except (ArenaError, StoreError) as error:
        return verdict("unknown", [f"{type(error).__name__}: {error}"])
    if found.verdict == "rejected":
        return verdict("rejected", list(found.reasons))
    lost = list(_lost(version, {game.game: game.options for game in found.games}))
    return verdict("less" if lost else "same", lost)


def _lost(
    version: AcceptedVersion, now: Mapping[str, Mapping[str, Sequence[Any]]]
) -> Iterator[str]:
    """What it was accepted for and would not be any more."""
    for name, options in version.games.items():
        title = GAMES[name].title if name in GAMES else name
        if name not in now:
            yield f"would not be accepted for {title}"
            continue
        for option, values in options.items():
            gone = [value for value in values if value not in now[name].get(option, ())]
            if gone:
                spelled = ", ".join(map(str, gone))
                yield f"would not be accepted for {title} with {option} = {spelled}"


@contextmanager
def _checks(jobs: int) -> Iterator[Check]:
    """A way to check wheels, in this process or in `jobs` others; it leaves nothing on the disk."""
    with tempfile.TemporaryDirectory(prefix="arena-revalidate-") as folder:
        check = partial(check_wheel, cache=Path(folder), trusted=settings.ARENA_TRUST_BOTS)
        if jobs == 1:
            yield lambda data: partial(check, data)
            return
        fresh = multiprocessing.get_context("spawn")
        try:
            with ProcessPoolExecutor(jobs, mp_context=fresh) as pool:
                yield lambda data: pool.submit(check, data).result
        except BrokenProcessPool as error:
            raise OperationsError(
                "a process that checks bots was killed: is there enough memory? Try fewer --jobs"
            ) from error
