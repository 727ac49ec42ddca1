"""Asking for scrimmages: what is refused, with which words, and how many a player may have."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.scrimmage_factories import make_scrimmage, make_wish, play_out, version_of
from tests.tournament_factories import accept, make_bot, make_player, make_wheel, submit
from tournament.players import services as players
from tournament.players.models import Player
from tournament.scrimmages import services
from tournament.scrimmages.errors import (
    InvalidScrimmageError,
    ScrimmageError,
    ScrimmageQuotaError,
)
from tournament.scrimmages.models import Difference, Scrimmage, ScrimmageState
from tournament.scrimmages.selectors import allowance
from tournament.store.clock import read_clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Player:
    return make_player("ann")


def refused(**changes) -> dict[str, str]:
    wish = make_wish(**changes)
    with pytest.raises(InvalidScrimmageError) as caught:
        services.ask(wish=wish, by=wish.first.bot.owner)
    assert not Scrimmage.objects.exists()
    return caught.value.fields


@pytest.mark.parametrize(
    ("difference", "elos"),
    [
        (Difference.SMALL, (0, 10)),  # that of arena compare
        (Difference.CLEAR, (0, 30)),
        (Difference.LARGE, (0, 80)),
        (Difference.NO_WORSE, (-30, 0)),  # for who has only tidied up
    ],
)
def test_how_big_a_difference_matters_says_what_is_tested(difference, elos):
    scrimmage = make_scrimmage(difference=difference)
    assert (scrimmage.elo0, scrimmage.elo1) == elos
    assert scrimmage.state == ScrimmageState.WAITING


def test_seeds_of_two_scrimmages_differ(ann, settings):
    settings.ARENA_SCRIMMAGES_OPEN = 2
    wish = make_wish(ann)
    seeds = {services.ask(wish=wish, by=ann).seed for _ in range(2)}
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        pytest.param(
            {"most_sets": 19}, "most_sets", "19 is not from 20", id="too few for the test"
        ),
        pytest.param({"most_sets": 2001}, "most_sets", "to 2000", id="more than the site takes"),
        pytest.param({"game": "chess"}, "game", "there is no game 'chess'", id="unknown game"),
        pytest.param(
            {"time_control": "long"}, "time_control", "fast or standard", id="too slow a clock"
        ),
        pytest.param({"ruleset": {"colour": 1}}, "ruleset", "colour", id="unknown option"),
    ],
)
def test_what_cannot_be_played_is_refused_at_its_field(changes, field, says):
    problems = refused(**changes)
    assert list(problems) == [field]
    assert says in problems[field]


def test_version_does_not_meet_itself(ann):
    version = version_of(make_bot("alpha", ann))
    assert "choose another version" in refused(first=version, other=version)["other"]


def test_two_versions_of_one_bot_meet(ann):
    old = version_of(make_bot("alpha", ann))
    new = accept(submit(ann, "alpha", "2.0"))
    scrimmage = make_scrimmage(first=new, other=old)
    assert str(scrimmage).endswith("alpha 2.0 against alpha 1.0")


def test_only_versions_of_ones_own_are_asked_about(ann):
    wish = make_wish()
    with pytest.raises(InvalidScrimmageError, match="alpha is not yours"):
        services.ask(wish=wish, by=ann)


def test_version_that_was_not_accepted_for_the_game_is_refused(ann):
    only_eighty = accept(submit(ann, "narrow"), {"eighty": {"players": [4]}})
    says = refused(first=only_eighty, game="podkidnoe")
    assert says == {"first": "narrow 1.0 was not accepted for Podkidnoe"}


def test_version_that_was_not_accepted_for_two_seats_is_refused():
    many = accept(submit(make_player(), "many"), {"podkidnoe": {"players": [3, 4]}})
    says = refused(other=many, game="podkidnoe")
    assert says == {"other": "many 1.0 was not accepted for Podkidnoe by these rules with 2 seats"}


def close_account(bot):
    bot.owner.is_active = False
    bot.owner.save()


BARS = [
    pytest.param(
        lambda bot: players.allow_scrimmages(bot=bot, allowed=False),
        "does not allow scrimmages",
        id="its owner does not allow it",
    ),
    pytest.param(
        lambda bot: players.pause_bot(bot=bot, reason="loud"), "paused by staff", id="paused"
    ),
    pytest.param(
        lambda bot: players.quarantine_version(version=version_of(bot), reason="it crashes"),
        "set aside",
        id="quarantined",
    ),
    pytest.param(
        lambda bot: players.withdraw_version(version=version_of(bot)), "withdrawn", id="withdrawn"
    ),
    pytest.param(close_account, "account of beta's owner is closed", id="suspended"),
]


@pytest.mark.parametrize(("bar", "says"), BARS)
def test_bot_that_may_not_play_is_not_asked_against(bar, says):
    bot = make_bot("beta")
    bar(bot)
    assert says in refused(other=version_of(bot))["other"]


@pytest.mark.parametrize(("bar", "says"), BARS)
def test_open_scrimmage_ends_when_a_bot_may_not_play_any_more(bar, says):
    scrimmage = make_scrimmage()
    assert services.end_barred_scrimmages() == 0
    bar(scrimmage.other.bot)
    assert services.end_barred_scrimmages() == 1
    scrimmage.refresh_from_db()
    assert scrimmage.state == ScrimmageState.CANCELLED
    assert says in scrimmage.reason


def test_owner_who_does_not_allow_it_may_still_ask_against_it(ann):
    old = version_of(make_bot("alpha", ann))
    new = accept(submit(ann, "alpha", "2.0"))
    players.allow_scrimmages(bot=old.bot, allowed=False)
    scrimmage = make_scrimmage(first=new, other=old)
    assert services.end_barred_scrimmages() == 0
    assert scrimmage.is_open


def test_rules_that_have_changed_end_it():
    scrimmage = make_scrimmage()
    Scrimmage.objects.update(rules_version="arena-rules/0")
    assert services.play_batch(scrimmage_id=scrimmage.pk) is services.BatchPlay.NOT_OURS
    services.end_barred_scrimmages()
    scrimmage.refresh_from_db()
    assert scrimmage.reason == "the rules that this site plays by have changed: ask again"


def test_more_than_may_be_open_are_refused_until_one_is_cancelled(ann, settings):
    settings.ARENA_SCRIMMAGES_OPEN = 1
    wish = make_wish(ann)
    first = services.ask(wish=wish, by=ann)
    with pytest.raises(ScrimmageQuotaError, match="1 scrimmages of yours are not over yet"):
        services.ask(wish=wish, by=ann)
    services.cancel_scrimmage(scrimmage=first, reason="by its owner")
    assert services.ask(wish=wish, by=ann).is_open


def test_day_limit_tells_when_the_next_is_possible(ann, settings):
    settings.ARENA_SCRIMMAGES_A_DAY, settings.ARENA_SCRIMMAGES_OPEN = 2, 9
    wish = make_wish(ann)
    asked = [services.ask(wish=wish, by=ann) for _ in range(2)]
    hours = (23, 5)
    for scrimmage, ago in zip(asked, hours, strict=True):
        scrimmage.asked_at = read_clock() - timedelta(hours=ago)
        scrimmage.save()
    with pytest.raises(ScrimmageQuotaError) as caught:
        services.ask(wish=wish, by=ann)
    assert caught.value.next_at == asked[0].asked_at + timedelta(days=1)
    assert f"{caught.value.next_at:%Y-%m-%d %H:%M:%S} UTC" in str(caught.value)
    asked[0].asked_at = read_clock() - timedelta(hours=25)
    asked[0].save()
    assert services.ask(wish=wish, by=ann).is_open


def test_what_was_cancelled_before_it_began_does_not_count_for_the_day(ann, settings):
    settings.ARENA_SCRIMMAGES_A_DAY = 1
    wish = make_wish(ann)
    services.cancel_scrimmage(scrimmage=services.ask(wish=wish, by=ann), reason="mistyped")
    assert allowance(ann).today == 0
    scrimmage = services.ask(wish=wish, by=ann)
    play_out(scrimmage)
    assert allowance(ann).today == 1
    with pytest.raises(ScrimmageQuotaError):
        services.ask(wish=wish, by=ann)


def test_site_may_play_none(ann, settings):
    settings.ARENA_SCRIMMAGES_A_DAY = 0
    with pytest.raises(ScrimmageQuotaError, match="plays no scrimmages"):
        services.ask(wish=make_wish(ann), by=ann)


def test_scrimmage_that_is_over_is_not_cancelled():
    scrimmage = play_out(make_scrimmage())
    with pytest.raises(ScrimmageError, match="finished already"):
        services.cancel_scrimmage(scrimmage=scrimmage, reason="late")
    with pytest.raises(ScrimmageError, match="not stuck"):
        services.retry_scrimmage(scrimmage=scrimmage)


def test_new_wheel_with_the_same_name_does_not_change_what_was_asked(ann):
    """It names versions, not bots."""
    scrimmage = make_scrimmage(ann)
    players.submit_wheel(owner=ann, data=make_wheel("alpha", "9.0"))
    scrimmage.refresh_from_db()
    assert scrimmage.first.version == "1.0"
