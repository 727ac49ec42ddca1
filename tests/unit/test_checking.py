"""What a bot must pass, with bots of our own that play in this process."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from pathlib import Path

import msgspec
import pytest

from engine import checking
from engine.agents import BotSource, InProcessAgent, Reply
from engine.checking import AcceptedGame, Conditions, check_bot, check_wheel
from engine.errors import InfrastructureError, SandboxUnavailableError, StarvedError, UsageError
from engine.games import GAMES
from engine.outcome import Fault, Termination
from engine.sdk.timecontrol import time_control

EVERYTHING = {
    "eighty": {
        "players": [4],
        "min_bid": [50, 60],
        "forced_shaker_bid": [False, True],
        "dead_tiles": ["dead"],
        "twin_winner": ["first", "last"],
        "scoring": ["points", "marks"],
        "nello": [True, False],
        "nello_doubles": ["high", "own_suit", "low"],
    },
    "podkidnoe": {
        "players": [2, 3, 4],
        "voluntary_pass": [True, False],
        "voluntary_draw": [True, False],
        "max_draws": [2, 1, None],
        "penalise_successful_draw": [True, False],
        "top_up": ["end_of_circuit", "off"],
        "empty_hand": ["skip", "top_up", "end_game"],
    },
}


def bot_in(folder, *, plays="True", act="return observation.legal[0]", begin="pass"):
    (folder / "checked.py").write_text(
        textwrap.dedent(
            """
            from engine.sdk import Strategy, hookimpl

            class Checked(Strategy):
                def begin_game(self, info):
                    self.info = info
                    {begin}
                def act(self, observation):
                    {act}

            @hookimpl
            def make_strategy(game, ruleset, players):
                return Checked() if {plays} else None
            """
        ).format(plays=plays, act=act, begin=begin)
    )
    return BotSource(
        bot="checked", version=None, wheel=None, folder=str(folder), entry_point="checked"
    )


def check(source, **options):
    return check_bot(source, trusted=True, **options)


def test_bot_that_plays_everything_is_accepted_for_everything(tmp_path):
    report = check(bot_in(tmp_path))
    assert report.reasons == ()
    assert report.verdict == "accepted"
    assert {game.game: game.options for game in report.games} == EVERYTHING


def test_bot_is_accepted_only_for_the_games_that_it_claims(tmp_path):
    report = check(bot_in(tmp_path, plays="game == 'podkidnoe'"))
    assert [game.game for game in report.games] == ["podkidnoe"]


def test_declined_number_of_players_is_not_accepted(tmp_path):
    report = check(bot_in(tmp_path, plays="game == 'podkidnoe' and players != 3"))
    assert report.games[0].options["players"] == [2, 4]


def test_declined_value_is_not_accepted(tmp_path):
    plays = "game == 'podkidnoe' and ruleset.max_draws is not None"
    report = check(bot_in(tmp_path, plays=plays))
    assert report.verdict == "accepted"
    assert report.games[0].options == EVERYTHING["podkidnoe"] | {"max_draws": [2, 1]}


def test_value_that_is_declined_at_one_table_is_not_accepted(tmp_path):
    plays = "game == 'podkidnoe' and (ruleset.top_up != 'off' or players == 2)"
    report = check(bot_in(tmp_path, plays=plays))
    assert report.games[0].options["top_up"] == ["end_of_circuit"]


def test_integer_options_are_tried_and_told_only_if_one_was_declined(tmp_path):
    plays = "game == 'eighty' and ruleset.target < 500 and ruleset.nello_value != 50"
    report = check(bot_in(tmp_path, plays=plays))
    assert report.verdict == "accepted"
    assert report.games[0].options == EVERYTHING["eighty"] | {
        "target": [250, 1],
        "nello_value": [80],
    }


@pytest.mark.parametrize("declines", ["OFTEN", "LATE"])
def test_bot_that_declines_now_and_crashes_then_is_rejected(tmp_path, declines):
    source = bot_in(tmp_path)
    (tmp_path / "checked.py").write_text(
        textwrap.dedent(
            f"""
            import builtins
            from engine.sdk import Strategy, hookimpl

            class Checked(Strategy):
                def act(self, observation):
                    return observation.legal[0]

            @hookimpl
            def make_strategy(game, ruleset, players):
                builtins.starts = getattr(builtins, "starts", -1) + 1
                if "{declines}" == "OFTEN" and builtins.starts % 2:
                    1 / 0
                return None if builtins.starts % 4 == 2 or "{declines}" == "OFTEN" else Checked()
            """
        )
    )
    try:
        report = check(source)
    finally:
        del builtins.starts
    assert report.verdict == "rejected"
    words = "raised ZeroDivisionError" if declines == "OFTEN" else "does not play"
    assert any(words in reason for reason in report.reasons)


def test_log_of_a_bot_that_declines_is_kept(tmp_path):
    report = check(bot_in(tmp_path, plays="print('not for me')"))
    assert "not for me" in report.log


def test_bot_that_plays_no_game_is_rejected(tmp_path):
    report = check(bot_in(tmp_path, plays="False"))
    assert report.verdict == "rejected"
    assert report.reasons == (
        "it plays no game: make_strategy answered None for eighty and podkidnoe",
    )


FAULTS = [
    (
        "on one seat",
        "return 1/0 if observation.seat == 3 else observation.legal[0]",
        ", seat 3: it raised ZeroDivisionError",
    ),
    (
        "an illegal action",
        "return type(observation.legal[0])",
        "which is no action of the game (protocol)",
    ),
    (
        "at one table",
        "return 1/0 if len(self.info.players) == 3 else observation.legal[0]",
        "Podkidnoe by the default rules at 3 seats, seat ",
    ),
    (
        "by one rule",
        "return 1/0 if getattr(self.info.ruleset, 'max_draws', 2) is None else observation.legal[0]",
        "Podkidnoe by max_draws=null at 2 seats, seat ",
    ),
    (
        "by the least value of an integer",
        "return 1/0 if getattr(self.info.ruleset, 'target', 2) == 1 else observation.legal[0]",
        "Eighty by target=1 at 4 seats, seat ",
    ),
    (
        "by one rule of Eighty",
        "return 1/0 if getattr(self.info.ruleset, 'twin_winner', '') == 'last' else observation.legal[0]",
        "Eighty by twin_winner=last at 4 seats, seat ",
    ),
    ("no answer", "pass", "chose something of type NoneType"),
]


@pytest.mark.parametrize(
    ("act", "words"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS]
)
def test_fault_rejects_and_says_where_and_how_to_see_it_again(tmp_path, act, words):
    report = check(bot_in(tmp_path, act=act))
    assert report.verdict == "rejected"
    assert report.games == ()
    assert any(words in reason for reason in report.reasons)
    assert all("plays the same deals again" in reason for reason in report.reasons)
    assert "=== " in report.log


def test_log_shows_the_traceback_and_what_the_bot_saw(tmp_path):
    report = check(bot_in(tmp_path, act="print('my hand'); return {}['x']"))
    assert "my hand" in report.log
    assert "KeyError: 'x'" in report.log
    assert "random_seed: " in report.log


def test_bot_that_cannot_start_is_told_once(tmp_path):
    source = bot_in(tmp_path)
    (tmp_path / "checked.py").write_text("import nothing_of_this_name\n")
    report = check(source)
    assert len(report.reasons) == 1
    assert "it raised ModuleNotFoundError while starting (crash)" in report.reasons[0]


def test_reasons_are_few_and_the_log_is_bounded(tmp_path):
    report = check(bot_in(tmp_path, act="print('x' * 100_000); return 1/0"))
    assert len(report.reasons) == 3
    assert len(report.log) < checking.LOG_CHARACTERS + 100


def test_same_check_gives_the_same_report(tmp_path):
    source = bot_in(tmp_path, act="print(observation.hand); return observation.legal[-1]")
    assert check(source) == check(source)


def test_too_slow_a_bot_is_rejected(tmp_path):
    source = bot_in(tmp_path, act="import time; time.sleep(0.01); return observation.legal[0]")
    report = check(source, seconds=0.05)
    assert report.verdict == "rejected"
    assert re.match(r"it is too slow: after \d+ seconds \d+ of \d+ trials", report.reasons[0])


def test_lost_lease_ends_the_check(tmp_path):
    def lose():
        raise InfrastructureError("lost")

    with pytest.raises(InfrastructureError, match="lost"):
        check(bot_in(tmp_path), keep_alive=lose)


def be_starved(*_, **__):
    raise StarvedError("too busy")


def starving_factory(*void, starve=be_starved):
    """Agents of this process, of which those with these numbers are starved when they are asked."""
    made = iter(range(10**6))

    def make(source, *, game, ruleset, players, **_):
        agent = InProcessAgent(source, game=game, ruleset=ruleset, players=players)
        if next(made) in void:
            agent.ask = starve
        return agent

    return make


def test_starved_trial_is_played_again_and_the_report_is_the_same(tmp_path):
    source = bot_in(tmp_path, act="print(observation.hand); return observation.legal[-1]")
    heard, seen = [], []
    report = check_bot(
        source,
        factory=starving_factory(0, 5),
        tell_void=heard.append,
        progress=lambda *done: seen.append(done),
    )
    assert report == check(source)
    assert len(heard) == 2
    assert seen[-1] == (len(seen), len(seen))


def test_time_of_a_starved_trial_is_not_the_bots(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(checking.time, "monotonic", lambda: clock[0])

    def starve(*_, **__):
        clock[0] += 80
        be_starved()

    factory = starving_factory(0, 5, starve=starve)
    report = check_bot(bot_in(tmp_path), factory=factory, seconds=60)
    assert clock[0] == 160
    assert report.verdict == "accepted"


def test_check_ends_at_its_cap_also_if_all_that_takes_long_is_void(tmp_path, monkeypatch):
    clock, heard = [0.0], []
    monkeypatch.setattr(checking.time, "monotonic", lambda: clock[0])

    def starve(*_, **__):
        clock[0] += 130
        be_starved()

    factory = starving_factory(*range(100), starve=starve)
    with pytest.raises(InfrastructureError, match=r"too busy: after 390 seconds 0 of \d+ trials"):
        check_bot(bot_in(tmp_path), factory=factory, seconds=60, tell_void=heard.append)
    assert len(heard) == 3


@pytest.mark.parametrize(
    ("slowdown", "verdict"),
    [
        (1.0, "rejected"),  # nothing else ran: the bot is slow
        (3.0, "accepted"),  # it could have been three times as fast
        (100.0, "rejected"),  # it had six times as long
    ],
)
def test_check_on_a_busy_machine_may_take_longer(tmp_path, monkeypatch, slowdown, verdict):
    clock = [0.0]
    monkeypatch.setattr(checking.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(checking.OwnPace, "slowdown", lambda _: slowdown)

    def let_time_pass():
        clock[0] = min(clock[0] + 60, 150 if slowdown < 100 else 1000)

    report = check(bot_in(tmp_path), keep_alive=let_time_pass, seconds=60)
    assert report.verdict == verdict


@pytest.mark.parametrize(
    ("slept", "verdict"),
    [
        (0.0, "accepted"),  # three minutes for what could have taken one
        (10.0, "accepted"),  # 160 seconds: ten, and three times fifty
        (20.0, "rejected"),  # 140
        (90.0, "rejected"),  # it slept for more than it had
    ],
)
def test_sleep_takes_no_longer_on_a_busy_machine(tmp_path, monkeypatch, slept, verdict):
    clock = [0.0]
    monkeypatch.setattr(checking.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(checking.OwnPace, "slowdown", lambda _: 3.0)
    sleepers = []

    def idle_seconds(agent):
        sleepers.append(agent)
        return slept if agent is sleepers[0] else 0.0

    monkeypatch.setattr(InProcessAgent, "idle_seconds", idle_seconds)

    def let_time_pass():
        clock[0] = min(clock[0] + 60, 150)

    report = check(bot_in(tmp_path), keep_alive=let_time_pass, seconds=60)
    assert report.verdict == verdict


VERBS = "was|raised|ran|used|gave|chose|sent|answered|does|closed|wrote"


def test_every_detail_of_a_fault_makes_a_sentence():
    engine = Path(checking.__file__).parent
    details = [
        "".join(part.value if isinstance(part, ast.Constant) else "N" for part in parts)
        for name in ("agents.py", "referee.py", "sandbox/agent.py")
        for call in ast.walk(ast.parse((engine / name).read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Failure"
        for parts in [
            call.args[1].values if isinstance(call.args[1], ast.JoinedStr) else [call.args[1]]
        ]
    ]
    assert len(details) > 10
    for detail in details:
        if detail != "N":  # a variable: what it holds stands beside it
            told = Fault(0, 0, Termination.CRASH, detail).tell()
            assert re.match(rf"it ({VERBS}) |its process ended ", told), told


def test_check_that_is_starved_without_end_says_nothing_of_the_bot(tmp_path):
    with pytest.raises(StarvedError):
        check_bot(bot_in(tmp_path), factory=starving_factory(*range(10**4)))


def test_machine_that_cannot_hold_bots_says_nothing_of_the_bot(tmp_path, monkeypatch):
    def refuse():
        raise SandboxUnavailableError(["no walls"])

    monkeypatch.setattr("engine.sandbox.agent.sandbox_factory", refuse)
    with pytest.raises(SandboxUnavailableError, match="no walls"):
        check_bot(bot_in(tmp_path))


def test_progress_counts_up_to_what_was_planned(tmp_path):
    seen = []
    check(bot_in(tmp_path), progress=lambda done, planned: seen.append((done, planned)))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1] == (len(seen), len(seen))


def test_every_seat_is_played_by_the_default_rules(tmp_path):
    act = "print('seat', observation.seat, len(self.info.players)); return observation.legal[0]"
    log = check(bot_in(tmp_path, act=act)).log
    for game in GAMES.values():
        for entrants in game.entrant_counts:
            seats = game.seats(entrants)
            title = f"=== {game.title} by the default rules at {seats} seats, seat "
            assert all(f"{title}{seat}\n" in log for seat in range(seats))


def test_opponents_choose_every_legal_action_now_and_then():
    agent = checking._RandomAgent()
    legal = "abcd"
    answers = {agent.ask(None, legal, None, deal=0, turn=0, move=1).index for _ in range(200)}
    assert answers == {0, 1, 2, 3}
    assert isinstance(agent.ask(None, legal, None, deal=0, turn=0, move=1), Reply)


def test_report_is_json(tmp_path):
    report = check(bot_in(tmp_path, plays="game == 'eighty'"))
    written = msgspec.json.decode(msgspec.json.encode(report))
    assert set(written) == {"verdict", "reasons", "games", "log", "faulty"}
    assert written["games"] == [{"game": "eighty", "options": EVERYTHING["eighty"]}]
    assert report.games == (AcceptedGame("eighty", EVERYTHING["eighty"]),)


def test_file_that_is_no_wheel_is_rejected_with_the_reason(tmp_path):
    report = check_wheel(b"hello", tmp_path, trusted=True)
    assert report.verdict == "rejected"
    assert "no wheel" in report.reasons[0]


def under(game="eighty", seats=4, control="fast", **ruleset):
    return Conditions(game=game, seats=seats, ruleset=ruleset, time_control=time_control(control))


def test_trial_under_conditions_plays_them_on_every_seat_and_nothing_else(tmp_path):
    told = "f'{info.seat} {info.ruleset.target} {info.time_control.name}\\n'"
    seen = f"with open(__file__ + '.seen', 'a') as file: file.write({told})"
    report = check(bot_in(tmp_path, begin=seen), only=under(target=300))
    assert (report.verdict, report.games) == ("accepted", ())
    lines = (tmp_path / "checked.py.seen").read_text().splitlines()
    assert sorted(lines) == [f"{seat} 300 fast" for seat in range(4)]


def test_trial_that_fails_says_under_which_conditions_and_how_to_see_it_again(tmp_path):
    act = "return 1 // (self.info.ruleset.target - 300) and None or observation.legal[0]"
    source = bot_in(tmp_path, act=act)
    assert check(source, only=under(target=299)).verdict == "accepted"
    report = check(source, only=under(target=300))
    assert report.verdict == "rejected"
    (reason,) = report.reasons
    assert reason.startswith("Eighty by target=300 at 4 seats in the time control fast, seat 0")
    assert "arena check --game eighty --seats 4 --rule target=300 --time-control fast" in reason
    assert "ZeroDivisionError" in report.log


def test_trial_is_failed_by_a_bot_that_declines(tmp_path):
    source = bot_in(tmp_path, plays="players != 3")
    (reason,) = check(source, only=under("podkidnoe", 3)).reasons
    assert "at 3 seats" in reason
    assert "answered None" in reason


def test_trial_is_failed_by_a_bot_that_the_clock_stops(tmp_path):
    act = """__import__("time").sleep(0.05); return observation.legal[0]"""
    (reason,) = check(bot_in(tmp_path, act=act), only=under(), seconds=0.1).reasons
    assert "too slow" in reason


def test_trial_plays_a_ruleset_of_which_one_default_hangs_on_another_option(tmp_path):
    act = "return 1 // (self.info.ruleset.target - 250) and None or observation.legal[0]"
    report = check(bot_in(tmp_path, act=act), only=under(scoring="marks", target=250))
    assert "scoring=marks" in report.reasons[0]


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (under("chess"), "no game 'chess'"),  # unknown game
        (under(seats=3), "no table of 3 seats"),  # Eighty has four seats
        (under(colour="red"), "colour"),  # no such option
    ],
)
def test_trial_under_impossible_conditions_is_refused(tmp_path, conditions, told):
    with pytest.raises(UsageError, match=told):
        check(bot_in(tmp_path), only=conditions)


@pytest.mark.parametrize(
    ("conditions", "covered"),
    [
        (under(control="standard"), True),  # the check's own
        (under(control="standard", target=250), True),  # the default, spelled out
        (under("podkidnoe", 3, control="standard"), True),  # any table
        (under(control="fast"), False),  # less time
        (under(control="long"), False),  # more, and a bot may want all of it
        (under(control="standard", target=300), False),  # rules that the check does not try
    ],
)
def test_only_default_rules_in_the_standard_time_are_checked_anyhow(conditions, covered):
    assert conditions.are_checked_anyhow is covered
