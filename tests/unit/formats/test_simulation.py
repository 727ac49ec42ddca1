"""Random tournaments of every format hold what they promise, and formats that break a promise are found out."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from engine.formats import FORMATS, get_format
from engine.formats.simulation import Tally, _least_rematches, simulate
from engine.formats.swiss import Swiss
from tests.unit.formats.documented import documented_format

every_format = pytest.mark.parametrize(
    "fmt", [*FORMATS.values(), documented_format()], ids=lambda fmt: fmt.name
)


def simulated(fmt, seeds: range) -> Tally:
    tally = Tally(format=fmt.name)
    for seed in seeds:
        tally.add(simulate(fmt, str(seed)))
    return tally


@every_format
def test_random_tournaments_hold_all_that_they_must(fmt):
    assert simulated(fmt, range(3)).troubles == []


@pytest.mark.exhaustive
@every_format
def test_many_random_tournaments_hold_all_that_they_must(fmt):
    tally = simulated(fmt, range(3, 103))
    assert tally.troubles == []
    # what is promised to be drawn is drawn
    for what in (
        "matches",
        "ties",
        "faults",
        "forfeits",
        "double_forfeits",
        "voids",
        "withdrawals",
    ):
        assert getattr(tally, what) > 0, what
    assert (tally.late_entries > 0) == fmt.takes_late_entries


class PairsAlways(Swiss):
    """Folds the field anew in every round."""

    def next_round(self, view):
        fresh = msgspec.structs.replace(view, rounds=())
        planned = super().next_round(fresh)
        if planned is None or len(view.rounds) >= 2:
            return None
        index = len(view.rounds) + 1
        return msgspec.structs.replace(
            planned,
            index=index,
            pairings=tuple(
                msgspec.structs.replace(p, key=f"X/R{index}/M{p.slot}") for p in planned.pairings
            ),
        )


class DependsOnOrder(Swiss):
    """Seeds by the order in which entrants are given."""

    def next_round(self, view):
        entrants = tuple(
            msgspec.structs.replace(e, seed=seed) for seed, e in enumerate(view.entrants, start=1)
        )
        return super().next_round(msgspec.structs.replace(view, entrants=entrants))


class ForgetsTheLast(Swiss):
    """Leaves the last of its pairings out."""

    def next_round(self, view):
        planned = super().next_round(view)
        return planned and msgspec.structs.replace(planned, pairings=planned.pairings[:-1])


class AsksWhoLeft(Swiss):
    """Has no walkovers, and never counts anyone out."""

    def next_round(self, view):
        present = tuple(msgspec.structs.replace(e, active=True) for e in view.entrants)
        return super().next_round(msgspec.structs.replace(view, entrants=present))


class RestsTheFirst(Swiss):
    """Gives every bye to the same one."""

    def next_round(self, view):
        planned = super().next_round(view)
        if planned is None or not planned.pairings[-1].is_bye:
            return planned
        (resting,) = planned.pairings[-1].entrants
        chosen = view.active[0].id
        swapped = {resting: chosen, chosen: resting}
        return msgspec.structs.replace(
            planned,
            pairings=tuple(
                msgspec.structs.replace(p, entrants=tuple(swapped.get(e, e) for e in p.entrants))
                for p in planned.pairings
            ),
        )


class RanksNobodyWhoLeft(Swiss):
    """Leaves who left out of the table."""

    def standings(self, view):
        return tuple(row for row in super().standings(view) if row.entrant not in view.inactive)


class Raises(Swiss):
    """Fails in its third round."""

    def next_round(self, view):
        if len(view.rounds) == 2:
            raise KeyError("seed")
        return super().next_round(view)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (PairsAlways, "meet again where 0 would do"),
        (DependsOnOrder, "from turned entrants"),
        (ForgetsTheLast, "not everyone who is there is paired"),
        (AsksWhoLeft, "awaits who has left"),
        (RestsTheFirst, "a bye too early"),
        (RanksNobodyWhoLeft, "not everyone stands in the table"),
        (Raises, "KeyError: 'seed' (next_round, line "),
    ],
)
def test_format_that_breaks_a_promise_is_found_out(broken, told):
    assert any(told in trouble for trouble in simulated(broken(), range(8)).troubles)


def test_trouble_names_the_tournament_to_play_again():
    trouble = next(iter(simulated(Raises(), range(8)).troubles))
    seed = trouble.removeprefix("seed ").split(":")[0]
    assert simulate(Raises(), seed).troubles == [trouble]


@pytest.mark.parametrize(
    ("count", "met", "least"),
    [
        pytest.param(4, [], 0, id="nobody has met"),
        pytest.param(2, [(0, 1)], 1, id="two who have met"),
        pytest.param(4, [(0, 1), (0, 2), (0, 3)], 1, id="one has met all"),
        pytest.param(
            4, [(0, 1), (0, 2), (1, 2)], 1, id="three have met, and one has three places to be"
        ),
        pytest.param(6, [(0, 1), (2, 3), (4, 5)], 0, id="other pairs are free"),
    ],
)
def test_least_number_of_rematches(count, met, least):
    active = list(range(count))
    assert _least_rematches(active, {frozenset(pair) for pair in met}, active) == least


def test_bye_is_no_way_out_of_a_rematch_for_who_may_not_rest():
    met = {frozenset((0, 1))}
    assert _least_rematches([0, 1, 2], met, [2]) == 1
    assert _least_rematches([0, 1, 2], met, [1, 2]) == 0


def test_tournaments_are_the_same_in_another_process():
    code = (
        "from engine.formats import get_format; from engine.formats.simulation import simulate; "
        "print([simulate(get_format(name), '3').digest for name in ('swiss', 'double_elimination')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = [simulate(get_format(name), "3").digest for name in ("swiss", "double_elimination")]
    assert done.stdout.strip() == str(here)
    assert len(set(here)) == len(here)


def test_known_format_is_what_is_simulated():
    assert simulate(get_format("swiss"), "1").format == "swiss"
