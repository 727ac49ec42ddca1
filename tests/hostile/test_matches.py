"""Attackers in whole matches: they alone are at fault, the record is true, and nothing of them is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.outcome import Termination
from tests.hostile.aftermath import living, load_of, play_against, traces, zygotes_of
from tests.hostile.attempts import MARK, attempts_here, write_attempt
from tests.hostile.stage import GENEROUS, LAUNCHERS, close_zygotes, make_agent, source_in
from tests.hostile.test_verdicts import VERDICTS

pytestmark = [pytest.mark.sandbox, pytest.mark.exhaustive]

NOT_HELD = ("ArgumentError", "AttributeError", "NameError", "SyntaxError", "TypeError")
"""What an attack comes to that is only written wrongly."""


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def level(request):
    """With namespaces, and without."""
    close_zygotes()
    yield request.param
    close_zygotes()


def check_that_it_alone_is_at_fault(match, kind):
    outcome = match.record.outcome
    assert outcome.termination is kind
    assert [(fault.entrant, fault.kind) for fault in outcome.faults] == [(0, kind)]
    assert outcome.places == (2, 1)


def check_aftermath(found):
    assert found.untruths == []
    assert found.seconds_to_dead is not None, "something lives on"
    assert found.left == frozenset()


@pytest.mark.parametrize(
    ("bot", "kind"), [row[:2] for row in VERDICTS], ids=[r[0] for r in VERDICTS]
)
def test_attacker_loses_and_the_rest_of_the_match_stands(tmp_path, level, bot, kind):
    found = play_against(source_in(tmp_path / "bot", bot), LAUNCHERS[level], tmp_path)
    check_that_it_alone_is_at_fault(found.match, kind)
    check_aftermath(found)


@pytest.mark.parametrize(
    "attempt", attempts_here(), ids=lambda attempt: f"{attempt.kind}: {attempt.name}"
)
def test_attempt_is_held_and_loses_the_match(tmp_path, level, attempt):
    source = write_attempt(tmp_path / ("0" * 64), attempt)
    found = play_against(source, LAUNCHERS[level], tmp_path)
    if level == "landlock" and not attempt.holds_at_landlock:
        assert found.match.record.outcome.termination is Termination.COMPLETED
    else:
        check_that_it_alone_is_at_fault(found.match, attempt.fault)
        tracebacks = [log.log.traceback for log in found.match.logs if log.entrant == 0]
        assert not any(f"\n{error}" in text for error in NOT_HELD for text in tracebacks)
    check_aftermath(found)


FLAT = ["os_exit", "import_crash", "many_messages", "segfault", "long_message", "nonsense"]
"""Attacks that are over quickly, of different kinds."""


def test_memory_and_open_files_of_the_worker_do_not_grow_with_the_matches(tmp_path, level):
    launcher = LAUNCHERS[level]
    sources = [source_in(tmp_path / bot, bot) for bot in FLAT]

    def play(rounds):
        for _ in range(rounds):
            for source in sources:
                play_against(source, launcher, tmp_path)
        return load_of(launcher)

    def grows(before, after):
        return after.open_files != before.open_files or any(
            now - then >= 2 * 1024 * 1024
            for then, now in zip(before.resident_bytes, after.resident_bytes, strict=True)
        )

    # What leaks grows with every five rounds; what a busy machine makes an allocator keep, once.
    loads = [play(3), play(5)]
    while grows(*loads[-2:]) and len(loads) < 5:
        loads.append(play(5))
    assert not grows(*loads[-2:]), loads


def test_trace_that_is_left_is_seen(tmp_path):
    before = traces(tmp_path)
    (tmp_path / "note").write_text("6-6 lies at seat 2")
    mark = Path("/tmp", MARK)
    mark.touch()
    try:
        assert traces(tmp_path) - before == {str(tmp_path / "note"), str(mark)}
    finally:
        mark.unlink()


def test_process_that_lives_on_is_seen(tmp_path):
    agent = make_agent(
        source_in(tmp_path / "bot", "well_behaved"), launcher=LAUNCHERS["bubblewrap"]
    )
    try:
        agent.start()
        agent.wait_ready(GENEROUS)
        assert living(zygotes_of(LAUNCHERS["bubblewrap"])) == {agent._bot._pid}
    finally:
        agent.close()
    assert living(zygotes_of(LAUNCHERS["bubblewrap"])) == set()
