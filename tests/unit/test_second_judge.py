"""Whatever the engine records, a judge that shares none of its code finds true; what is changed, untrue."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import RulesetError
from engine.games import GAMES
from engine.plugins import BotSource
from engine.record import (
    BoardsContest,
    BotRef,
    DealSource,
    EntrantRef,
    GamesContest,
    MatchSpec,
    encode_record,
)
from engine.runner import run_match
from engine.sdk.timecontrol import time_control
from engine.shuffle import local_prk
from tests.oracle.judge import judge
from tests.samples import examples

BOTS = Path(__file__).parents[2] / "bots"
MODULES = ("chance", "greedy", "bold", "cautious", "lowest", "highest")


def source_of(module: str) -> BotSource:
    return BotSource(bot=module, version=None, wheel=None, folder=str(BOTS), entry_point=module)


@st.composite
def specs(draw) -> tuple[MatchSpec, list[tuple[BotSource]], str]:
    game = GAMES[draw(st.sampled_from(sorted(GAMES)))]
    options = {}
    for option in game.options:
        if draw(st.booleans()):
            options[option.name] = (
                draw(st.sampled_from(option.choices))
                if option.choices
                else draw(st.integers(option.minimum or 1, min(option.maximum or 120, 120)))
            )
    try:
        ruleset = game.make_ruleset(options)
    except RulesetError:
        ruleset = game.make_ruleset()
    names = draw(
        st.lists(
            st.sampled_from(MODULES),
            min_size=min(game.entrant_counts),
            max_size=max(game.entrant_counts),
        )
    )
    contest = draw(
        st.one_of(
            st.builds(BoardsContest, st.integers(1, 3), st.integers(0, 2)),
            st.builds(GamesContest, st.integers(1, 3)),
        )
    )
    seed = draw(st.text(max_size=8))
    spec = MatchSpec(
        game=game.name,
        ruleset=ruleset,
        match_key="M1",
        contest=contest,
        time_control=time_control("long"),
        entrants=tuple(
            EntrantRef(f"{name} {i}", (BotRef(name, None, None),)) for i, name in enumerate(names)
        ),
        deals=DealSource(local_prk(seed), "local", reveal=True),
    )
    return spec, [(source_of(name),) for name in names], seed


@settings(max_examples=examples(15, exhaustive=200))
@given(specs())
def test_every_played_match_is_true_for_the_second_judge(asked):
    spec, sources, seed = asked
    document = json.loads(encode_record(run_match(spec, sources, trusted=True).record))
    assert judge(document, prk=local_prk(seed)) == []


@pytest.fixture(scope="module")
def document() -> dict:
    game = GAMES["eighty"]
    spec = MatchSpec(
        game="eighty",
        ruleset=game.make_ruleset({"nello_doubles": "low"}),
        match_key="M1",
        contest=BoardsContest(2),
        time_control=time_control("long"),
        entrants=(
            EntrantRef("A", (BotRef("chance", None, None),)),
            EntrantRef("B", (BotRef("greedy", None, None),)),
        ),
        deals=DealSource(local_prk("x"), "local", reveal=True),
    )
    sources = [(source_of("chance"),), (source_of("greedy"),)]
    return json.loads(encode_record(run_match(spec, sources, trusted=True).record))


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("games", 0, "score", 0), 79, "a game's score follows from its deal"),
        (("games", 0, "deals", 0, "score", 1), 79, "a deal's score follows from its tricks"),
        (("games", 1, "deals", 0, "first"), None, "a board has one shaker in all rotations"),
        (("games", 0, "deals", 0, "actions", -1), "0 pass", "the last action is a play"),
        (("outcome", "points", 0), 1000, "points follow from the games"),
        (("games", 0, "deals", 0, "key"), "00" * 32, "a deal follows from its key"),
        (("match_key",), "M2", "the deals are those of another match"),
    ],
)
def test_a_changed_value_is_untrue_for_the_second_judge(document, path, value, why):
    changed = copy.deepcopy(document)
    target = changed
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = (target[path[-1]] + 1) % 4 if value is None else value
    assert judge(changed, prk=local_prk("x")), why
