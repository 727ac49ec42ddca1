"""Making a tournament: everything is checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.utils.text import slugify

from engine.errors import ContestError, FormatError, RulesetError, UsageError
from engine.formats import Format, get_format
from engine.games import GAMES
from engine.games.base import Game
from engine.record import (
    BotRef,
    Contest,
    DealSource,
    EntrantRef,
    make_spec,
)
from engine.sdk.timecontrol import TimeControl, time_control
from tournament.competitions.errors import InvalidTournamentError
from tournament.competitions.models import PublishPolicy, Stage, Tournament
from tournament.leaderboards.selectors import kinds_of
from tournament.players.models import Player
from tournament.store.clock import read_clock

MIN_RATED_BOARDS = 8
"""A match is rated only if it has at least so many mirrored sets."""
DEFAULT_EXTRA_BOARDS = 10
"""Of a format that knocks out: what a tied match may add before the lot decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A tournament as its organiser asks for it. Times are in UTC or aware."""

    name: str
    game: str
    opens_at: datetime
    closes_at: datetime
    starts_at: datetime
    format: str
    kind: str = ""
    """Empty: ``mono`` in a game with partners, else ``ffa``."""
    slug: str = ""
    """Empty: made from the name."""
    description: str = ""
    format_options: Mapping[str, object] | None = None
    """Those that differ from the defaults; so for the ruleset."""
    ruleset: Mapping[str, object] | None = None
    contest: Mapping[str, object] | None = None
    """As in a record, e.g. ``{"kind": "boards", "boards": 8}``; by default 8 boards."""
    time_control: str = "standard"
    weight: int = 1
    cap: int | None = None
    rated: bool = True
    records_public: str = PublishPolicy.AT_ONCE


def create_tournament(*, organiser: Player, plan: Plan, now: datetime | None = None) -> Tournament:
    """Make a draft of a tournament with its stage.

    Raises InvalidTournamentError with a message for every field that has to change; then nothing is
    stored.
    """
    errors: dict[str, str] = {}
    stage, slug = _check(plan, now or read_clock(), errors)
    if errors or stage is None:
        raise InvalidTournamentError(errors)
    return _store(organiser, plan, slug, stage)


def check_plan(plan: Plan, now: datetime) -> dict[str, str]:
    """What would have to change in a plan, by field; empty if `create_tournament` would take it."""
    errors: dict[str, str] = {}
    _check(plan, now, errors)
    return errors


def _check(plan: Plan, now: datetime, errors: dict[str, str]) -> tuple[Stage | None, str]:
    stage = _check_play(plan, errors)
    slug = _check_description(plan, errors)
    _check_times(plan, now, errors)
    return stage, slug


@transaction.atomic
def _store(organiser: Player, plan: Plan, slug: str, stage: Stage) -> Tournament:
    tournament = Tournament.objects.create(
        slug=slug,
        name=plan.name.strip(),
        description=plan.description,
        organiser=organiser,
        game=plan.game,
        kind=plan.kind or kinds_of(GAMES[plan.game])[0],
        opens_at=plan.opens_at.replace(microsecond=0),
        closes_at=plan.closes_at.replace(microsecond=0),
        starts_at=plan.starts_at.replace(microsecond=0),
        weight=plan.weight,
        cap=plan.cap,
        rated=plan.rated,
        records_public=plan.records_public,
    )
    stage.tournament = tournament
    stage.save()
    return tournament


def _check_play(plan: Plan, errors: dict[str, str]) -> Stage | None:
    """The stage that `plan` asks for; None, with the reasons in `errors`, if it cannot be played."""
    game = GAMES.get(plan.game)
    if game is None:
        errors["game"] = f"there is no game {plan.game!r}; there are: {', '.join(GAMES)}"
    fmt = _checked(errors, "format", lambda: get_format(plan.format))
    control = _checked(errors, "time_control", lambda: time_control(plan.time_control))
    if game is None or fmt is None:
        return None
    kinds = kinds_of(game)
    if plan.kind and plan.kind not in kinds:
        errors["kind"] = f"{game.title} has tournaments of the kind: {', '.join(kinds)}"
    if not set(fmt.pairing_sizes) <= set(game.entrant_counts):
        errors["format"] = (
            f"{fmt.title} brings {_spell(fmt.pairing_sizes)} entrants together, and {game.title} "
            f"is played by {_spell(game.entrant_counts)}: choose another format"
        )
    options = _checked(
        errors, "format_options", lambda: fmt.make_options(dict(plan.format_options or {}))
    )
    ruleset = _checked(errors, "ruleset", lambda: game.make_ruleset(dict(plan.ruleset or {})))
    contest = _checked(errors, "contest", lambda: _make_contest(plan, fmt))
    if errors or contest is None or control is None:
        return None
    _checked(errors, "contest", lambda: _try_spec(plan, game, fmt, contest, control))
    return Stage(
        index=0,
        format=fmt.name,
        options=msgspec.to_builtins(options),
        ruleset=msgspec.to_builtins(ruleset),
        contest=msgspec.to_builtins(contest),
        time_control=msgspec.to_builtins(control),
    )


def _checked(errors: dict[str, str], field: str, make: Any) -> Any:
    try:
        return make()
    except (UsageError, FormatError, RulesetError, ContestError) as error:
        errors[field] = str(error)
        return None


def _make_contest(plan: Plan, fmt: Format) -> Contest:
    given = dict(plan.contest or {"kind": "boards", "boards": MIN_RATED_BOARDS})
    if given.get("kind") == "games" and "extra_boards" in given:
        raise ContestError("whole games have no extra boards: leave them out, or choose boards")
    if fmt.knocks_out and given.get("kind") == "boards":
        given.setdefault("extra_boards", DEFAULT_EXTRA_BOARDS)
    try:
        contest: Contest = msgspec.convert(given, Contest)
    except msgspec.ValidationError as error:
        raise ContestError(
            f"{error}: give {{'kind': 'boards', 'boards': N}} or {{'kind': 'games', 'best_of': N}}"
        ) from None
    return contest


def _try_spec(plan: Plan, game: Game, fmt: Format, contest: Contest, control: TimeControl) -> None:
    """Raise what the engine has against a match of this tournament, whoever plays it."""
    for size in fmt.pairing_sizes:
        make_spec(
            game=game.name,
            entrants=[
                EntrantRef(name=f"Bot {i}", bots=(BotRef(bot="bot", version=None, wheel=None),))
                for i in range(size)
            ],
            contest=contest,
            time_control=control,
            deals=DealSource(prk=bytes(32), tournament_id="local", reveal=False),
            options=plan.ruleset,
        )


def _check_description(plan: Plan, errors: dict[str, str]) -> str:
    if not 1 <= len(plan.name.strip()) <= 100:
        errors["name"] = "give it a name of 1 to 100 characters"
    slug = plan.slug or _free_slug(plan.name)
    if not slug or slug != slugify(slug) or len(slug) > 60:
        errors["slug"] = "use 1 to 60 of a-z, 0-9 and - for its address"
    elif Tournament.objects.filter(slug=slug).exists():
        errors["slug"] = f"there is a tournament {slug!r} already: choose another address"
    if plan.weight < 1 or plan.weight > 100:
        errors["weight"] = "the weight is a number from 1 to 100"
    if plan.cap is not None and plan.cap < 1:
        errors["cap"] = "the most matches in flight is a number from 1, or nothing for no limit"
    if plan.records_public not in PublishPolicy.values:
        errors["records_public"] = f"choose one of: {', '.join(PublishPolicy.values)}"
    return slug


def _free_slug(name: str) -> str:
    base = slugify(name)[:50].strip("-")
    taken = set(Tournament.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    if not base or base not in taken:
        return base
    number = 2
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"


def _check_times(plan: Plan, now: datetime, errors: dict[str, str]) -> None:
    times = {"opens_at": plan.opens_at, "closes_at": plan.closes_at, "starts_at": plan.starts_at}
    naive = [field for field, time in times.items() if time.tzinfo is None]
    for field in naive:
        errors[field] = "give the time with its time zone"
    if naive:
        return
    if plan.closes_at.replace(microsecond=0) <= plan.opens_at.replace(microsecond=0):
        errors["closes_at"] = "entries must close after they open"
    if plan.starts_at.replace(microsecond=0) < plan.closes_at.replace(microsecond=0):
        errors["starts_at"] = "it cannot start before entries close"
    if plan.closes_at <= now:
        errors.setdefault("closes_at", "this is in the past: nobody could enter any more")
    if plan.starts_at <= now:
        errors.setdefault("starts_at", "this is in the past: choose a time to come")


def _spell(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))
