"""The agent that plays a trusted bot in this process."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from engine.agents import (
    LONGEST_LOG,
    LONGEST_TRACEBACK,
    BotSource,
    Declined,
    Failure,
    InProcessAgent,
    Limits,
    Reply,
    in_process_factory,
)
from engine.errors import PluginError
from engine.games import get_game
from engine.outcome import Termination
from engine.record import BoardsContest, GamesContest, replay
from engine.referee import PlayedMatch, play_match
from engine.sdk import GameInfo
from engine.sdk.podkidnoe import Draw
from engine.sdk.timecontrol import time_control
from engine.shuffle import Stream
from tests.match_fakes import entrant, spec_of

GAME = get_game("podkidnoe")
RULES = GAME.make_ruleset()
AMPLE = Limits(60_000_000, 600_000)

HEAD = """
from engine.sdk import Strategy, hookimpl
"""
BOT = """
@hookimpl
def make_strategy(game, ruleset, players):
    return Bot()
"""


def write_bot(folder: Path, body: str, *, name: str = "mybot", tail: str = BOT) -> BotSource:
    """A one-file bot whose class Bot is `body`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(HEAD + textwrap.dedent(body) + tail)
    return source_at(folder, name)


def source_at(folder: Path, entry_point: str = "mybot", bot: str = "mybot") -> BotSource:
    return BotSource(
        bot=bot, version="1.0", wheel=None, folder=str(folder), entry_point=entry_point
    )


def make_agent(source: BotSource) -> InProcessAgent:
    agent = in_process_factory(
        source,
        game="podkidnoe",
        ruleset=RULES,
        players=2,
        time_control=time_control("fast"),
        keep_alive=lambda: None,
    )
    agent.start()
    return agent


INFO = GameInfo(
    game="podkidnoe",
    ruleset=RULES,
    seat=0,
    players=("A", "B"),
    time_control=time_control("fast"),
    random_seed=1,
    number=0,
)
BOARD = GAME.deal(Stream(bytes(32)), RULES, 2, first=0)
OBSERVATION = GAME.start(RULES, BOARD).observe(500)


def ask(agent: InProcessAgent, limits: Limits = AMPLE) -> Reply | Failure:
    return agent.ask(OBSERVATION, OBSERVATION.legal, limits, deal=0, turn=4, move=2)


def first_answer(source: BotSource) -> Any:
    """What comes of starting a bot and asking it once."""
    agent = make_agent(source)
    ready = agent.wait_ready(AMPLE)
    if not isinstance(ready, int):
        return ready
    agent.begin_game(INFO)
    return ask(agent)


LAST = """
class Bot(Strategy):
    def act(self, observation):
        return observation.legal[-1]
"""


def test_a_bot_is_asked_and_its_choice_found_among_the_legal_ones(tmp_path):
    answer = first_answer(write_bot(tmp_path, LAST))
    assert isinstance(answer, Reply)
    assert answer.index == len(OBSERVATION.legal) - 1
    assert answer.cpu_us >= 0


def test_an_entry_point_may_name_an_attribute(tmp_path):
    (tmp_path / "mybot.py").write_text(
        HEAD + textwrap.dedent(LAST) + "class plugin:\n    class inner:\n"
        "        @staticmethod\n        @hookimpl\n"
        "        def make_strategy(game, ruleset, players):\n            return Bot()\n"
    )
    assert isinstance(first_answer(source_at(tmp_path, "mybot:plugin.inner")), Reply)


