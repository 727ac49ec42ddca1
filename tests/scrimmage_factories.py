"""Scrimmages for tests, asked for and played by the same services as real ones."""

from __future__ import annotations

from typing import Any

from engine.wheels import pack_module
from tests.tournament_factories import CHANCE, accept, make_bot, make_player
from tournament.players import services as players
from tournament.players.models import Bot, BotVersion, Player
from tournament.scrimmages import services
from tournament.scrimmages.models import Scrimmage
from tournament.scrimmages.services import Wish

BOTS = CHANCE.parent


def version_like(reference: str, bot: str, version: str, owner: Player) -> BotVersion:
    """An accepted version of `bot` that plays as a reference bot does."""
    data = pack_module(BOTS / f"{reference}.py", bot=bot, version=version)
    return accept(players.submit_wheel(owner=owner, data=data))


def version_of(bot: Bot) -> BotVersion:
    """The newest version of a bot."""
    return BotVersion.objects.select_related("bot__owner").filter(bot=bot).latest("pk")


def make_wish(owner: Player | None = None, **changes: Any) -> Wish:
    """What `owner` may ask for: a random bot of theirs against another's."""
    values: dict[str, Any] = {"game": "eighty", "time_control": "fast", "most_sets": 20, **changes}
    if "first" not in values:
        values["first"] = version_of(make_bot("alpha", owner or make_player()))
    if "other" not in values:
        values["other"] = version_of(make_bot("beta"))
    return Wish(**values)


def make_scrimmage(owner: Player | None = None, **changes: Any) -> Scrimmage:
    """One that was just asked for by the owner of its first bot."""
    wish = make_wish(owner, **changes)
    return services.ask(wish=wish, by=wish.first.bot.owner)


def play_out(scrimmage: Scrimmage) -> Scrimmage:
    """Play it to its end in this process."""
    while scrimmage.is_open:
        came = services.play_batch(scrimmage_id=scrimmage.pk, trusted=True)
        assert came is services.BatchPlay.RECORDED
        scrimmage.refresh_from_db()
    return scrimmage
