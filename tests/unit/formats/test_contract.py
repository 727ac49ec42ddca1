"""What every registered format promises, on random stages with ties, faults and withdrawals."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import FormatError
from engine.formats import FORMATS, DecidedBy, StageView, get_format
from engine.formats.base import SCORE_DENOMINATOR
from engine.formats.results import forfeit_outcome
from tests.unit.formats.documented import documented_format
from tests.unit.formats.stages import (
    leave,
    play_stage,
    publish,
    scored,
    seeded,
    settle,
    start,
    with_an_end,
    won_by,
)

every_format = pytest.mark.parametrize(
    "fmt", [*FORMATS.values(), documented_format()], ids=lambda fmt: fmt.name
)


def option_sets(fmt):
    """Some values for every option of a format."""
    return st.fixed_dictionaries(
        {},
        optional={
            option.name: st.sampled_from(option.choices)
            if option.choices
            else st.integers(option.minimum, min(option.maximum, option.minimum + 5))
            for option in fmt.options
            if not option.is_list
        },
    )


@st.composite
def stages(draw: st.DrawFn, fmt) -> list[StageView]:
    """A stage played to its end; the views after each round was published and after it was decided."""
    count, options = draw(st.integers(4, 11)), draw(option_sets(fmt))
    view = start(fmt, count, draw(st.binary(max_size=4)), **_possible(fmt, count, options))
    history = [view]
    while (planned := fmt.next_round(view)) is not None:
        view = publish(view, planned)
        gone = draw(st.lists(st.sampled_from(view.entrants), max_size=2))
        view = leave(view, [entrant.id for entrant in gone if draw(st.booleans())])
        results = {}
        for pairing in planned.pairings:
            if pairing.result is None:
                walkover = fmt.walkover(view, pairing)
                outcome = draw(outcomes(len(pairing.entrants)))
                results[pairing.key] = walkover or fmt.decide(view, pairing, outcome)
        view = settle(view, results)
        history.append(view)
        assert len(history) < 100, "a stage must end"
    return history


def _possible(fmt, count: int, options: dict[str, object]) -> dict[str, object]:
    """These options, or none if so many entrants cannot be played with them; with an end."""
    try:
        fmt.check(seeded(count), fmt.make_options(options))
    except FormatError:
        options = {}
    return with_an_end(fmt, options)


@st.composite
def outcomes(draw: st.DrawFn, entrants: int):
    offenders = draw(st.one_of(st.just([]), st.sets(st.integers(0, entrants - 1))))
    if offenders:
        return forfeit_outcome(entrants, sorted(offenders), "did not appear")
    points = draw(st.lists(st.integers(-2, 2), min_size=entrants, max_size=entrants))
    return scored(tuple(points))


def all_pairings(view: StageView):
    return [pairing for published in view.rounds for pairing in published.pairings]


@every_format
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_every_stage_ends_decided_and_ranks_everyone_once(fmt, data):
    view = data.draw(stages(fmt))[-1]
    assert all(pairing.result is not None for pairing in all_pairings(view))
    rows = fmt.standings(view)
    assert sorted(row.entrant for row in rows) == sorted(e.id for e in view.entrants)
    assert rows[0].place == 1
    for above, row in pairwise(rows):
        better = sum(other.place < row.place for other in rows)
        assert row.place == better + 1 >= above.place


@every_format
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_keys_are_unique_and_slots_number_each_round(fmt, data):
    view = data.draw(stages(fmt))[-1]
    keys = [pairing.key for pairing in all_pairings(view)]
    assert len(set(keys)) == len(keys)
    for index, published in enumerate(view.rounds, start=1):
        assert published.index == index
        slots = [pairing.slot for pairing in published.pairings]
        assert slots == list(range(1, len(slots) + 1))


@every_format
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_nobody_is_paired_twice_in_a_round(fmt, data):
    for published in data.draw(stages(fmt))[-1].rounds:
        ids = [entrant for pairing in published.pairings for entrant in pairing.entrants]
        assert len(set(ids)) == len(ids)


@every_format
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_results_fit_their_pairings(fmt, data):
    view = data.draw(stages(fmt))[-1]
    for pairing in all_pairings(view):
        result = pairing.result
        count = len(pairing.entrants)
        lengths = {len(t) for t in (result.places, result.points, result.scores, result.advances)}
        assert lengths == {count}
        assert pairing.is_bye == (count == 1) == (result.decided_by is DecidedBy.BYE)
        assert pairing.is_bye or count in fmt.sizes(view.options)
        assert sum(result.scores) <= max(1, count / 2)
        assert all((score * SCORE_DENOMINATOR).denominator == 1 for score in result.scores)
        assert sum(result.advances) == (1 if fmt.knocks_out else 0)


@every_format
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_published_rounds_do_not_depend_on_what_comes_later(fmt, data):
    history = data.draw(stages(fmt))
    for before, after in pairwise(history):
        planned = fmt.next_round(before)
        published = after.rounds[-1]
        assert [(p.key, p.entrants) for p in planned.pairings] == [
            (p.key, p.entrants) for p in published.pairings
        ]
        assert after.rounds[:-1] == before.rounds


@every_format
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_nobody_who_has_left_is_asked_to_play(fmt, data):
    for before, after in pairwise(data.draw(stages(fmt))):
        active = {entrant.id for entrant in before.entrants if entrant.active}
        planned = fmt.next_round(before)
        assert len(planned.pairings) == len(after.rounds[-1].pairings)
        for pairing in planned.pairings:
            assert pairing.result is not None or set(pairing.entrants) <= active


@every_format
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_entrants_may_be_given_in_any_order(fmt, data):
    view = data.draw(stages(fmt))[-1]
    turned = msgspec.structs.replace(view, entrants=view.entrants[::-1])
    assert fmt.standings(turned) == fmt.standings(view)
    first = msgspec.structs.replace(view, rounds=())
    assert fmt.next_round(msgspec.structs.replace(first, entrants=view.entrants[::-1])) == (
        fmt.next_round(first)
    )


@every_format
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_next_round_waits_for_the_open_one_or_does_not_depend_on_it(fmt, data):
    view = start(fmt, data.draw(st.integers(4, 9)))
    view = publish(view, fmt.next_round(view))
    waiting = [pairing for pairing in view.rounds[0].pairings if pairing.result is None]
    try:
        ahead = fmt.next_round(view)
    except FormatError as error:
        message = str(error)
        assert waiting[0].key in message
        return
    results = {
        pairing.key: fmt.decide(view, pairing, data.draw(outcomes(len(pairing.entrants))))
        for pairing in waiting
    }
    assert fmt.next_round(settle(view, results)) == ahead


PAIRS_AHEAD = {
    "round_robin",  # everyone meets everyone, whatever comes of it
    "groups",  # everyone of the group does
    "gauntlet",  # the sides turn, whatever comes of it
}


@every_format
def test_only_a_format_that_needs_no_results_pairs_ahead(fmt):
    view = start(fmt, 8)
    view = publish(view, fmt.next_round(view))
    if fmt.name in PAIRS_AHEAD:
        assert fmt.next_round(view).index == 2
    else:
        with pytest.raises(FormatError, match=view.rounds[0].pairings[0].key):
            fmt.next_round(view)


@every_format
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_as_many_go_on_as_are_asked_for_and_all_of_them_are_left(fmt, data):
    view = data.draw(stages(fmt))[-1]
    active = {entrant.id for entrant in view.active}
    for count in range(1, len(active) + 1):
        going_on = fmt.qualify(view, count)
        assert len(going_on) == len(set(going_on)) == count
        assert set(going_on) <= active
    with pytest.raises(FormatError, match=f"{len(active) + 1} cannot go on"):
        fmt.qualify(view, len(active) + 1)


def longest_way(pairing):
    """The better seed wins, but for a first grand final, so that there is a second one."""
    best = pairing.entrants.index(min(pairing.entrants))
    return won_by(1 - best if pairing.key == "GF/1" else best, len(pairing.entrants))


@every_format
@pytest.mark.parametrize("count", [4, 5, 8, 13])
def test_counts_told_to_the_organiser_are_the_counts_played(fmt, count):
    view = play_stage(fmt, start(fmt, count, **with_an_end(fmt, {})), longest_way)
    if fmt.is_continuous:
        assert fmt.round_count(count, view.options) is fmt.match_count(count, view.options) is None
        return
    assert len(view.rounds) == fmt.round_count(count, view.options)
    played = sum(not pairing.is_bye for pairing in all_pairings(view))
    assert played == fmt.match_count(count, view.options)


@every_format
@pytest.mark.parametrize("count", [0, 1])
def test_too_few_entrants_are_refused_in_words(fmt, count):
    with pytest.raises(FormatError, match=f"needs at least 2 entrants, and there (is|are) {count}"):
        fmt.check(seeded(count), fmt.make_options())


@every_format
def test_seeds_given_twice_are_refused(fmt):
    one = seeded(4)
    two = (*one[:3], msgspec.structs.replace(one[3], seed=1))
    with pytest.raises(FormatError, match="seed 1 is given to 2 entrants"):
        fmt.check(two, fmt.make_options())


@every_format
def test_unknown_option_is_refused_naming_the_known_ones(fmt):
    with pytest.raises(FormatError, match=fmt.options[0].name):
        fmt.make_options({"rounds_to_skip": 0})


@every_format
def test_sizes_of_matches_are_among_those_of_the_format(fmt):
    assert set(fmt.sizes(fmt.make_options())) <= set(fmt.pairing_sizes) <= {2, 3, 4}


@every_format
def test_options_survive_storing(fmt):
    made = fmt.make_options()
    stored = msgspec.json.decode(msgspec.json.encode(made))
    assert fmt.make_options(stored) == made


@every_format
def test_late_entrant_is_let_in_with_the_last_seed_or_refused_in_words(fmt):
    view = start(fmt, 5)
    view = publish(view, fmt.next_round(view))
    if fmt.takes_late_entries:
        newcomer = fmt.late_entrant(view, 900)
        assert (newcomer.id, newcomer.seed, newcomer.active) == (900, 6, True)
        with pytest.raises(FormatError, match="101 is in this stage already"):
            fmt.late_entrant(view, 101)
    else:
        with pytest.raises(FormatError, match=f"{fmt.title} takes no late entries"):
            fmt.late_entrant(view, 900)


@every_format
def test_stage_that_loses_everyone_before_it_begins_is_over(fmt):
    view = start(fmt, 4)
    for ids in ([101, 102, 103], [101, 102, 103, 104]):
        assert fmt.next_round(leave(view, ids)) is None


def test_unknown_format_is_refused_naming_the_known_ones():
    with pytest.raises(FormatError, match="single_elimination"):
        get_format("marathon")
