"""Players, bots and tournaments for tests, made by the same services as real ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db.models.functions import Now

from engine.wheels import pack_module
from tournament.competitions import services as competitions
from tournament.competitions.models import (
    TRIAL_TRANSITIONS,
    Entrant,
    EntryTrial,
    MatchState,
    Tournament,
    TournamentState,
    TrialState,
)
from tournament.competitions.services import Plan, Play
from tournament.competitions.services.trials import request_trials
from tournament.players import services as players
from tournament.players.models import (
    VERSION_TRANSITIONS,
    Bot,
    BotVersion,
    Player,
    VersionGame,
    VersionState,
)
from tournament.store.clock import read_clock
from tournament.store.leases import FREE_FIELDS

CHANCE = Path(__file__).parent.parent / "bots" / "chance.py"
EVERYTHING = {"eighty": {"players": [4]}, "podkidnoe": {"players": [2, 3, 4]}}
_numbers = itertools.count(1)


def make_player(name: str = "") -> Player:
    return players.sign_up(username=name or f"player{next(_numbers)}", password="correct horse 9")


def make_wheel(
    bot: str, version: str = "1.0", source: str = "", folder: Path | None = None
) -> bytes:
    """The wheel of a bot that plays at random, or of the module `source`."""
    if not source:
        return pack_module(CHANCE, bot=bot, version=version)
    assert folder is not None, "a source of its own needs a folder to lie in"
    path = folder / f"{bot}_{version.replace('.', '_')}.py"
    path.write_text(source)
    return pack_module(path, bot=bot, version=version)


def submit(owner: Player, bot: str, version: str = "1.0") -> BotVersion:
    return players.submit_wheel(owner=owner, data=make_wheel(bot, version))


def accept(version: BotVersion, games: dict[str, Any] | None = None) -> BotVersion:
    """Let a version be as if it had passed the check."""
    VERSION_TRANSITIONS.move(
        BotVersion.objects.filter(pk=version.pk),
        VersionState.RUNNING,
        lease_owner="test",
        lease_until=Now(),
    )
    VERSION_TRANSITIONS.move(
        BotVersion.objects.filter(pk=version.pk),
        VersionState.ACCEPTED,
        decided_at=Now(),
        **FREE_FIELDS,
    )
    for game, options in (games or EVERYTHING).items():
        VersionGame.objects.create(version=version, game=game, options=options)
    version.refresh_from_db()
    return version


def make_bot(name: str, owner: Player | None = None) -> Bot:
    """A bot with an accepted version 1.0."""
    return accept(submit(owner or make_player(), name)).bot


def make_plan(**changes: Any) -> Plan:
    now = datetime.now(UTC)
    return Plan(
        **{
            "name": "Autumn Cup",
            "game": "eighty",
            "opens_at": now - timedelta(minutes=1),
            "closes_at": now + timedelta(hours=1),
            "starts_at": now + timedelta(hours=2),
            "format": "single_elimination",
            "contest": {"kind": "boards", "boards": 1},
            "time_control": "standard",
            **changes,
        }
    )


def make_tournament(bots: Sequence[Bot] = (), **changes: Any) -> Tournament:
    """An open tournament with these bots entered."""
    organiser = changes.pop("organiser", None) or make_player()
    tournament = competitions.create_tournament(organiser=organiser, plan=make_plan(**changes))
    tournament = competitions.open_tournament(tournament=tournament)
    for bot in bots:
        competitions.enter(tournament=tournament, bots=[bot], by=bot.owner)
    return tournament


def pass_trials(tournament: Tournament) -> None:
    """Let who has entered be as if it had passed the trials that are to come."""
    request_trials(tournament=tournament)
    trials = EntryTrial.objects.filter(state__in=[TrialState.PENDING, TrialState.RUNNING])
    TRIAL_TRANSITIONS.move(trials, TrialState.RUNNING, lease_owner="test", lease_until=Now())
    TRIAL_TRANSITIONS.move(trials, TrialState.PASSED, decided_at=Now(), **FREE_FIELDS)


def start(tournament: Tournament) -> Tournament:
    """Close and start it, as if its times had come and its trials had been passed."""
    pass_trials(tournament)
    tournament = competitions.close_tournament(tournament=tournament, now=tournament.closes_at)
    return competitions.start_tournament(tournament=tournament, now=tournament.starts_at)


def play_all(tournament: Tournament, *, trusted: bool = True) -> Tournament:
    """Play a running tournament to its end, unless told otherwise with trusted bots."""
    for _ in range(200):
        tournament.refresh_from_db()
        if tournament.state != TournamentState.RUNNING:
            return tournament
        sent = [pk for block in competitions.dispatch(rung=True).blocks for pk in block]
        sent += tournament.matches.filter(state=MatchState.QUEUED).values_list("pk", flat=True)
        for pk in dict.fromkeys(sent):
            assert competitions.play_match(match_id=pk, trusted=trusted) is Play.RECORDED
    raise AssertionError(f"{tournament.slug} does not end")


def entrant_of(tournament: Tournament, bot: str) -> Entrant:
    return Entrant.objects.get(tournament=tournament, bots__bot__name=bot)


def soon() -> datetime:
    """A moment by the database's clock."""
    return read_clock()
