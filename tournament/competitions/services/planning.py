"""Making a tournament: everything is checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.utils.text import slugify

from engine.errors import ContestError, FormatError, RulesetError, UsageError
from engine.formats import FORMATS, Format, SeededEntrant, get_format
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
from tournament.competitions.models import (
    PublishPolicy,
    Seeding,
    Shortage,
    Stage,
    Tournament,
)
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
    max_entrants: int | None = None
    """None: as many as like to; so for the bots of one player."""
    max_bots_per_player: int | None = None
    min_entrants: int | None = None
    """None: what the format needs to start."""
    if_too_few: str = Shortage.CANCEL
    postpone_minutes: int = 1440
    postpone_most: int = 1
    seeding: str = Seeding.RATING
    late_until_round: int | None = None
    """The last round that a late entrant may begin with; None: nobody enters after the close."""
    results_at: datetime | None = None
    """Until when results are sealed; None: they are not."""


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


def plan_like(tournament: Tournament, *, opens_at: datetime, name: str = "") -> Plan:
    """A plan with all settings of a tournament, its times as far apart as there, sealed as long after the start."""
    stage = tournament.stages.get()
    shift = opens_at - tournament.opens_at
    return Plan(
        name=name or tournament.name,
        description=tournament.description,
        game=tournament.game,
        kind=tournament.kind,
        opens_at=opens_at,
        closes_at=tournament.closes_at + shift,
        starts_at=tournament.starts_at + shift,
        format=stage.format,
        format_options=stage.options,
        ruleset=stage.ruleset,
        contest=stage.contest,
        time_control=stage.time_control["name"],
        weight=tournament.weight,
        cap=tournament.cap,
        rated=tournament.rated,
        records_public=tournament.records_public,
        max_entrants=tournament.max_entrants,
        max_bots_per_player=tournament.max_bots_per_player,
        min_entrants=tournament.min_entrants,
        if_too_few=tournament.if_too_few,
        postpone_minutes=tournament.postpone_minutes,
        postpone_most=tournament.postpone_most,
        seeding=tournament.seeding,
        late_until_round=tournament.late_until_round,
        results_at=tournament.results_at and tournament.results_at + shift,
    )


def check_plan(plan: Plan, now: datetime) -> dict[str, str]:
    """What would have to change in a plan, by field; empty if `create_tournament` would take it."""
    errors: dict[str, str] = {}
    _check(plan, now, errors)
    return errors


def _check(plan: Plan, now: datetime, errors: dict[str, str]) -> tuple[Stage | None, str]:
    stage = _check_play(plan, errors)
    slug = _check_description(plan, errors)
    _check_times(plan, now, errors)
    _check_entries(plan, errors)
    if stage is not None:
        _check_size(plan, stage, errors)
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
        max_entrants=plan.max_entrants,
        max_bots_per_player=plan.max_bots_per_player,
        min_entrants=plan.min_entrants,
        if_too_few=plan.if_too_few,
        postpone_minutes=plan.postpone_minutes,
        postpone_most=plan.postpone_most,
        seeding=plan.seeding,
        late_until_round=plan.late_until_round,
        results_at=plan.results_at and plan.results_at.replace(microsecond=0),
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
    options = _checked(
        errors, "format_options", lambda: fmt.make_options(dict(plan.format_options or {}))
    )
    sizes = fmt.pairing_sizes if options is None else fmt.sizes(options)
    if not set(sizes) <= set(game.entrant_counts):
        errors["format"] = (
            f"{fmt.title} brings {_spell(sizes)} entrants together, and {game.title} "
            f"is played by {_spell(game.entrant_counts)}: choose another format"
        )
    ruleset = _checked(errors, "ruleset", lambda: game.make_ruleset(dict(plan.ruleset or {})))
    contest = _checked(errors, "contest", lambda: _make_contest(plan, fmt))
    if errors or contest is None or control is None:
        return None
    _checked(errors, "contest", lambda: _try_spec(plan, game, sizes, contest, control))
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


def _try_spec(
    plan: Plan, game: Game, sizes: Sequence[int], contest: Contest, control: TimeControl
) -> None:
    """Raise what the engine has against a match of this tournament, whoever plays it."""
    for size in sizes:
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


MOST_ENTRANTS = 100_000
LONGEST_POSTPONEMENT = 60 * 24 * 30
MOST_POSTPONEMENTS = 100
MOST_ROUNDS = 1000


def _check_entries(plan: Plan, errors: dict[str, str]) -> None:
    _check_number(errors, "max_entrants", plan.max_entrants, 2, MOST_ENTRANTS)
    _check_number(errors, "max_bots_per_player", plan.max_bots_per_player, 1, MOST_ENTRANTS)
    _check_number(errors, "min_entrants", plan.min_entrants, 2, MOST_ENTRANTS)
    _check_number(errors, "postpone_minutes", plan.postpone_minutes, 1, LONGEST_POSTPONEMENT)
    _check_number(errors, "postpone_most", plan.postpone_most, 1, MOST_POSTPONEMENTS)
    _check_number(errors, "late_until_round", plan.late_until_round, 1, MOST_ROUNDS)
    if plan.max_entrants and plan.min_entrants and plan.min_entrants > plan.max_entrants:
        errors.setdefault(
            "min_entrants",
            f"no more than {plan.max_entrants} may enter, so {plan.min_entrants} never will",
        )
    if plan.if_too_few not in Shortage.values:
        errors["if_too_few"] = f"choose one of: {', '.join(Shortage.values)}"
    if plan.seeding not in Seeding.values:
        errors["seeding"] = f"choose one of: {', '.join(Seeding.values)}"
    fmt = FORMATS.get(plan.format)
    if plan.late_until_round and fmt is not None and not fmt.takes_late_entries:
        errors["late_until_round"] = (
            f"{fmt.title} takes nobody in after its start: leave it empty, or choose another format"
        )


def _check_size(plan: Plan, stage: Stage, errors: dict[str, str]) -> None:
    """Note that a tournament with its most or least entrants could not be run so."""
    fmt = get_format(stage.format)
    options = msgspec.convert(stage.options, fmt.options_type)
    for field, count in (("max_entrants", plan.max_entrants), ("min_entrants", plan.min_entrants)):
        if count is None or field in errors:
            continue
        try:
            fmt.check([SeededEntrant(id=seed, seed=seed) for seed in range(1, count + 1)], options)
        except FormatError as error:
            errors[field] = str(error)


def _check_number(
    errors: dict[str, str], field: str, value: int | None, least: int, most: int
) -> None:
    if value is not None and (type(value) is not int or not least <= value <= most):
        errors[field] = f"this is a whole number from {least} to {most}"


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
    if plan.results_at is not None:
        times["results_at"] = plan.results_at
    naive = [field for field, time in times.items() if time.tzinfo is None]
    for field in naive:
        errors[field] = "give the time with its time zone"
    if naive:
        return
    if plan.closes_at.replace(microsecond=0) <= plan.opens_at.replace(microsecond=0):
        errors["closes_at"] = "entries must close after they open"
    if plan.starts_at.replace(microsecond=0) < plan.closes_at.replace(microsecond=0):
        errors["starts_at"] = "it cannot start before entries close"
    if plan.results_at is not None and plan.results_at <= plan.starts_at:
        errors["results_at"] = "results can be sealed only until a time after the start"
    if plan.closes_at <= now:
        errors.setdefault("closes_at", "this is in the past: nobody could enter any more")
    if plan.starts_at <= now:
        errors.setdefault("starts_at", "this is in the past: choose a time to come")


def _spell(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))
