"""`arena bots`: every installed bot is listed, whatever one of them does."""

from __future__ import annotations

import sys

import pytest

from engine.agents import BotSource, Failure, in_process_factory
from engine.cli import installed
from engine.cli.installed import Trial, try_bot
from engine.errors import SandboxUnavailableError
from engine.outcome import Termination
from tests.match_fakes import FakeAgent, first_legal

REFERENCE_BOTS = ["bold", "cautious", "greedy", "highest", "lowest", "random", "steady"]
HEAD = "import os, sys, time\nfrom engine.sdk import Strategy, hookimpl\n"
BODY = """
class First(Strategy):
    def act(self, observation):
        return observation.legal[0]

@hookimpl
def make_strategy(game, ruleset, players):
    return First() if game == "podkidnoe" and players > 2 else None
"""
PLAYS = {"podkidnoe": [3, 4]}


@pytest.fixture
def without_sandbox(monkeypatch):
    """A machine that cannot hold bots."""

    def refuse():
        raise SandboxUnavailableError(["no bubblewrap here"])

    monkeypatch.setattr("engine.sandbox.probe.require_sandbox", refuse)


@pytest.fixture(autouse=True)
def few_bots(monkeypatch, request):
    """Only what a test installed, and one reference bot; starting all of them takes seconds."""
    if request.function is not test_reference_bots_are_installed_and_play_everything:
        every = installed.installed_plugins

        def few():
            return tuple(
                plugin
                for plugin in every()
                if plugin.distribution != "domino-arena" or plugin.name == "greedy"
            )

        monkeypatch.setattr(installed, "installed_plugins", few)


def listed(answer) -> dict[str, dict]:
    return {bot["name"]: bot for bot in answer.json["bots"]}


@pytest.mark.sandbox
def test_reference_bots_are_installed_and_play_everything(arena):
    answer = arena("bots", "--json")
    assert answer.code == 0
    assert answer.json["sandboxed"] is True
    bots = listed(answer)
    assert sorted(bots) == REFERENCE_BOTS
    for bot in bots.values():
        assert bot["distribution"] == "domino-arena"
        assert bot["games"] == {"eighty": [4], "podkidnoe": [2, 3, 4]}
        assert bot["error"] is None


@pytest.mark.sandbox
def test_broken_bot_is_listed_with_its_error_and_the_others_work(arena, install_plugin):
    install_plugin("clumsy", HEAD + "import nowhere_to_be_found\n" + BODY)
    install_plugin("fine", HEAD + BODY, version="2.5")
    answer = arena("bots")
    assert answer.code == 1
    lines = {line.split()[0]: line for line in answer.out.splitlines()}
    assert "broken: " in lines["clumsy"]
    assert "No module named 'nowhere_to_be_found'" in lines["clumsy"]
    assert lines["fine"].split() == ["fine", "2.5", "fine", "podkidnoe", "(3,", "4)"]
    assert "eighty (4), podkidnoe (2, 3, 4)" in lines["greedy"]


@pytest.mark.sandbox
def test_bots_are_never_imported_into_the_command_itself(arena, install_plugin):
    install_plugin("watcher", HEAD + BODY)
    assert listed(arena("bots", "--json"))["watcher"]["games"] == PLAYS
    assert "watcher" not in sys.modules


@pytest.mark.parametrize(
    ("attack", "error"),
    [
        ("os._exit(7)", "ended its process with exit code 7 while starting"),
        ("sys.exit(3)", "raised SystemExit while starting: SystemExit: 3"),
        ("raise ValueError('bad \\x1b[2J day')", "ValueError: bad \\x1b[2J day"),
    ],
)
def test_bot_that_harms_its_process_is_broken_where_there_is_no_sandbox(
    arena, install_plugin, without_sandbox, attack, error
):
    install_plugin("harmful", HEAD + attack + "\n" + BODY)
    install_plugin("fine", HEAD + BODY)
    answer = arena("bots", "--json")
    assert answer.code == 1
    assert answer.json["sandboxed"] is False
    bots = listed(answer)
    assert error in bots["harmful"]["error"]
    assert bots["fine"]["games"] == PLAYS


def test_what_a_bot_prints_does_not_get_between_the_answer(arena, install_plugin, without_sandbox):
    install_plugin("chatty", HEAD + "print('{}'); os.write(1, b'[]')\n" + BODY)
    assert listed(arena("bots", "--json"))["chatty"]["games"] == PLAYS


def test_bot_that_never_starts_is_broken(arena, install_plugin, without_sandbox, monkeypatch):
    monkeypatch.setattr(installed, "TRIAL_SECONDS", 1)
    install_plugin("sleepy", HEAD + "time.sleep(600)\n" + BODY)
    bots = listed(arena("bots", "--json"))
    assert bots["sleepy"]["error"] == "did not start within 1 seconds"


def test_two_plugins_of_one_name_are_both_listed_as_broken(arena, install_plugin, without_sandbox):
    install_plugin("greedy", HEAD + BODY)
    answer = arena("bots", "--json")
    owners = [(bot["distribution"], bot["error"]) for bot in answer.json["bots"]]
    assert [owner for owner, _ in owners] == ["domino-arena", "greedy"]
    assert all("2 installed plugins bear this name" in error for _, error in owners)


def test_trial_tells_the_tables_at_which_a_bot_plays(tmp_path):
    (tmp_path / "picky.py").write_text(HEAD + BODY)
    source = BotSource(
        bot="picky", version=None, wheel=None, folder=str(tmp_path), entry_point="picky"
    )
    assert try_bot(source, in_process_factory) == Trial(PLAYS, None)


def test_bot_that_fails_once_is_not_started_again():
    failure = Failure(Termination.CRASH, "raised ValueError while starting")
    made = []

    def make(_source, **_table):
        made.append(FakeAgent("odd", first_legal, failure, []))
        return made[-1]

    trial = try_bot(
        BotSource(bot="odd", version=None, wheel=None, folder="", entry_point="odd"), make
    )
    assert trial.error == "raised ValueError while starting"
    assert len(made) == 1
