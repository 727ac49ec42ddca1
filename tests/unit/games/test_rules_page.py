"""The page of the rules says what the games take."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.games import GAMES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
OPTIONS = [(game, option) for game in GAMES.values() for option in game.options]


def spelled(value: object) -> str:
    return {True: "true", False: "false", None: "null"}.get(value, str(value))


@pytest.mark.parametrize(
    ("game", "option"), OPTIONS, ids=[f"{game.name}-{option.name}" for game, option in OPTIONS]
)
def test_each_option_is_on_the_page_with_its_default_and_its_values(game, option):
    section = PAGE.split(f"\n## {game.title}\n")[1].split("\n## ")[0]
    assert f"`{option.name}=" in section
    for value in (option.default, *option.choices):
        assert spelled(value) in section


def test_the_drawing_on_the_page_is_what_is_drawn():
    drawing = ROOT / "tests/golden/podkidnoe_illustrative_game.txt"
    assert f"```\n{drawing.read_text(encoding='utf-8')}```\n" in PAGE
