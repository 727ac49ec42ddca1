"""Rulings: what an organiser changes, what it takes back, and that its preview is what happens."""

from __future__ import annotations

import pytest

from tests.tournament_factories import (
    entrant_of,
    make_bot,
    make_player,
    make_tournament,
    play_all,
    start,
)
from tournament.competitions import services
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    DecidedBy,
    Match,
    MatchState,
    Notice,
    Pairing,
    Round,
    RoundState,
    Ruling,
    SupersededMatch,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors import tournament_page
from tournament.competitions.selectors.engine_values import stage_format, stage_view
from tournament.competitions.services import Play, playing
from tournament.competitions.services.previewing import preview
from tournament.leaderboards.models import Rating, RatingEvent
from tournament.leaderboards.services import verify_ratings

pytestmark = pytest.mark.django_db
BOARDS = {"kind": "boards", "boards": 8, "extra_boards": 1}
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
WHY = "the machine was overloaded"


@pytest.fixture(autouse=True)
def as_if_sandboxed(monkeypatch):
    """Matches are played in this process and count as if they had been held by a sandbox."""
    run_match = playing.run_match
    monkeypatch.setattr(
        playing,
        "run_match",
        lambda spec, sources, *, trusted, keep_alive: run_match(
            spec, sources, trusted=True, keep_alive=keep_alive
        ),
    )


def play(match: Match) -> None:
    assert services.play_match(match_id=match.pk) is Play.RECORDED


def play_round(tournament: Tournament, index: int) -> None:
    for match in tournament.matches.filter(pairing__round__index=index).order_by("pk"):
        if match.state == MatchState.PENDING:
            play(match)
    services.advance_round(tournament=tournament)


def cup(size: int = 8, **changes) -> Tournament:
    owner = make_player()
    bots = [make_bot(name, owner) for name in NAMES[:size]]
    return start(make_tournament(bots, **{"contest": BOARDS, **changes}))


def pairing(tournament: Tournament, key: str) -> Pairing:
    return Pairing.objects.get(tournament=tournament, key=key)


def other_places(row: Pairing) -> list[int]:
    """Who went on is second now."""
    return [2 if part.advances else 1 for part in row.entrants.all()]


def names_in(row: Pairing) -> list[str]:
    return [part.entrant.name for part in row.entrants.all()]


def everything(tournament: Tournament) -> list[tuple]:
    return [
        (row.key, names_in(row), row.decided_by, [part.place for part in row.entrants.all()])
        for row in Pairing.objects.filter(tournament=tournament).order_by("pk")
    ]


def test_another_winner_takes_back_just_what_depended_on_the_old_one():
    tournament = cup()
    for index in (1, 2):
        play_round(tournament, index)
    untouched = tournament.matches.get(pairing__key="SE/R2/M2")
    wrong = pairing(tournament, "SE/R1/M1")
    loser = next(part.entrant.name for part in wrong.entrants.all() if not part.advances)
    winner = next(part.entrant.name for part in wrong.entrants.all() if part.advances)
    ruling = services.correct_result(pairing=wrong, places=other_places(wrong), reason=WHY)

    assert list(ruling.superseded.values_list("key", flat=True)) == ["SE/R2/M1", "SE/R3/M1"]
    again = pairing(tournament, "SE/R2/M1")
    assert loser in names_in(again)
    assert winner not in names_in(again)
    assert (again.decided_by, again.edition) == ("", 2)
    untouched.refresh_from_db()
    assert untouched.state == MatchState.FINISHED
    assert not Pairing.objects.filter(tournament=tournament, key="SE/R3/M1").exists()
    assert list(Round.objects.order_by("index").values_list("index", "state", "is_partial")) == [
        (1, RoundState.COMPLETE, False),
        (2, RoundState.OPEN, False),
    ]
    assert play_all(tournament, trusted=False).state == TournamentState.FINISHED
    untouched.refresh_from_db()
    assert Match.objects.filter(tournament=tournament).count() == 7
    page = tournament_page(tournament.slug)
    assert {row.pk: row.place for row in page.entrants} == {
        row.entrant: row.place for row in page.stages[-1].standings
    }
    assert entrant_of(tournament, winner).place > 4


