"""Bots that attack, each with the verdict it must get, and nothing left of it afterwards."""

from __future__ import annotations

import pytest

from engine.agents import BotSource, Failure, Reply
from engine.outcome import Termination
from engine.sandbox.agent import _hide_places
from tests.hostile.stage import (
    GENEROUS,
    HERE,
    IMPATIENT,
    LAUNCHERS,
    TIGHT,
    first_question,
    make_agent,
    nothing_left_behind,
    perform,
    source_in,
)

pytestmark = pytest.mark.sandbox

CRASH, ILLEGAL, MEMORY = Termination.CRASH, Termination.ILLEGAL_ACTION, Termination.MEMORY
PROTOCOL, TIME = Termination.PROTOCOL, Termination.TIME

VERDICTS = [
    ("import_crash", CRASH, "raised ValueError while starting"),
    ("exit_at_import", CRASH, "its process ended (status 3)"),
    ("import_without_end", TIME, "used up its CPU time while starting"),
    ("memory_at_import", MEMORY, "ran out of memory while starting"),
    ("begin_crash", CRASH, "raised OSError while choosing an action"),
    ("act_crash", CRASH, "raised KeyError while choosing an action"),
    ("keyboard_interrupt", CRASH, "raised KeyboardInterrupt while choosing an action"),
    ("illegal_action", ILLEGAL, "chose bid 999, which is not legal here"),
    ("index_out_of_range", ILLEGAL, "chose an action that does not exist"),
    ("nonsense", PROTOCOL, "chose something of type list, which is no action of the game"),
    ("no_answer", PROTOCOL, "chose something of type NoneType, which is no action of the game"),
    # CPU and time
    ("sleep", TIME, "gave no answer within 1500 ms while choosing an action"),
    ("spin", TIME, "used up its CPU time while choosing an action"),
    ("regex", TIME, "used up its CPU time while choosing an action"),
    ("ignore_signals", TIME, "used up its CPU time while choosing an action"),
    ("segfault_caught", TIME, "used up its CPU time while choosing an action"),
    ("stop_itself", CRASH, "raised PermissionError while choosing an action"),
    # Ways to leave
    ("os_exit", CRASH, "its process ended (status 0)"),
    ("os_exit_137", CRASH, "its process ended (status 137, SIGKILL)"),
    ("segfault", CRASH, "its process ended (status 139, SIGSEGV)"),
    ("recursion", CRASH, "raised RecursionError while choosing an action"),
    ("c_recursion", CRASH, "its process ended (status 139, SIGSEGV)"),
    # Processes
    ("fork", CRASH, "raised PermissionError while choosing an action"),
    ("thread", CRASH, "raised RuntimeError while choosing an action"),
    ("execute", CRASH, "raised PermissionError while choosing an action"),
    ("kill_everyone", CRASH, "raised PermissionError while choosing an action"),
    # Network and files
    ("network", CRASH, "raised PermissionError while choosing an action"),
    ("abstract_socket", CRASH, "raised PermissionError while choosing an action"),
    ("write_file", CRASH, "raised PermissionError while choosing an action"),
    ("write_temporary_file", CRASH, "raised FileNotFoundError while choosing an action"),
    ("read_passwd", CRASH, "raised FileNotFoundError while choosing an action"),
    ("read_environment", CRASH, "raised FileNotFoundError while choosing an action"),
    ("read_engine", CRASH, "raised ModuleNotFoundError while choosing an action"),
    # Memory
    ("memory_in_one", MEMORY, "ran out of memory while choosing an action"),
    ("memory_list", MEMORY, "ran out of memory while choosing an action"),
    ("memory_file", CRASH, "raised PermissionError while choosing an action"),
    # What processes that never meet could tell each other through the kernel's caches
    ("evict_page", CRASH, "raised PermissionError while choosing an action"),
    ("page_out", CRASH, "raised PermissionError while choosing an action"),
    ("page_residency", CRASH, "raised PermissionError while choosing an action"),
    # Protocol
    ("close_channel", PROTOCOL, "closed its channel"),
    ("many_messages", PROTOCOL, "answered another turn"),
    ("long_message", PROTOCOL, "sent a message longer than 4096 bytes"),
    ("empty_message", PROTOCOL, "sent a message that is none of the protocol"),
    ("garbage_message", PROTOCOL, "sent a message that is none of the protocol"),
    ("nested_message", PROTOCOL, "sent a message that is none of the protocol"),
    ("huge_number", PROTOCOL, "sent a message that is none of the protocol"),
    ("wrong_turn", PROTOCOL, "answered another turn"),
    ("poisoned_text", CRASH, "raised something unnamed while choosing an action"),
]

AT_LANDLOCK = {
    "read_passwd": "raised PermissionError while choosing an action",
    "read_environment": "raised PermissionError while choosing an action",
}
"""Without namespaces the file is there, but may not be read."""

