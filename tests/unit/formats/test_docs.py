"""The pages about formats and ratings say everything that can be chosen, and their examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.formats import FORMATS
from engine.ratings import Rating
from engine.standings import TieBreak

DOCS = Path(__file__).parents[3] / "docs"


def examples(page: str) -> dict[str, object]:
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL):
        exec(code, names)
    return names


@pytest.mark.parametrize(
    "name",
    [
        *FORMATS,
        *(option.name for fmt in FORMATS.values() for option in fmt.options),
        *TieBreak,
    ],
)
def test_everything_an_organiser_can_choose_is_documented(name):
    assert f"`{name}`" in (DOCS / "formats.md").read_text()


def test_example_of_a_round_runs_as_it_says():
    names = examples("formats.md")
    assert names["pairing"].key == "RR/R1/M1"
    assert names["pairing"].entrants == (1, 4)
    assert names["result"].scores == (1, 0)


def test_example_of_a_log_runs_as_it_says():
    names = examples("ratings.md")
    assert names["ratings"].versions[7].rating == Rating(27.635389493, 8.065901414)
    assert {change.version: change.after for change in names["changes"]} == {7: None, 9: None}
