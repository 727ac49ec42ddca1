"""Checks of bots in the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.checking import check_bot, check_wheel
from engine.wheels import pack_module
from tests.hostile.stage import nothing_left_behind, source_in

pytestmark = pytest.mark.sandbox


@pytest.mark.slow
def test_reference_bot_is_accepted_as_a_wheel(tmp_path):
    path = Path(__file__).parents[2] / "bots" / "lowest.py"
    data = pack_module(path, bot="lowest", version="1.0")
    with nothing_left_behind():
        report = check_wheel(data, tmp_path)
    assert report.reasons == ()
    assert {game.game for game in report.games} == {"eighty", "podkidnoe"}


@pytest.mark.parametrize(
    ("bot", "words"),
    [
        ("import_crash", "it raised ValueError while starting (crash)"),
        ("network", "it raised PermissionError while choosing an action (crash)"),
        ("fork", "it raised PermissionError while choosing an action (crash)"),
        ("long_message", "it sent a message longer than 4096 bytes (protocol)"),
        ("memory_at_import", "it ran out of memory while starting (memory)"),
    ],
)
def test_hostile_bot_is_rejected(tmp_path, bot, words):
    with nothing_left_behind():
        report = check_bot(source_in(tmp_path, bot))
    assert report.verdict == "rejected"
    assert words in report.reasons[0]


def test_sleeping_bot_ends_the_check_in_time_and_is_rejected(tmp_path):
    with nothing_left_behind():
        report = check_bot(source_in(tmp_path, "sleep"), seconds=2)
    assert report.verdict == "rejected"
    assert "it is too slow: after 2 seconds 0 of 4 trials were done" in report.reasons[0]
