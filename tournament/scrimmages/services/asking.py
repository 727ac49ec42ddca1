"""Asking for a scrimmage, and taking it back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from engine.errors import UsageError
from engine.games import GAMES, get_game
from engine.statistics import SequentialTest
from tournament.players.models import BotVersion, Player
from tournament.players.selectors import fits, playable_game
from tournament.scrimmages.errors import (
    InvalidScrimmageError,
    ScrimmageError,
    ScrimmageQuotaError,
)
from tournament.scrimmages.models import (
    HYPOTHESES,
    IN_FLIGHT,
    SCRIMMAGE_TRANSITIONS,
    TIME_CONTROLS,
    Difference,
    Scrimmage,
    ScrimmageState,
)
from tournament.scrimmages.selectors import allowance, why_barred
from tournament.store.leases import FREE_FIELDS

LEAST_SETS = SequentialTest().least_sets
"""The test decides nothing on fewer."""
ENTRANTS = 2
CANCELLED_BY_OWNER = "by who asked for it"
"""The reason of who cancels a scrimmage of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A scrimmage as its author asks for it."""

    first: BotVersion
    """The version that is asked about: one of the author's own."""
    other: BotVersion
    game: str
    difference: Difference = Difference.CLEAR
    most_sets: int = 500
    time_control: str = "standard"
    ruleset: Mapping[str, Any] = field(default_factory=dict)
    """Options of the game that are not as usual."""


@transaction.atomic
def ask(*, wish: Wish, by: Player) -> Scrimmage:
    """Take a scrimmage; the row that this makes is the request to play it.

    Raises InvalidScrimmageError with every field that has to change, ScrimmageQuotaError if `by` has too many
    open, or has asked for too many within a day. Nothing is kept of what is refused.
    """
    Player.objects.select_for_update(no_key=True).get(pk=by.pk)  # one at a time of theirs
    problems = _problems(wish, by)
    if problems:
        raise InvalidScrimmageError(problems)
    _check_quota(by)
    elo0, elo1 = HYPOTHESES[wish.difference]
    return Scrimmage.objects.create(
        asked_by=by,
        first=wish.first,
        other=wish.other,
        game=wish.game,
        ruleset=_unusual(wish),
        time_control=wish.time_control,
        difference=wish.difference,
        elo0=elo0,
        elo1=elo1,
        most_sets=wish.most_sets,
        seed=secrets.token_hex(8),
        counts=[0, 0, 0, 0, 0],
    )


def _unusual(wish: Wish) -> dict[str, Any]:
    """The rules that differ from the usual ones, each as the game's own value, however it was written."""
    game = get_game(wish.game)
    asked = msgspec.to_builtins(game.make_ruleset(wish.ruleset))
    usual = msgspec.to_builtins(game.make_ruleset())
    return {name: asked[name] for name in wish.ruleset if asked[name] != usual[name]}


def _problems(wish: Wish, by: Player) -> dict[str, str]:
    """By field what has to change."""
    problems = {
        "first": _why_not_own(wish.first, by) or why_barred(wish.first, by),
        "other": why_barred(wish.other, by),
        "most_sets": _why_not_sets(wish.most_sets),
        "time_control": _why_not_time(wish.time_control),
        "game": ""
        if wish.game in GAMES
        else f"there is no game {wish.game!r}; there are: {', '.join(GAMES)}",
    }
    if wish.first.pk == wish.other.pk:
        problems["other"] = f"this is {wish.first} itself: choose another version, or another bot"
    if not problems["game"]:
        problems["ruleset"] = _why_refused(lambda: get_game(wish.game).make_ruleset(wish.ruleset))
    if not any(problems.values()):
        problems["first"] = _why_not_playing(wish.first, wish)
        problems["other"] = _why_not_playing(wish.other, wish)
    return {name: problem for name, problem in problems.items() if problem}


def _why_not_own(version: BotVersion, by: Player) -> str:
    if version.bot.owner_id == by.pk:
        return ""
    return f"{version.bot.name} is not yours: ask about a version of your own, against it"


def _why_not_sets(sets: int) -> str:
    most = settings.ARENA_SCRIMMAGE_SETS
    if LEAST_SETS <= sets <= most:
        return ""
    return f"{sets} is not from {LEAST_SETS} (the test decides nothing on fewer) to {most}"


def _why_not_time(name: str) -> str:
    if name in TIME_CONTROLS:
        return ""
    return f"scrimmages are played with the time control {' or '.join(TIME_CONTROLS)}; got {name!r}"


def _why_refused(make: Callable[[], object]) -> str:
    try:
        make()
    except UsageError as error:
        return str(error)
    return ""


def _why_not_playing(version: BotVersion, wish: Wish) -> str:
    accepted = playable_game(version, wish.game)
    game = get_game(wish.game)
    if accepted is None:
        return f"{version} was not accepted for {game.title}"
    ruleset = msgspec.to_builtins(game.make_ruleset(wish.ruleset))
    if fits(accepted.options, game.seats(ENTRANTS), ruleset):
        return ""
    return f"{version} was not accepted for {game.title} by these rules with {game.seats(ENTRANTS)} seats"


def _check_quota(by: Player) -> None:
    used = allowance(by)
    if used.most_a_day == 0:
        raise ScrimmageQuotaError(
            "this site plays no scrimmages: compare on your machine with arena compare"
        )
    if used.open >= used.most_open:
        raise ScrimmageQuotaError(
            f"{used.open} scrimmages of yours are not over yet, the most that this site takes at once: wait for "
            "one, or cancel one"
        )
    if used.next_at is not None:
        raise ScrimmageQuotaError(
            f"you have asked for {used.today} scrimmages within 24 hours, the most that this site takes: the "
            f"next is possible at {used.next_at:%Y-%m-%d %H:%M:%S} UTC",
            used.next_at,
        )


@transaction.atomic
def cancel_scrimmage(*, scrimmage: Scrimmage, reason: str) -> Scrimmage:
    """End an open scrimmage; what its sets say so far stays. Raises ScrimmageError if it is over."""
    rows = Scrimmage.objects.filter(pk=scrimmage.pk)
    moved = SCRIMMAGE_TRANSITIONS.move(
        rows,
        ScrimmageState.CANCELLED,
        reason=reason,
        fence=F("fence") + 1,
        ended_at=Now(),
        **FREE_FIELDS,
    )
    scrimmage.refresh_from_db()
    if not moved:
        raise ScrimmageError(f"it is {scrimmage.get_state_display()} already")
    return scrimmage


@transaction.atomic
def retry_scrimmage(*, scrimmage: Scrimmage) -> Scrimmage:
    """Play a scrimmage on that is stuck, or whose batch a worker has and does not get on with.

    Whoever plays that now has lost it, and failures are counted anew. Raises ScrimmageError for any other.
    """
    again = (ScrimmageState.STUCK, *IN_FLIGHT)
    if scrimmage.state not in again or not SCRIMMAGE_TRANSITIONS.move_row(
        scrimmage,
        ScrimmageState.WAITING,
        reason="",
        attempts=0,
        fence=scrimmage.fence + 1,
        run_after=Now(),
        **FREE_FIELDS,
    ):
        raise ScrimmageError("it is not stuck")
    return scrimmage


def keep_records(*, scrimmage: Scrimmage, kept: bool) -> Scrimmage:
    """Keep the records and logs of a scrimmage however old they become, or let them expire like others."""
    Scrimmage.objects.filter(pk=scrimmage.pk).update(is_kept=kept)
    scrimmage.is_kept = kept
    return scrimmage
