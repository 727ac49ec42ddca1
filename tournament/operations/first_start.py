"""A site's first start: an account for its operator, the reference bots, and a cup on every page."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from django.db import transaction

from tournament.competitions.models import Tournament
from tournament.competitions.services import enter, open_tournament
from tournament.operations.console import Console
from tournament.operations.cups import CUPS, Cup, Schedule, draft
from tournament.operations.home import users_home
from tournament.operations.house import submit_reference_bots
from tournament.operations.stack import Stack
from tournament.players.models import Bot, Player
from tournament.players.services import ensure_house, sign_up
from tournament.store.clock import read_clock

ADMIN = "admin"
OPEN_SECONDS = 15
"""How long the first cups are open; their start waits until the bots have been checked."""


def prepare_site(stack: Stack, console: Console) -> None:
    """Give the site what it does not have yet. Safe to repeat at every start."""
    tell_login(stack, console)
    bots = submit_reference_bots(console.say)
    if not Tournament.objects.exists():
        play_first_cups(bots)
        console.say(f"The first cups start by themselves: {', '.join(cup.name for cup in CUPS)}")


def tell_login(stack: Stack, console: Console) -> None:
    """Make the operator's account on the first start and show its password once; later say how to reset it."""
    operator = Player.objects.filter(is_superuser=True).order_by("pk").first()
    if operator is None:
        password = make_admin()
        console.say(f"Log in at {stack.url}/admin/ as {ADMIN} with the password {password}")
        console.say("  It is shown only now. Change it after logging in.")
    else:
        console.say(f"Log in at {stack.url}/admin/ as {operator.username}; a new password:")
        console.say(f"  {home_prefix(stack)}python3 manage.py changepassword {operator.username}")


@transaction.atomic
def make_admin() -> str:
    """The operator's account; its password."""
    password = secrets.token_urlsafe(12)
    admin = sign_up(username=ADMIN, password=password)
    admin.is_staff = admin.is_superuser = True
    admin.save(update_fields=["is_staff", "is_superuser"])
    return password


def home_prefix(stack: Stack) -> str:
    """What a command needs before it to find the site's home."""
    return "" if stack.home.path == users_home() else f"ARENA_HOME={stack.home.path} "


@transaction.atomic
def play_first_cups(bots: Sequence[Bot]) -> None:
    """Open the house's cups with its bots in them; they close, start and are played by themselves."""
    now = read_clock()
    for cup in CUPS:
        play_first_cup(cup, bots, Schedule.soon(now, open_seconds=OPEN_SECONDS))


def play_first_cup(cup: Cup, bots: Sequence[Bot], schedule: Schedule) -> None:
    """Open one cup with as many of the bots as it takes."""
    house = ensure_house()
    tournament = open_tournament(tournament=draft(cup, organiser=house, schedule=schedule))
    for bot in bots[: cup.entrants]:
        enter(tournament=tournament, bots=[bot], by=house)
