"""Who may enter and when: limits, too few, seeds by hand and by lot, late entries."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import ClassVar

import pytest

from engine.errors import FormatError
from engine.formats import FORMATS
from engine.formats.stages import stage_lot
from engine.standings import draw_lot
from tests.tournament_factories import (
    accept,
    entrant_of,
    make_bot,
    make_plan,
    make_player,
    make_tournament,
    play_all,
    start,
    submit,
)
from tournament.competitions import services
from tournament.competitions.errors import (
    EntryError,
    InvalidTournamentError,
    TournamentStateError,
)
from tournament.competitions.models import (
    DecidedBy,
    Entrant,
    Notice,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors import late_round, match_record, notices_of
from tournament.competitions.selectors.engine_values import tournament_key
from tournament.competitions.services.dispatching import move_due_tournaments

pytestmark = pytest.mark.django_db


def enter(tournament: Tournament, *bots):
    return services.enter(tournament=tournament, bots=list(bots), by=bots[0].owner)


class TestLimits:
    def test_no_more_enter_than_there_are_places(self):
        tournament = make_tournament([make_bot("alpha"), make_bot("beta")], max_entrants=2)
        gamma = make_bot("gamma")
        with pytest.raises(EntryError, match="full: all 2 places"):
            enter(tournament, gamma)
        services.leave(
            entrant=entrant_of(tournament, "beta"),
            by=entrant_of(tournament, "beta").bots.get().bot.owner,
        )
        enter(tournament, gamma)
        assert tournament.entrants.count() == 2

    def test_player_enters_no_more_bots_than_allowed_by_whomever_they_are_entered(self):
        ann = make_player("ann")
        mine = [make_bot(name, ann) for name in ("alpha", "beta")]
        tournament = make_tournament([mine[0]], max_bots_per_player=1)
        staff = make_player("staff")
        staff.is_staff = True
        for by in (ann, staff):
            with pytest.raises(EntryError, match="at most 1 bot of a player"):
                services.enter(tournament=tournament, bots=[mine[1]], by=by)
        enter(tournament, make_bot("gamma"))

    def test_pair_takes_two_of_a_players_places(self):
        ann = make_player("ann")
        pair = [make_bot(name, ann) for name in ("alpha", "beta")]
        tournament = make_tournament(kind="pair", max_bots_per_player=1)
        with pytest.raises(EntryError, match="at most 1"):
            enter(tournament, *pair)


class TestTooFew:
    def shrunk(self, **changes) -> Tournament:
        return make_tournament([make_bot("alpha")], min_entrants=2, **changes)

    def close(self, tournament: Tournament) -> Tournament:
        tournament.refresh_from_db()
        return services.close_tournament(tournament=tournament, now=tournament.closes_at)

    def test_is_cancelled_with_notice_to_all_who_had_entered(self):
        tournament = self.close(self.shrunk())
        assert tournament.state == TournamentState.CANCELLED
        assert "1 of the 2 entrants" in tournament.cancelled_reason
        notice = Notice.objects.get()
        assert notice.player == entrant_of(tournament, "alpha").bots.get().bot.owner
        assert "1 of the 2 entrants" in notice.text

    def test_without_a_number_it_is_too_few_if_the_format_cannot_be_played(self):
        swiss = {"format": "swiss", "format_options": {"rounds": 3}}
        bots = [make_bot("alpha"), make_bot("beta")]
        tournament = make_tournament(bots, if_too_few="postpone", postpone_minutes=90, **swiss)
        assert self.close(tournament).state == TournamentState.OPEN
        assert "2 had entered when entries closed: a Swiss stage" in Notice.objects.first().text
        assert self.close(tournament).state == TournamentState.CANCELLED
        at_once = start(make_tournament(bots, name="At Once", **swiss))
        assert at_once.state == TournamentState.CANCELLED
        assert at_once.cancelled_reason.startswith("it cannot be played with 2 entrants: a Swiss")

    def test_is_postponed_so_often_and_then_cancelled(self):
        before = self.shrunk(if_too_few="postpone", postpone_minutes=90, postpone_most=2)
        commitment, closes, starts = before.commitment, before.closes_at, before.starts_at
        found = []
        for _ in range(3):
            tournament = self.close(before)
            found.append((tournament.state, tournament.closes_at - closes, tournament.pub))
            assert tournament.starts_at - tournament.closes_at == starts - closes
        step = timedelta(minutes=90)
        assert found == [
            (TournamentState.OPEN, step, ""),
            (TournamentState.OPEN, 2 * step, ""),
            (TournamentState.CANCELLED, 2 * step, ""),
        ]
        assert tournament.commitment == commitment
        assert [row.text.split(",")[0] for row in Notice.objects.order_by("pk")][:2] == [
            f"{before.name} is postponed"
        ] * 2
        assert Notice.objects.count() == 3

    def test_who_enters_after_a_postponement_is_sealed_under_the_new_close(self):
        tournament = self.close(self.shrunk(if_too_few="postpone"))
        enter(tournament, make_bot("beta"))
        tournament = self.close(tournament)
        assert json.loads(tournament.pub)["close"] == tournament.closes_at.strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        tournament = services.start_tournament(tournament=tournament, now=tournament.starts_at)
        assert tournament.state == TournamentState.RUNNING

    def test_after_an_outage_entries_are_open_as_long_as_they_would_have_been(self):
        tournament = self.shrunk(if_too_few="postpone", postpone_minutes=60)
        long_after = tournament.closes_at + timedelta(days=3)
        move_due_tournaments(now=long_after)
        tournament.refresh_from_db()
        assert tournament.closes_at == (long_after + timedelta(hours=1)).replace(microsecond=0)

    def test_notice_is_shown_until_it_is_put_away(self):
        self.close(self.shrunk())
        player = Notice.objects.get().player
        assert len(notices_of(player)) == 1
        assert services.put_away_notices(player=player) == 1
        assert len(notices_of(player)) == 0


class TestSeeds:
    NAMES = ("alpha", "beta", "gamma", "delta")

    def seeds(self, tournament: Tournament) -> list[str]:
        rows = tournament.entrants.filter(seed__isnull=False).order_by("seed")
        return list(rows.values_list("name", flat=True))

    def test_by_hand_follow_the_organisers_order_and_the_rest_stands_behind(self):
        tournament = make_tournament([make_bot(name) for name in self.NAMES], seeding="hand")
        services.order_entrants(tournament=tournament, names=["gamma", "beta"])
        assert self.seeds(start(tournament)) == ["gamma", "beta", "alpha", "delta"]

    def test_by_lot_follow_from_the_secret_and_anyone_can_draw_it_again(self):
        tournament = start(make_tournament([make_bot(name) for name in self.NAMES], seeding="lot"))
        lot = stage_lot(tournament_key(tournament), tournament.slug, 0)
        assert self.seeds(tournament) == sorted(
            self.NAMES, key=lambda name: draw_lot(lot, f"seed/{name}")
        )

    @pytest.mark.parametrize(
        ("names", "says"),
        [
            (["gamma", "omega"], "'omega' is no entrant"),  # never entered
            (["gamma", "gamma"], "'gamma' stands there twice"),  # first and second at once
        ],
    )
    def test_order_that_makes_no_sense_says_so_and_changes_nothing(self, names, says):
        tournament = make_tournament([make_bot(name) for name in self.NAMES], seeding="hand")
        with pytest.raises(TournamentStateError, match=says):
            services.order_entrants(tournament=tournament, names=names)
        assert not Entrant.objects.filter(wanted_seed__isnull=False).exists()

    def test_order_counts_only_where_seeds_are_set_by_hand_and_before_the_start(self):
        bots = [make_bot(name) for name in self.NAMES]
        with pytest.raises(TournamentStateError, match="follow from the ratings"):
            services.order_entrants(tournament=make_tournament(bots), names=["alpha"])
        tournament = start(make_tournament(bots, name="By Hand", seeding="hand"))
        with pytest.raises(TournamentStateError, match="do not change now"):
            services.order_entrants(tournament=tournament, names=["alpha"])


class TestLateEntry:
    PLAN: ClassVar = {"format": "swiss", "late_until_round": 2, "format_options": {"rounds": 3}}

    def swiss(self, **changes) -> Tournament:
        bots = [make_bot(name) for name in ("alpha", "beta", "gamma", "delta")]
        return start(make_tournament(bots, **{**self.PLAN, **changes}))

    def play_round(self, tournament: Tournament) -> None:
        for match in tournament.matches.filter(state="pending"):
            services.play_match(match_id=match.pk, trusted=True)
        services.advance_round(tournament=tournament)

    def test_gets_the_last_seed_its_version_at_once_and_plays_from_the_next_round(self):
        tournament = self.swiss()
        pub, epsilon = tournament.pub, make_bot("epsilon")
        play_of = tournament.matches.first()
        services.play_match(match_id=play_of.pk, trusted=True)  # names are kept by now
        entrant = enter(tournament, epsilon)
        assert (entrant.seed, entrant.bots.get().version) == (5, epsilon.versions.get())
        assert json.loads(entrant.addendum) == {
            "entered": json.loads(entrant.addendum)["entered"],
            "entrants": [["epsilon", epsilon.versions.get().wheel_sha256]],
            "round": 2,
        }
        tournament = play_all(tournament)
        assert tournament.pub == pub
        assert tournament.state == TournamentState.FINISHED
        first = entrant.pairings.order_by("pairing__round__index").first()
        assert first.pairing.round.index == 2
        entrant.refresh_from_db()
        assert entrant.place is not None
        if played := tournament.matches.filter(
            pairing__entrants__entrant=entrant, pairing__decided_by=DecidedBy.PLAY
        ).first():
            assert "epsilon" in {one.name for one in match_record(played).entrants}

    def test_version_of_a_later_upload_may_play(self):
        tournament = self.swiss()
        owner = make_player()
        newest = accept(submit(owner, "epsilon", "9.9"))
        assert newest.uploaded_at > tournament.starts_at - timedelta(days=1)
        assert enter(tournament, newest.bot).bots.get().version == newest

    def test_is_over_once_its_last_round_is_published(self):
        tournament = self.swiss()
        assert late_round(tournament) == 2
        self.play_round(tournament)
        assert late_round(tournament) is None
        with pytest.raises(TournamentStateError, match="not open for entries"):
            enter(tournament, make_bot("epsilon"))

    def test_is_for_nobody_unless_the_organiser_takes_late_entries(self):
        tournament = self.swiss(late_until_round=None)
        with pytest.raises(TournamentStateError, match="not open for entries"):
            enter(tournament, make_bot("epsilon"))

    def test_without_a_version_that_can_play_is_refused_and_nothing_is_left_of_it(self):
        tournament = self.swiss()
        waiting = submit(make_player(), "epsilon")
        with pytest.raises(EntryError, match="must have one"):
            enter(tournament, waiting.bot)
        assert tournament.entrants.count() == 4

    def test_counts_for_the_limits(self):
        tournament = self.swiss(max_entrants=4)
        with pytest.raises(EntryError, match="full"):
            enter(tournament, make_bot("epsilon"))

    def test_is_refused_where_the_format_says_that_no_round_is_left(self, monkeypatch):
        def refuse(*_):
            raise FormatError("no round is left")

        tournament = self.swiss()
        monkeypatch.setattr(type(FORMATS["swiss"]), "late_entrant", refuse)
        with pytest.raises(TournamentStateError, match="no round is left"):
            enter(tournament, make_bot("epsilon"))
        assert tournament.entrants.count() == 4


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"max_entrants": 1}, "max_entrants", "from 2"),  # one alone plays nobody
        ({"min_entrants": 1}, "min_entrants", "from 2"),  # says nothing
        ({"min_entrants": 9, "max_entrants": 8}, "min_entrants", "no more than 8"),  # never
        ({"max_bots_per_player": 0}, "max_bots_per_player", "from 1"),  # nobody could enter
        ({"if_too_few": "wait"}, "if_too_few", "postpone"),  # names what there is
        ({"postpone_minutes": 0}, "postpone_minutes", "from 1"),  # would not move
        ({"postpone_most": 101}, "postpone_most", "to 100"),  # would never end
        ({"seeding": "beauty"}, "seeding", "rating, hand, lot"),  # names what there is
        ({"late_until_round": 3}, "late_until_round", "takes nobody in"),  # a bracket is drawn
        ({"late_until_round": 0, "format": "swiss"}, "late_until_round", "from 1"),  # before it
        (
            {"results_at": make_plan().starts_at},
            "results_at",
            "after the start",
        ),  # seals nothing
        (
            {"results_at": make_plan().starts_at.replace(tzinfo=None)},
            "results_at",
            "time zone",
        ),  # when is that
    ],
)
def test_conditions_that_make_no_sense_say_what_to_change(changes, field, says):
    with pytest.raises(InvalidTournamentError) as caught:
        services.create_tournament(organiser=make_player(), plan=make_plan(**changes))
    assert says in caught.value.fields[field]
    assert not Tournament.objects.exists()