ALSO_BY_LANDLOCK = {
    # of each kind of attack one, and what is told otherwise there; the others are tried again at times
    *AT_LANDLOCK,
    "import_without_end",
    "act_crash",
    "illegal_action",
    "sleep",
    "spin",
    "segfault",
    "fork",
    "kill_everyone",
    "abstract_socket",
    "write_temporary_file",
    "memory_list",
    "evict_page",
    "close_channel",
    "garbage_message",
}
WHERE = [
    pytest.param(
        *row,
        level,
        marks=pytest.mark.exhaustive
        if level == "landlock" and row[0] not in ALSO_BY_LANDLOCK
        else (),
        id=f"{row[0]}-{level}",
    )
    for row in VERDICTS
    for level in ("bubblewrap", "landlock")
]

LIMITS = {"sleep": IMPATIENT, "c_recursion": GENEROUS}


@pytest.mark.parametrize(("bot", "kind", "detail", "level"), WHERE)
def test_attack_ends_as_its_own_fault_and_leaves_nothing(tmp_path, bot, kind, detail, level):
    source = source_in(tmp_path / "bot", bot)
    limits = LIMITS.get(bot, GENEROUS if kind is MEMORY else TIGHT)
    start = TIGHT if bot == "import_without_end" else GENEROUS
    before = sorted((tmp_path / "bot").rglob("*"))
    with nothing_left_behind():
        show = perform(make_agent(source, launcher=LAUNCHERS[level]), start=start, limits=limits)
    assert show.fault is not None
    assert show.fault.kind is kind
    assert show.fault.detail == (AT_LANDLOCK.get(bot, detail) if level == "landlock" else detail)
    assert sorted((tmp_path / "bot").rglob("*")) == before


def test_answer_that_lies_ready_before_the_question_is_a_violation(tmp_path):
    agent = make_agent(source_in(tmp_path, "pre_answer"))
    try:
        agent.start()
        assert isinstance(agent.wait_ready(TIGHT), int)
        agent._bot.resume()  # lets it get to its second message, however early it was stopped
        assert agent._bot._poll.poll(60_000)
        question = first_question()
        answer = agent.ask(question, question.legal, TIGHT, deal=0, turn=0, move=1)
    finally:
        agent.close()
    assert answer == Failure(PROTOCOL, "sent a message before it was asked")


@pytest.mark.parametrize(
    "bot",
    [
        "well_behaved",
        "flood_log",
        "control_characters",
        # What these two gain, which is nothing, is told by test_sandbox_memory.
        "remember_by_names",
        "remember_by_pages",
    ],
)
def test_bot_that_breaks_no_rule_gets_no_fault(tmp_path, bot):
    with nothing_left_behind():
        show = perform(make_agent(source_in(tmp_path, bot)))
    assert show.fault is None
    assert [type(answer) for answer in show.answers] == [Reply] * 3


def test_head_of_a_log_is_kept_and_its_cut_is_told(tmp_path):
    log = perform(make_agent(source_in(tmp_path, "flood_log"))).log
    assert log.truncated
    assert len(log.text) == 64 * 1024
    assert log.text.startswith("--- game 0, deal 0, action 0, move 1\nxxx")


def test_control_characters_of_a_log_are_spelled_out(tmp_path):
    log = perform(make_agent(source_in(tmp_path, "control_characters")), questions=1).log
    assert log.text == "--- game 0, deal 0, action 0, move 1\n\\x1b[2J<b>\\x00\\x9b\\u202e\n"
    assert not log.truncated


def test_traceback_stands_apart_and_shows_only_paths_inside(tmp_path):
    log = perform(make_agent(source_in(tmp_path, "act_crash"))).log
    assert log.traceback.endswith("KeyError: 'my table'\n")
    assert '"/bot/act_crash.py", line' in log.traceback
    assert str(tmp_path) not in log.traceback
    assert log.text == ""


def test_spelled_out_log_stays_within_its_bound(tmp_path):
    (tmp_path / "noisy.py").write_text(
        "from engine.sdk import hookimpl\nprint('\\x1b' * 60_000)\n"
        "@hookimpl\ndef make_strategy(game, ruleset, players): ...\n"
    )
    source = BotSource(
        bot="noisy", version=None, wheel=None, folder=str(tmp_path), entry_point="noisy"
    )
    log = perform(make_agent(source)).log
    assert log.truncated
    assert len(log.text) == 64 * 1024


def test_traceback_that_a_bot_invents_is_not_shown(tmp_path):
    bot = (HERE / "well_behaved.py").read_text()
    code = "import os\nos.write(4, b'Traceback (most recent call last): of somebody else')\n"
    source = source_in(tmp_path, "well_behaved")
    (tmp_path / "well_behaved.py").write_text(f"{code}{bot}")
    show = perform(make_agent(source))
    assert show.fault is None
    assert show.log.traceback == ""


def test_place_without_end_in_a_traceback_is_looked_through_at_once():
    """By the square of its length it would take the referee some ten minutes."""
    for endless in ("a" * 300_000, "a/" * 150_000, "/" * 300_000):
        assert _hide_places(f'File "/{endless}') == f'File "/{endless}'
        assert _hide_places(f'File "/{endless}/b.py", line 1') == 'File "<sandbox>/b.py", line 1'
