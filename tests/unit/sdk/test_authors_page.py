"""The page for authors leaves nothing out of what a bot gets and may answer."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from engine.outcome import FAULTS
from engine.sdk import (
    PROTOCOL,
    GameInfo,
    Strategy,
    TimeControl,
    eighty,
    hookspecs,
    podkidnoe,
    tricks,
)
from engine.sdk.timecontrol import TIME_CONTROLS

PAGE = (Path(__file__).parents[3] / "docs" / "authors.md").read_text()


def section(title: str) -> str:
    """A `##` section of the page."""
    matched = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert matched is not None, title
    return matched[1]


@pytest.mark.parametrize(
    ("title", "struct"),
    [
        ("The strategy", GameInfo),
        ("Eighty", eighty.Observation),
        ("Eighty", eighty.Contract),
        ("Eighty", eighty.Trick),
        ("Podkidnoe", podkidnoe.Observation),
        ("Time", TimeControl),
    ],
)
def test_every_field_is_on_the_page(title, struct):
    fields = set(struct.__struct_fields__) - {"name"}
    assert fields
    assert {field for field in fields if f"`{field}" not in section(title)} == set()


@pytest.mark.parametrize(("title", "module"), [("Eighty", eighty), ("Podkidnoe", podkidnoe)])
def test_every_name_of_a_game_is_on_the_page(title, module):
    missing = {name for name in module.__all__ if not re.search(rf"\b{name}\b", section(title))}
    assert missing - {"Ruleset"} == set()


def test_every_function_about_tricks_is_on_the_page():
    public = [
        name
        for name, value in vars(tricks).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    assert [name for name in public if f"`{name}(" not in PAGE] == []


def test_hook_is_on_the_page_with_its_arguments():
    arguments = inspect.signature(hookspecs.make_strategy).parameters
    assert (
        f"def make_strategy({', '.join(f'{a.name}: {a.annotation}' for a in arguments.values())})"
        in PAGE
    )


def test_methods_of_a_strategy_protocol_and_faults_are_on_the_page():
    methods = [name for name in vars(Strategy) if not name.startswith("_")]
    words = [*methods, PROTOCOL, *FAULTS]
    assert [word for word in words if word not in PAGE] == []


@pytest.mark.parametrize("control", TIME_CONTROLS.values(), ids=TIME_CONTROLS)
def test_times_are_those_on_the_page(control):
    row = next(
        line for line in section("Time").splitlines() if line.startswith(f"| `{control.name}`")
    )
    numbers = [int(cell.replace(" ", "")) for cell in re.findall(r"\d[\d ]*", row)]
    assert numbers == [
        control.start_cpu_ms,
        control.game_cpu_ms,
        control.action_cpu_ms,
        control.action_wall_ms,
    ]
