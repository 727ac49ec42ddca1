"""What happens in the demo, in its order: bots, entries, matches, tables."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from engine.cli.new import class_prefix, render
from engine.wheels import pack_project
from tournament.competitions.models import RoundState, Tournament, TournamentState
from tournament.competitions.selectors import progress_of, with_progress
from tournament.competitions.services import enter, open_tournament
from tournament.competitions.services.dispatching import move_due_tournaments
from tournament.operations.api_client import ApiClient
from tournament.operations.console import Console, bar
from tournament.operations.cups import CUPS, Cup, Schedule, draft
from tournament.operations.errors import OperationsError
from tournament.operations.house import submit_reference_bots
from tournament.operations.results import (
    Results,
    count_terminations,
    leaderboard_lines,
    tournament_line,
)
from tournament.operations.stack import Stack
from tournament.players.models import Bot, BotVersion, Player, TokenScope, VersionState
from tournament.players.services import create_token, ensure_house, sign_up
from tournament.store.clock import read_clock

AUTHOR = "ada"
GUEST = "newcomer"
OPEN_SECONDS = 5
"""And one more for each cup beyond those of the plain demo."""
LONGEST_WAIT_SECONDS = 240.0
REPEATED_FROM = datetime(2100, 1, 1, tzinfo=UTC)
"""The close of tournaments made from a seed lies after this: deals depend on it, so it follows from the
seed alone, and it has to come after the wheels were uploaded, whenever the demo is run."""
BEFORE_START = (TournamentState.OPEN, TournamentState.CLOSED)
BAD_ENDS = (VersionState.REJECTED, VersionState.STUCK)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One run of the demo on a running site."""

    stack: Stack
    console: Console
    seed: str | None
    """Text that everything random follows from; None for real chance and real times."""
    cups: Sequence[Cup] = CUPS

    def play(self, records: Path | None) -> Results:
        """From nothing to the tables. Raises OperationsError with the cause if it does not get there."""
        tournaments = self.play_cups()
        lines = [tournament_line(tournament, records) for tournament in tournaments]
        return Results(
            seed=self.seed,
            tournaments=lines,
            leaderboards=leaderboard_lines(),
            terminations=count_terminations(lines),
            seconds=round(self.console.seconds, 1),
        )

    def play_cups(self) -> Sequence[Tournament]:
        """The tournaments, played to their ends. Raises OperationsError with the cause if they are not."""
        client, guest = self.submit_guest()
        bots = self.submit_house()
        tournaments = self.announce_cups()
        self.enter_all(tournaments, client, guest, bots)
        self.wait_until_played(tournaments)
        return tournaments

    def submit_guest(self) -> tuple[ApiClient, str]:
        """An author signs up, makes a wheel of a bot's source, and submits it through the API."""
        author = sign_up(username=AUTHOR, password=secrets.token_urlsafe(16))
        _, token = create_token(player=author, scope=TokenScope.SUBMIT, name="demo")
        client = ApiClient(self.stack.url, token)
        with tempfile.TemporaryDirectory(prefix="arena-bot-") as folder:
            write_project(GUEST, Path(folder))
            wheel = pack_project(Path(folder))
        status = client.submit(wheel)
        self.console.say(
            f"{AUTHOR} wrote the bot {GUEST} and submitted its wheel ({len(wheel)} bytes): "
            f"{status['state']}"
        )
        return client, GUEST

    def submit_house(self) -> Sequence[Bot]:
        """The reference bots, submitted by the house."""
        bots = submit_reference_bots(self.console.say)
        self.console.say(f"The house submitted {', '.join(bot.name for bot in bots)}")
        return bots

    def announce_cups(self) -> Sequence[Tournament]:
        """The tournaments, scheduled a moment ahead; those of a seed at the times that follow from it."""
        organiser = ensure_house()
        now = read_clock()
        return [self.announce(cup, organiser, now) for cup in self.cups]

    def announce(self, cup: Cup, organiser: Player, now: datetime) -> Tournament:
        """One tournament. Without a seed dispatch opens it when its time has come."""
        if self.seed is None:
            schedule = Schedule.soon(now, open_seconds=OPEN_SECONDS + len(self.cups) - len(CUPS))
            tournament = draft(cup, organiser=organiser, schedule=schedule)
            self.console.say(f"{cup.name} opens at {schedule.opens_at:%H:%M:%S} UTC, by itself")
            return tournament
        tournament = draft(cup, organiser=organiser, schedule=repeated_schedule(self.seed))
        return open_tournament(tournament=tournament, secret=seeded_secret(self.seed))

    def enter_all(
        self, tournaments: Sequence[Tournament], client: ApiClient, guest: str, bots: Sequence[Bot]
    ) -> None:
        """Enter everyone once entries are open: the guest through the API, the others by the service."""
        self.wait(
            lambda: all(self.state(t) != TournamentState.DRAFT for t in tournaments),
            "opening the tournaments",
        )
        house = ensure_house()
        for cup, tournament in zip(self.cups, tournaments, strict=True):
            if len(bots) + 1 < cup.entrants:
                raise OperationsError(f"{cup.name} needs {cup.entrants} bots, there are too few")
            client.enter(tournament.slug, guest)
            for bot in bots[: cup.entrants - 1]:
                enter(tournament=tournament, bots=[bot], by=house)
            self.console.say(f"{cup.entrants} bots have entered {cup.name}")

    def wait_until_played(self, tournaments: Sequence[Tournament]) -> None:
        """Wait for the last match, telling what happens; a seed's tournaments are set going."""
        told: dict[str, str] = {}
        if self.seed is not None:
            self.wait(self.all_are_checked, "checking the bots")

        def are_finished() -> bool:
            self.tell_progress(tournaments, told)
            self.set_going(tournaments)
            return all(self.state(t) == TournamentState.FINISHED for t in tournaments)

        self.wait(are_finished, "playing the tournaments")

    def set_going(self, tournaments: Sequence[Tournament]) -> None:
        """Close and start what a seed's times would, as soon as nothing (a trial at entry, say) holds it up."""
        if self.seed is None:
            return
        if any(t.state in BEFORE_START for t in tournaments):
            move_due_tournaments(now=repeated_schedule(self.seed).starts_at)

    def tell_progress(self, tournaments: Sequence[Tournament], told: dict[str, str]) -> None:
        """Say what changed since it was last told, and show the bars on a terminal."""
        bars = [self.checking_bar()]
        for tournament in tournaments:
            tournament.refresh_from_db()
            progress = progress_of(with_progress(Tournament.objects.all()).get(pk=tournament.pk))
            expected = progress.expected or progress.matches
            rounds = Tournament.objects.filter(
                pk=tournament.pk, stages__rounds__state=RoundState.COMPLETE
            ).count()
            news = tournament.get_state_display() + (
                f", {progress.finished} of {expected} matches" if rounds else ""
            )
            key = f"{tournament.state} {rounds}"
            if told.get(tournament.slug) != key:
                told[tournament.slug] = key
                self.console.say(f"{tournament.name}: {news}")
            if tournament.state != TournamentState.FINISHED:
                bars.append(
                    f"{tournament.name} {bar(progress.finished, expected)} {progress.finished}"
                )
        self.console.status("   ".join(filter(None, bars)))

    def checking_bar(self) -> str:
        """How many bots have been checked; nothing once all have."""
        versions = BotVersion.objects.count()
        accepted = BotVersion.objects.filter(state=VersionState.ACCEPTED).count()
        return "" if accepted == versions else f"checked {accepted} of {versions} bots"

    def all_are_checked(self) -> bool:
        """Whether every bot has been accepted."""
        self.console.status(self.checking_bar())
        return not BotVersion.objects.exclude(state=VersionState.ACCEPTED).exists()

    def state(self, tournament: Tournament) -> str:
        """Where a tournament stands now."""
        tournament.refresh_from_db()
        return tournament.state

    def wait(self, until: Callable[[], bool], doing: str) -> None:
        """Keep the site going until `until`. Raises OperationsError when something went wrong on it."""
        longest = LONGEST_WAIT_SECONDS * max(1, len(self.cups) / len(CUPS))
        deadline = self.console.seconds + longest

        def is_over() -> bool:
            raise_for_trouble()
            if self.console.seconds > deadline:
                raise OperationsError(
                    f"{doing} took longer than {longest:.0f} s; is this machine very busy?"
                )
            return until()

        self.stack.watch(is_over, every_seconds=0.5)


def raise_for_trouble() -> None:
    """Raise OperationsError if a bot was refused or a tournament cannot go on."""
    for version in BotVersion.objects.filter(state__in=BAD_ENDS).select_related("bot"):
        raise OperationsError(f"{version} is {version.get_state_display()}: {version.reason}")
    for tournament in Tournament.objects.exclude(paused_reason="", cancelled_reason=""):
        reason = tournament.cancelled_reason or tournament.paused_reason
        raise OperationsError(f"{tournament.name} does not go on: {reason}")


def write_project(name: str, folder: Path) -> None:
    """The source of a new bot, as ``arena new`` writes it."""
    values = {"name": name, "package": name, "title": class_prefix(name)}
    for relative, text in render(values):
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def seeded_secret(seed: str) -> bytes:
    """The tournaments' secret: the SHA-256 of the text."""
    return sha256(seed.encode()).digest()


def repeated_schedule(seed: str) -> Schedule:
    """The times of a seed's tournaments."""
    shift = int.from_bytes(seeded_secret(seed)[:3], "big")
    closes_at = REPEATED_FROM + timedelta(seconds=shift)
    return Schedule(closes_at - timedelta(hours=1), closes_at, closes_at + timedelta(seconds=1))
