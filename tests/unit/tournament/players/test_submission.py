"""Submitting wheels, and what happens to versions afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.storage import storages
from django.db import IntegrityError, transaction

from engine.errors import WheelError
from tests.tournament_factories import accept, make_bot, make_player, make_wheel, submit
from tournament.players import services
from tournament.players.errors import (
    NameTakenError,
    QuotaError,
    SubmissionError,
    VersionExistsError,
)
from tournament.players.models import Bot, BotVersion, Player, VersionState
from tournament.players.selectors import bots_of, fits, version_status, wheel_of
from tournament.store.clock import in_seconds

pytestmark = pytest.mark.django_db


def test_submitted_wheel_is_kept_and_its_row_is_the_request():
    owner, data = make_player(), make_wheel("alpha", "1.2")
    version = services.submit_wheel(owner=owner, data=data)
    assert (version.bot.name, version.bot.owner, version.version) == ("alpha", owner, "1.2")
    assert version.state == VersionState.SUBMITTED
    assert wheel_of(version) == data
    assert services.queue_versions().ids == (version.pk,)


def test_what_is_no_wheel_leaves_nothing():
    with pytest.raises(WheelError):
        services.submit_wheel(owner=make_player(), data=b"not a zip")
    assert not Bot.objects.exists()


def test_same_wheel_again_is_the_same_version():
    owner = make_player()
    assert submit(owner, "alpha") == submit(owner, "alpha")
    assert BotVersion.objects.count() == 1


def test_same_version_with_other_contents_must_raise_its_number(tmp_path):
    owner = make_player()
    submit(owner, "alpha")
    other = make_wheel("alpha", "1.0", "from engine.sdk import hookimpl\n", tmp_path)
    with pytest.raises(VersionExistsError, match="raise the version number"):
        services.submit_wheel(owner=owner, data=other)


def blobs() -> set[str]:
    return {path.name for path in Path(storages["blobs"].location).rglob("*") if path.is_file()}


def test_nothing_is_kept_of_a_wheel_that_is_refused(settings, tmp_path):
    owner = make_player()
    paused = submit(owner, "alpha").bot
    settings.ARENA_UPLOADS_A_DAY = 2
    submit(owner, "beta")
    services.pause_bot(bot=paused, reason="wait")
    before = blobs()
    other = make_wheel("beta", "1.0", "from engine.sdk import hookimpl\n", tmp_path)
    for player, data, error in (
        (make_player(), make_wheel("alpha", "7.0"), NameTakenError),  # somebody else's
        (make_player(), make_wheel("random", "7.0"), NameTakenError),  # the house's
        (owner, make_wheel("alpha", "7.0"), SubmissionError),  # paused
        (owner, other, VersionExistsError),  # other contents
        (owner, make_wheel("gamma", "7.0"), QuotaError),  # one too many
    ):
        with pytest.raises(error):
            services.submit_wheel(owner=player, data=data)
    assert blobs() == before


def test_player_may_have_only_so_many_versions_waiting(settings):
    settings.ARENA_MAX_UNCHECKED = 2
    owner = make_player()
    first = submit(owner, "alpha", "1.0")
    submit(owner, "beta", "1.0")
    for bot in ("alpha", "gamma"):
        with pytest.raises(QuotaError, match="2 of your versions are still to be checked"):
            submit(owner, bot, "2.0")
    assert submit(owner, "alpha", "1.0") == first  # it is here already
    submit(make_player(), "delta")  # others may
    accept(first)
    submit(owner, "alpha", "2.0")


def test_player_may_upload_only_so_many_versions_a_day(settings):
    settings.ARENA_UPLOADS_A_DAY = 2
    owner = make_player()
    for version in ("1.0", "1.1"):
        services.withdraw_version(version=submit(owner, "alpha", version))
    with pytest.raises(QuotaError, match="2 versions within 24 hours"):
        submit(owner, "alpha", "1.2")
    BotVersion.objects.filter(version="1.0").update(uploaded_at=in_seconds(-24 * 3600 - 1))
    submit(owner, "alpha", "1.2")


def test_house_may_upload_as_many_as_there_are_reference_bots(settings):
    settings.ARENA_UPLOADS_A_DAY = settings.ARENA_MAX_UNCHECKED = 1
    house = Player.objects.create(username="house")
    for bot in ("random", "greedy"):
        submit(house, bot)


def test_later_version_follows_the_one_before():
    owner = make_player()
    first, second = submit(owner, "alpha", "1.0"), submit(owner, "alpha", "1.1")
    assert (first.parent, second.parent) == (None, first)


def test_name_of_another_players_bot_is_refused():
    submit(make_player(), "alpha")
    with pytest.raises(NameTakenError, match="someone else"):
        submit(make_player(), "alpha", "2.0")


def test_reference_names_are_for_the_house_alone():
    with pytest.raises(NameTakenError, match="reserved"):
        submit(make_player(), "greedy")
    assert submit(services.ensure_house(), "greedy").bot.owner.username == "house"


def test_bot_names_differ_in_more_than_case():
    owner = make_player()
    Bot.objects.create(owner=owner, name="alpha")
    with pytest.raises(IntegrityError), transaction.atomic():
        Bot.objects.create(owner=owner, name="Alpha")


def test_paused_bot_takes_no_versions_until_it_is_lifted():
    owner = make_player()
    bot = make_bot("alpha", owner)
    services.pause_bot(bot=bot, reason="it attacked the sandbox")
    with pytest.raises(SubmissionError, match="attacked"):
        submit(owner, "alpha", "1.1")
    services.lift_bot(bot=bot)
    assert submit(owner, "alpha", "1.1").version == "1.1"


def test_version_of_a_paused_bot_is_not_queued():
    version = submit(make_player(), "alpha")
    services.pause_bot(bot=version.bot, reason="wait")
    assert services.queue_versions().ids == ()


def test_queued_version_is_queued_again_only_when_its_message_may_be_lost():
    version = submit(make_player(), "alpha")
    assert services.queue_versions().ids == (version.pk,)
    assert services.queue_versions().ids == ()
    from tournament.store.clock import in_seconds

    BotVersion.objects.update(queued_at=in_seconds(-60))
    assert services.queue_versions().ids == (version.pk,)
    assert services.queue_versions().ids == ()


def test_withdrawn_version_cannot_come_back():
    version = accept(submit(make_player(), "alpha"))
    services.withdraw_version(version=version)
    for act in (services.withdraw_version, services.release_version, services.retry_version):
        with pytest.raises(SubmissionError):
            act(version=version)


def test_version_set_aside_can_be_accepted_again():
    version = accept(submit(make_player(), "alpha"))
    services.quarantine_version(version=version, reason="odd play")
    assert (version.state, version.reason) == (VersionState.QUARANTINED, "odd play")
    services.release_version(version=version)
    assert (version.state, version.reason) == (VersionState.ACCEPTED, "")


def test_unchecked_version_cannot_be_set_aside():
    with pytest.raises(SubmissionError):
        services.quarantine_version(version=submit(make_player(), "alpha"), reason="odd")


@pytest.mark.parametrize("reason", ["", "  "])
def test_nobody_is_stopped_without_a_reason(reason):
    bot = make_bot("alpha")
    with pytest.raises(SubmissionError, match="reason"):
        services.pause_bot(bot=bot, reason=reason)
    with pytest.raises(SubmissionError, match="reason"):
        services.quarantine_version(version=bot.versions.get(), reason=reason)


def test_owner_sees_own_bots_with_versions_newest_first():
    owner = make_player()
    submit(owner, "beta")
    submit(owner, "alpha", "1.0")
    submit(owner, "alpha", "1.1")
    submit(make_player(), "gamma")
    found = {bot.name: [v.version for v in bot.versions.all()] for bot in bots_of(owner)}
    assert found == {"alpha": ["1.1", "1.0"], "beta": ["1.0"]}


def test_status_tells_what_a_version_was_accepted_for():
    status = version_status(accept(submit(make_player(), "alpha"), {"eighty": {"players": [4]}}))
    assert status.is_decided
    assert status.games == {"eighty": {"players": [4]}}
    assert not status.has_log


@pytest.mark.parametrize(
    ("options", "seats", "ruleset", "expected"),
    [
        ({"players": [4], "nello": [True]}, 4, {"nello": True}, True),  # just what was tried
        ({"players": [4], "nello": [True]}, 4, {"nello": False}, False),  # a value that was not
        ({"players": [2, 3]}, 4, {}, False),  # a table that was not
        ({"players": [4]}, 4, {"nello": True}, True),  # an option that makes no difference
    ],
)
def test_version_fits_what_it_was_accepted_for(options, seats, ruleset, expected):
    assert fits(options, seats, ruleset) is expected
