"""A record drawn as text."""

from __future__ import annotations

import pytest

from engine.drawing import WIDTH, draw_record
from engine.errors import RecordError, UsageError
from engine.record import BoardsContest, GamesContest, decode_record
from tests.golden.matches import FOLDER
from tests.match_fakes import at_random, entrant, last_legal, play, spec_of

GOLDEN = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_drawing_fits_a_terminal_and_shows_all_that_was_played(path):
    record = decode_record(path.read_bytes())
    text = draw_record(record)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.count("===") == 2 * (sum(len(game.deals) for game in record.games) + 1)
    assert record.digest in text
    for one in record.entrants:
        assert one.name in text


def test_the_header_names_the_match_its_unusual_rules_and_its_entrants():
    pair = entrant("alpha", "beta", name="Old Friends")
    spec = spec_of(
        "eighty",
        GamesContest(3),
        entrants=[pair, entrant("gamma")],
        options={"target": 60, "nello": False},
        match_key="SE/R1/M2",
    )
    lines = draw_record(play(spec)[0].record).splitlines()
    assert lines[:5] == [
        "Eighty, match SE/R1/M2: best of 3 games",
        "rules: target=60, nello=false",
        "time control: fast",
        "1. Old Friends: alpha 1.0 with beta 1.0",
        "2. Gamma: gamma 1.0",
    ]


def test_usual_rules_are_not_told_again():
    text = draw_record(play(spec_of("podkidnoe", BoardsContest(2, 1)))[0].record)
    assert "rules: as usual\n" in text
    assert "2 boards, each in every seating, up to 1 more on a tie" in text


def test_a_later_deal_tells_how_the_game_stands():
    record = play(spec_of("eighty", GamesContest(1), options={"target": 200}))[0].record
    first, second = record.games[0].deals[:2]
    text = draw_record(record)
    assert "=== Game 1, deal 1 (deal 0) ===" in text
    assert f"=== Game 1, deal 2 at {first.score[0]}-{first.score[1]} (deal 1) ===" in text
    assert second.score is not None


def test_a_fault_is_told_where_it_happened_and_in_the_result():
    text = draw_record(decode_record((FOLDER / "eighty-fault-at-turn.json").read_bytes()))
    assert "(a fault ended the match here)" in text
    assert "ended by a fault: illegal action" in text
    assert "Beta on seat 3: illegal action: chose bid 10, which is not legal here" in text
    assert "place 1: Alpha (+0)" in text


def test_the_best_stands_first_in_the_result():
    record = play(spec_of("podkidnoe", BoardsContest(3), entrants=3), at_random, last_legal)[
        0
    ].record
    places = [
        int(line.split()[1].rstrip(":"))
        for line in draw_record(record).splitlines()
        if line.startswith("place ")
    ]
    assert places == sorted(record.outcome.places)


def test_long_names_are_wrapped():
    spec = spec_of("podkidnoe", entrants=[entrant(b, name=b[0] * 80) for b in ("alpha", "beta")])
    assert max(map(len, draw_record(play(spec)[0].record).splitlines())) <= WIDTH


def test_the_plays_of_one_deal_can_be_shown_alone():
    record = play(spec_of("podkidnoe", BoardsContest(3)))[0].record
    text = draw_record(record, 1)
    assert text.count("=== Board") == 2
    assert text.count("=== Board 2, ") == 2
    with pytest.raises(UsageError, match="its deals are 0 to 2"):
        draw_record(record, 3)


def test_what_is_not_true_is_not_drawn():
    record = decode_record(GOLDEN[0].read_bytes())
    record.games[0].score[0] += 1
    with pytest.raises(RecordError):
        draw_record(record)
