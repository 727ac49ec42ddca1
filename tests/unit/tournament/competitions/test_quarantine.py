"""Versions that crash in match after match: counted with each recorded result, and set aside."""

from __future__ import annotations

import pytest

from engine.outcome import Fault, Termination
from engine.runner import run_match
from tests.tournament_factories import (
    accept,
    make_bot,
    make_player,
    make_tournament,
    make_wheel,
    play_all,
    start,
    submit,
)
from tournament.competitions import services
from tournament.competitions.models import Match, TournamentState
from tournament.competitions.services import Play, playing
from tournament.players.models import BotVersion, VersionState
from tournament.players.selectors import version_log
from tournament.players.services import submit_wheel

pytestmark = pytest.mark.django_db

FAULTY = """
from engine.sdk import Strategy, eighty, hookimpl


class Faulty(Strategy):
    def act(self, observation):
        print("I see", observation.hand[0])
        {act}


@hookimpl
def make_strategy(game, ruleset, players):
    return Faulty()
"""
FOUR = {"format": "round_robin", "contest": {"kind": "boards", "boards": 1}}


def make_faulty(act: str, folder, name: str = "faulty", version: str = "1.1") -> BotVersion:
    wheel = make_wheel(name, version, FAULTY.format(act=act), folder)
    return accept(submit_wheel(owner=make_player(), data=wheel))


def make_cup(version: BotVersion):
    """A round robin of four, so that it plays three matches."""
    others = [make_bot(name) for name in ("good", "better", "best")]
    return start(make_tournament([version.bot, *others], **FOUR))


@pytest.mark.parametrize(
    ("act", "termination", "is_set_aside"),
    [
        ("raise ValueError('no')", "crash", True),  # it broke down
        ("raise MemoryError", "memory", True),  # so did this one
        ("return None", "protocol", False),  # no answer: it plays badly
        ("return eighty.Bid(points=1)", "illegal_action", False),  # it plays wrongly
    ],
)
def test_only_crashes_set_a_version_aside(tmp_path, act, termination, is_set_aside):
    version = make_faulty(act, tmp_path)
    tournament = play_all(make_cup(version))
    version.refresh_from_db()
    assert (version.state == VersionState.QUARANTINED) is is_set_aside
    assert version.matches_played == 3
    assert version.crashes == 3 * is_set_aside
    ended = tournament.matches.filter(termination=termination)
    assert ended.count() == 3
    assert tournament.state == TournamentState.FINISHED


def test_its_tournament_goes_on_with_it(tmp_path):
    version = make_faulty("raise ValueError('no')", tmp_path)
    BotVersion.objects.filter(pk=version.pk).update(crashes_in_a_row=2)
    tournament = play_all(make_cup(version))
    version.refresh_from_db()
    assert version.reason.startswith("it crashed in 3 matches in a row")  # by its first match here
    played = Match.objects.filter(pairing__entrants__entrant__bots__version=version)
    assert (tournament.state, version.matches_played) == (TournamentState.FINISHED, 3)
    assert set(played.values_list("termination", flat=True)) == {"crash"}


def test_owner_gets_the_log_of_the_last_crash(tmp_path):
    version = make_faulty("raise ValueError('<b>no</b>')", tmp_path)
    tournament = play_all(make_cup(version))
    version.refresh_from_db()
    log = version_log(version)
    assert f"quarantine: {tournament.slug}/RR/" in log
    for part in ("I see ", "ValueError: <b>no</b>", "random_seed: ", "hand: [", "arena debug "):
        assert part in log


def test_others_in_its_matches_are_counted_without_a_crash(tmp_path):
    play_all(make_cup(make_faulty("raise ValueError('no')", tmp_path)))
    others = BotVersion.objects.exclude(bot__name="faulty")
    assert set(others.values_list("matches_played", "crashes", "state")) == {(3, 0, "accepted")}


def test_next_close_takes_the_version_before_it(tmp_path):
    alone = make_faulty("raise ValueError('no')", tmp_path)
    older = accept(submit(make_player(), "twice"))
    wheel = make_wheel("twice", "1.1", FAULTY.format(act="raise KeyError"), tmp_path)
    newer = accept(submit_wheel(owner=older.bot.owner, data=wheel))
    rivals = [make_bot(name) for name in ("alpha", "beta", "gamma")]
    open_one = make_tournament([*rivals, alone.bot, newer.bot], name="Next Cup")
    for version in (alone, newer):
        name = f"Cup of {version.bot.name}"
        play_all(start(make_tournament([*rivals, version.bot], name=name, **FOUR)))
    start(open_one)
    frozen = dict(
        open_one.entrants.filter(bots__version__isnull=False).values_list(
            "bots__bot__name", "bots__version"
        )
    )
    assert frozen["twice"] == older.pk
    assert "faulty" not in frozen
    assert len(frozen) == 4


def test_late_result_counts_nothing(tmp_path, monkeypatch):
    version = make_faulty("raise ValueError('no')", tmp_path)
    match = start(make_tournament([version.bot, make_bot("good")])).matches.get()

    def taken_over(spec, sources, **options):
        played = run_match(spec, sources, **options)
        Match.objects.filter(pk=match.pk).update(fence=99)
        return played

    monkeypatch.setattr(playing, "run_match", taken_over)
    assert services.play_match(match_id=match.pk, trusted=True) is Play.DISCARDED
    version.refresh_from_db()
    assert (version.matches_played, version.crashes) == (0, 0)


@pytest.mark.parametrize(
    ("seat", "bots"),
    [
        (0, {0}),  # the entrant's first seat
        (2, {1}),  # and its second
        (None, {0, 1}),  # of no single seat
    ],
)
def test_crash_in_a_pair_is_that_of_the_bot_on_the_seat(seat, bots):
    names = ("north", "south", "east", "west")
    one, two, three, four = (
        make_bot(name, owner)
        for name, owner in zip(names, [*[make_player()] * 2, *[make_player()] * 2], strict=True)
    )
    tournament = make_tournament(kind="pair")
    for pair in ((one, two), (three, four)):
        services.enter(tournament=tournament, bots=pair, by=pair[0].owner)
    match = start(tournament).matches.get()
    match = playing.match_to_play(match.pk)
    sources = [
        [playing.wheel_source_of(bot.wheel) for bot in entrant.bots]
        for entrant in playing.match_spec(match).entrants
    ]
    played = run_match(playing.match_spec(match), sources, trusted=True)
    played.record.outcome = type(played.record.outcome)(
        Termination.CRASH, (Fault(0, seat, Termination.CRASH, "boom"),), (0, 0), (2, 1)
    )
    assert set(playing._crashes(match, played)) == {(0, bot) for bot in bots}
