"""What can be played at all: the claims of a match before its first deal, each checked by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from engine.errors import ContestError
from engine.games import get_game
from engine.games.base import Game
from engine.record.values import (
    BoardsContest,
    BotRef,
    Contest,
    DealSource,
    EntrantRef,
    GivenDeal,
    MatchSpec,
)
from engine.sdk.timecontrol import TIME_CONTROLS, TimeControl

BOT_NAME = re.compile(r"[a-z][a-z0-9_-]{1,31}")
"""A bot's name (use `fullmatch`): that of its entry point."""

MOST_EXTRA_BOARDS = 10
MOST_BOARDS = 10_000
MOST_GAMES = 1_000
MOST_MILLISECONDS = 86_400_000

_MATCH_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,119}")
_WHEEL = re.compile(r"sha256:[0-9a-f]{64}")

Complaint = tuple[str, str]
"""The place of a wrong value in the document, and what is wrong with it."""


def make_spec(
    *,
    game: str,
    entrants: Sequence[EntrantRef],
    contest: Contest,
    time_control: TimeControl,
    deals: DealSource,
    options: Mapping[str, object] | None = None,
    match_key: str = "M1",
    given: Sequence[GivenDeal] = (),
) -> MatchSpec:
    """A checked MatchSpec; `options` are those of the ruleset that differ from the defaults.

    `given`: the deals of a boards match, extra boards too, if they are not to be drawn.

    Raises UsageError (unknown game), RulesetError or ContestError, saying what to change.
    """
    spec = MatchSpec(
        game=game,
        ruleset=get_game(game).make_ruleset(options),
        match_key=match_key,
        contest=contest,
        time_control=time_control,
        entrants=tuple(entrants),
        deals=deals,
        given=tuple(given),
    )
    check_spec(spec)
    return spec


def check_spec(spec: MatchSpec) -> None:
    """Raise ContestError, saying what to change, if the match cannot be played."""
    game = get_game(spec.game)
    if not isinstance(spec.ruleset, game.ruleset_type):
        raise ContestError(f"the ruleset is not one of {game.title}; make it with its make_ruleset")
    if len(spec.deals.prk) != 32 or not spec.deals.tournament_id:
        raise ContestError("deals: they need a key of 32 bytes and the name of a tournament")
    for place, message in complaints(
        game, spec.match_key, spec.contest, spec.time_control, spec.entrants
    ):
        raise ContestError(f"{place}: {message}")
    if spec.given:
        _check_given(game, spec)


def _check_given(game: Game, spec: MatchSpec) -> None:
    contest, seats = spec.contest, game.seats(len(spec.entrants))
    if not isinstance(contest, BoardsContest):
        raise ContestError("given deals: whole games draw theirs; give the deals of boards")
    wanted = contest.boards + contest.extra_boards
    if len(spec.given) != wanted:
        raise ContestError(
            f"given deals: {len(spec.given)} for {wanted} boards, extra ones included"
        )
    for number, deal in enumerate(spec.given):
        if len(deal.board.hands) != seats:
            hands = len(deal.board.hands)
            raise ContestError(f"given deals: board {number} has {hands} hands for {seats} seats")


def complaints(
    game: Game,
    match_key: str,
    contest: Contest,
    time_control: TimeControl,
    entrants: Sequence[EntrantRef],
) -> Iterator[Complaint]:
    """Everything that is wrong with the claims of a match, place by place."""
    if not _MATCH_KEY.fullmatch(match_key):
        yield (
            "match_key",
            f"{match_key!r} is no match key; use up to 120 letters, digits and . _ : / + -",
        )
    yield from terms_complaints(contest, time_control)
    yield from _entrant_complaints(game, entrants)


def terms_complaints(contest: Contest, time_control: TimeControl) -> Iterator[Complaint]:
    """What is wrong with what all matches of a stage have in common, the ruleset aside."""
    yield from _contest_complaints(contest)
    yield from _time_complaints(time_control)


def _contest_complaints(contest: Contest) -> Iterator[Complaint]:
    if isinstance(contest, BoardsContest):
        yield from _range_complaint("contest.boards", contest.boards, 1, MOST_BOARDS)
        yield from _range_complaint(
            "contest.extra_boards", contest.extra_boards, 0, MOST_EXTRA_BOARDS
        )
    else:
        yield from _range_complaint("contest.best_of", contest.best_of, 1, MOST_GAMES)


def _time_complaints(control: TimeControl) -> Iterator[Complaint]:
    known = TIME_CONTROLS.get(control.name)
    if not _is_line(control.name):
        yield "time_control.name", "it needs a name of 1 to 80 printable characters"
    for field, least in (
        ("start_cpu_ms", 1),
        ("game_cpu_ms", 1),
        ("action_cpu_ms", 0),
        ("action_wall_ms", 1),
    ):
        value = getattr(control, field)
        yield from _range_complaint(f"time_control.{field}", value, least, MOST_MILLISECONDS)
        if known is not None and value != getattr(known, field):
            message = (
                f"{control.name!r} means {getattr(known, field)}; to play with {value} rename it"
            )
            yield f"time_control.{field}", message


def _entrant_complaints(game: Game, entrants: Sequence[EntrantRef]) -> Iterator[Complaint]:
    if len(entrants) not in game.entrant_counts:
        allowed = ", ".join(map(str, game.entrant_counts))
        yield (
            "entrants",
            f"{game.title} is played by {allowed} entrants, not by {len(entrants)}",
        )
        return
    seats_each = game.seats(len(entrants)) // len(entrants)
    for i, entrant in enumerate(entrants):
        if not _is_line(entrant.name):
            yield f"entrants[{i}].name", "an entrant needs a name of 1 to 80 printable characters"
        if len(entrant.bots) not in {1, seats_each}:
            allowed = "1 bot" if seats_each == 1 else f"1 bot or {seats_each}"
            yield (
                f"entrants[{i}].bots",
                f"an entrant of {game.title} has {allowed}, not {len(entrant.bots)}",
            )
        for b, bot in enumerate(entrant.bots):
            yield from _bot_complaints(bot, f"entrants[{i}].bots[{b}]")


def _bot_complaints(bot: BotRef, place: str) -> Iterator[Complaint]:
    if not BOT_NAME.fullmatch(bot.bot):
        yield (
            f"{place}.bot",
            f"{bot.bot!r} is no bot's name; use 2 to 32 of a-z, 0-9, _ and -, beginning with a letter",
        )
    if bot.version is not None and not _is_line(bot.version):
        yield f"{place}.version", "a version is 1 to 80 printable characters, or null"
    if bot.wheel is not None and not _WHEEL.fullmatch(bot.wheel):
        yield f"{place}.wheel", "a wheel is sha256: and 64 hex digits in lower case, or null"


def _range_complaint(place: str, value: object, least: int, most: int) -> Iterator[Complaint]:
    if type(value) is not int or not least <= value <= most:
        yield place, f"it must be an integer from {least} to {most}, not {value!r}"


def _is_line(text: str) -> bool:
    return 1 <= len(text) <= 80 and text.isprintable() and text.strip() == text
