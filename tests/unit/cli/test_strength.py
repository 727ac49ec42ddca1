"""`arena strength`: everyone meets everyone over the same deals, and the table says who is stronger."""

from __future__ import annotations

import pytest

from engine.cli.strength import Duel, make_table
from engine.statistics import Estimate

CRASHER = """
from engine.sdk import Strategy, hookimpl

@hookimpl
def make_strategy(game, ruleset, players):
    return Crasher()

class Crasher(Strategy):
    def act(self, observation):
        raise RuntimeError("broken on purpose")
"""


def rows(table: str) -> list[list[str]]:
    """The cells of the table's lines below its head."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("| **")
    ]


def test_stronger_bot_stands_on_top_and_cells_mirror_each_other(arena):
    answer = arena("strength", "random", "greedy", "--game", "podkidnoe", "--boards", "20")
    assert answer.code == 0
    (greedy, own, over, average), (random, under, other, _) = rows(answer.out)
    assert (greedy, random) == ("**greedy**", "**random**")
    assert own == other == ""
    assert float(over.split()[0]) == -float(under.split()[0]) == float(average) > 0
    assert over.split()[1:] == under.split()[1:]
    assert "20 mirrored sets, seed `strength`" in answer.out
    assert "trusted" in answer.err


def test_table_is_the_same_each_time_and_another_for_another_seed(arena):
    command = ("strength", "lowest", "highest", "--boards", "5")
    assert arena(*command).out == arena(*command).out
    assert arena(*command).out != arena(*command, "--seed", "other").out


def test_every_game_has_its_table(arena):
    out = arena("strength", "lowest", "highest", "--boards", "2").out
    assert "Eighty: points a board" in out
    assert "Podkidnoe: points a board" in out


def test_fault_is_told_and_ends_with_1(arena, install_plugin):
    install_plugin("crasher", CRASHER)
    answer = arena("strength", "crasher", "lowest", "--game", "podkidnoe", "--boards", "2")
    assert answer.code == 1
    assert [cell for row in rows(answer.out) for cell in row].count("fault") == 2
    assert "podkidnoe, crasher against lowest: crash" in answer.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["greedy"], "at least two", id="nobody to meet"),
        pytest.param(["greedy", "greedy"], "named twice", id="a bot against itself says nothing"),
        pytest.param(["greedy", "nobody"], "nobody", id="no such bot"),
        pytest.param(["greedy", "random", "--game", "chess"], "chess", id="no such game"),
    ],
)
def test_impossible_request_is_refused_in_words(arena, arguments, says):
    answer = arena("strength", *arguments, "--boards", "2")
    assert answer.code == 2
    assert says in answer.err


def test_average_is_over_the_opponents_and_orders_the_rows():
    duels = [
        Duel("a", "b", Estimate(-2.0, -3.0, -1.0, 9)),
        Duel("a", "c", Estimate(1.0, 0.5, 1.5, 9)),
        Duel("b", "c", Estimate(4.0, 2.0, 6.0, 9)),
    ]
    found = rows("\n".join(make_table("Game", ["a", "b", "c"], duels, boards=9, seed="s")))
    assert [(row[0], row[-1]) for row in found] == [
        ("**b**", "+3.00"),
        ("**a**", "-0.50"),
        ("**c**", "-2.50"),
    ]
    assert found[0][1:4] == ["", "+2.00 ± 1.00", "+4.00 ± 2.00"]
