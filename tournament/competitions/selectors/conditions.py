"""What the matches of a stage are, in words, and how long a match and a whole tournament can last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from engine.durations import longest_seconds, spell_seconds
from engine.errors import FormatError
from engine.formats.stages import check_stages
from engine.games import GAMES
from engine.record import BoardsContest, Contest
from engine.standings import TITLES
from tournament.competitions.models import Stage, Tournament, TournamentState
from tournament.competitions.selectors.engine_values import (
    stage_contest,
    stage_format,
    stage_options,
    stage_plan,
    stage_time_control,
)

USUAL_SIZES = (8, 16, 32, 64)
"""How many entrants a forecast is made for where nobody has said how many there may be."""


def conditions_of(stage: Stage) -> list[tuple[str, str]]:
    """What a stage's matches are, and the options of its format, a name and words for each."""
    contest, control = stage_contest(stage), stage_time_control(stage)
    return [
        ("A match is", spell_contest(contest)),
        (
            "Time control",
            (
                f"{control.name}: {control.game_cpu_ms / 1000:g} s of CPU time for a game and "
                f"{control.action_cpu_ms} ms more for each action"
            ),
        ),
        (
            "It lasts at most",
            f"{spell_seconds(longest_match_seconds(stage))}, if all bots use all their time; usually far less",
        ),
        *(
            (name.replace("_", " ").capitalize(), _spell_option(value))
            for name, value in stage.options.items()
        ),
    ]


def spell_rules(ruleset: Mapping[str, object]) -> list[tuple[str, str]]:
    """The values of a game's options, as they are written on the command line."""
    return [(name, _spell(value)) for name, value in ruleset.items()]


def spell_contest(contest: Contest) -> str:
    """What a match is made of, in words."""
    if not isinstance(contest, BoardsContest):
        return "one game" if contest.best_of == 1 else f"the best of {contest.best_of} games"
    boards = "one board" if contest.boards == 1 else f"{contest.boards} boards"
    text = f"{boards}, each played from every seat"
    if contest.extra_boards:
        text += f"; up to {contest.extra_boards} more while it is tied"
    return text


def _spell(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_spell, value))
    words = {True: "true", False: "false", None: "null"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def _spell_option(value: object) -> str:
    """A value of a format's option, for people."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_spell_option, value))
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return _TIE_BREAKS.get(text, text.replace("_", " "))


_TIE_BREAKS = {str(name): title for name, title in TITLES.items()}


def longest_match_seconds(stage: Stage) -> float:
    """How long a match of a stage lasts at most, on a worker that is not busy and of the usual speed."""
    game = GAMES[stage.tournament.game]
    contest, control = stage_contest(stage), stage_time_control(stage)
    sizes = stage_format(stage).sizes(stage_options(stage))
    return max(longest_seconds(game, contest, control, size) for size in sizes)


@dataclass(frozen=True, slots=True)
class Forecast:
    """How much a tournament of so many entrants would have to play, and how long that could last."""

    entrants: int
    matches: int
    seconds: float
    """At most, if the site's workers play nothing else and every bot uses all its time."""


def forecast(tournament: Tournament, entrants: int) -> Forecast | None:
    """What a tournament of so many could come to; None if one of its stages has no end of its own.

    Raises FormatError if so many cannot play these stages.
    """
    stages = _stages_of(tournament)
    check_stages(entrants, [stage_plan(stage) for stage in stages])
    matches, seconds, players = 0, 0.0, entrants
    for stage in stages:
        fmt, options = stage_format(stage), stage_options(stage)
        count, rounds = fmt.match_count(players, options), fmt.round_count(players, options)
        if count is None:
            return None
        matches += count
        seconds += _turns(count, rounds or 1, _tables(tournament)) * longest_match_seconds(stage)
        players = min(players, stage.qualifiers or players)
    return Forecast(entrants=entrants, matches=matches, seconds=seconds)


def _stages_of(tournament: Tournament) -> list[Stage]:
    stages = list(tournament.stages.all())
    for stage in stages:
        stage.tournament = tournament
    return stages


def _tables(tournament: Tournament) -> int:
    """How many of its matches can be played at once."""
    slots: int = settings.ARENA_WORKER_SLOTS
    return min(slots, tournament.cap or slots)


def _turns(matches: int, rounds: int, tables: int) -> int:
    """The most turns that rounds of so many matches take at so many tables, however they are spread over the rounds.

    A round of m takes ⌈m/tables⌉ ≤ (m + tables - 1)/tables.
    """
    return math.ceil((matches + rounds * (tables - 1)) / tables)


def spell_forecasts(tournament: Tournament) -> list[str]:
    """How long a match and all of it can last, a line for each stage and each number of entrants to plan for."""
    stages = _stages_of(tournament)
    matches = [
        f"A match{f' of stage {stage.number}' if len(stages) > 1 else ''}: "
        f"{spell_seconds(longest_match_seconds(stage))} at most"
        for stage in stages
    ]
    return matches + [_spell_forecast(tournament, count) for count in _sizes(tournament)]


def _sizes(tournament: Tournament) -> Sequence[int]:
    """Once it is closed how many there are; before how many there may be, at least and at most."""
    if tournament.state in {TournamentState.DRAFT, TournamentState.OPEN}:
        bounds = {tournament.min_entrants, tournament.max_entrants}
        return sorted(bound for bound in bounds if bound is not None) or USUAL_SIZES
    return (tournament.entrants.count(),)


def _spell_forecast(tournament: Tournament, entrants: int) -> str:
    try:
        found = forecast(tournament, entrants)
    except FormatError as error:
        return f"{entrants} entrants cannot play it: {error}"
    if found is None:
        return f"{entrants} entrants: until it is stopped, since a stage has no end of its own"
    tables = _tables(tournament)
    return (
        f"{entrants} entrants: {found.matches} matches, {spell_seconds(found.seconds)} at most, if "
        f"{'one match is' if tables == 1 else f'{tables} matches are'} played at once and nothing else"
    )
