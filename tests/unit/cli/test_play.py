"""`arena play` with trusted bots: what it answers, and how it refuses."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import pytest

from engine.agents import BotSource
from engine.cli.contestants import seat_entrants
from engine.cli.output import print_json
from engine.cli.play import choose_contest, most_games, parse_rules
from engine.cli.results import printable
from engine.comparison import name_entrants, spell_elo, spell_estimate
from engine.errors import UsageError
from engine.games import GAMES, get_game
from engine.record import BoardsContest, GamesContest, decode_record, replay
from engine.statistics import Elo, estimate

OPTION_VALUES = [
    (game.name, f"{option.name}={str(value).lower() if value is not None else 'null'}")
    for game in GAMES.values()
    for option in game.options
    for value in (option.choices or (option.minimum,))
]
EMPTY_HAND_TOP_UP = ["--rule", "empty_hand=top_up"]
KEYS = {
    "changes",
    "contest",
    "digest",
    "elo",
    "entrants",
    "faults",
    "game",
    "logs",
    "mirroring",
    "outcome",
    "records",
    "ruleset",
    "sandboxed",
    "seconds",
    "seed",
    "sets",
    "superiority",
    "time_control",
}


def play(arena, *arguments):
    return arena("play", *arguments, "--trusted")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["greedy", "--game", "eighty"], "eighty needs 2 or 4 bots, and 1 was given"),
        (["greedy"] * 3 + ["--game", "eighty"], "eighty needs 2 or 4 bots, and 3 were given"),
        (["greedy"] * 5 + ["--game", "podkidnoe"], "podkidnoe needs 2, 3 or 4 bots"),
        (["greedy", "nobody", "--game", "eighty"], "there is no bot 'nobody'"),
        (["greedy", "./nowhere", "--game", "eighty"], "cannot read nowhere: no such file"),
        (["greedy", "random", "--game", "go"], "there are: eighty, podkidnoe"),
        (["greedy", "random", "--game", "eighty", "--rule", "max_draws=2"], "eighty has no option"),
        (["greedy", "random", "--game", "eighty", "--rule", "min_bid=55"], "allowed: 50, 60"),
        (["greedy", "random", "--game", "eighty", "--rule", "min_bid"], "should be OPTION=VALUE"),
        (
            ["greedy", "random", "--game", "eighty", "--rule", "target=9", "--rule", "target=8"],
            "'target' is given twice",
        ),
        (
            ["greedy", "bold", "--game", "podkidnoe", *EMPTY_HAND_TOP_UP, "--rule", "top_up=off"],
            "empty_hand=top_up needs top_up=end_of_circuit",
        ),
        (["greedy", "random", "--game", "eighty", "--boards", "2", "--best-of", "3"], "not both"),
        (["greedy", "random", "--game", "eighty", "--boards", "20000"], "from 1 to 10000"),
        (["greedy", "random", "--game", "eighty", "--time-control", "slow"], "there are: fast"),
    ],
)
def test_bad_input_is_one_clear_line(arena, arguments, says):
    answer = play(arena, *arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err


@pytest.mark.parametrize(("game", "rule"), OPTION_VALUES)
def test_every_option_can_be_given(arena, game, rule):
    answer = play(
        arena, "greedy", "random", "--game", game, "--boards", 1, "--rule", rule, "--json"
    )
    assert answer.code == 0
    name, _, value = rule.partition("=")
    given = answer.json["ruleset"][name]
    assert (str(given).lower() if given is not None else "null") == value


@pytest.mark.parametrize("bots", [2, 3, 4])
def test_podkidnoe_seats_two_to_four(arena, bots):
    names = ["greedy", "bold", "greedy", "random"][:bots]
    found = play(arena, *names, "--game", "podkidnoe", "--boards", 2, "--json").json
    assert [entrant["name"] for entrant in found["entrants"]] == [
        "greedy",
        "bold",
        "greedy#2",
        "random",
    ][:bots]
    assert min(found["outcome"]["places"]) == 1


def test_four_bots_of_eighty_are_two_pairs_by_seat(arena):
    bots = ["greedy", "random", "bold", "cautious"]
    found = play(arena, *bots, "--game", "eighty", "--boards", 2, "--json").json
    assert [entrant["name"] for entrant in found["entrants"]] == ["greedy+bold", "random+cautious"]


def test_json_is_all_that_stands_on_stdout_and_has_the_documented_keys(arena):
    answer = play(arena, "greedy", "random", "--game", "eighty", "--boards", 2, "--json")
    assert answer.json.keys() == KEYS
    assert answer.err == ""
    assert answer.json["sandboxed"] is False
    assert answer.json["contest"] == {"kind": "boards", "boards": 2, "extra_boards": 0}


def test_same_seed_plays_the_same_match_and_another_seed_another(arena):
    def digest(*seed: str) -> str:
        arguments = ["greedy", "random", "--game", "podkidnoe", "--boards", 2, "--json", *seed]
        return play(arena, *arguments).json["digest"]

    assert digest("--seed", "one") == digest("--seed", "one")
    assert digest("--seed", "one") != digest("--seed", "two")
    assert digest() != digest()


def test_seed_that_was_made_is_told_and_repeats_the_match(arena):
    arguments = ["greedy", "random", "--game", "podkidnoe", "--boards", 2, "--json"]
    first = play(arena, *arguments).json
    assert play(arena, *arguments, "--seed", first["seed"]).json["digest"] == first["digest"]


def test_record_is_written_named_by_its_digest_and_true(arena, tmp_path):
    arguments = ["greedy", "random", "--game", "eighty", "--boards", 2, "--seed", "Spring Cup/1"]
    found = play(arena, *arguments, "--records", tmp_path / "deep" / "records", "--json").json
    (path,) = (tmp_path / "deep" / "records").iterdir()
    assert found["records"] == [str(path)]
    assert path.name == f"eighty-spring-cup-1-{found['digest'][7:15]}.json"
    record = decode_record(path.read_bytes())
    replay(record)
    assert record.match_key == "M1"


def test_records_folder_that_is_a_file_is_refused(arena, tmp_path):
    (tmp_path / "taken").write_text("")
    arguments = ["greedy", "random", "--game", "eighty", "--boards", 1]
    answer = play(arena, *arguments, "--records", "taken")
    assert answer.code == 2
    assert "cannot write into taken" in answer.err


def test_best_of_plays_whole_games(arena):
    arguments = ["greedy", "random", "--game", "eighty", "--best-of", 3, "--rule", "target=60"]
    found = play(arena, *arguments, "--seed", "x", "--json").json
    assert found["contest"] == {"kind": "games", "best_of": 3}
    assert 2 <= found["sets"] <= 3
    assert found["elo"] == {"value": None, "low": None, "high": None}  # it won both


def test_winner_of_a_game_is_who_the_rules_name(arena):
    """In Eighty the bidders win if both sides reach the target at once, even with fewer points."""
    arguments = ["greedy", "cautious", "--game", "eighty", "--best-of", 41, "--rule", "target=110"]
    found = play(arena, *arguments, "--seed", "upsets", "--records", "here", "--json").json
    record = json.loads(Path(found["records"][0]).read_text())
    won, upsets = 0, 0
    for game in record["games"]:
        side = game["score"].index(max(game["score"]))
        if min(game["score"]) >= 110:
            calls = [action for action in game["deals"][-1]["actions"] if " bid " in action]
            bidders = int(calls[-1][0]) % 2
            upsets += bidders != side
            side = bidders
        won += game["seating"][side] == 0
    assert upsets > 0
    assert found["entrants"][0]["score"]["mean"] * len(record["games"]) == pytest.approx(won)


def test_table_names_the_winner_and_how_sure_it_is(arena):
    answer = play(arena, "random", "greedy", "--game", "eighty", "--seed", "x")
    assert answer.code == 0
    first, header, winner, loser, elo, conclusion = answer.out.splitlines()
    assert first.startswith("Eighty, 20 boards, seed x, time control standard")
    assert first.endswith("not sandboxed")
    assert " ".join(header.split()) == "place entrant version points points a board score"
    assert winner.split()[:2] == ["1", "greedy"]
    assert loser.split()[:2] == ["2", "random"]
    assert "±" in winner
    assert elo.startswith("Elo of random over greedy: -")
    assert conclusion.startswith("greedy won: its lead over random, +")
    assert conclusion.endswith(" points a board, is beyond chance (95 %).")


def test_few_boards_say_little(arena):
    out = play(arena, "random", "greedy", "--game", "eighty", "--boards", 7, "--seed", "x").out
    assert out.splitlines()[-1].endswith("says little after 7 boards: play more.")


def test_installed_bots_fault_ends_the_match_and_shows_its_log(arena, install_plugin):
    install_plugin(
        "crasher",
        "from engine.sdk import Strategy, hookimpl\n"
        "class Crasher(Strategy):\n"
        "    def act(self, observation):\n"
        "        print('thinking \\x1b[31m of', observation.hand[0])\n"
        "        raise ValueError('no idea')\n"
        "@hookimpl\n"
        "def make_strategy(game, ruleset, players):\n"
        "    return Crasher()\n",
    )
    arguments = ["greedy", "crasher", "--game", "eighty", "--boards", 2]
    answer = play(arena, *arguments)
    assert answer.code == 1
    assert "The match ended by a fault: crash" in answer.out
    assert re.search(r"crasher \(seat [13]\): raised ValueError while choosing", answer.out)
    assert "thinking \\x1b[31m of" in answer.out
    assert "ValueError: no idea" in answer.out
    assert "random_seed: " in answer.out

    found = play(arena, *arguments, "--json")
    assert found.code == 1
    assert found.json["outcome"]["termination"] == "crash"
    assert found.json["outcome"]["places"] == [1, 2]
    (fault,) = found.json["faults"]
    assert fault["entrant"] == 1
    assert "no idea" in fault["traceback"]


def test_what_bots_print_is_written_by_seat(arena, install_plugin):
    install_plugin(
        "talker",
        "from engine.sdk import Strategy, hookimpl\n"
        "class Talker(Strategy):\n"
        "    def act(self, observation):\n"
        "        print('I am on seat', observation.seat)\n"
        "        return observation.legal[0]\n"
        "@hookimpl\n"
        "def make_strategy(game, ruleset, players):\n"
        "    return Talker()\n",
    )
    arguments = ["talker", "greedy", "--game", "podkidnoe", "--boards", 1, "--logs", "logs"]
    found = play(arena, *arguments, "--json").json
    first, second = (Path(log) for log in found["logs"])
    assert first.name == f"{found['digest'][7:15]}-0-seat-0-talker.log"
    assert "I am on seat 0" in first.read_text()
    assert second.name == f"{found['digest'][7:15]}-1-seat-1-talker.log"
    assert "I am on seat 1" in second.read_text()


def source(bot: str, version: str | None = "1.0") -> BotSource:
    return BotSource(bot=bot, version=version, wheel=None, folder="", entry_point=bot)


@pytest.mark.parametrize(
    ("bots", "names"),
    [
        ([("a", "1"), ("b", "1")], ["a", "b"]),  # as they are called
        ([("a", "1"), ("a", "1")], ["a", "a#2"]),  # one bot twice
        ([("a", "1.0"), ("a", "1.1")], ["a@1.0", "a@1.1"]),  # two versions
        ([("a", "1"), ("a", None), ("a", None)], ["a@1", "a@local", "a@local#2"]),  # no version
    ],
)
def test_entrants_bear_names_that_differ(bots, names):
    sources = [(source(bot, version),) for bot, version in bots]
    assert [entrant.name for entrant in name_entrants(sources)] == names


def test_pairs_sit_across_the_table():
    sources = [source(name) for name in ("north", "east", "south", "west")]
    sides = seat_entrants(get_game("eighty"), sources)
    assert [[bot.bot for bot in side] for side in sides] == [["north", "south"], ["east", "west"]]
    assert len(seat_entrants(get_game("podkidnoe"), sources)) == 4


def test_rules_are_read_as_names_and_values():
    assert parse_rules(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}


@pytest.mark.parametrize("rule", ["", "=", "a", "a=", "=1"])  # each lacks a part
def test_rule_without_name_or_value_is_refused(rule):
    with pytest.raises(UsageError, match="OPTION=VALUE"):
        parse_rules([rule])


@pytest.mark.parametrize(
    ("game", "contest", "bots", "most"),
    [
        ("eighty", BoardsContest(5), 2, 10),  # two rotations
        ("eighty", BoardsContest(5), 4, 10),  # pairs are two entrants
        ("podkidnoe", BoardsContest(5), 3, 15),  # three rotations
        ("eighty", GamesContest(7), 2, 7),
    ],
)
def test_progress_is_told_for_every_game(game, contest, bots, most):
    assert most_games(game, contest, bots) == most


def test_contest_is_boards_unless_games_are_asked_for():
    assert choose_contest(None, None) == BoardsContest(20)
    assert choose_contest(3, None) == BoardsContest(3)
    assert choose_contest(None, 3) == GamesContest(3)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([2, 4], "+3.00 ± 1.39"),  # the standard error is √½
        ([-4], "-4.00"),  # one value says nothing of the spread
    ],
)
def test_estimate_is_written_with_its_interval(values, text):
    assert spell_estimate(estimate(values), "+.2f") == text


@pytest.mark.parametrize(
    ("elo", "text"),
    [
        (Elo(35.2, 12.4, 58.0), "+35 (+12 to +58)"),
        (Elo(math.inf, 120.0, math.inf), "+∞ (+120 to +∞)"),  # it won every play
    ],
)
def test_elo_is_written_with_its_interval(elo, text):
    assert spell_elo(elo) == text


def test_infinite_number_is_null_in_json(capsys):
    print_json({"elo": math.inf})
    assert json.loads(capsys.readouterr().out) == {"elo": None}


def test_control_characters_of_a_bot_do_not_reach_the_terminal():
    assert printable("a\tb\n\x1b[2J\x07é") == "a\tb\n\\x1b[2J\\x07é"


def test_every_pair_of_reference_bots_can_meet(arena):
    bots = ["bold", "cautious", "greedy", "highest", "lowest", "random"]
    for one, other in itertools.combinations(bots, 2):
        assert play(arena, one, other, "--game", "podkidnoe", "--boards", 1).code == 0


def test_seed_that_is_no_text_is_refused(arena):
    answer = arena("play", "greedy", "random", "--game", "eighty", "--trusted", "--seed", "\udcff")
    assert answer.code == 2
    assert answer.err == "error: --seed '\\udcff' is no UTF-8 text; use any text\n"


@pytest.mark.parametrize("option", ["--records", "--logs"])
def test_folder_that_will_not_do_is_told_before_the_match(arena, tmp_path, monkeypatch, option):
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr("engine.cli.play.play_locally", None)  # is not got to
    answer = arena("play", "greedy", "random", "--game", "eighty", "--trusted", option, "taken")
    assert answer.code == 2
    assert answer.err.startswith("error: cannot write into taken: ")


def test_result_is_told_even_if_its_record_cannot_be_written(arena, monkeypatch):
    def fail(*_args):
        raise UsageError("cannot write it: no space left on device")

    monkeypatch.setattr("engine.cli.play.write_record", fail)
    answer = arena(
        *("play", "greedy", "random", "--game", "eighty", "--boards", 2, "--trusted"),
        *("--records", "records"),
    )
    assert answer.code == 2
    assert "points a board" in answer.out
    assert answer.err == "error: cannot write it: no space left on device\n"


def test_elo_of_nothing_has_no_sign_that_means_less():
    assert spell_elo(Elo(-0.3, -0.4, 0.2)) == "+0 (+0 to +0)"
