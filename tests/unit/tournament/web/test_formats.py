"""A tournament of every format goes from its start to its end, and its page shows it all the way."""

from __future__ import annotations

import pytest

from engine.formats import FORMATS
from tests.tournament_factories import make_bot, make_tournament, play_all, start
from tournament.competitions.models import TournamentState
from tournament.competitions.selectors import tournament_page
from tournament.operations.results import bracket_text

CHANGES = {
    "pods": {"game": "podkidnoe", "format_options": {"rounds": 2}},
    "ladder": {"format_options": {"matches_each": 2}},
}
"""What each format needs to be played by five bots soon, where that is not usual."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMATS)
def test_tournament_of_every_format_is_played_and_shown(client, db, name):
    bots = [make_bot(f"bot{number}") for number in range(5)]
    tournament = start(make_tournament(bots, format=name, **CHANGES.get(name, {})))
    running = client.get(f"/tournaments/{tournament.slug}/").content.decode()
    assert FORMATS[name].title in running
    assert 'id="matches"' in running

    tournament = play_all(tournament)
    assert tournament.state == TournamentState.FINISHED
    page = tournament_page(tournament.slug)
    (stage,) = page.stages
    assert {row.entrant for row in stage.standings} == {row.pk for row in page.entrants}
    assert client.get(f"/tournaments/{tournament.slug}/").status_code == 200
    if stage.knocks_out:
        champion = next(row.name for row in page.entrants if row.place == 1)
        assert champion in bracket_text(stage, page)
