"""The reference bots on a site."""

from __future__ import annotations

import io
from functools import partial

import pytest
from django.core.management import call_command

from engine.wheels import pack_module, read_wheel
from tournament.operations import house
from tournament.operations.house import (
    reference_plugins,
    reference_wheel,
    submit_reference_bots,
)
from tournament.players.models import BotVersion
from tournament.players.selectors import reserved_names


def test_every_reference_bot_makes_a_wheel_of_its_name_and_the_projects_version():
    wheels = {plugin.name: (plugin, reference_wheel(plugin)) for plugin in reference_plugins()}
    assert {"random", "greedy"} <= wheels.keys()
    for name, (plugin, data) in wheels.items():
        info = read_wheel(data)
        assert (info.bot, info.version) == (name, plugin.version)


def test_equal_source_makes_equal_wheels():
    plugin = reference_plugins()[0]
    assert reference_wheel(plugin) == reference_wheel(plugin)


def test_names_of_the_reference_bots_are_reserved():
    assert {plugin.name for plugin in reference_plugins()} <= reserved_names()


@pytest.mark.django_db
def test_submitting_again_changes_nothing():
    said: list[str] = []
    first = submit_reference_bots(said.append)
    again = submit_reference_bots(said.append)
    assert [bot.name for bot in first] == [plugin.name for plugin in reference_plugins()]
    assert first == again
    assert BotVersion.objects.count() == len(first)
    assert said == []


@pytest.mark.django_db
def test_bot_changed_under_the_same_version_keeps_what_the_site_has(monkeypatch):
    submit_reference_bots(lambda line: None)
    before = set(BotVersion.objects.values_list("wheel_sha256", flat=True))
    monkeypatch.setattr(house, "pack_module", partial(pack_module, summary="changed"))
    said: list[str] = []
    submit_reference_bots(said.append)
    assert set(BotVersion.objects.values_list("wheel_sha256", flat=True)) == before
    assert len(said) == len(before)
    assert "raise the version number" in said[0]


@pytest.mark.django_db
def test_command_lists_what_the_house_has():
    out = io.StringIO()
    call_command("submit_reference_bots", stdout=out)
    assert "greedy" in out.getvalue()
