"""`arena debug`: the moment that is rebuilt is the one that was, and the bot sees what it saw."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest

from engine.agents import Failure
from engine.cli.debug import find_moment
from engine.cli.play import play_locally
from engine.outcome import Termination
from engine.record import (
    BoardsContest,
    GamesContest,
    MatchRecord,
    compute_digest,
    decode_record,
    encode_record,
    replay,
)
from engine.record.turns import earlier_games, turns_of
from engine.sdk.timecontrol import TimeControl
from tests.match_fakes import at_random, fails_at, play, spec_of

CRASHER = """
from random import Random

from engine.sdk import Strategy, hookimpl


class Crasher(Strategy):
    games = 0

    def begin_game(self, info):
        self.games += 1
        if info.number == 0:
            self.dice = Random(info.random_seed)
        self.number = info.number
        self.asked = 0

    def act(self, observation):
        self.asked += 1
        drawn = self.dice.randrange(10**9)
        if self.number == 1 and self.asked == 3:
            raise ValueError(f"in game {self.games}, drawn {drawn}, saw {observation}")
        print("thinking")
        return observation.legal[drawn % len(observation.legal)]


@hookimpl
def make_strategy(game, ruleset, players):
    return Crasher()
"""
CRASH = Failure(Termination.CRASH, "raised ValueError while choosing an action", 11)
BROKEN = "raise RuntimeError('not today')\n"
DECLINER = """
from engine.sdk import hookimpl


@hookimpl
def make_strategy(game, ruleset, players):
    return None
"""


@pytest.fixture
def crash(arena, install_plugin):
    """A match that a bot of ours crashed in, kept with its logs: the answer of `arena play --json`."""
    install_plugin("crasher", CRASHER)

    def crash(*options: object):
        answer = arena(
            "play", "crasher", "greedy", "--game", "eighty", "--boards", 3, "--seed", "x",
            "--records", "r", "--logs", "logs", "--json", "--trusted", *options,
        )  # fmt: skip
        assert answer.code == 1
        return answer.json

    return crash


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The record of a match without a fault, of seed x."""
    match = play_locally(
        ["greedy", "random"], game="eighty", contest=BoardsContest(2), seed="x", trusted=True
    )
    path = tmp_path_factory.mktemp("records") / "whole.json"
    path.write_bytes(encode_record(match.played.record))
    return path


@pytest.mark.parametrize(
    ("game", "contest", "entrants"),
    [
        ("eighty", BoardsContest(3), 2),  # a sitting of several games
        ("eighty", GamesContest(2), 2),  # games of several deals
        ("podkidnoe", BoardsContest(2, extra_boards=1), 3),  # draws and top-ups
    ],
)
def test_turns_are_what_every_agent_was_asked(game, contest, entrants):
    match, factory = play(spec_of(game, contest, entrants=entrants))
    record = match.record
    found = replay(record)
    expected = {}
    for agent in factory.agents:
        for observation, number in zip(agent.asked, agent.asked_in, strict=True):
            key = (agent.infos[number].players, observation.seat)
            expected.setdefault(key, []).append(observation)
    asked = {}
    order = sorted(
        range(len(record.games)),
        key=lambda g: (
            (0, record.games[g].rotation, record.games[g].board)
            if isinstance(contest, BoardsContest) and record.games[g].board < contest.boards
            else (1, record.games[g].board or g, record.games[g].rotation)
        ),
    )
    for g in order:
        seating = record.games[g].seating
        names = tuple(record.entrants[entrant].name for entrant in seating)
        for seat in range(len(seating)):
            for turn in turns_of(record, found, g, seat):
                if not turn.is_forced:
                    asked.setdefault((names, seat), []).append(turn.observation)
    assert asked == expected


def test_fault_is_the_moment_by_default():
    match, factory = play(spec_of(contest=BoardsContest(3)), at_random, fails_at(9, CRASH))
    moment = find_moment(match.record, replay(match.record))
    offender = next(agent for agent in factory.agents if len(agent.asked) == 10)
    assert moment.turn.observation == offender.asked[-1]
    assert moment.turn.chosen is None
    assert moment.seat == match.record.outcome.faults[0].seat


def test_earlier_games_are_those_of_the_same_processes():
    record = play(spec_of(contest=BoardsContest(3)))[0].record
    last = max(range(6), key=lambda g: (record.games[g].rotation, record.games[g].board))
    assert [record.games[g].board for g in earlier_games(record, last)] == [0, 1]
    assert {record.games[g].rotation for g in earlier_games(record, last)} == {1}
    assert earlier_games(record, 0) == ()
    games = play(spec_of("podkidnoe", GamesContest(3)))[0].record
    assert earlier_games(games, 2) == ()


def test_fault_comes_back_with_the_seed_of_the_match(arena, crash):
    (record,) = crash()["records"]
    traceback = crash()["faults"][0]["traceback"]
    said = re.search(r"in game \d+, drawn \d+, saw .*", traceback)[0]
    answer = arena("debug", record, "--seed", "x", "--no-pdb")
    assert answer.code == 1
    assert "answer: none, it raised ValueError" in answer.out
    # The same state, the same random numbers, the same observation with the same clock.
    assert said in answer.err
    assert "earlier answers are not those" not in answer.err