@pytest.mark.parametrize(
    ("body", "kind", "detail"),
    [
        ("    raise ValueError('odd')", "crash", "raised ValueError while choosing an action"),
        ("    return self.act(observation)", "crash", "raised RecursionError while choosing an action"),
        ("    raise MemoryError", "memory", "ran out of memory while choosing an action"),
        ("    return [0] * 10**18", "memory", "ran out of memory while choosing an action"),
        ("    raise SystemExit(3)", "crash", "raised SystemExit while choosing an action"),
        ("    import no_such_module", "crash", "raised ModuleNotFoundError while choosing an action"),
        ("    raise type('', (Exception,), {})", "crash",
         "raised something unnamed while choosing an action"),
        ("    return None", "protocol", "chose something of type NoneType, which is no action of the game"),
        ("    return 0", "protocol", "chose something of type int, which is no action of the game"),
        ("    return str(observation.legal[0])", "protocol",
         "chose something of type str, which is no action of the game"),
        ("    from engine.sdk.podkidnoe import End\n        return End()", "illegal_action",
         "chose end, which is not legal here"),
        ("    from engine.sdk.eighty import Bid\n        return Bid(50)", "illegal_action",
         "chose bid 50, which is not legal here"),
    ],
)  # fmt: skip
def test_what_a_bot_does_wrong_is_a_failure_in_one_line(tmp_path, body, kind, detail):
    source = write_bot(
        tmp_path, f"class Bot(Strategy):\n    def act(self, observation):\n    {body}\n"
    )
    failure = first_answer(source)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.detail) == (kind, detail)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("1 +", "raised SyntaxError while starting"),
        ("import no_such_module", "raised ModuleNotFoundError while starting"),
        ("raise SystemExit", "raised SystemExit while starting"),
        ("x = 1", "raised PluginError while starting"),  # no hook at all
        ("from engine.sdk import hookimpl\n@hookimpl\ndef make_strategy(colour): ...\n",
         "raised PluginValidationError while starting"),  # the hook has no such argument
        ("from engine.sdk import hookimpl\n@hookimpl\ndef another(game): ...\n",
         "raised PluginValidationError while starting"),  # there is no such hook
        ("from engine.sdk import hookimpl\n@hookimpl\ndef make_strategy(game): return 1\n",
         "raised PluginError while starting"),  # that is no strategy
    ],
)  # fmt: skip
def test_a_bot_that_cannot_start_has_crashed(tmp_path, text, detail):
    (tmp_path / "mybot.py").write_text(text)
    failure = first_answer(source_at(tmp_path))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.detail) == (Termination.CRASH, detail)


def test_a_module_that_is_not_there_is_a_crash_and_the_log_says_which(tmp_path):
    agent = make_agent(source_at(tmp_path, "absent"))
    assert isinstance(agent.wait_ready(AMPLE), Failure)
    assert "absent" in agent.close().traceback


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(PluginError, match="folder"):
        make_agent(source_at(tmp_path / "absent"))


def test_a_bot_that_is_changed_is_read_anew(tmp_path):
    assert isinstance(first_answer(write_bot(tmp_path, LAST)), Reply)
    changed = first_answer(write_bot(tmp_path, LAST.replace("observation.legal[-1]", "'-1'")))
    assert isinstance(changed, Failure)


def test_a_bot_may_decline(tmp_path):
    source = write_bot(tmp_path, LAST, tail=BOT.replace("return Bot()", "return None"))
    assert isinstance(first_answer(source), Declined)


def test_a_game_that_cannot_begin_fails_at_the_first_question(tmp_path):
    source = write_bot(
        tmp_path,
        """
        class Bot(Strategy):
            def begin_game(self, info):
                raise KeyError(info.number)
            def act(self, observation):
                return observation.legal[0]
        """,
    )
    agent = make_agent(source)
    assert isinstance(agent.wait_ready(AMPLE), int)
    agent.begin_game(INFO)
    agent.begin_game(INFO)
    failure = ask(agent)
    assert isinstance(failure, Failure)
    assert failure.detail == "raised KeyError while choosing an action"
    assert "KeyError: 0" in agent.close().traceback


BUSY = """
def work():
    for _ in range(200_000):
        pass

class Bot(Strategy):
    def begin_game(self, info):
        work()
    def act(self, observation):
        return observation.legal[0]
"""


def test_the_cost_of_beginning_a_game_counts_for_the_first_answer(tmp_path):
    agent = make_agent(write_bot(tmp_path, BUSY))
    agent.wait_ready(AMPLE)
    agent.begin_game(INFO)
    first, second = ask(agent), ask(agent)
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert first.cpu_us > second.cpu_us


def test_who_spends_more_than_his_clock_is_out(tmp_path):
    agent = make_agent(write_bot(tmp_path, BUSY))
    agent.wait_ready(AMPLE)
    agent.begin_game(INFO)
    failure = ask(agent, Limits(1, 600_000))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.detail) == (
        "time",
        "used up its CPU time while choosing an action",
    )
    assert failure.cpu_us > 1


