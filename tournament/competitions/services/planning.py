"""Making a tournament: everything is checked before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils.text import slugify

from engine.durations import longest_seconds, spell_seconds
from engine.errors import ContestError, FormatError, RulesetError, UsageError
from engine.formats import FORMATS, Format, get_format
from engine.formats.stages import MAX_STAGES, StagePlan, check_stages
from engine.games import GAMES
from engine.games.base import Game
from engine.record import (
    MIN_RATED_BOARDS,
    BotRef,
    Contest,
    DealSource,
    EntrantRef,
    make_spec,
)
from engine.sandbox.speed import LARGEST_PERCENT
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

DEFAULT_EXTRA_BOARDS = 10
"""Of a format that knocks out: what a tied match may add before the lot decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWish:
    """One stage as its organiser asks for it; what is None is as in the whole tournament."""

    format: str
    format_options: Mapping[str, object] | None = None
    """Those that differ from the defaults."""
    qualifiers: int | None = None
    """How many go on to the next stage; None in the last one."""
    ruleset: Mapping[str, object] | None = None
    contest: Mapping[str, object] | None = None
    time_control: str | None = None
    stops_after_minutes: int | None = None
    """So long after the tournament's start a stage without an end of its own opens no more matches."""
    matches_a_day: int | None = None
    """So many matches of a continuous format are opened in 24 hours; None: without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A tournament as its organiser asks for it. Times are in UTC or aware."""

    name: str
    game: str
    opens_at: datetime
    closes_at: datetime
    starts_at: datetime
    format: str = ""
    """Of a tournament of one stage; with `format_options` the short way to write `stages`."""
    stages: Sequence[StageWish] = ()
    """The stages in their order."""
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
    """Like ruleset and contest it holds in each stage that names no other."""
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

    @property
    def all_stages(self) -> tuple[StageWish, ...]:
        """The stages, however they were written."""
        if self.stages:
            return tuple(self.stages)
        return (StageWish(format=self.format, format_options=self.format_options),)


def create_tournament(*, organiser: Player, plan: Plan, now: datetime | None = None) -> Tournament:
    """Make a draft of a tournament with its stages.

    Raises InvalidTournamentError with a message for every field that has to change; then nothing is
    stored.
    """
    errors: dict[str, str] = {}
    stages, slug = _check(plan, now or read_clock(), errors)
    if errors or stages is None:
        raise InvalidTournamentError(errors)
    return _store(organiser, plan, slug, stages)