def test_command_that_is_told_brings_the_fault_back(arena, crash):
    played = crash()
    (log,) = [Path(log) for log in played["logs"] if "play it again" in Path(log).read_text()]
    told = log.read_text().splitlines()[-1]
    assert told == played["faults"][0]["debug"]
    command = shlex.split(told.removeprefix("play it again: "))
    assert command[:4] == ["arena", "debug", played["records"][0], "crasher"]
    answer = arena(*command[1:], "--no-pdb")
    assert re.search(r"ValueError: in game 2, drawn \d+", answer.err)[0] in log.read_text()


def test_command_is_told_to_people_also_without_a_record(arena, crash):
    crash()
    out = arena("play", "crasher", "greedy", "--game", "eighty", "--trusted").out
    assert re.search(
        r"\nplay it again: arena debug RECORD crasher --seat \d --move \d+ --random-seed \d+ "
        r"\(--records DIR writes RECORD\)\n",
        out,
    )


def test_debugger_stops_at_the_first_line_of_act(arena, crash, monkeypatch):
    (record,) = crash()["records"]
    from typer.testing import CliRunner

    from engine.cli.app import make_app

    steps = "p 'asked', self.asked\nn\np 'now', self.asked\nc\np drawn\nq\n"
    result = CliRunner().invoke(make_app(), ["debug", record, "--seed", "x"], input=steps)
    assert result.exit_code == 1
    assert "('asked', 2)" in result.stdout
    assert "('now', 3)" in result.stdout
    assert "answer: none, it raised ValueError" in result.stdout  # and then post mortem


def test_leaving_the_debugger_is_no_failure(arena, whole):
    from typer.testing import CliRunner

    from engine.cli.app import make_app

    arguments = ["debug", str(whole), "--seat", "0", "--move", "3", "--seed", "x"]
    result = CliRunner().invoke(make_app(), arguments, input="q\n")
    assert result.exit_code == 0
    assert "answer" not in result.stdout


def test_same_bot_answers_as_it_did(arena, whole):
    record = decode_record(whole.read_bytes())
    found = replay(record)
    for game, entry in enumerate(record.games):
        for seat in range(len(entry.seating)):
            turn = [turn for turn in turns_of(record, found, game, seat) if not turn.is_forced][-1]
            answer = arena(
                "debug", whole, "--seat", seat, "--move", turn.move, "--game", game,
                "--seed", "x", "--no-pdb",
            )  # fmt: skip
            assert answer.code == 0
            assert answer.out.splitlines()[-1] == f"answer: {turn.chosen}"
            assert "earlier answers" not in answer.err


def test_another_bot_may_be_asked_and_differences_are_told(arena, whole):
    answer = arena("debug", whole, "cautious", "--seat", 0, "--move", 9, "--no-pdb")
    assert answer.code == 0
    assert re.search(r"\d+ of its \d+ earlier answers are not those of the record", answer.err)
    assert "random seed is not known, 0 is taken" in answer.err


def test_moment_is_printed_in_notation(arena, whole):
    record = decode_record(whole.read_bytes())
    out = arena("debug", whole, "--seat", 0, "--move", 4, "--no-pdb").out
    assert re.search(
        r"^calls: \[\d (pass|bid \d\d|nello)(, \d (pass|bid \d\d|nello))*\]$", out, re.MULTILINE
    )
    assert re.search(r"^hand: \[\d-\d(, \d-\d)*\]$", out, re.MULTILINE)
    assert "Tile(" not in out
    assert f"{record.entrants[0].bots[0].bot} " in out.splitlines()[0]


def test_forced_move_asks_nobody(arena, whole):
    record = decode_record(whole.read_bytes())
    found = replay(record)
    forced = next(turn for turn in turns_of(record, found, 0, 1) if turn.is_forced)
    answer = arena("debug", whole, "no-such-bot", "--seat", 1, "--move", forced.move)
    assert answer.code == 0
    assert f"forced: {forced.chosen} is the only legal action" in answer.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "no fault ended this match: say which moment, --seat S --move K"),
        (["--seat", 1], "no fault ended this match"),
        (["--move", 1], "no fault ended this match"),
        (["--seat", 4, "--move", 1], "there is no seat 4; the record has seats 0 to 3"),
        (["--seat", -1, "--move", 1], "there is no seat -1"),
        (["--seat", 0, "--move", 0], "there is no move 0: seat 0 in game 0 (board 0, rotation 0)"),
        (["--seat", 0, "--move", 99], "made moves 1 to "),
        (
            ["--seat", 0, "--move", 1, "--game", 4],
            "there is no game 4; the record has games 0 to 3",
        ),
        (["--seat", 0, "--move", 1, "--seed", "x", "--random-seed", 1], "not both"),
    ],
)
def test_moment_that_is_not_there_is_one_clear_line(arena, whole, options, says):
    answer = arena("debug", whole, *options, "--no-pdb")
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1


