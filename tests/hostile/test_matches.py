"""Attackers in whole matches: they alone are at fault, the record is true, and nothing of them is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.agents import never
from engine.outcome import Termination
from engine.record import BoardsContest, BotRef, DealSource, EntrantRef, make_spec, replay
from engine.referee import play_match
from engine.sandbox import launcher
from engine.sandbox.agent import sandbox_factory
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import local_prk
from tests.hostile.attempts import write_attempt
from tests.hostile.matrix import attempts_here
from tests.hostile.stage import LAUNCHERS, close_zygotes, open_files, source_in
from tests.hostile.test_verdicts import VERDICTS

pytestmark = [pytest.mark.sandbox, pytest.mark.exhaustive]

SHORT = TimeControl("short", 2000, 2000, 10, 60_000)
"""Enough to fill the memory that a bot has."""
IMPATIENT = TimeControl("impatient", 2000, 2000, 10, 2000)
"""For who only sleeps."""
NOT_HELD = ("ArgumentError", "AttributeError", "NameError", "SyntaxError", "TypeError")
"""What an attack comes to that is only written wrongly."""
TRACES = [Path("/tmp/arena-was-here"), Path("/dev/shm/x")]


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def level(request):
    """With namespaces, and without."""
    close_zygotes()
    yield request.param
    close_zygotes()


def play_against(source, level, folder):
    """The attacker and a bot that does nothing wrong, one board from both sides."""
    honest = source_in(folder / "honest", "well_behaved")
    entrants = [("Attacker", source), ("Honest", honest)]
    spec = make_spec(
        game="podkidnoe",
        entrants=[
            EntrantRef(name, (BotRef(bot.bot, bot.version, bot.wheel),)) for name, bot in entrants
        ],
        contest=BoardsContest(1),
        time_control=IMPATIENT if source.bot == "sleep" else SHORT,
        deals=DealSource(local_prk("hostile"), "local", reveal=True),
    )
    factory = sandbox_factory(LAUNCHERS[level])
    return play_match(spec, [(source,), (honest,)], factory, never)


def check_that_it_alone_is_at_fault(match, kind):
    outcome = match.record.outcome
    assert outcome.termination is kind
    assert [(fault.entrant, fault.kind) for fault in outcome.faults] == [(0, kind)]
    assert outcome.places == (2, 1)
    replay(match.record)


def check_that_nothing_is_left(level, folder):
    zygotes = LAUNCHERS[level]._zygotes().values()
    assert zygotes, "they wait for the next match"
    assert [launcher._children(zygote.pid) for zygote in zygotes] == [[] for _ in zygotes]
    assert [trace for trace in TRACES if trace.exists()] == []
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} <= {".py", ""}


@pytest.mark.parametrize(
    ("bot", "kind"), [row[:2] for row in VERDICTS], ids=[r[0] for r in VERDICTS]
)
def test_attacker_loses_and_the_rest_of_the_match_stands(tmp_path, level, bot, kind):
    source = source_in(tmp_path / "bot", bot)
    check_that_it_alone_is_at_fault(play_against(source, level, tmp_path), kind)
    check_that_nothing_is_left(level, tmp_path)


@pytest.mark.parametrize(
    "attempt", attempts_here(), ids=lambda attempt: f"{attempt.kind}: {attempt.name}"
)
def test_attempt_is_held_and_loses_the_match(tmp_path, level, attempt):
    source = write_attempt(tmp_path / ("0" * 64), attempt)
    match = play_against(source, level, tmp_path)
    if level == "landlock" and not attempt.holds_at_landlock:
        assert match.record.outcome.termination is Termination.COMPLETED
    else:
        check_that_it_alone_is_at_fault(match, attempt.fault)
        tracebacks = [log.log.traceback for log in match.logs if log.entrant == 0]
        assert not any(f"\n{error}" in text for error in NOT_HELD for text in tracebacks)
    check_that_nothing_is_left(level, tmp_path)


def test_descriptors_of_the_referee_do_not_grow_with_the_matches(tmp_path, level):
    source = source_in(tmp_path / "bot", "os_exit")
    play_against(source, level, tmp_path)
    before = open_files()
    for _ in range(5):
        play_against(source, level, tmp_path)
    assert open_files() == before