def test_who_takes_too_long_to_start_is_out(tmp_path):
    failure = make_agent(write_bot(tmp_path, LAST)).wait_ready(Limits(1, 600_000))
    assert isinstance(failure, Failure)
    assert failure.detail == "used up its CPU time while starting"


def test_who_sleeps_past_the_wall_cap_is_out(tmp_path):
    source = write_bot(
        tmp_path,
        """
        import time
        class Bot(Strategy):
            def act(self, observation):
                time.sleep(0.05)
                return observation.legal[0]
        """,
    )
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    failure = ask(agent, Limits(60_000_000, 10))
    assert isinstance(failure, Failure)
    assert failure.detail == "gave no answer within 10 ms while choosing an action"


def test_who_sleeps_a_little_before_each_answer_is_out_when_it_was_too_much_in_all(tmp_path):
    source = write_bot(
        tmp_path,
        """
        import time
        class Bot(Strategy):
            def act(self, observation):
                time.sleep(0.05)
                return observation.legal[0]
        """,
    )
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    answers = [ask(agent, Limits(60_000_000, 10_000)) for _ in range(2)]
    assert all(isinstance(answer, Reply) for answer in answers)
    limits = Limits(60_000_000, 400)
    # A busy machine is to blame for a part of it: then it takes a few questions more.
    answers = (ask(agent, limits) for _ in range(100))
    failure = next(answer for answer in answers if isinstance(answer, Failure))
    assert failure.detail == "was idle for 400 ms in all, at last while choosing an action"


def test_who_computes_longer_than_he_may_idle_plays_on(tmp_path):
    source = write_bot(
        tmp_path,
        """
        import time
        class Bot(Strategy):
            def act(self, observation):
                end = time.thread_time() + 0.3
                while time.thread_time() < end: pass
                return observation.legal[0]
        """,
    )
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    assert isinstance(ask(agent, Limits(60_000_000, 200)), Reply)


# --- what it prints --------------------------------------------------------------------------------------------


def test_what_a_bot_prints_is_its_log_with_the_turn_before_it(tmp_path, capsys):
    source = write_bot(
        tmp_path,
        """
        import sys
        print("hello")
        class Bot(Strategy):
            def act(self, observation):
                print("I hold", *observation.hand)
                print("hm", file=sys.stderr)
                return observation.legal[0]
        """,
    )
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    agent.begin_game(INFO)
    ask(agent)
    hand = " ".join(map(str, OBSERVATION.hand))
    log = agent.close()
    assert (
        log.text == f"--- start\nhello\n--- game 0, deal 0, action 4, move 2\nI hold {hand}\nhm\n"
    )
    assert not log.truncated
    assert agent.close() == log, "closing again changes nothing"
    assert capsys.readouterr() == ("", "")


def test_of_a_long_log_the_head_is_kept(tmp_path):
    source = write_bot(tmp_path, "print('first')\nfor _ in range(9000): print('x' * 20)\n" + LAST)
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    log = agent.close()
    assert log.truncated
    assert len(log.text) == LONGEST_LOG
    assert log.text.startswith("--- start\nfirst\n")


def test_a_crash_leaves_its_traceback_however_long_it_would_be(tmp_path):
    source = write_bot(
        tmp_path,
        """
        class Bot(Strategy):
            def act(self, observation):
                raise ValueError("x" * 100_000 + "the cause")
        """,
    )
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    ask(agent)
    text = agent.close().traceback
    assert text.endswith("the cause\n")
    assert len(text) <= LONGEST_TRACEBACK


def test_an_exception_that_cannot_be_printed_is_a_crash_too(tmp_path):
    source = write_bot(
        tmp_path,
        """
        class Bot(Strategy):
            def act(self, observation):
                class Silent(Exception):
                    def __str__(self):
                        raise ValueError
                raise Silent
        """,
    )
    failure = first_answer(source)
    assert isinstance(failure, Failure)
    assert failure.detail == "raised Silent while choosing an action"


# --- modules of its own -----------------------------------------------------------------------------------------


REMEMBER = """
    from mybot import memory
    class Bot(Strategy):
        def act(self, observation):
            import mybot.late
            from mybot import memory as again
            assert again is memory
            memory.seen.append(observation)
            print(len(memory.seen), mybot.late.VERSION)
            return observation.legal[0]
"""