def test_other_seats_of_a_fault_have_no_moment_of_their_own(arena, crash):
    (record,) = crash()["records"]
    document = json.loads(Path(record).read_text())
    other = (document["outcome"]["faults"][0]["seat"] + 1) % 4
    answer = arena("debug", record, "--seat", other, "--no-pdb")
    assert answer.code == 2
    assert "say which move: --move K" in answer.err


def test_fault_before_any_question_has_no_moment(arena, install_plugin):
    install_plugin("decliner", DECLINER)
    found = arena(
        "play", "decliner", "greedy", "--game", "eighty", "--trusted", "--records", "r", "--json"
    ).json
    assert found["faults"][0]["debug"] == ""
    answer = arena("debug", found["records"][0], "--no-pdb")
    assert answer.code == 2
    assert "the fault came before any question" in answer.err


def test_bot_that_cannot_start_is_told_with_its_traceback(arena, whole, install_plugin):
    install_plugin("broken", BROKEN)
    answer = arena("debug", whole, "broken", "--seat", 0, "--move", 3, "--no-pdb")
    assert answer.code == 1
    assert "RuntimeError: not today" in answer.err
    install_plugin("decliner", DECLINER)
    answer = arena("debug", whole, "decliner", "--seat", 0, "--move", 3, "--no-pdb")
    assert answer.code == 2
    assert "decliner does not play eighty" in answer.err


def test_bot_that_only_the_record_names_is_not_run_out_of_the_working_folder(
    arena, whole, tmp_path
):
    evil = "raise SystemExit('it ran')"
    record = json.loads(whole.read_text())
    for entrant in record["entrants"]:
        for bot in entrant["bots"]:
            bot["bot"] = "evil"
    renamed = msgspec.convert(record, MatchRecord)
    renamed.digest = compute_digest(renamed)
    (tmp_path / "renamed.json").write_bytes(encode_record(renamed))
    arena("new", "evil")
    (tmp_path / "evil" / "src" / "evil" / "__init__.py").write_text(evil)
    arguments = ("--seat", 0, "--move", 3, "--no-pdb")
    answer = arena("debug", "renamed.json", *arguments)
    assert answer.code == 2
    assert "'evil' of the record is not installed here: name the folder or wheel" in answer.err
    assert "it ran" not in answer.err
    assert "it ran" in arena("debug", "renamed.json", "./evil", *arguments).err


TALKER = """
from engine.sdk import Strategy, hookimpl


class Talker(Strategy):
    def act(self, observation):
        print("hand:", *observation.hand, "of", len(observation.legal))
        return observation.legal[-1]


@hookimpl
def make_strategy(game, ruleset, players):
    return Talker()
"""


def test_mark_in_a_log_says_which_move_to_debug(arena, install_plugin):
    install_plugin("talker", TALKER)
    (record,) = arena(
        "play", "talker", "random", "--game", "eighty", "--boards", 1, "--seed", "x", "--records", "r",
        "--logs", "logs", "--trusted", "--json",
    ).json["records"]  # fmt: skip
    (log,) = Path("logs").glob("*-0-seat-2-*.log")
    printed = re.findall(r"--- game 0, .*, move (\d+)\n(hand: .*)\n", log.read_text())
    assert len(printed) > 5
    for move, said in (printed[0], printed[-1]):
        answer = arena("debug", record, "talker", "--seat", 2, "--move", move, "--no-pdb")
        assert said == answer.err.splitlines()[-1]


SLEEPER = """
import time

from engine.sdk import Strategy, hookimpl


class Sleeper(Strategy):
    def act(self, observation):
        while True:
            try:
                {does}
            except Exception:
                pass


@hookimpl
def make_strategy(game, ruleset, players):
    return Sleeper()
"""


@pytest.mark.parametrize(
    ("does", "wall_ms", "told"),
    [
        ("pass", 60_000, "ms of CPU time at move"),  # it spins
        ("time.sleep(60)", 200, "ms of real time at move"),  # it only waits
    ],
)
def test_bot_that_never_answers_is_stopped_by_its_clock(
    arena, whole, install_plugin, tmp_path, does, wall_ms, told
):
    record = decode_record(whole.read_bytes())
    record.time_control = TimeControl("brief", 2000, 50, 10, wall_ms)
    record.timing.action_cpu_us = msgspec.UNSET
    record.digest = compute_digest(record)
    (tmp_path / "brief.json").write_bytes(encode_record(record))
    install_plugin("sleeper", SLEEPER.format(does=does))
    move = next(turn.move for turn in turns_of(record, replay(record), 0, 0) if not turn.is_forced)
    answer = arena("debug", "brief.json", "sleeper", "--seat", 0, "--move", move, "--no-pdb")
    assert answer.code == 1
    assert told in answer.out


def test_untimed_record_shows_the_full_clock(whole):
    record = decode_record(whole.read_bytes())
    record.timing.action_cpu_us = msgspec.UNSET
    record.timing.budget_percent = msgspec.UNSET
    first, *_ = turns_of(record, replay(record), 0, 0)
    assert first.observation.clock_ms == 5050