def test_what_a_ruling_takes_back_is_void_in_the_ratings_and_what_is_played_anew_counts():
    tournament = cup(4)
    play_round(tournament, 1)
    play_round(tournament, 2)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED
    final = pairing(tournament, "SE/R2/M1")
    services.correct_result(pairing=final, places=other_places(final), reason=WHY)
    assert [
        (e.kind, e.match_key.split("/", 1)[1]) for e in RatingEvent.objects.order_by("seq")
    ] == [
        ("result", "SE/R1/M1"),
        ("result", "SE/R1/M2"),
        ("result", "SE/R2/M1"),
        ("void", "SE/R2/M1"),
    ]
    assert verify_ratings(game="eighty", kind="mono") == ()
    champion = next(p.entrant for p in pairing(tournament, final.key).entrants.all() if p.advances)
    champion.refresh_from_db()
    assert champion.place == 1
    services.restore_match(pairing=final, reason="it was right after all")
    assert verify_ratings(game="eighty", kind="mono") == ()
    assert RatingEvent.objects.order_by("seq").last().kind == "unvoid"
    champion.refresh_from_db()
    assert champion.place == 2


def test_match_paired_anew_is_rated_under_a_key_of_its_own():
    tournament = cup(4)
    play_round(tournament, 1)
    first = pairing(tournament, "SE/R1/M1")
    final = tournament.matches.get(pairing__key="SE/R2/M1")
    services.correct_result(pairing=first, places=other_places(first), reason=WHY)
    assert not Match.objects.filter(pk=final.pk).exists()
    play_all(tournament, trusted=False)
    rated = RatingEvent.objects.filter(kind="result").values_list("match_key", flat=True)
    assert f"{tournament.slug}/SE/R2/M1~2" in rated
    assert verify_ratings(game="eighty", kind="mono") == ()


def test_play_of_a_match_that_is_taken_back_is_discarded(monkeypatch):
    tournament = cup(4)
    play_round(tournament, 1)
    run_match = playing.run_match

    def meanwhile(spec, sources, *, trusted, keep_alive):
        first = pairing(tournament, "SE/R1/M1")
        services.correct_result(pairing=first, places=other_places(first), reason=WHY)
        return run_match(spec, sources, trusted=True, keep_alive=keep_alive)

    monkeypatch.setattr(playing, "run_match", meanwhile)
    final = tournament.matches.get(pairing__key="SE/R2/M1")
    assert services.play_match(match_id=final.pk) is Play.DISCARDED
    assert pairing(tournament, "SE/R2/M1").decided_by == ""


def test_pairing_that_has_not_been_played_yet_is_taken_back_too_and_the_rest_goes_on():
    tournament = cup()
    play_round(tournament, 1)
    play(tournament.matches.get(pairing__key="SE/R2/M2"))
    first = pairing(tournament, "SE/R1/M1")
    services.correct_result(pairing=first, places=other_places(first), reason=WHY)
    assert SupersededMatch.objects.get().decided_by == ""
    assert play_all(tournament, trusted=False).state == TournamentState.FINISHED


def test_rerun_of_deterministic_bots_gives_the_same_record():
    tournament = cup(4)
    play_round(tournament, 1)
    match = tournament.matches.get(pairing__key="SE/R1/M1")
    digest = match.digest
    services.rerun_match(match=match, reason=WHY)
    match.refresh_from_db()
    assert (match.state, match.digest, match.termination) == (MatchState.PENDING, "", "")
    assert set(SupersededMatch.objects.values_list("key", flat=True)) == {"SE/R1/M1", "SE/R2/M1"}
    assert play_all(tournament, trusted=False).state == TournamentState.FINISHED
    match.refresh_from_db()
    assert match.digest == digest == SupersededMatch.objects.get(key="SE/R1/M1").digest
    assert RatingEvent.objects.filter(kind="result").count() == 4
    assert verify_ratings(game="eighty", kind="mono") == ()


def test_rerun_in_a_round_robin_leaves_the_other_rounds_alone():
    tournament = cup(4, format="round_robin")
    play_round(tournament, 1)
    play_round(tournament, 2)
    match = tournament.matches.filter(pairing__round__index=1).first()
    services.rerun_match(match=match, reason=WHY)
    assert SupersededMatch.objects.count() == 1
    assert Round.objects.get(index=2).state == RoundState.COMPLETE
    assert play_all(tournament, trusted=False).state == TournamentState.FINISHED
    assert verify_ratings(game="eighty", kind="mono") == ()


def test_round_robin_is_corrected_in_the_table_alone():
    tournament = cup(4, format="round_robin")
    play_round(tournament, 1)
    row = pairing(tournament, "RR/R1/M1")
    before = Pairing.objects.filter(tournament=tournament).count()
    services.correct_result(pairing=row, places=[1, 1], reason=WHY)
    assert Pairing.objects.filter(tournament=tournament).count() == before
    assert not SupersededMatch.objects.exists()
    assert {part.score_twelfths for part in pairing(tournament, row.key).entrants.all()} == {6}