def write_package(folder: Path, version: int) -> BotSource:
    package = folder / "mybot"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "memory.py").write_text("seen = []\n")
    (package / "late.py").write_text(f"VERSION = {version}\n")
    (package / "plugin.py").write_text(HEAD + textwrap.dedent(REMEMBER) + BOT)
    return source_at(folder, "mybot.plugin")


def test_two_versions_of_one_package_meet_and_neither_knows_of_the_other(tmp_path):
    before = (set(sys.modules), list(sys.path))
    old = make_agent(write_package(tmp_path / "old", 1))
    new = make_agent(write_package(tmp_path / "new", 2))
    for agent in (old, new):
        assert isinstance(agent.wait_ready(AMPLE), int)
        agent.begin_game(INFO)
    for agent in (old, new, old):
        assert isinstance(ask(agent), Reply)
    numbers = [line for line in old.close().text.splitlines() if "---" not in line]
    assert numbers == ["1 1", "2 1"]
    numbers = [line for line in new.close().text.splitlines() if "---" not in line]
    assert numbers == ["1 2"]
    assert (set(sys.modules) - before[0], sys.path) == (set(), before[1])


def test_each_agent_imports_its_bot_anew(tmp_path):
    source = write_package(tmp_path, 1)
    for _ in range(2):
        agent = make_agent(source)
        agent.wait_ready(AMPLE)
        agent.begin_game(INFO)
        ask(agent)
        assert "1 1" in agent.close().text


def test_a_module_of_this_process_with_the_bots_name_stays_what_it_was(tmp_path, monkeypatch):
    import json

    source = write_bot(tmp_path, LAST, name="json")
    assert isinstance(first_answer(source_at(tmp_path, source.entry_point)), Reply)
    assert sys.modules["json"] is json


def test_importing_a_bot_leaves_no_file_behind(tmp_path):
    source = write_package(tmp_path, 1)
    first_answer(source)
    assert not list(tmp_path.rglob("*.pyc"))


# --- memory and mirrors -----------------------------------------------------------------------------------------


MIRROR = """
BOARDS = {}

class Bot(Strategy):
    def begin_game(self, info):
        self.seat = info.seat

    def act(self, observation):
        key = KEY(observation)
        met_from_the_other_side = any(seat != self.seat for seat in BOARDS.get(key, ()))
        BOARDS.setdefault(key, set()).add(self.seat)
        print("known" if met_from_the_other_side else "new")
        return observation.legal[-1 if met_from_the_other_side else 0]
"""


def play_mirrored(folder: Path, contest: Any, *, remembers: bool) -> PlayedMatch:
    key = "lambda o: o.starter" if remembers else "lambda o: object()"
    bots = [write_bot(folder / str(i), MIRROR.replace("KEY", f"({key})")) for i in range(2)]
    spec = spec_of(
        "podkidnoe", contest, entrants=[entrant("mybot", name="A"), entrant("mybot", name="B")]
    )
    return play_match(spec, [[bot] for bot in bots], in_process_factory)


def test_a_bot_that_remembers_boards_gains_nothing_from_mirrored_play(tmp_path):
    remembering = play_mirrored(tmp_path / "a", BoardsContest(6), remembers=True)
    forgetting = play_mirrored(tmp_path / "b", BoardsContest(6), remembers=False)
    assert not any("known" in log.log.text for log in remembering.logs)
    assert any("new" in log.log.text for log in remembering.logs)
    assert remembering.record.digest == forgetting.record.digest
    replay(remembering.record)


def test_twins_of_one_bot_on_a_side_do_not_share_their_memory(tmp_path):
    source = write_bot(
        tmp_path,
        """
        SEATS = set()
        class Bot(Strategy):
            def begin_game(self, info):
                SEATS.add(info.seat)
                print(sorted(SEATS))
            def act(self, observation):
                return observation.legal[0]
        """,
    )
    spec = spec_of("eighty", GamesContest(2), entrants=[entrant("mybot"), entrant("mybot")],
                   options={"target": 1})  # fmt: skip
    match = play_match(spec, [[source], [source]], in_process_factory)
    assert [log.log.text for log in match.logs] == [
        f"--- game 0 begins\n[{log.seat}]\n" for log in match.logs
    ]


