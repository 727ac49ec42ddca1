"""`arena play --deals-from`: the deals of a match that was played, with other bots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.known_deals import points_by_board
from engine.record import compute_digest, decode_record
from tests.oracle.judge import judge

CRASHER = """
from engine.sdk import Strategy, hookimpl


class Crasher(Strategy):
    def begin_game(self, info):
        self.number = info.number

    def act(self, observation):
        if self.number == 2:
            raise ValueError("enough")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Crasher()
"""


@pytest.fixture
def played(arena):
    """Play a match and keep its record."""

    def played(*arguments: object) -> str:
        found = arena("play", *arguments, "--trusted", "--seed", "x", "--records", "r", "--json")
        (path,) = found.json["records"]
        return str(path)

    return played


@pytest.fixture
def again(arena):
    """Play its deals once more: the answer, and the new record."""

    def again(record: str, *arguments: object):
        answer = arena(
            "play", *arguments, "--deals-from", record, "--trusted", "--records", "r2", "--json"
        )
        return answer, Path(answer.json["records"][0])

    return again


def deals_of(path: str | Path) -> set[tuple]:
    document = json.loads(Path(path).read_text())
    return {
        (deal["number"], deal["first"], *deal["hands"], deal.get("reserve"))
        for game in document["games"]
        for deal in game["deals"]
    }


def hide_keys(path: str) -> str:
    """As the record of a tournament whose secret is not out."""
    document = json.loads(Path(path).read_text())
    for game in document["games"]:
        for deal in game["deals"]:
            deal["key"] = None
    Path("hidden.json").write_text(json.dumps(document))
    return "hidden.json"


@pytest.mark.parametrize(
    ("game", "before", "now"),
    [
        ("eighty", ["greedy", "random"], ["cautious", "bold"]),  # two sides
        ("eighty", ["greedy", "random"], ["cautious", "bold", "greedy", "random"]),  # now as pairs
        ("podkidnoe", ["greedy", "random", "bold"], ["lowest", "bold", "random"]),  # three seats
    ],
)
@pytest.mark.parametrize("has_keys", [True, False])
def test_deals_are_the_same_and_the_new_record_is_true(
    arena, played, again, game, before, now, has_keys
):
    first = played(*before, "--game", game, "--boards", 3)
    answer, path = again(first if has_keys else hide_keys(first), *now)
    assert answer.code == 0
    assert deals_of(path) == deals_of(first)
    assert arena("verify", path).code == 0
    document = json.loads(path.read_text())
    assert judge(document) == []
    keys = {deal["key"] is None for entry in document["games"] for deal in entry["deals"]}
    assert keys == {not has_keys}


def test_same_bots_with_the_same_seed_play_the_same_match(played, again):
    first = played("greedy", "random", "--game", "eighty", "--boards", 3)
    answer, path = again(hide_keys(first), "greedy", "random", "--seed", "x")
    assert answer.json["digest"] == decode_record(Path(first).read_bytes()).digest
    assert answer.json["digest"] == compute_digest(decode_record(path.read_bytes()))
    changes = answer.json["changes"]
    assert [each["before"] == each["now"] for each in changes["boards"]] == [True] * 3
    assert [each["mean"] for each in changes["mean_change"]] == [0, 0]


def test_rules_and_time_control_are_those_of_the_record(played, again):
    first = played(
        "greedy", "random", "--game", "podkidnoe", "--boards", 1,
        "--rule", "max_draws=1", "--time-control", "long",
    )  # fmt: skip
    answer, _ = again(first, "bold", "random")
    assert answer.json["ruleset"]["max_draws"] == 1
    assert answer.json["time_control"] == "long"
    answer, _ = again(first, "bold", "random", "--time-control", "fast")
    assert answer.json["time_control"] == "fast"


def test_changes_are_the_differences_of_each_board(played, again):
    first = played("random", "greedy", "--game", "eighty", "--boards", 4)
    answer, path = again(first, "cautious", "greedy")
    changes = answer.json["changes"]
    assert changes["record"] == first
    now = points_by_board(decode_record(path.read_bytes()))
    before = points_by_board(decode_record(Path(first).read_bytes()))
    assert [tuple(each["now"]) for each in changes["boards"]] == list(now.values())
    assert [tuple(each["before"]) for each in changes["boards"]] == list(before.values())
    mean = sum(now[board][0] - before[board][0] for board in range(4)) / 4
    assert changes["mean_change"][0]["mean"] == pytest.approx(mean)
    shown = answer.json["entrants"][0]["mean_points"]["mean"]
    assert shown == pytest.approx(sum(points[0] for points in now.values()) / 4)


def test_changed_boards_are_told_to_people(arena, played):
    first = played("random", "greedy", "--game", "eighty", "--boards", 4)
    out = arena("play", "greedy", "greedy", "--deals-from", first, "--trusted").out
    assert f"The same deals as in {first}" in out
    assert "board  random then  greedy now" in out
    assert "0 of 4 boards ended as before." in out
    assert out.splitlines()[-1].startswith("greedy: +")


def test_boards_that_a_fault_left_are_played(arena, install_plugin, played):
    install_plugin("crasher", CRASHER)
    first = played("crasher", "greedy", "--game", "podkidnoe", "--boards", 5)
    answer = arena("play", "bold", "greedy", "--deals-from", first, "--trusted", "--json")
    assert answer.json["contest"] == {"kind": "boards", "boards": 3, "extra_boards": 0}
    assert "holds 3 of its 5 boards (a fault ended it)" in answer.err
    assert answer.json["changes"]["boards"] == []  # none was finished in both seatings
    assert answer.json["changes"]["mean_change"] is None
    out = arena("play", "bold", "greedy", "--deals-from", first, "--trusted").out
    assert out.endswith("so there is nothing to compare.\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["greedy"], "are for 2 or 4 bots, and 1 was given"),
        (["greedy"] * 3, "are for 2 or 4 bots, and 3 were given"),
        (["greedy", "bold", "--boards", 2], "--boards cannot be given with --deals-from"),
        (["greedy", "bold", "--best-of", 2], "--best-of cannot be given with --deals-from"),
        (["greedy", "bold", "--rule", "min_bid=60"], "--rule cannot be given with --deals-from"),
        (["greedy", "bold", "--game", "podkidnoe"], "is a match of eighty; leave --game out"),
    ],
)
def test_what_cannot_be_is_one_clear_line(arena, played, arguments, says):
    first = played("greedy", "random", "--game", "eighty", "--boards", 1)
    answer = arena("play", *arguments, "--deals-from", first, "--trusted")
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_whole_games_are_refused(arena, played):
    first = played("greedy", "random", "--game", "eighty", "--best-of", 1, "--rule", "target=20")
    answer = arena("play", "greedy", "bold", "--deals-from", first, "--trusted")
    assert answer.code == 2
    assert "give the record of a match of boards" in answer.err


def test_untrue_record_gives_no_deals(arena, played):
    first = Path(played("greedy", "random", "--game", "eighty", "--boards", 1))
    first.write_text(first.read_text().replace('"first":', '"first": 1', 1))
    answer = arena("play", "greedy", "bold", "--deals-from", first, "--trusted")
    assert answer.code == 1
    assert answer.err.startswith(f"error: {first} is untrue at games[0].deals[0].first: ")


def test_game_must_be_said_without_a_record(arena):
    answer = arena("play", "greedy", "bold", "--trusted")
    assert answer.code == 2
    assert answer.err == "error: say which game: --game eighty or --game podkidnoe\n"
