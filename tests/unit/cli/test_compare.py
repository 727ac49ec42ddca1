"""`arena compare`: sets until the test knows, on any number of cores, and what its answers mean."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli.compare import (
    Report,
    choose_games,
    exit_code,
    make_question,
    make_report,
    spell_verdict,
)
from engine.cli.exits import ExitCode
from engine.comparison import Verdict, find_verdict, score_of_set
from engine.errors import ContestError
from engine.games import GAMES
from engine.record import decode_record, replay
from engine.statistics import Decision, compare_sets

CRASHER = """
from engine.sdk import Strategy, hookimpl

@hookimpl
def make_strategy(game, ruleset, players):
    return Crasher()

class Crasher(Strategy):
    def act(self, observation):
        raise RuntimeError("broken on purpose")
"""


def compare(arena, *arguments):
    return arena("compare", *arguments, "--trusted")


WIN, LOSS, TIE = (10, 0), (0, 10), (5, 5)


@pytest.mark.parametrize(
    ("plays", "score"),
    [
        pytest.param([WIN, WIN], 1.0, id="both won"),
        pytest.param([(99, 0), (0, 1)], 0.5, id="how far one is ahead does not count"),
        pytest.param([WIN, TIE], 0.75, id="one won, one tied"),
        pytest.param([TIE, LOSS], 0.25, id="one tied, one lost"),
        pytest.param([LOSS, LOSS], 0.0, id="both lost"),
        pytest.param([(0, -60), (0, -1)], 1.0, id="less was lost"),
    ],
)
def test_set_scores_by_who_won_its_plays(plays, score):
    assert score_of_set(plays) == score


def test_better_bot_is_found_and_said_to_be_better(arena):
    answer = compare(
        arena,
        "greedy",
        "random",
        "--game",
        "podkidnoe",
        "--elo1",
        "30",
        "--seed",
        "a",
        "--jobs",
        "1",
    )
    assert answer.code == ExitCode.OK
    assert re.search(
        r"^greedy is better than random by \+\d+ \(\+\d+ to \+(\d+|∞)\) Elo\.$",
        answer.out,
        re.MULTILINE,
    )
    assert "decided at ±2.944" in answer.out
    assert "the plays of a set correlate" in answer.out
    assert "not sandboxed" in answer.out


def test_worse_bot_is_not_better_and_the_other_is_named(arena):
    answer = compare(
        arena,
        "random",
        "greedy",
        "--game",
        "podkidnoe",
        "--elo1",
        "60",
        "--seed",
        "a",
        "--jobs",
        "1",
    )
    assert answer.code == ExitCode.NOT_GOOD
    assert "greedy is better than random by +" in answer.out


def test_own_copy_is_not_better(arena):
    answer = compare(arena, "lowest", "lowest", "--elo1", "60", "--seed", "a", "--jobs", "1")
    assert answer.code == ExitCode.NOT_GOOD
    assert answer.out.count("20 mirrored sets") == len(GAMES)  # as soon as may be: all are even
    assert "lowest is not better than lowest#2 by 60 Elo: +0 (+0 to +0)." in answer.out


def test_too_few_sets_leave_it_undecided(arena):
    answer = compare(arena, "random", "random", "--max-sets", "15", "--seed", "a", "--jobs", "1")
    assert answer.code == ExitCode.UNDECIDED
    assert answer.out.count("No difference found in 15 mirrored sets") == len(GAMES)


def test_fixed_number_of_sets_is_played_and_judged_by_its_interval(arena):
    fixed = ("--game", "podkidnoe", "--sets", "50", "--seed", "a", "--jobs", "1", "--json")
    found = compare(arena, "greedy", "random", *fixed)
    assert found.code == ExitCode.OK
    (game,) = found.json["games"]
    assert (game["sets"], sum(game["counts"]), game["decision"]) == (50, 50, None)
    assert game["score"]["low"] > 0.5
    assert found.json["test"] is None


def numbers(answer) -> list:
    """The answer without what was measured by a clock."""
    return [{**game, "seconds": None} for game in answer.json["games"]]


def test_sets_are_the_same_on_one_core_and_on_two(arena):
    command = ("lowest", "random", "--game", "podkidnoe", "--json", "--sets", "45", "--seed")
    one, two = (compare(arena, *command, "b", "--jobs", jobs) for jobs in ("1", "2"))
    assert numbers(one) == numbers(two)
    assert one.json["games"][0]["sets"] == 45
    other = compare(arena, *command, "c", "--jobs", "1")
    assert numbers(one) != numbers(other)


def test_it_stops_at_the_set_that_decides(arena):
    """One set fewer leaves it open, and the same set decides with any greater number allowed."""
    duel = ("greedy", "random", "--game", "podkidnoe", "--elo1", "30", "--seed", "a")
    command = (*duel, "--jobs", "1", "--json")
    (found,) = compare(arena, *command).json["games"]
    (fewer,) = compare(arena, *command, "--max-sets", found["sets"] - 1).json["games"]
    assert found["decision"] == Decision.ACCEPT_H1
    assert found["sets"] > 21  # so that it was not the least number that held it up
    assert fewer["decision"] == Decision.CONTINUE
    assert abs(fewer["likelihood_ratio"]) < found["likelihood_ratio"]
    assert found["likelihood_ratio"] >= 2.944439


def test_numbers_follow_from_the_records(arena, tmp_path: Path):
    arguments = ("--game", "eighty", "--sets", "30", "--seed", "a", "--jobs", "1", "--json")
    (game,) = compare(arena, "bold", "random", *arguments, "--records", "kept").json["games"]
    records = [decode_record((tmp_path / path).read_bytes()) for path in game["records"]]
    assert [record.match_key for record in records] == ["M1", "M2"]
    boards: dict[tuple, list] = {}
    for record in records:
        replay(record)
        for entry in record.games:
            scores = entry.score if entry.rotation == 0 else entry.score[::-1]
            boards.setdefault((record.match_key, entry.board), []).append(scores)
    compared = compare_sets(list(boards.values()))
    assert game["points"]["mean"] == pytest.approx(compared.entrants[0].points.mean)
    assert game["elo"]["value"] == pytest.approx(compared.elo.value)
    assert game["mirroring"]["points"]["variance_ratio"] == pytest.approx(compared.mirroring)
    assert -1 <= game["mirroring"]["score"]["correlation"] <= 1


def test_fault_ends_it_and_is_told_with_how_to_see_it_again(arena, install_plugin):
    install_plugin("crasher", CRASHER)
    answer = compare(arena, "crasher", "greedy", "--game", "podkidnoe", "--jobs", "2")
    assert answer.code == ExitCode.NOT_GOOD
    assert "No answer: a fault ended a match" in answer.out
    assert "broken on purpose" in answer.out
    assert "arena debug" in answer.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["greedy"], "compare two bots", id="nobody to compare with"),
        pytest.param(["greedy", "random", "bold"], "3 were given", id="one too many"),
        pytest.param(["greedy", "nobody"], "there is no bot 'nobody'", id="no such bot"),
        pytest.param(["greedy", "random", "--game", "go"], "there are: eighty", id="no such game"),
        pytest.param(
            ["greedy", "random", "--elo0", "5", "--elo1", "5"], "less than", id="no difference"
        ),
        pytest.param(["greedy", "random", "--elo1", "nan"], "less than", id="no number"),
        pytest.param(["greedy", "random", "--elo1", "5000"], "to 1000", id="beyond reason"),
        pytest.param(
            ["greedy", "random", "--sets", "9", "--max-sets", "9"], "not both", id="two numbers"
        ),
        pytest.param(["greedy", "random", "--sets", "9", "--elo1", "9"], "not both", id="no test"),
        pytest.param(
            ["greedy", "random", "--calibrate", "9"], "its own copy; name one", id="two of them"
        ),
        pytest.param(
            ["greedy", "random", "--rule", "min_bid=55"], "allowed: 50, 60", id="no such value"
        ),
        pytest.param(["greedy", "random", "--time-control", "slow"], "there are: fast", id="clock"),
    ],
)
def test_impossible_request_is_refused_before_anything_is_played(arena, arguments, says):
    answer = compare(arena, *arguments)
    assert answer.code == ExitCode.USAGE
    assert says in answer.err
    assert answer.out == ""


def report_of(sets, question, **changes) -> Report:
    return make_report("eighty", sets, question, ruleset={}, **changes)


FEW = [[WIN, WIN]] * 20 + [[WIN, LOSS]] * 20
TURNED = [[play[::-1] for play in mirrored] for mirrored in FEW]
EVEN = [[WIN, LOSS]] * 40


@pytest.mark.parametrize(
    ("sets", "elos", "verdict", "says"),
    [
        pytest.param(FEW, (0, 10, 0), Verdict.UNDECIDED, "No difference found", id="open"),
        pytest.param(FEW, (0, 60, 0), Verdict.BETTER, "A is better than B by +", id="better"),
        pytest.param(TURNED, (0, 60, 0), Verdict.NOT_BETTER, "B is better than A by +", id="worse"),
        pytest.param(
            EVEN, (0, 60, 0), Verdict.NOT_BETTER, "A is not better than B by 60 Elo", id="even"
        ),
        pytest.param(
            EVEN, (-60, 0, 0), Verdict.BETTER, "A is not worse than B by 60 Elo", id="no worse"
        ),
        pytest.param(FEW, (None, None, 40), Verdict.BETTER, "A is better than B by +", id="fixed"),
        pytest.param(
            TURNED, (None, None, 40), Verdict.NOT_BETTER, "B is better", id="fixed, worse"
        ),
        pytest.param(
            EVEN, (None, None, 40), Verdict.UNDECIDED, "as if they played alike", id="fixed, even"
        ),
        pytest.param(
            FEW[15:25] + TURNED[15:25],
            (None, None, 20),
            Verdict.UNDECIDED,
            "A is +0 (",
            id="fixed, as many won as lost",
        ),
        pytest.param(
            [[WIN, WIN]] * 25, (0, 60, 0), Verdict.BETTER, "it won all 25 sets", id="a sweep"
        ),
        pytest.param(
            [[LOSS, LOSS]] * 25,
            (0, 60, 0),
            Verdict.NOT_BETTER,
            "B is better than A: it won all",
            id="swept",
        ),
        pytest.param(
            [[WIN, WIN]] * 3, (0, 60, 0), Verdict.UNDECIDED, "Not decided, but A is", id="too few"
        ),
        pytest.param([], (0, 60, 0), Verdict.UNDECIDED, "no set was finished", id="nothing"),
    ],
)
def test_answer_follows_from_the_test_or_the_interval(sets, elos, verdict, says):
    elo0, elo1, fixed = elos
    question = make_question(elo0, elo1, None, fixed or None)
    report = report_of(sets, question)
    assert report.verdict is verdict
    assert says in spell_verdict("A", "B", question, report)


def test_no_interval_answers_nothing():
    assert find_verdict(compare_sets([[WIN, WIN]]), None) is Verdict.UNDECIDED
    assert find_verdict(None, None) is Verdict.UNDECIDED


def test_exit_code_is_that_of_the_worst_game():
    question = make_question(0, 60, None, None)
    better, worse, open_ = (report_of(sets, question) for sets in (FEW, TURNED, []))
    assert exit_code([better, better]) is ExitCode.OK
    assert exit_code([better, open_]) is ExitCode.UNDECIDED
    assert exit_code([open_, worse]) is ExitCode.NOT_GOOD
    stopped = report_of(FEW, question, is_interrupted=True)
    assert exit_code([worse, stopped]) is ExitCode.INTERRUPTED


def test_both_games_are_all_games():
    assert choose_games("both") == sorted(GAMES)
    assert choose_games("eighty") == ["eighty"]


def test_hypotheses_are_those_of_the_issue_unless_said():
    test = make_question(None, None, None, None).test
    assert (test.elo0, test.elo1) == (0, 10)
    with pytest.raises(ContestError):
        make_question(10, None, None, None)


def test_calibration_tells_the_rate_and_is_the_same_each_time(arena):
    command = ("random", "--calibrate", "60", "--sets", "40", "--elo1", "100", "--seed", "a")
    answer = compare(arena, *command, "--jobs", "1")
    assert len(re.findall(r"of 60 simulated runs", answer.out)) == len(GAMES)
    assert compare(arena, *command, "--jobs", "1").out == answer.out
    found = compare(arena, *command, "--jobs", "1", "--json")
    rates = [game["rate"] for game in found.json["games"]]
    assert all(game["accepted_h1"] + game["accepted_h0"] == 60 for game in found.json["games"])
    assert found.code == (ExitCode.NOT_GOOD if max(rates) > 0.07 else ExitCode.OK)


def test_simulated_runs_give_up_after_the_most_sets(arena):
    command = ("random", "--calibrate", "5", "--sets", "30", "--max-sets", "25", "--jobs", "1")
    answer = compare(arena, *command, "--game", "podkidnoe", "--json")
    (game,) = answer.json["games"]
    assert sum(game["counts"]) == 30
    assert game["mean_sets"] == 25
    assert game["accepted_h1"] + game["accepted_h0"] == 0


def test_calibration_of_a_test_that_errs_too_often_is_not_good(arena, monkeypatch):
    monkeypatch.setattr("engine.cli.compare.ACCEPTED_RATE", 0.0)
    command = ("random", "--calibrate", "200", "--sets", "40", "--elo1", "100", "--jobs", "1")
    answer = compare(arena, *command, "--seed", "a", "--game", "podkidnoe")
    assert answer.code == ExitCode.NOT_GOOD
    assert "TOO OFTEN" in answer.out


@pytest.mark.sandbox
def test_sandboxed_sets_on_two_cores_are_the_trusted_ones(arena):
    command = ("greedy", "random", "--game", "eighty", "--sets", "22", "--seed", "d", "--json")
    sandboxed = arena("compare", *command, "--jobs", "2")
    trusted = compare(arena, *command, "--jobs", "1")
    assert (sandboxed.json["sandboxed"], trusted.json["sandboxed"]) == (True, False)
    assert numbers(sandboxed) == numbers(trusted)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_bot_is_called_better_than_its_copy_in_at_most_7_of_100_runs(arena):
    """At the usual hypotheses, by sets of a bot whose play varies, so that its copy plays otherwise."""
    answer = compare(
        arena, "random", "--calibrate", "400", "--sets", "600", "--seed", "7", "--json"
    )
    for game in answer.json["games"]:
        assert game["runs"] == 400
        assert 0 < game["rate"] <= 0.07, game
    assert answer.code == ExitCode.OK


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A comparison on two cores that will take long, once it has told of its first sets."""
    command = [sys.executable, "-c", "from engine.cli import main; main()"]
    command += ["compare", "random", "random", "--game", "eighty", "--trusted", "--jobs", "2"]
    with subprocess.Popen(
        [*command, "--elo1", "1", "--max-sets", "1000000"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("eighty: 40 sets, Elo")
            yield process
        finally:  # a test that failed leaves none behind
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def players_of(running: subprocess.Popen[str]) -> set[int]:
    """The processes in which it plays."""
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    return {
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    }


def await_end(pids: set[int]) -> None:
    until = time.monotonic() + 60
    while alive := {pid for pid in pids if Path(f"/proc/{pid}").exists()}:
        assert time.monotonic() < until, alive
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_interrupted_it_tells_what_it_has_and_leaves_no_process(running):
    players = players_of(running)
    assert len(players) == 2
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED
    assert "Interrupted. No difference found" in out
    assert "Traceback" not in err
    await_end(players)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_death_of_a_process_that_plays_is_our_failure_and_told_as_one(running):
    first, other = players_of(running)
    os.kill(first, signal.SIGKILL)
    _, err = running.communicate(timeout=60)
    assert running.returncode == ExitCode.FAILURE
    assert "a process that played matches died (exit code -9)" in err
    await_end({first, other})


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_players_do_not_outlive_a_command_that_was_killed(running):
    players = players_of(running)
    running.kill()
    running.communicate(timeout=60)
    await_end(players)