def test_a_whole_match_ends_at_the_first_illegal_choice(tmp_path):
    """A whole match of a bot that draws always: at some point it may not."""
    source = write_bot(
        tmp_path,
        """
        from engine.sdk.podkidnoe import Draw
        class Bot(Strategy):
            def act(self, observation):
                return Draw()
        """,
    )
    spec = spec_of("podkidnoe", entrants=[entrant("mybot"), entrant("mybot")])
    match = play_match(spec, [[source], [source]], in_process_factory)
    fault = match.record.outcome.faults[0]
    assert (fault.kind, fault.detail) == (
        "illegal_action",
        f"chose {Draw()}, which is not legal here",
    )
    replay(match.record)


@pytest.mark.parametrize("error", ["SystemExit(0)", "GeneratorExit", "KeyboardInterrupt",
                                   "BaseExceptionGroup('', [SystemExit(0)])"])  # fmt: skip
@pytest.mark.parametrize("method", ["__eq__", "__repr__"])
def test_an_answer_that_raises_when_it_is_looked_at_is_a_crash(tmp_path, error, method):
    source = write_bot(
        tmp_path,
        f"""
        class Odd:
            def {method}(self, *others):
                raise {error}
        class Bot(Strategy):
            def act(self, observation):
                return Odd()
        """,
    )
    failure = first_answer(source)
    assert isinstance(failure, Failure)
    name = error.partition("(")[0]
    assert failure.detail == f"raised {name} while choosing an action"


STRANGE_TEXT = """
class Text(str):
    def __getitem__(self, key):
        return 7
class Odd(Action):
    def __str__(self):
        return Text("bid 7")
"""


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ("class Odd(Action):\n    def __str__(self):\n        raise SystemExit(0)",
         "raised SystemExit while choosing an action"),
        ("class Odd(Action):\n    def __str__(self):\n        return 'play /etc/passwd'",
         "chose an action that is not legal here"),
        (STRANGE_TEXT, "chose bid 7, which is not legal here"),
        ("class Meta(type):\n    __name__ = property(lambda cls: 1 / 0)\nclass Odd(metaclass=Meta): pass",
         "chose something of type Odd, which is no action of the game"),
    ],
)  # fmt: skip
def test_an_answer_cannot_say_what_it_likes_of_itself(tmp_path, answer, detail):
    source = write_bot(
        tmp_path,
        "from engine.sdk import Action\n"
        + answer
        + "\nclass Bot(Strategy):\n    def act(self, observation):\n        return Odd()\n",
    )
    failure = first_answer(source)
    assert isinstance(failure, Failure)
    assert failure.detail == detail


def test_an_exception_whose_text_ends_the_process_is_a_crash_too(tmp_path):
    source = write_bot(
        tmp_path,
        """
        class Odd(Exception):
            def __str__(self):
                raise SystemExit(0)
        class Bot(Strategy):
            def act(self, observation):
                raise Odd
        """,
    )
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    agent.begin_game(INFO)
    assert ask(agent) == Failure(Termination.CRASH, "raised Odd while choosing an action", ANY)
    assert "Odd" in agent.close().traceback


@pytest.mark.parametrize("swallowed", ["BaseException", "ValueError"])
def test_ctrl_c_is_the_users_whatever_a_bot_makes_of_it(tmp_path, swallowed):
    source = write_bot(
        tmp_path,
        f"""
        import signal
        class Bot(Strategy):
            def act(self, observation):
                try:
                    signal.raise_signal(signal.SIGINT)
                except {swallowed}:
                    pass
                return observation.legal[0]
        """,
    )
    with pytest.raises(KeyboardInterrupt):
        first_answer(source)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_control_characters_of_a_log_are_spelled_out_within_its_bound(tmp_path):
    source = write_bot(
        tmp_path,
        """
        class Bot(Strategy):
            def act(self, observation):
                print("\\x1b" * 60_000)
                return observation.legal[0]
        """,
    )
    agent = make_agent(source)
    agent.wait_ready(AMPLE)
    agent.begin_game(INFO)
    ask(agent)
    log = agent.close()
    assert log.truncated
    assert len(log.text) == LONGEST_LOG
    assert "\x1b" not in log.text
    assert "\\x1b\\x1b" in log.text
