"""After a fault the owner's page tells how to play it again, and that works."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest
from django.test import Client
from typer.testing import CliRunner

from engine.cli.app import make_app
from tests.tournament_factories import (
    accept,
    make_bot,
    make_player,
    make_tournament,
    make_wheel,
    play_all,
    start,
)
from tournament.players.services import submit_wheel

pytestmark = pytest.mark.django_db

CRASHER = """
from random import Random

from engine.sdk import Strategy, hookimpl


class Crasher(Strategy):
    def begin_game(self, info):
        self.number, self.dice = info.number, Random(info.random_seed)

    def act(self, observation):
        if self.number == 1 and observation.contract is not None:
            raise ValueError(f"<b>drawn</b> {self.dice.random()}")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Crasher() if game == "eighty" else None
"""


@pytest.fixture
def fault(tmp_path):
    """A finished tournament whose only match a bot crashed in: the bot's owner and the match."""
    owner = make_player("crash-owner")
    wheel = make_wheel("crasher", "1.0", CRASHER, tmp_path)
    (tmp_path / "crasher-1.0-py3-none-any.whl").write_bytes(wheel)
    bad = accept(submit_wheel(owner=owner, data=wheel)).bot
    tournament = make_tournament([make_bot("good"), bad], contest={"kind": "boards", "boards": 8})
    return owner, play_all(start(tournament)).matches.get()


def test_owner_is_told_the_command_and_it_brings_the_fault_back(fault, tmp_path, monkeypatch):
    owner, match = fault
    monkeypatch.chdir(tmp_path)
    client = Client()
    client.force_login(owner)
    address = f"/tournaments/{match.tournament.slug}/matches/{match.pairing.key}/"
    page = client.get(address).content.decode()
    assert "<b>drawn" not in page
    drawn = re.search(r"ValueError: (<b>drawn</b> [0-9.e-]+)", html.unescape(page))[1]
    command = shlex.split(html.unescape(re.search(r">(arena debug [^<]+)<", page)[1]))

    (link,) = re.findall(r'href="([^"]+)" download', page)
    download = client.get(link)
    name = re.search(r'filename="([^"]+)"', download["Content-Disposition"])[1]
    Path(name).write_bytes(download.content)
    assert command[2] == name

    arguments = [*command[1:], "crasher-1.0-py3-none-any.whl", "--no-pdb"]
    answer = CliRunner().invoke(make_app(), arguments)
    assert answer.exit_code == 1
    assert f"ValueError: {drawn}" in answer.stderr
    assert "earlier answers are not those" not in answer.stderr


def test_nobody_else_is_told(fault):
    _, match = fault
    client = Client()
    client.force_login(make_player())
    address = f"/tournaments/{match.tournament.slug}/matches/{match.pairing.key}/"
    for visitor in (client, Client()):
        page = visitor.get(address).content.decode()
        assert "arena debug" not in page
        assert "random_seed" not in page
