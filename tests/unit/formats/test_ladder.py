"""The ladder: who plays next, that nobody starves or waits for another, and the ratings."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import FormatError
from engine.formats import DecidedBy, SeededEntrant, get_format, void_result
from engine.formats import ladder as ladder_module
from engine.formats.ladder import LadderEntrant, information, pick_matches
from engine.formats.stages import StagePlan, check_stages
from engine.ratings import Rating, rate
from tests.unit.formats.stages import (
    better_seed_wins,
    leave,
    play_stage,
    publish,
    scored,
    seeded,
    start,
    won_by,
)

LADDER = get_format("ladder")
SETTLED = Rating(25.0, 1.5)


def ladder(count, strengths=None, **options):
    return msgspec.structs.replace(start(LADDER, count, **options), strengths=strengths or {})


def settle_key(view, key, result):
    """`view` with this result, in whichever batch its match is."""
    rounds = tuple(
        msgspec.structs.replace(
            published,
            pairings=tuple(
                msgspec.structs.replace(p, result=result) if p.key == key else p
                for p in published.pairings
            ),
        )
        for published in view.rounds
    )
    return msgspec.structs.replace(view, rounds=rounds)


def open_matches(view):
    return [p for published in view.rounds for p in published.pairings if p.result is None]


def try_batch(view):
    """`view` with one more batch, if there is anyone to seat now."""
    try:
        planned = LADDER.next_round(view)
    except FormatError:
        return view
    return view if planned is None else publish(view, planned)


def run(view, matches, decide=better_seed_wins, *, never=frozenset()):
    """Decides so many matches, the oldest first, a new batch after each; those of `never` stay open."""
    for _ in range(matches):
        view = try_batch(view)
        waiting = [p for p in open_matches(view) if not never & set(p.entrants)]
        if not waiting:
            break
        view = settle_key(view, waiting[0].key, LADDER.decide(view, waiting[0], decide(waiting[0])))
    return view


def matches_of(view):
    return Counter(e for published in view.rounds for p in published.pairings for e in p.entrants)


def test_first_batch_opens_as_many_matches_as_may_be():
    planned = LADDER.next_round(ladder(20))
    assert [p.key for p in planned.pairings] == [f"LD/R1/M{slot}" for slot in range(1, 9)]
    assert len({entrant for p in planned.pairings for entrant in p.entrants}) == 16


def test_decided_match_makes_room_for_another_while_the_rest_goes_on():
    view = try_batch(ladder(20))
    with pytest.raises(FormatError, match="LD/R1/M1"):
        LADDER.next_round(view)
    view = settle_key(view, "LD/R1/M3", LADDER.decide(view, view.rounds[0].pairings[2], won_by(0)))
    planned = LADDER.next_round(view)
    assert [p.key for p in planned.pairings] == ["LD/R2/M1"]
    busy = {entrant for p in open_matches(view) for entrant in p.entrants}
    assert not busy & set(planned.pairings[0].entrants)


def test_slow_bot_holds_up_nobody_but_who_sits_with_it():
    view = run(ladder(12), 120, never=frozenset({101}))
    played = matches_of(view)
    stuck = next(p for p in open_matches(view) if 101 in p.entrants)
    assert all(played[entrant] == 1 for entrant in stuck.entrants)
    others = [played[e.id] for e in view.entrants if e.id not in stuck.entrants]
    assert sum(others) > 240
    assert min(others) > 20


def test_nobody_starves_however_settled():
    strengths = {entrant.id: SETTLED for entrant in seeded(16)[:12]}
    view = run(ladder(16, strengths, at_once=4), 200)
    seated = {entrant.id: [0] for entrant in view.entrants}
    for published in view.rounds:
        for pairing in published.pairings:
            for entrant in pairing.entrants:
                seated[entrant].append(published.index)
    longest = {
        entrant: max(b - a for a, b in zip(at, [*at[1:], len(view.rounds) + 1], strict=True))
        for entrant, at in seated.items()
    }
    assert max(longest.values()) < 60


def test_newcomers_play_more_than_the_settled():
    strengths = {entrant.id: SETTLED for entrant in seeded(23)[:20]}
    played = matches_of(run(ladder(23, strengths, at_once=4), 100))
    assert min(played[entrant] for entrant in (121, 122, 123)) > 2 * max(
        played[entrant.id] for entrant in seeded(20)
    )


@pytest.mark.parametrize("trickle", [1, 3])
def test_settled_ones_are_a_trickle(trickle):
    strengths = {entrant.id: SETTLED for entrant in seeded(20)}
    view = try_batch(ladder(20, strengths, trickle=trickle))
    assert len(open_matches(view)) == trickle
    with pytest.raises(FormatError, match="LD/R1/M1"):
        LADDER.next_round(view)
    played = matches_of(run(view, 200)).values()  # 20 each on average
    assert min(played) >= 15
    assert max(played) <= 27


def test_open_trickle_leaves_room_for_newcomers():
    strengths = {entrant.id: SETTLED for entrant in seeded(20)}
    view = try_batch(ladder(20, strengths))
    late = LADDER.late_entrant(view, 900)
    view = msgspec.structs.replace(view, entrants=(*view.entrants, late))
    planned = LADDER.next_round(view)
    assert len(planned.pairings) == 1
    assert 900 in planned.pairings[0].entrants


def test_newcomer_is_in_the_next_batch_though_others_wait():
    view = run(ladder(12, at_once=1), 60)
    late = LADDER.late_entrant(view, 900)
    planned = LADDER.next_round(msgspec.structs.replace(view, entrants=(*view.entrants, late)))
    assert 900 in planned.pairings[0].entrants


def entrant_with(identity, mu, sigma, **known):
    return LadderEntrant(
        id=identity, rating=Rating(mu, sigma), waited=0, lot=bytes([identity]), **known
    )


def test_most_uncertain_meets_whom_it_is_closest_to():
    free = [
        entrant_with(1, 25, 2.5),
        entrant_with(2, 32, 3),  # the lead
        entrant_with(3, 31, 2.5),
        entrant_with(4, 40, 2.5),
    ]
    assert pick_matches(free, size=2, budget=1, trickle=1) == [(2, 3)]


def test_who_has_waited_longer_leads_among_equals():
    free = [entrant_with(1, 25, 3), entrant_with(2, 25, 3), entrant_with(3, 25, 3)]
    free[2] = msgspec.structs.replace(free[2], waited=1)
    assert pick_matches(free, size=2, budget=1, trickle=1)[0][0] == 3


def test_who_was_met_lately_is_met_less_readily():
    free = [entrant_with(1, 25, 4, recent={2: 3}), entrant_with(2, 25, 3), entrant_with(3, 27, 3)]
    assert pick_matches(free, size=2, budget=1, trickle=1) == [(1, 3)]


def test_who_has_enough_matches_leads_none_but_sits_where_needed():
    free = [entrant_with(1, 25, 8, wants_match=False), entrant_with(2, 25, 3)]
    assert pick_matches(free, size=2, budget=1, trickle=1) == [(2, 1)]
    nobody = [msgspec.structs.replace(entrant, wants_match=False) for entrant in free]
    assert pick_matches(nobody, size=2, budget=1, trickle=1) == []


RATINGS = st.builds(Rating, st.floats(0, 50), st.floats(0.5, 9))


@given(RATINGS, RATINGS)
def test_both_learn_the_same_from_either_side(a, b):
    assert information(a, b) == pytest.approx(information(b, a))


@given(RATINGS, st.floats(0.5, 9), st.floats(0, 20), st.floats(0.01, 5))
def test_closer_ratings_teach_more(a, sigma, distance, further):
    near = information(a, Rating(a.mu + distance, sigma))
    assert near > information(a, Rating(a.mu + distance + further, sigma))


@given(st.floats(0, 50), st.floats(0.5, 8), st.floats(0.1, 2))
def test_uncertain_equals_teach_more_than_certain_ones(mu, sigma, more):
    certain, uncertain = Rating(mu, sigma), Rating(mu, sigma + more)
    assert information(certain, certain) < information(uncertain, uncertain)


@given(st.floats(0.5, 8), st.floats(0.1, 2))
def test_newcomer_learns_more_from_a_settled_equal_than_from_another_newcomer(sigma, more):
    newcomer, own = Rating(25.0, 8.0), 8.0**5
    with_settled = information(newcomer, Rating(25.0, sigma))
    with_another = information(newcomer, Rating(25.0, sigma + more))
    share = [own / (own + other**5) for other in (sigma, sigma + more)]
    assert with_settled * share[0] > with_another * share[1]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Rating(25, 25 / 3), Rating(25, 25 / 3)),  # two newcomers
        (Rating(25, 25 / 3), Rating(30, 2)),  # one against a settled one
        (Rating(20, 5), Rating(33, 4)),  # far apart
    ],
)
def test_what_is_learnt_is_what_the_rating_update_removes(a, b):
    # whoever wins, the update shrinks the variances by the same: only the means differ
    (after_a,), (after_b,) = rate([(a,), (b,)], (1, 2))
    removed = a.sigma**2 + b.sigma**2 - after_a.sigma**2 - after_b.sigma**2
    assert information(a, b) == pytest.approx(removed, rel=0.02)  # the update adds τ² first


def test_opponents_are_spread():
    met = Counter()
    view = run(ladder(6, at_once=1), 150, lambda p: scored((0, 0)))
    for published in view.rounds:
        for pairing in published.pairings:
            met[frozenset(pairing.entrants)] += 1
    assert len(met) == 15
    assert max(met.values()) <= 2 * min(met.values())


def test_it_teaches_more_than_chance_does():
    strengths = {entrant.id: Rating(15.0 + index, 1.8) for index, entrant in enumerate(seeded(20))}
    truth = {entrant.id: 15.0 + index for index, entrant in enumerate(seeded(24))}

    def decide(pairing):
        return scored(tuple(round(100 * (truth[e] + dice.gauss(0, 4))) for e in pairing.entrants))

    dice = random.Random(4)
    picked = run(ladder(24, strengths), 60, decide)
    ratings = {entrant.id: strengths.get(entrant.id, Rating()) for entrant in picked.entrants}
    for _ in range(60):
        a, b = dice.sample(sorted(ratings), 2)
        points = [truth[each] + dice.gauss(0, 4) for each in (a, b)]
        ranks = (1, 2) if points[0] > points[1] else (2, 1)
        (ratings[a],), (ratings[b],) = rate([(ratings[a],), (ratings[b],)], ranks)
    by_chance = sum(rating.sigma for rating in ratings.values())
    notes = {row.entrant: row.note for row in LADDER.standings(picked)}
    spread = sum(float(note.split("± ")[1].split(",")[0]) for note in notes.values()) / 1.96
    assert spread < 0.9 * by_chance


def test_table_goes_by_the_shown_rating():
    strengths = {101: Rating(20, 1), 102: Rating(30, 1), 103: Rating(30, 6)}
    rows = LADDER.standings(ladder(4, strengths))
    assert [(row.place, row.entrant) for row in rows] == [(1, 102), (2, 101), (3, 103), (4, 104)]
    assert rows[0].note == "rating 30.0 ± 2.0"
    assert rows[2].note == "rating 30.0 ± 11.8, provisional"


def test_results_move_the_ratings_and_annulled_ones_do_not():
    view = try_batch(ladder(2))
    match = view.rounds[0].pairings[0]
    result = LADDER.decide(view, match, won_by(0))
    fresh = LADDER.standings(view)
    won = LADDER.standings(settle_key(view, match.key, result))
    assert won[0].entrant == match.entrants[0]
    assert won[0].note == "rating 27.6 ± 15.8, provisional"
    voided = LADDER.standings(settle_key(view, match.key, void_result(result)))
    assert [row.note for row in voided] == [row.note for row in fresh]


def test_who_leaves_is_seated_no_more_and_his_open_table_is_walked_over():
    view = leave(try_batch(ladder(6, at_once=2)), [101, 102, 103])
    for match in open_matches(view):
        if gone := {101, 102, 103} & set(match.entrants):
            result = LADDER.walkover(view, match)
            assert result.decided_by is DecidedBy.WALKOVER
            assert result.scores.count(1) == (len(gone) == 1)
            view = settle_key(view, match.key, result)
    view = run(view, 20)
    later = {e for published in view.rounds[1:] for p in published.pairings for e in p.entrants}
    assert later == {104, 105, 106}
    notes = {row.entrant: row.note for row in LADDER.standings(view)}
    assert {entrant for entrant, note in notes.items() if "withdrawn" in note} == {101, 102, 103}


@pytest.mark.parametrize("table", [3, 4])
def test_tables_of_three_and_four_are_full(table):
    view = run(ladder(11, table=table), 40, lambda p: won_by(0, len(p.entrants)))
    assert {len(p.entrants) for r in view.rounds for p in r.pairings} == {table}
    assert LADDER.sizes(view.options) == (table,)
    assert min(matches_of(view).values()) > 5


@pytest.mark.parametrize("table", [2, 3, 4])
def test_it_ends_when_everyone_has_his_matches(table):
    view = play_stage(
        LADDER,
        ladder(7, table=table, matches_each=5),
        lambda p: won_by(0, len(p.entrants)),
    )
    assert min(matches_of(view).values()) == 5
    assert max(matches_of(view).values()) <= 5 + table
    assert LADDER.next_round(view) is None


def test_too_few_for_a_table_end_it():
    view = play_stage(LADDER, ladder(4, matches_each=1))
    assert LADDER.next_round(leave(ladder(4, table=4), [101])) is None
    assert LADDER.next_round(leave(view, [101, 102, 103])) is None


def test_stage_may_follow_only_if_matches_are_limited():
    final = StagePlan(format="single_elimination")
    limited = {"matches_each": 20}
    check_stages(30, (StagePlan(format="ladder", options=limited, qualifiers=8), final))
    with pytest.raises(FormatError, match="stage 1: Ladder has no end with these options"):
        check_stages(30, (StagePlan(format="ladder", qualifiers=8), final))


def test_batches_can_be_picked_again_from_what_was_published():
    view = run(ladder(9, at_once=3), 30)
    for index in range(len(view.rounds)):
        before = msgspec.structs.replace(view, rounds=view.rounds[:index])
        again = msgspec.structs.replace(before, entrants=before.entrants[::-1])
        assert LADDER.next_round(before) is None or LADDER.next_round(before) == (
            LADDER.next_round(again)
        )


def test_what_is_remembered_of_one_ladder_changes_nothing_in_another(monkeypatch):
    monkeypatch.setattr(ladder_module, "_remembered", [])
    ladders = [
        ladder(6),
        ladder(6, {1: Rating(31.0, 1.0), 4: Rating(12.0, 6.0)}),
        ladder(6),
        ladder(9),
    ]
    decide = [better_seed_wins, better_seed_wins, lambda _: won_by(1), better_seed_wins]
    for _ in range(12):
        ladders = [run(view, 2, how) for view, how in zip(ladders, decide, strict=True)]
        for view in ladders:
            remembered = try_batch(view), LADDER.standings(view)
            ladder_module._remembered.clear()
            assert remembered == (try_batch(view), LADDER.standings(view))


def test_a_long_ladder_does_not_rate_all_its_matches_again_for_each_batch(monkeypatch):
    rated = []
    monkeypatch.setattr(ladder_module, "_remembered", [])
    monkeypatch.setattr(ladder_module, "rate", lambda *match: rated.append(1) or rate(*match))
    view = run(ladder(12), 100)
    played = sum(p.result is not None for p in (p for r in view.rounds for p in r.pairings))
    assert played == 100
    assert len(rated) < 12 * played


def test_another_lot_gives_another_choice_between_equals():
    planned = {
        tuple(
            p.entrants
            for p in LADDER.next_round(
                msgspec.structs.replace(ladder(12), lot=bytes([lot]))
            ).pairings
        )
        for lot in range(8)
    }
    assert len(planned) > 1


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        pytest.param(3, {"table": 4}, "needs at least 4 entrants, and there are 3", id="no table"),
        pytest.param(8, {"table": 5}, "allowed: 2, 3, 4", id="no game of five"),
        pytest.param(8, {"at_once": 0}, "from 1 to 500", id="nothing ever open"),
        pytest.param(8, {"matches_each": 0}, "from 1 to 100000", id="no match at all"),
    ],
)
def test_impossible_ladders_are_refused_saying_what_to_change(count, options, message):
    with pytest.raises(FormatError, match=message):
        LADDER.check(seeded(count), LADDER.make_options(options))


def test_entrant_ids_and_seeds_need_not_agree():
    view = ladder(4)
    turned = tuple(SeededEntrant(id=500 - e.id, seed=e.seed) for e in view.entrants)
    planned = LADDER.next_round(msgspec.structs.replace(view, entrants=turned))
    assert {500 - e for p in planned.pairings for e in p.entrants} == {101, 102, 103, 104}
