"""Sealed results: no answer to anyone but organisers depends on them, until their time has come."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from tests.tournament_factories import make_tournament, start
from tests.unit.tournament.web.test_permissions import PAGES, own_addresses
from tournament.competitions import services
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    Match,
    MatchState,
    Notice,
    Round,
    Tournament,
    TournamentState,
)
from tournament.competitions.services import playing
from tournament.competitions.services.dispatching import publish_due_results
from tournament.leaderboards.models import Rating, RatingEvent
from tournament.leaderboards.services import verify_ratings
from tournament.store.pulses import MEMORY

UNTIL = timedelta(days=2)
BOARDS = {"kind": "boards", "boards": 8, "extra_boards": 1}


@pytest.fixture(autouse=True)
def as_if_sandboxed(monkeypatch):
    """Matches are played in this process and are rated."""
    run_match = playing.run_match
    monkeypatch.setattr(
        playing,
        "run_match",
        lambda spec, sources, *, trusted, keep_alive: run_match(
            spec, sources, trusted=True, keep_alive=keep_alive
        ),
    )


@pytest.fixture(autouse=True)
def queue_moves(monkeypatch):
    """However long a busy machine takes for all pages: what they say of the queue is the same."""
    monkeypatch.setattr(MEMORY, "known_delays", lambda: ())


def sealed_cup(site, **changes) -> Tournament:
    plan = {
        "name": "Secret Cup",
        "contest": BOARDS,
        "results_at": timezone.now() + UNTIL,
        **changes,
    }
    return start(make_tournament(site.bots, **plan))


def play(match: Match) -> None:
    assert services.play_match(match_id=match.pk) is services.Play.RECORDED


def lost_by(name: str) -> Callable[[Match], None]:
    """Decides a match without playing it: that entrant loses, or where it is not in it somebody else."""

    def decide(match: Match) -> None:
        parts = match.pairing.entrants.order_by("index").values_list("entrant__name", "entrant")
        loser = dict(parts).get(name, parts[0][1])
        services.forfeit_match(match=match, offenders=[loser], reason="lost its way")

    return decide


def run(tournament: Tournament, decide: Callable[[Match], None]) -> Tournament:
    """Bring a tournament to its end."""
    while tournament.state == TournamentState.RUNNING:
        for match in tournament.matches.filter(state=MatchState.PENDING).order_by("pk"):
            decide(match)
        services.advance_round(tournament=tournament)
        tournament.refresh_from_db()
    return tournament


PASSING = re.compile(
    r'name="csrfmiddlewaretoken" value="\w+"'
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?"
    r"|[\w,\xa0 ]+ ago"
)
"""What differs between two answers anyhow: tokens of forms, and when it is."""


def addresses(site, slug: str) -> list[str]:
    """All addresses of the site that answer to a GET, those of the sealed tournament first."""
    keys = [f"SE/R{r}/M{m}" for r in (1, 2, 3) for m in (1, 2)]
    own = [f"/tournaments/{slug}/", *(f"/tournaments/{slug}/?round={r}" for r in (1, 2, 3))]
    own += [f"/tournaments/{slug}/matches/{key}/" for key in keys]
    own += [f"/tournaments/{slug}/matches/{key}/record.json" for key in keys]
    own += [f"/api/tournaments/{slug}", *(f"/api/matches/{slug}/{key}" for key in keys)]
    own += [f"/api/tournaments/{slug}/{part}" for part in ("entries", "pairings", "standings")]
    own += [f"/api/matches/{slug}/{key}/record" for key in keys]
    own += [f"/tournaments/{slug}/bundle.json.gz", f"/api/tournaments/{slug}/bundle"]
    own += [f"/bots/{bot.name}/" for bot in site.bots]
    own += [f"/players/{player}/" for player in ("ann", "bob")]
    places = site.places(trial=1)
    return own + [page.format(**places) for page in PAGES]


def answers(client: Client, paths: list[str]) -> dict[str, tuple[int, str]]:
    found = {}
    for path in paths:
        answer = client.get(path)
        body = b"".join(answer) if answer.streaming else answer.content
        if body.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                body = b"\n".join(archive.read(name) for name in archive.namelist())
        found[path] = (answer.status_code, PASSING.sub("", body.decode(errors="replace")))
    return found


def test_no_answer_to_who_is_no_organiser_depends_on_a_sealed_result(site):
    cup = sealed_cup(site)
    paths = addresses(site, cup.slug)
    pages = [path for path in paths if not path.startswith(("/api/", "/admin/"))]
    owner = Client()
    owner.force_login(site.ann)
    visits = ((Client(), paths), (owner, pages))  # to the API and the admin she is nobody
    seen, winners = [], []
    for _ in range(2):
        with transaction.atomic():
            decide = lost_by(winners[0]) if winners else play
            run(Tournament.objects.get(pk=cup.pk), decide)
            winners.append(cup.entrants.get(place=1).name)
            seen.append([answers(visitor, asked) for visitor, asked in visits])
            transaction.set_rollback(True)
    assert len(set(winners)) == 2, "the two ways to play it must end otherwise"
    for one, other in zip(*seen, strict=True):
        assert [path for path in one if one[path] != other[path]] == []


def test_every_address_of_the_site_is_among_those_that_are_compared(site):
    resolver = get_resolver()
    routes = {resolver.resolve(path.split("?")[0]).route for path in addresses(site, "secret-cup")}
    missing = {path for path, _ in own_addresses(resolver)} - routes
    assert missing == {"api/"}, "the API's root only names the API for reversing"


def test_organisers_see_it_with_a_mark(site, olga, client):
    cup = run(sealed_cup(site), play)
    champion = cup.entrants.get(place=1).name
    path = f"/tournaments/{cup.slug}/"
    assert "is for organisers alone until" in olga.get(path).content.decode()
    assert "Final standings" in olga.get(path).content.decode()
    assert "Final standings" not in client.get(path).content.decode()
    assert "are sealed until" in client.get(path).content.decode()
    match = f"{path}matches/SE/R2/M1/"
    assert "for organisers alone" in olga.get(match).content.decode()
    assert client.get(match).status_code == 404
    assert champion in olga.get(match).content.decode()
    detail = client.get(f"/api/tournaments/{cup.slug}").json()
    assert (detail["sealed_from"], detail["secret"]) == (1, None)
    assert client.get(f"/api/tournaments/{cup.slug}/standings").json()["standings"] == []


def test_results_are_public_and_rated_in_order_when_their_time_has_come(site, client):
    cup = run(sealed_cup(site), play)
    before = RatingEvent.objects.count()
    assert publish_due_results(now=timezone.now()) == 0
    assert RatingEvent.objects.count() == before
    until = cup.results_at
    assert publish_due_results(now=until) == 1
    keys = RatingEvent.objects.order_by("seq").values_list("match_key", flat=True)[before:]
    assert list(keys) == [f"{cup.slug}/SE/{key}" for key in ("R1/M1", "R1/M2", "R2/M1")]
    assert verify_ratings(game="eighty", kind="mono") == ()
    assert "Final standings" in client.get(f"/tournaments/{cup.slug}/").content.decode()
    assert client.get(f"/tournaments/{cup.slug}/matches/SE/R2/M1/").status_code == 200
    assert client.get(f"/api/tournaments/{cup.slug}").json()["secret"] is not None
    assert publish_due_results(now=until) == 0


def test_only_the_rounds_from_then_on_are_sealed(site, client):
    cup = sealed_cup(site, results_at=None, name="Half")
    services.seal_results(tournament=cup, until=timezone.now() + UNTIL)
    run(cup, play)
    published = list(Round.objects.filter(stage__tournament=cup).order_by("index"))
    assert [row.published_at is None for row in published] == [False, True]
    page = client.get(f"/tournaments/{cup.slug}/").content.decode()
    assert "round 2 and later are sealed" in page
    assert "Standings" in page
    pairings = client.get(f"/api/tournaments/{cup.slug}/pairings").json()["pairings"]
    assert [bool(row["decided_by"]) for row in pairings] == [True, True, False]
    assert len(pairings[2]["entrants"]) == 2  # who meets follows from what is public
    assert RatingEvent.objects.filter(match_key__startswith=f"{cup.slug}/").count() == 2


def test_organiser_publishes_before_the_time_and_later_rounds_are_public_then(site, olga, client):
    cup = sealed_cup(site)
    for match in cup.matches.all():
        play(match)
    services.advance_round(tournament=cup)
    base = f"/admin/competitions/tournament/operate/publish/?ids={cup.pk}"
    assert "done for" in olga.post(base, {}, follow=True).content.decode()
    run(cup, play)
    assert not Round.objects.filter(published_at__isnull=True).exists()
    assert RatingEvent.objects.filter(match_key__startswith=f"{cup.slug}/").count() == 3


def test_nothing_of_a_cancelled_tournament_is_rated_when_it_is_published(site):
    cup = sealed_cup(site)
    for match in cup.matches.all():
        play(match)
    services.advance_round(tournament=cup)
    before = Rating.objects.count()
    services.cancel_tournament(tournament=cup, reason="rain")
    services.publish_results(tournament=cup)
    assert not RatingEvent.objects.filter(match_key__startswith=f"{cup.slug}/").exists()
    assert Rating.objects.count() == before


def test_rulings_on_sealed_results_are_sealed_too(site, client, olga):
    cup = sealed_cup(site)
    for match in cup.matches.all():
        play(match)
    services.advance_round(tournament=cup)
    services.void_match(
        pairing=cup.pairings.get(key="SE/R1/M1"), reason="the clock stood still", by=site.olga
    )
    path = f"/tournaments/{cup.slug}/"
    assert "the clock stood still" not in client.get(path).content.decode()
    assert "the clock stood still" in olga.get(path).content.decode()
    assert client.get(f"/api{path[:-1]}").json()["rulings"] == []
    assert not Notice.objects.filter(text__contains="stood still").exists()


@pytest.mark.parametrize("state", ["past", "ended"])
def test_seal_that_makes_no_sense_is_refused(site, state):
    now = timezone.now()
    if state == "past":
        with pytest.raises(TournamentStateError, match="time to come"):
            services.seal_results(tournament=site.table, until=now - UNTIL)
    else:
        with pytest.raises(TournamentStateError, match="results are public"):
            services.seal_results(tournament=site.cup, until=now + UNTIL)
