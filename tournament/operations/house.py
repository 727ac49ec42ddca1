"""The reference bots on a site: submitted for the account ``house`` by the same service as anyone's."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.plugins import InstalledPlugin, installed_plugins
from engine.wheels import pack_module
from tournament.operations.errors import OperationsError
from tournament.players.errors import VersionExistsError
from tournament.players.models import Bot
from tournament.players.services import ensure_house, submit_wheel

DISTRIBUTION = "domino-arena"


def reference_plugins() -> Sequence[InstalledPlugin]:
    """The bots that come with the project, by name."""
    return [plugin for plugin in installed_plugins() if plugin.distribution == DISTRIBUTION]


def reference_wheel(plugin: InstalledPlugin, *, name: str = "") -> bytes:
    """The wheel of a reference bot, by its own or another name; equal sources give equal bytes.

    Raises OperationsError if its module is missing.
    """
    spec = importlib.util.find_spec(plugin.entry_point)
    if spec is None or spec.origin is None:
        raise OperationsError(
            f"The reference bot {plugin.name} is not installed with the project; install it again"
        )
    return pack_module(Path(spec.origin), bot=name or plugin.name, version=plugin.version)


def submit_reference_bots(report: Callable[[str], None]) -> Sequence[Bot]:
    """Submit what is new among the reference bots; all of them, by name.

    A bot whose source has changed under the same version keeps the version that the site has, and
    `report` hears of it.
    """
    house = ensure_house()
    for plugin in reference_plugins():
        try:
            submit_wheel(owner=house, data=reference_wheel(plugin))
        except VersionExistsError as error:
            report(f"The site keeps the {plugin.name} that it has: {error}")
    return list(house.bots.order_by("name"))
