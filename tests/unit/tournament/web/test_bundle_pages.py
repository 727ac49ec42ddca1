"""A finished tournament's bundle can be downloaded by everybody, and the page says how to verify it."""

from __future__ import annotations

import gzip
from datetime import timedelta

import pytest
from django.utils import timezone

from engine.bundle import decode_bundle, verify_bundle
from tests.tournament_factories import make_bot, make_player, make_tournament, play_all, start
from tournament.competitions import services
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import Tournament, TournamentState
from tournament.competitions.selectors.bundles import tournament_bundle
from tournament.competitions.services import bundles

pytestmark = pytest.mark.django_db
PAGE, API = "/tournaments/autumn-cup/bundle.json.gz", "/api/tournaments/autumn-cup/bundle"


def cup(**changes) -> Tournament:
    owner = make_player()
    return start(make_tournament([make_bot(name, owner) for name in ("alpha", "beta")], **changes))


@pytest.fixture
def finished() -> Tournament:
    tournament = play_all(cup())
    assert tournament.state == TournamentState.FINISHED
    return tournament


@pytest.mark.parametrize("path", [PAGE, API], ids=["page", "API"])
def test_everybody_can_download_and_verify_it(client, finished, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/gzip"
    assert answer["Content-Disposition"] == 'attachment; filename="autumn-cup.bundle.json.gz"'
    data = gzip.decompress(b"".join(answer.streaming_content))
    report = verify_bundle(decode_bundle(data))
    assert report.matches == 1
    assert answer["ETag"] == f'"{report.digest}"'


def test_its_page_tells_the_command_and_the_digest(client, finished):
    services.dispatch(rung=True)
    finished.refresh_from_db()
    assert finished.bundle_digest == tournament_bundle(finished).digest
    page = client.get("/tournaments/autumn-cup/").content.decode()
    assert "arena verify-tournament http://testserver/tournaments/autumn-cup/" in page
    assert finished.bundle_digest in page
    assert f'href="{PAGE}"' in page
    told = client.get("/api/tournaments/autumn-cup").json()
    assert told["bundle_digest"] == finished.bundle_digest


@pytest.mark.parametrize("path", [PAGE, API], ids=["page", "API"])
def test_while_it_is_played_there_is_none_and_the_reason_is_told(client, path):
    cup()
    answer = client.get(path)
    assert answer.status_code == 409
    assert "Autumn Cup is not over (being played)" in answer.content.decode()
    assert "verify-tournament" not in client.get("/tournaments/autumn-cup/").content.decode()


@pytest.mark.parametrize("path", [PAGE, API], ids=["page", "API"])
def test_of_sealed_results_there_is_none(client, path):
    play_all(cup(results_at=timezone.now() + timedelta(hours=9)))
    services.dispatch(rung=True)
    assert Tournament.objects.get().bundle_digest == ""
    answer = client.get(path)
    assert answer.status_code == 409
    assert "results of Autumn Cup are sealed" in answer.content.decode()


def test_of_what_is_not_there_or_not_announced_there_is_none(client):
    organiser = make_player()
    assert client.get("/tournaments/none/bundle.json.gz").status_code == 404
    assert client.get("/api/tournaments/none/bundle").status_code == 404
    draft = make_tournament(name="Draft", organiser=organiser)
    Tournament.objects.filter(pk=draft.pk).update(state=TournamentState.DRAFT)
    assert client.get("/tournaments/draft/bundle.json.gz").status_code == 404


def test_a_ruling_has_the_digest_told_anew(client, finished):
    services.dispatch(rung=True)
    finished.refresh_from_db()
    before = finished.bundle_digest
    final = finished.pairings.get()
    places = [3 - part.place for part in final.entrants.order_by("index")]
    services.correct_result(pairing=final, places=places, reason="a doubt")
    finished.refresh_from_db()
    assert finished.bundle_digest == ""
    assert bundles.note_bundle_digests() == 1
    finished.refresh_from_db()
    assert finished.bundle_digest not in {"", before}
    assert bundles.note_bundle_digests() == 0


def test_one_whose_bundle_cannot_be_made_holds_up_nothing(finished, monkeypatch, caplog):
    def fail(_: Tournament) -> None:
        raise TournamentStateError("a version is unknown")

    Tournament.objects.update(bundle_digest="")
    monkeypatch.setattr(bundles, "tournament_bundle", fail)
    services.dispatch(rung=True)
    assert "there is no bundle of autumn-cup" in caplog.text
    assert bundles.note_bundle_digests() == 0
    finished.refresh_from_db()
    assert finished.bundle_digest == bundles.NONE