def plan_like(tournament: Tournament, *, opens_at: datetime, name: str = "") -> Plan:
    """A plan with all settings of a tournament, its times as far apart as there, sealed as long after the start."""
    stages = list(tournament.stages.all())
    shift = opens_at - tournament.opens_at
    return Plan(
        name=name or tournament.name,
        description=tournament.description,
        game=tournament.game,
        kind=tournament.kind,
        opens_at=opens_at,
        closes_at=tournament.closes_at + shift,
        starts_at=tournament.starts_at + shift,
        ruleset=stages[0].ruleset,
        contest=stages[0].contest,
        time_control=stages[0].time_control["name"],
        **_stages_like(stages, tournament.starts_at),
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


def _stages_like(stages: Sequence[Stage], starts_at: datetime) -> dict[str, Any]:
    """The stages as fields of a plan; in each what is not as in the first."""
    first = stages[0]
    is_plain = len(stages) == 1 and first.stops_at is None and first.matches_a_day is None
    if is_plain:
        return {"format": first.format, "format_options": first.options}
    return {
        "stages": tuple(
            StageWish(
                format=stage.format,
                format_options=stage.options,
                qualifiers=stage.qualifiers,
                ruleset=None if stage.ruleset == first.ruleset else stage.ruleset,
                contest=stage.contest,
                time_control=(
                    None if stage.time_control == first.time_control else stage.time_control["name"]
                ),
                stops_after_minutes=_minutes_between(starts_at, stage.stops_at),
                matches_a_day=stage.matches_a_day,
            )
            for stage in stages
        )
    }


def _minutes_between(start: datetime, end: datetime | None) -> int | None:
    return None if end is None else round((end - start) / timedelta(minutes=1))


def check_plan(plan: Plan, now: datetime) -> dict[str, str]:
    """What would have to change in a plan, by field; empty if `create_tournament` would take it."""
    errors: dict[str, str] = {}
    _check(plan, now, errors)
    return errors


def _check(
    plan: Plan, now: datetime, errors: dict[str, str]
) -> tuple[tuple[Stage, ...] | None, str]:
    stages = _check_stages(plan, errors)
    slug = _check_description(plan, errors)
    _check_times(plan, now, errors)
    _check_entries(plan, errors)
    if stages is not None:
        _check_sizes(plan, errors)
    return stages, slug


@transaction.atomic
def _store(organiser: Player, plan: Plan, slug: str, stages: Sequence[Stage]) -> Tournament:
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
    for stage in stages:
        stage.tournament = tournament
        stage.save()
    return tournament


def _check_stages(plan: Plan, errors: dict[str, str]) -> tuple[Stage, ...] | None:
    """The stages that `plan` asks for; None, with the reasons in `errors`, if they cannot be played.

    A message about a stage of several is called ``stages[0].format`` and so on.
    """
    if plan.stages and (plan.format or plan.format_options):
        errors["stages"] = "give the format of one stage or the list of stages, not both"
        return None
    wishes = plan.all_stages
    if len(wishes) > MAX_STAGES:
        errors["stages"] = f"a tournament has 1 to {MAX_STAGES} stages, not {len(wishes)}"
        return None
    game = GAMES.get(plan.game)
    if game is None:
        errors["game"] = f"there is no game {plan.game!r}; there are: {', '.join(GAMES)}"
    elif plan.kind and plan.kind not in (kinds := kinds_of(game)):
        errors["kind"] = f"{game.title} has tournaments of the kind: {', '.join(kinds)}"
    stages = []
    for index, wish in enumerate(wishes):
        found: dict[str, str] = {}
        stages.append(_check_stage(plan, wish, index, game, found))
        _place_errors(plan, index, found, errors)
    _check_sequence(plan, errors)
    return None if errors else tuple(stage for stage in stages if stage is not None)


def _place_errors(plan: Plan, index: int, found: Mapping[str, str], errors: dict[str, str]) -> None:
    """What was found about a stage; what stands in the plan itself is told once, and there."""
    wish = plan.all_stages[index]
    for field, message in found.items():
        is_common = field in _COMMON and getattr(wish, field) is None
        place = field if is_common or not plan.stages else f"stages[{index}].{field}"
        errors.setdefault(place, message)


_COMMON = frozenset({"ruleset", "contest", "time_control"})


def _check_sequence(plan: Plan, errors: dict[str, str]) -> None:
    """Note that the stages cannot follow each other so, unless one of them is wrong already."""
    if errors:
        return
    try:
        check_stages(None, _engine_plans(plan))
    except FormatError as error:
        errors["stages" if plan.stages else "format_options"] = str(error)


def _engine_plans(plan: Plan) -> list[StagePlan]:
    return [
        StagePlan(
            format=wish.format,
            options=dict(wish.format_options or {}),
            qualifiers=wish.qualifiers,
        )
        for wish in plan.all_stages
    ]


def _check_stage(
    plan: Plan, wish: StageWish, index: int, game: Game | None, errors: dict[str, str]
) -> Stage | None:
    """The stage of this wish; None, with the reasons in `errors`, if it cannot be played."""
    fmt = _checked(errors, "format", lambda: get_format(wish.format))
    control = _checked(
        errors, "time_control", lambda: time_control(wish.time_control or plan.time_control)
    )
    if game is None or fmt is None:
        return None
    options = _checked(
        errors, "format_options", lambda: fmt.make_options(dict(wish.format_options or {}))
    )
    sizes = fmt.pairing_sizes if options is None else fmt.sizes(options)
    if not set(sizes) <= set(game.entrant_counts):
        errors["format"] = (
            f"{fmt.title} brings {_spell(sizes)} entrants together, and {game.title} "
            f"is played by {_spell(game.entrant_counts)}: choose another format"
        )
    rules = dict((plan.ruleset if wish.ruleset is None else wish.ruleset) or {})
    ruleset = _checked(errors, "ruleset", lambda: game.make_ruleset(rules))
    given = plan.contest if wish.contest is None else wish.contest
    contest = _checked(errors, "contest", lambda: _make_contest(given, fmt))
    if options is not None:
        _check_continuity(wish, fmt, options, errors)
    if errors or contest is None or control is None:
        return None
    _checked(errors, "contest", lambda: _try_spec(rules, game, sizes, contest, control))
    if not errors:
        _checked(errors, "contest", lambda: _check_duration(game, sizes, contest, control))
    return Stage(
        index=index,
        format=fmt.name,
        options=msgspec.to_builtins(options),
        qualifiers=wish.qualifiers,
        ruleset=msgspec.to_builtins(ruleset),
        contest=msgspec.to_builtins(contest),
        time_control=msgspec.to_builtins(control),
        stops_at=_stop_of(plan, wish),
        matches_a_day=wish.matches_a_day,
    )


def _stop_of(plan: Plan, wish: StageWish) -> datetime | None:
    if wish.stops_after_minutes is None:
        return None
    try:
        return plan.starts_at.replace(microsecond=0) + timedelta(minutes=wish.stops_after_minutes)
    except OverflowError:
        return None  # a start or a duration that is refused in any case


def _check_continuity(wish: StageWish, fmt: Format, options: Any, errors: dict[str, str]) -> None:
    """Note a stop or a daily budget where there can be none."""
    if wish.stops_after_minutes is not None and fmt.ends(options):
        errors["stops_after_minutes"] = (
            f"{fmt.title} ends by itself as it is played here: leave it empty"
        )
    if wish.matches_a_day is not None and not fmt.is_continuous:
        errors["matches_a_day"] = f"{fmt.title} is played in rounds, whole ones: leave it empty"
    _check_number(errors, "stops_after_minutes", wish.stops_after_minutes, 1, LONGEST_STAGE)
    _check_number(errors, "matches_a_day", wish.matches_a_day, 1, MOST_MATCHES_A_DAY)
    _check_number(errors, "qualifiers", wish.qualifiers, 2, MOST_ENTRANTS)


def _checked(errors: dict[str, str], field: str, make: Any) -> Any:
    try:
        return make()
    except (UsageError, FormatError, RulesetError, ContestError) as error:
        errors[field] = str(error)
        return None


def _make_contest(wish: Mapping[str, object] | None, fmt: Format) -> Contest:
    given = dict(wish or {"kind": "boards", "boards": MIN_RATED_BOARDS})
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
    rules: Mapping[str, object],
    game: Game,
    sizes: Sequence[int],
    contest: Contest,
    control: TimeControl,
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
            options=rules,
        )


