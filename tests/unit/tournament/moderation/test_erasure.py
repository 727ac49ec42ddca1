"""Erasing a person: nothing of them is left, and all that was played verifies as before."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import models
from django.test import Client
from django.utils import timezone

from engine.bundle import decode_bundle, verify_bundle
from tests.scrimmage_factories import make_scrimmage, version_of
from tests.site_factory import Site, copy_site
from tests.tournament_factories import make_player, make_tournament, play_all, submit
from tournament.competitions import services as competitions
from tournament.competitions.errors import EntryError
from tournament.competitions.models import Entrant, Match, Notice, Tournament
from tournament.competitions.selectors.bundles import plain_bundle, tournament_bundle
from tournament.competitions.selectors.pages import match_logs
from tournament.leaderboards.services import verify_ratings
from tournament.moderation.errors import ErasureListError, ModerationError
from tournament.moderation.selectors import erasure_preview, write_personal_data
from tournament.moderation.services import erase_player, repeat_erasures
from tournament.players import services as players
from tournament.players.errors import AccountError, NameTakenError
from tournament.players.models import Bot, BotVersion, Player
from tournament.scrimmages import services as scrimmages
from tournament.scrimmages.models import Batch, Scrimmage
from tournament.scrimmages.selectors import batch_logs, blobs_in_use
from tournament.store.errors import BlobMissingError
from tournament.store.services import has_blob, put_blob, read_blob

NAME, MAIL = "anneliese", "anneliese@example.org"
SECRETS = (NAME, MAIL, "Rumpelstilz")


@pytest.fixture(autouse=True)
def home(settings, tmp_path) -> Path:
    settings.ARENA_HOME = tmp_path
    return tmp_path


@pytest.fixture
def site(db) -> Iterator[Site]:
    """The site on which ann is called otherwise, has written much, and much is written about her."""
    site = copy_site()
    ann = site.ann
    ann.username, ann.email, ann.slug, ann.last_name = NAME, MAIL, NAME, "Rumpelstilz"
    ann.save()
    players.create_token(player=ann, name="Rumpelstilz' laptop")
    client = Client()
    client.force_login(ann)
    AccessAttempt.objects.create(
        username=NAME, ip_address="192.0.2.7", failures_since_start=1, attempt_time=timezone.now()
    )
    BotVersion.objects.filter(bot__owner=ann).update(summary="by Rumpelstilz")
    for player in (ann, site.bob):
        Notice.objects.create(
            player=player, tournament=site.cup, text=f"{NAME} has taken alpha out of Cup"
        )
    note(site.root, ann, f"Suspend: {NAME.title()} <{MAIL}> was rude")
    note(site.root, site.bots[0], f"Pause: asked by {NAME}.")
    blobs = [read_blob(sha256) for sha256 in competitions.blobs_in_use() | blobs_in_use()]
    yield site
    for blob in blobs:  # other tests of this process copy the same site
        put_blob(blob)


def note(by: Player, about: models.Model, message: str) -> None:
    LogEntry.objects.create(
        user=by,
        content_type=ContentType.objects.get_for_model(about),
        object_id=str(about.pk),
        object_repr=str(about),
        action_flag=CHANGE,
        change_message=message,
    )


def mentions() -> list[str]:
    """Every field of every row in which one of the secrets stands."""
    return [
        f"{model._meta.label}.{field.name}: {value}"
        for model in apps.get_models(include_auto_created=True)
        for row in model._base_manager.all()
        for field in model._meta.concrete_fields
        if isinstance(value := getattr(row, field.attname), str | list | dict)
        and any(secret.lower() in str(value).lower() for secret in SECRETS)
    ]


def test_nothing_that_names_the_person_is_left_in_any_table(site):
    assert len(mentions()) > 8, "else this test would see nothing"
    former = erase_player(player=site.ann)
    assert former == f"former player {site.ann.pk}"
    assert mentions() == []
    gone = Player.objects.get(pk=site.ann.pk)
    assert (gone.username, gone.is_active, gone.has_usable_password()) == (former, False, False)
    assert not gone.tokens.exists()
    assert not AccessAttempt.objects.exists()
    assert LogEntry.objects.filter(change_message=f"Pause: asked by {former}.").exists()


def test_sessions_end_and_their_cookies_open_nothing(site):
    client = Client()
    client.force_login(site.ann)
    assert client.get("/account/").status_code == 200
    erase_player(player=site.ann)
    assert client.get("/account/").status_code == 302


def test_bundles_and_ratings_verify_after_an_erasure_as_before(site):
    def facts() -> tuple[str, bytes]:
        bundle = tournament_bundle(Tournament.objects.get(pk=site.cup.pk))
        return bundle.digest, b"".join(plain_bundle(bundle))

    before = facts()
    erase_player(player=site.ann)
    assert facts() == before
    assert verify_bundle(decode_bundle(before[1])).matches == 3
    assert verify_ratings(game="eighty", kind="mono") == ()


def test_who_plays_leaves_what_goes_on_and_others_play_it_to_its_end(site):
    erase_player(player=site.ann)
    entered = Entrant.objects.filter(bots__bot__owner=site.ann)
    assert set(entered.filter(tournament=site.table).values_list("state", flat=True)) == {
        "withdrawn"
    }
    assert not entered.filter(tournament=site.open).exists()
    assert play_all(site.table).state == "finished"


def test_wheels_logs_and_scrimmages_are_deleted_and_hashes_stay(site, monkeypatch):
    asked: list[str] = []

    def blobs_in_use(start: str = "") -> set[str]:
        asked.append(start)
        return named(start)

    named = competitions.blobs_in_use
    monkeypatch.setattr(competitions, "blobs_in_use", blobs_in_use)
    hashes = list(
        BotVersion.objects.filter(bot__owner=site.ann).values_list("wheel_sha256", flat=True)
    )
    log = site.rejected.log_sha256
    assert read_blob(log)
    erase_player(player=site.ann)
    for sha256 in (*hashes, log):
        with pytest.raises(BlobMissingError):
            read_blob(sha256)
    assert (
        list(BotVersion.objects.filter(bot__owner=site.ann).values_list("wheel_sha256", flat=True))
        == hashes
    )
    assert not Scrimmage.objects.filter(asked_by=site.ann).exists()
    assert {sha256[0] for sha256 in (*hashes, log)} <= set(asked)
    assert [len(part) for part in asked] == [1] * len(set(asked)), "never all at once"


def test_what_their_bots_left_in_logs_goes_and_what_others_left_stays(site, monkeypatch):
    """Logs are those that a worker stores: here of bots that print nothing, kept all the same."""
    for app in ("competitions", "scrimmages"):
        monkeypatch.setattr(f"tournament.{app}.services.playing._says_anything", lambda _: True)
    play_all(site.table)
    against_bob = make_scrimmage(
        first=version_of(Bot.objects.get(name="beta")),
        other=version_of(Bot.objects.get(name="aces")),
    )
    scrimmages.play_batch(scrimmage_id=against_bob.pk, trusted=True)

    def are_left(player: Player) -> tuple[bool, bool]:
        matches = Match.objects.exclude(logs_sha256="")
        return (
            any(match_logs(match, player) for match in matches),
            any(batch_logs(batch, player) for batch in against_bob.batches.all()),
        )

    assert (are_left(site.ann), are_left(site.bob)) == ((True, True), (True, True))
    before = {
        *Match.objects.filter(pairing__entrants__entrant__bots__bot__owner=site.ann)
        .exclude(logs_sha256="")
        .values_list("logs_sha256", flat=True),
        *against_bob.batches.values_list("logs_sha256", flat=True),
        *Batch.objects.filter(scrimmage__asked_by=site.ann).values_list("record_sha256", flat=True),
    }
    assert all(map(has_blob, before))
    erase_player(player=site.ann)
    named = competitions.blobs_in_use() | blobs_in_use()  # others print the same here: nothing
    assert before - named
    assert not any(map(has_blob, before - named)), "the store has nothing of it any more"
    assert all(map(has_blob, before & named))
    assert (are_left(site.ann), are_left(site.bob)) == ((False, False), (True, True))


def test_logs_that_are_lost_keep_nobody_from_being_erased(site):
    match = Match.objects.filter(
        tournament=site.cup, pairing__entrants__entrant__bots__bot__owner=site.ann
    ).first()
    Match.objects.filter(pk=match.pk).update(logs_sha256="0" * 64)
    erase_player(player=site.ann)
    match.refresh_from_db()
    assert match.logs_sha256 == "", "an older backup, which may have them, must not bring them back"


def test_texts_of_an_organiser_go_and_the_tournament_stays(site):
    competitions.pause_tournament(tournament=site.table, reason="I am ill")
    note(site.olga, site.table, "Pause: I am ill")
    erase_player(player=site.olga)
    site.table.refresh_from_db()
    site.cup.refresh_from_db()
    assert site.table.paused_reason == "(removed with the account of who wrote it)"
    assert (site.cup.description, site.cup.state) == ("", "finished")


def test_pages_that_name_a_former_player_still_answer(site, client):
    erase_player(player=site.ann)
    for path in (
        "/bots/alpha/",
        f"/players/former-player-{site.ann.pk}/",
        "/tournaments/cup/",
        "/leaderboards/eighty/mono/",
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        assert NAME not in answer.content.decode()
    assert client.get(f"/players/{NAME}/").status_code == 404


def test_restored_backup_repeats_what_is_on_the_list(site, home):
    key = str(site.ann.key)
    erase_player(player=site.ann)
    lines = (home / "erasures.jsonl").read_text().splitlines()
    assert [json.loads(line)["player"] for line in lines] == [key]
    assert not any(secret in lines[0] for secret in SECRETS)
    assert oct((home / "erasures.jsonl").stat().st_mode)[-3:] == "600"
    assert repeat_erasures() == (), "there is nothing to repeat before a backup is restored"
    Player.objects.filter(pk=site.ann.pk).update(  # what an older backup would bring back
        username=NAME, email=MAIL, slug=NAME, erased_at=None, is_active=True
    )
    assert repeat_erasures() == (f"former player {site.ann.pk}",)
    assert mentions() == []
    assert (home / "erasures.jsonl").read_text().splitlines() == lines


def test_somebody_else_who_got_the_same_number_after_a_restore_is_not_erased(site):
    pk = site.bob.pk
    player = make_player("carla")
    erase_player(player=player)
    Player.objects.filter(pk=player.pk).delete()  # a backup from before carla signed up ...
    Player.objects.create(pk=player.pk, username="dora", slug="dora")  # ... and dora, who came then
    assert repeat_erasures() == ()
    assert Player.objects.filter(username="dora").exists()
    assert Player.objects.get(pk=pk).erased_at is None


def test_list_that_cannot_be_read_is_told_with_its_line(site, home):
    (home / "erasures.jsonl").write_text('{"player": "nobody"}\n')
    with pytest.raises(ErasureListError, match="line 1 of the list"):
        repeat_erasures()


def test_nobody_is_erased_if_that_cannot_be_noted(site, home):
    (home / "erasures.jsonl").mkdir()
    with pytest.raises(ErasureListError, match="nobody was erased"):
        erase_player(player=site.ann)
    assert Player.objects.get(pk=site.ann.pk).username == NAME
    assert read_blob(site.rejected.wheel_sha256)


@pytest.mark.parametrize("who", ["house", "twice"])
def test_who_is_no_person_any_more_cannot_be_erased(site, who):
    player = players.ensure_house() if who == "house" else site.ann
    if who == "twice":
        erase_player(player=player)
        player.refresh_from_db()
    with pytest.raises(ModerationError):
        erase_player(player=player)


def test_name_of_a_former_player_cannot_be_taken(db):
    with pytest.raises(AccountError, match="reserved"):
        make_player("former-player-3")


def test_name_within_another_word_stays(site):
    Notice.objects.create(player=site.bob, tournament=site.cup, text=f"see {NAME}2 and x-{NAME}")
    erase_player(player=site.ann)
    assert Notice.objects.filter(text=f"see {NAME}2 and x-{NAME}").exists()


def test_export_has_the_rows_and_files_and_no_secret(site):
    _, token = players.create_token(player=site.ann, name="second")
    file = io.BytesIO()
    write_personal_data(site.ann, file)
    with zipfile.ZipFile(file) as archive:
        data = json.loads(archive.read("data.json"))
        assert archive.read("wheels/alpha-2.0.whl") == read_blob(site.rejected.wheel_sha256)
        assert archive.read("logs/checks/alpha-2.0.txt") == read_blob(site.rejected.log_sha256)
    assert data["account"][0]["email"] == MAIL
    assert {row["name"] for row in data["bots"]} == {"alpha", "aces"}
    assert data["unreadable"] == {}
    for secret in (site.ann.password, token.partition(".")[2]):
        assert secret not in json.dumps(data)


def test_command_shows_exports_and_erases(site, tmp_path, capsys):
    export = tmp_path / "anneliese.zip"
    call_command("erase_player", NAME, export=export, yes=True)
    told = capsys.readouterr().out
    assert "alpha keeps its name and results" in told
    assert "Table, being played: alpha is withdrawn" in told
    assert zipfile.is_zipfile(export)
    assert oct(export.stat().st_mode)[-3:] == "600"
    assert Player.objects.get(pk=site.ann.pk).erased_at is not None


def test_command_without_a_yes_only_shows(site, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(CommandError, match="nothing was erased"):
        call_command("erase_player", NAME)
    assert "becomes “former player" in capsys.readouterr().out
    assert Player.objects.get(pk=site.ann.pk).username == NAME


def test_preview_says_what_is_organised(site):
    assert any("which they organise, goes on" in line for line in erasure_preview(site.olga))


def test_erased_bots_enter_nothing_and_nobody_can_upload_under_their_names(site):
    erase_player(player=site.ann)
    assert not Bot.objects.filter(owner=site.ann, paused_reason="").exists()
    cup = make_tournament(name="Late Cup", organiser=site.olga)
    with pytest.raises(EntryError, match="its owner has left this site"):
        competitions.enter(tournament=cup, bots=[site.bots[0]], by=site.root)
    with pytest.raises(NameTakenError):
        submit(site.bob, "alpha", "3.0")