def test_match_annulled_in_an_open_round_is_rated_once_it_is_restored():
    tournament = cup(4, format="round_robin")
    match = tournament.matches.get(pairing__key="RR/R1/M1")
    play(match)
    services.void_match(pairing=match.pairing, reason=WHY)
    play_round(tournament, 1)
    assert [event.match_key for event in RatingEvent.objects.all()] == [
        f"{tournament.slug}/RR/R1/M2"
    ]
    services.restore_match(pairing=match.pairing, reason="no doubt is left")
    assert RatingEvent.objects.count() == 2
    assert pairing(tournament, "RR/R1/M1").decided_by == DecidedBy.PLAY
    assert verify_ratings(game="eighty", kind="mono") == ()


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda row: services.void_match(pairing=row, reason=" "), "reason"),  # unsaid
        (
            lambda row: services.correct_result(pairing=row, places=[1, 1], reason=WHY),
            "one must go on",  # a bracket has no draws
        ),
        (
            lambda row: services.correct_result(pairing=row, places=[1], reason=WHY),
            "each of the 2",  # one is forgotten
        ),
        (
            lambda row: services.correct_result(pairing=row, places=[2, 3], reason=WHY),
            "1 to the best",  # nobody is first
        ),
    ],
)
def test_ruling_that_makes_no_sense_says_what_to_change(act, says):
    tournament = cup(4)
    play_round(tournament, 1)
    before = everything(tournament)
    with pytest.raises(TournamentStateError, match=says):
        act(pairing(tournament, "SE/R1/M1"))
    assert everything(tournament) == before
    assert not Ruling.objects.exists()


def test_open_pairing_and_bye_have_no_result_to_change():
    tournament = cup(3)
    bye = Pairing.objects.get(tournament=tournament, is_bye=True)
    with pytest.raises(TournamentStateError, match="a bye"):
        services.void_match(pairing=bye, reason=WHY)
    opened = Pairing.objects.get(tournament=tournament, is_bye=False)
    with pytest.raises(TournamentStateError, match="not decided"):
        services.void_match(pairing=opened, reason=WHY)


def test_forfeited_match_has_no_record_to_restore_but_can_be_played():
    tournament = cup(4)
    match = tournament.matches.get(pairing__key="SE/R1/M1")
    services.forfeit_match(
        match=match, offenders=[match.pairing.entrants.first().entrant_id], reason="absent"
    )
    with pytest.raises(TournamentStateError, match="no record"):
        services.restore_match(pairing=match.pairing, reason=WHY)
    services.rerun_match(match=match, reason="it was there")
    assert play_all(tournament, trusted=False).state == TournamentState.FINISHED
    assert [row.kind for row in Ruling.objects.order_by("pk")] == ["forfeited", "rerun"]


def test_nothing_is_played_again_in_a_tournament_that_has_ended():
    tournament = play_all(cup(4), trusted=False)
    first = pairing(tournament, "SE/R1/M1")
    with pytest.raises(TournamentStateError, match="has ended"):
        services.correct_result(pairing=first, places=other_places(first), reason=WHY)
    with pytest.raises(TournamentStateError, match="has ended"):
        services.rerun_match(match=tournament.matches.get(pairing=first), reason=WHY)


def test_ruling_says_who_when_why_and_what():
    tournament, olga = cup(4), make_player("olga")
    play_round(tournament, 1)
    row = pairing(tournament, "SE/R1/M1")
    services.correct_result(pairing=row, places=other_places(row), reason=WHY, by=olga)
    ruling = Ruling.objects.get()
    assert (ruling.by, ruling.reason, ruling.subject) == (olga, WHY, "SE/R1/M1")
    assert " won, by " in ruling.before  # its match, or the lot after a tied one
    assert ruling.after.endswith("won, by the organiser")
    assert ruling.before.split()[0] != ruling.after.split()[0]