def _check_duration(
    game: Game, sizes: Sequence[int], contest: Contest, control: TimeControl
) -> None:
    """Raise ContestError for a match that a worker would have to give up."""
    most = settings.CELERY_TASK_TIME_LIMIT - settings.ARENA_BLOCK_SECONDS
    worst = max(
        longest_seconds(game, contest, control, size, budget_percent=LARGEST_PERCENT)
        for size in sizes
    )
    if worst > most:
        usual = max(longest_seconds(game, contest, control, size) for size in sizes)
        raise ContestError(
            f"with bots that use all their time a match could last {spell_seconds(usual)}, and on the slowest machine "
            f"that may be a worker {spell_seconds(worst)}; no worker plays one for longer than {spell_seconds(most)}: "
            "choose fewer boards or games, or a shorter time control"
        )


def _check_description(plan: Plan, errors: dict[str, str]) -> str:
    if not 1 <= len(plan.name.strip()) <= 100 or not plan.name.isprintable():
        errors["name"] = "give it a name of 1 to 100 printable characters"
    if len(plan.description) > LONGEST_DESCRIPTION or _NO_TEXT.search(plan.description):
        errors["description"] = (
            f"this is a text of at most {LONGEST_DESCRIPTION} characters, none of them the zero character or half a "
            "character"
        )
    slug = plan.slug or _free_slug(plan.name)
    if not slug or slug != slugify(slug) or len(slug) > 60:
        errors["slug"] = "use 1 to 60 of a-z, 0-9 and - for its address"
    elif Tournament.objects.filter(slug=slug).exists():
        errors["slug"] = f"there is a tournament {slug!r} already: choose another address"
    _check_number(errors, "weight", plan.weight, 1, 100)
    _check_number(errors, "cap", plan.cap, 1, MOST_IN_FLIGHT)
    if plan.records_public not in PublishPolicy.values:
        errors["records_public"] = f"choose one of: {', '.join(PublishPolicy.values)}"
    return slug


MOST_ENTRANTS = 100_000
LONGEST_POSTPONEMENT = 60 * 24 * 30
MOST_POSTPONEMENTS = 100
MOST_ROUNDS = 1000
MOST_MATCHES_A_DAY = 1_000_000
LONGEST_STAGE = 60 * 24 * 366
LONGEST_DESCRIPTION = 10_000
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What no database takes in a text: zero, and halves of characters, which JSON can spell."""
MOST_IN_FLIGHT = 1_000_000
FARTHEST = timedelta(days=36_600)
"""Times are at most so far away; what is farther was typed wrongly."""


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
    fmt = FORMATS.get(plan.all_stages[0].format)
    if plan.late_until_round and fmt is not None and not fmt.takes_late_entries:
        errors["late_until_round"] = (
            f"{fmt.title} takes nobody in after its start: leave it empty, or choose another format"
        )


def _check_sizes(plan: Plan, errors: dict[str, str]) -> None:
    """Note that a tournament with its most or least entrants could not be run so."""
    for field, count in (("max_entrants", plan.max_entrants), ("min_entrants", plan.min_entrants)):
        if count is None or field in errors:
            continue
        try:
            check_stages(count, _engine_plans(plan))
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
    wrong = {field: why for field, time in times.items() if (why := _why_no_time(time, now))}
    errors.update(wrong)
    if wrong:
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


def _why_no_time(time: datetime, now: datetime) -> str:
    if time.tzinfo is None:
        return "give the time with its time zone"
    return "" if abs(time - now) <= FARTHEST else "give a time within a hundred years from now"


def _spell(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))