class TestPreview:
    def test_is_just_what_happens_and_changes_nothing_itself(self):
        tournament = cup()
        for index in (1, 2):
            play_round(tournament, index)
        row = pairing(tournament, "SE/R1/M1")

        def act() -> object:
            return services.correct_result(pairing=row, places=other_places(row), reason=WHY)

        before, log = everything(tournament), RatingEvent.objects.count()
        shown = preview(tournament, act)
        assert everything(tournament) == before
        assert RatingEvent.objects.count() == log
        assert not Ruling.objects.exists()
        assert [line.what for line in shown.pairings] == ["SE/R1/M1", "SE/R2/M1", "SE/R3/M1"]
        assert shown.pairings[2].after == "taken back"
        assert len(shown.ratings) == 3  # of R1/M1 both, and whom the winner met in R2/M1

        act()
        again = preview(tournament, lambda: None)
        assert again.pairings == again.standings == again.ratings == ()
        names = {row.pk: row.name for row in tournament.entrants.all()}
        stage = tournament.stages.select_related("tournament").get()
        found = {
            names[line.entrant]: line.place
            for line in stage_format(stage).standings(stage_view(stage))
        }
        for line in shown.standings:
            assert line.after.startswith(f"place {found[line.what]},")
        for line in shown.ratings:
            bot, version = line.what.split()
            rating = Rating.objects.filter(bot__name=bot, version__version=version).first()
            assert line.after == ("no rating" if rating is None else f"{rating.shown:.2f}")

    def test_of_what_is_not_possible_says_why(self):
        tournament = cup(4)
        play_round(tournament, 1)
        row = pairing(tournament, "SE/R1/M1")
        with pytest.raises(TournamentStateError, match="one must go on"):
            preview(
                tournament,
                lambda: services.correct_result(pairing=row, places=[1, 1], reason=WHY),
            )

    def test_tells_that_the_tournament_would_end(self):
        tournament = cup(2)
        match = tournament.matches.get()
        guilty = match.pairing.entrants.first().entrant
        shown = preview(
            tournament,
            lambda: services.disqualify_entrant(entrant=guilty, reason="two wheels"),
        )
        assert [line.after for line in shown.state] == ["finished"]


@pytest.mark.parametrize(
    ("size", "index"),
    [
        (5, 1),  # byes, and a drop to the losers' side
        *(
            pytest.param(size, index, marks=pytest.mark.exhaustive)
            for size, index in ((4, 1), (4, 2), (5, 2), (8, 1), (8, 2))
        ),
    ],
)
def test_double_elimination_is_paired_anew_whole_after_a_ruling(size, index):
    """Whatever is taken back, in the end every key that the format plans has been played."""
    tournament = cup(size, format="double_elimination", contest={"kind": "boards", "boards": 1})
    for played in range(1, index + 2):
        play_round(tournament, played)
    row = Pairing.objects.filter(
        tournament=tournament, round__index=index, is_bye=False, entrants__advances=True
    ).first()
    kept = {
        each.pk: each.edition
        for each in Pairing.objects.filter(tournament=tournament, round__index__lte=index)
    }
    services.correct_result(pairing=row, places=other_places(row), reason=WHY)
    assert play_all(tournament).state == TournamentState.FINISHED
    assert kept == {
        each.pk: each.edition
        for each in Pairing.objects.filter(tournament=tournament, round__index__lte=index)
    }
    view = stage_view(tournament.stages.select_related("tournament").get())
    assert stage_format(tournament.stages.get()).next_round(view) is None
    losses = {
        entrant: sum(
            not part.advances
            for part in entrant.pairings.filter(pairing__is_bye=False).exclude(
                pairing__decided_by=DecidedBy.WALKOVER
            )
        )
        for entrant in tournament.entrants.all()
    }
    assert all(lost == 2 for entrant, lost in losses.items() if entrant.place != 1), losses


def told(kind: str) -> dict[str, str]:
    """Who was told of a ruling last, and what; then forget it."""
    rows = Notice.objects.filter(text__contains=kind).order_by("pk")
    found = {row.player.username: row.text for row in rows}
    Notice.objects.all().delete()
    return found


def test_whom_a_ruling_concerns_is_told_and_nobody_by_its_preview():
    bots = [make_bot(name, make_player(f"owner-of-{name}")) for name in NAMES[:4]]
    tournament = start(make_tournament(bots, contest=BOARDS))
    for match in tournament.matches.order_by("pk"):
        worse = match.pairing.entrants.order_by("-entrant__seed").first()
        services.forfeit_match(match=match, offenders=[worse.entrant_id], reason="no show")
    assert len(told("no show")) == 4
    services.advance_round(tournament=tournament)
    wrong = pairing(tournament, "SE/R1/M1")
    [loser_elsewhere] = [
        part.entrant.name
        for part in pairing(tournament, "SE/R1/M2").entrants.all()
        if not part.advances
    ]

    def correct() -> None:
        services.correct_result(pairing=wrong, places=other_places(wrong), reason=WHY)

    preview(tournament, correct)
    assert not Notice.objects.exists()
    correct()
    found = told(WHY)
    concerned = {f"owner-of-{name}" for name in NAMES[:4]} - {f"owner-of-{loser_elsewhere}"}
    assert set(found) == concerned  # who has lost his only match in another one need not know
    assert all("SE/R1/M1: another result (before: " in text for text in found.values())
    services.disqualify_entrant(
        entrant=entrant_of(tournament, names_in(wrong)[0]), reason="shared an account"
    )
    assert told("shared an account") == {
        f"owner-of-{names_in(wrong)[0]}": f"{names_in(wrong)[0]} plays no further: shared an account; "
        "what it has played stays"
    }
