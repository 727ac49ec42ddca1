"""Double elimination: the drops, the byes, who is out, and rematches that come late."""

from __future__ import annotations

import functools
import random
from collections import Counter, defaultdict
from itertools import pairwise, product
from pathlib import Path

import pytest

from engine.errors import FormatError
from engine.formats import DecidedBy, double_elimination, forfeit_outcome, get_format, void_result
from engine.formats.double_elimination import DROP_ORDERS, drop_order
from engine.formats.knockout import losers_of, winner_of
from tests.unit.formats.stages import (
    better_seed_wins,
    leave,
    play_round,
    play_stage,
    publish,
    scored,
    seeded,
    settle,
    start,
    won_by,
)

PAGE = Path(__file__).parents[3] / "docs/formats.md"
DE = get_format("double_elimination")
ORDERS = ("natural", "reversed", "rotated", "halves_reversed")


def keyed(view):
    """All pairings as KEY: seeds."""
    return {
        pairing.key: tuple(entrant - 100 for entrant in pairing.entrants)
        for published in view.rounds
        for pairing in published.pairings
    }


def places_by_seed(view):
    return {row.entrant - 100: row.place for row in DE.standings(view)}


def notes_by_seed(view):
    return {row.entrant - 100: row.note for row in DE.standings(view)}


def worse_seed_wins(pairing):
    return won_by(pairing.entrants.index(max(pairing.entrants)))


def check_bracket(view, count):
    """All that a bracket promises of a stage that nobody left: matches, byes, defeats, places."""
    pairings = [pairing for published in view.rounds for pairing in published.pairings]
    matches = [pairing for pairing in pairings if not pairing.is_bye]
    final = next(pairing for pairing in pairings if pairing.key == "GF/1")
    has_second = pairings[-1].key == "GF/2"
    assert has_second == (winner_of(final) != final.entrants[0])
    assert len(matches) == 2 * count - 2 + has_second
    defeats = Counter(loser for pairing in matches for loser in losers_of(pairing))
    champion = winner_of(pairings[-1])
    assert defeats[champion] == has_second
    runner_up = losers_of(pairings[-1])[0]
    for entrant in view.entrants:
        if entrant.id != champion:
            assert defeats[entrant.id] == 2
    byes = Counter((pairing.key[0], *pairing.entrants) for pairing in pairings if pairing.is_bye)
    assert set(byes.values()) <= {1}, "nobody has two byes in a bracket"
    for before, after in pairwise(view.rounds):
        free = {pairing.entrants for pairing in before.pairings if pairing.is_bye}
        assert not free & {pairing.entrants for pairing in after.pairings if pairing.is_bye}
    rows = DE.standings(view)
    assert [row.entrant for row in rows[:2]] == [champion, runner_up]
    assert [row.place for row in rows[:4]] == [1, 2, 3, 4][:count]


def test_eight_drop_as_the_bracket_says():
    view = play_stage(DE, start(DE, 8))
    assert keyed(view) == {
        "W/R1/M0": (1, 8),
        "W/R1/M1": (4, 5),
        "W/R1/M2": (2, 7),
        "W/R1/M3": (3, 6),
        "W/R2/M0": (1, 4),
        "W/R2/M1": (2, 3),
        "L/R1/M0": (8, 5),
        "L/R1/M1": (7, 6),
        "L/R2/M0": (3, 5),  # crossed over: 5 and 4 have met
        "L/R2/M1": (4, 6),
        "W/R3/M0": (1, 2),
        "L/R3/M0": (3, 4),
        "L/R4/M0": (2, 3),
        "GF/1": (1, 2),
    }
    assert places_by_seed(view) == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 5, 7: 7, 8: 7}


def test_rounds_of_both_brackets_are_published_together():
    view = play_stage(DE, start(DE, 8), longest_way)
    assert [
        sorted({pairing.key.rsplit("/", 1)[0] for pairing in published.pairings}, reverse=True)
        for published in view.rounds
    ] == [
        ["W/R1"],
        ["W/R2", "L/R1"],
        ["L/R2"],
        ["W/R3", "L/R3"],
        ["L/R4"],
        ["GF"],
        ["GF"],
    ]


def longest_way(pairing):
    return worse_seed_wins(pairing) if pairing.key == "GF/1" else better_seed_wins(pairing)


def test_second_grand_final_is_played_if_the_losers_champion_wins_the_first():
    view = play_stage(DE, start(DE, 4), longest_way)
    assert [p.key for p in view.rounds[-1].pairings] == ["GF/2"]
    assert keyed(view)["GF/1"] == (1, 2)
    assert keyed(view)["GF/2"] == (2, 1)
    assert places_by_seed(view) == {1: 1, 2: 2, 3: 3, 4: 4}


def test_without_a_second_grand_final_the_first_decides():
    view = play_stage(DE, start(DE, 4, second_final=False), longest_way)
    assert [p.key for p in view.rounds[-1].pairings] == ["GF/1"]
    assert places_by_seed(view) == {2: 1, 1: 2, 3: 3, 4: 4}
    assert len(view.rounds) == DE.round_count(4, view.options)
    assert DE.match_count(4, view.options) == 6


def test_two_meet_twice_or_three_times():
    view = play_stage(DE, start(DE, 2))
    assert keyed(view) == {"W/R1/M0": (1, 2), "GF/1": (1, 2)}
    view = play_stage(DE, start(DE, 2), longest_way)
    assert keyed(view) == {"W/R1/M0": (1, 2), "GF/1": (1, 2), "GF/2": (2, 1)}


def test_slot_that_a_bye_feeds_is_a_bye_in_turn():
    view = play_stage(DE, start(DE, 5))
    byes = [p.key for r in view.rounds for p in r.pairings if p.is_bye]
    assert byes == ["W/R1/M0", "W/R1/M2", "W/R1/M3", "L/R1/M0", "L/R2/M1"]
    assert "L/R1/M1" not in keyed(view)  # both of its feeders were byes


class Script:
    """Decides by a list of bits, the better seed winning where it is 0; at its end, by zeros."""

    def __init__(self, bits):
        self.bits = bits
        self.used = 0

    def __call__(self, pairing):
        bit = self.bits[self.used] if self.used < len(self.bits) else 0
        self.used += 1
        return worse_seed_wins(pairing) if bit else better_seed_wins(pairing)


def results_that_part(count):
    """Every pattern of results once: after each play the last bit that was used is counted up."""
    bits = []
    while True:
        script = Script(bits)
        yield script
        bits = (bits + [0] * script.used)[: script.used]
        while bits and bits[-1]:
            bits.pop()
        if not bits:
            return
        bits[-1] = 1


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_every_pattern_of_results_keeps_the_promises(count):
    patterns = 0
    for script in results_that_part(count):
        check_bracket(play_stage(DE, start(DE, count), script), count)
        patterns += 1
    # each bracket match doubles them; of the two results of the first final one adds a second final
    assert patterns == 2 ** (2 * count - 3) * 3


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [6, 7, 8])
def test_every_pattern_of_results_keeps_the_promises_up_to_eight(count):
    patterns = 0
    for script in results_that_part(count):
        check_bracket(play_stage(DE, start(DE, count), script), count)
        patterns += 1
    assert patterns == 2 ** (2 * count - 3) * 3


@pytest.mark.parametrize("count", range(2, 66))
def test_sampled_results_keep_the_promises(count):
    dice = random.Random(count)
    for decide in (better_seed_wins, worse_seed_wins, lambda _: won_by(dice.randrange(2))):
        check_bracket(play_stage(DE, start(DE, count), decide), count)


@pytest.mark.parametrize("size", DROP_ORDERS)
def test_every_order_of_drops_takes_each_loser_once(size):
    depth = size.bit_length() - 1
    assert len(DROP_ORDERS[size]) == depth - 1
    for winners_round in range(2, depth + 1):
        assert sorted(drop_order(size, winners_round)) == list(range(size >> winners_round))


@pytest.mark.parametrize(
    ("size", "winners_round", "order"),
    [
        (8, 2, [1, 0]),  # reversed
        (32, 3, [2, 3, 0, 1]),  # rotated by half
        (64, 2, [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]),  # each half reversed
        (16, 4, [0]),  # the final has one loser
    ],
)
def test_order_of_drops_is_the_published_one(size, winners_round, order):
    assert drop_order(size, winners_round) == order


@functools.cache
def expected_rematches(size, names):
    """How many rematches each losers' round is expected to have between equals, exactly.

    Each slot holds the chances of who comes there, by (winners' round, slot) in which it lost. Who lost
    round q lost to whoever won that block, who loses round r of the block around it with 2^-(r - q).
    """
    depth = size.bit_length() - 1
    slots = [{(1, 2 * i): 0.5, (1, 2 * i + 1): 0.5} for i in range(size // 4)]
    found = [0.0]
    for r in range(2, depth + 1):
        order = ordered(names[r - 2], size >> r)
        found.append(
            sum(
                chance * 2.0 ** -(r - q)
                for slot, dropped in zip(slots, order, strict=True)
                for (q, block), chance in slot.items()
                if block >> (r - q) == dropped
            )
        )
        slots = [
            mixed(slot, {(r, dropped): 1.0}) for slot, dropped in zip(slots, order, strict=True)
        ]
        if r < depth:
            pairs = list(zip(slots[::2], slots[1::2], strict=True))
            found.append(sum(met(a, b, r) + met(b, a, r) for a, b in pairs))
            slots = [mixed(a, b) for a, b in pairs]
    return tuple(found)


def ordered(name, count):
    slots = list(range(count))
    half = count // 2
    return {
        "natural": slots,
        "reversed": slots[::-1],
        "rotated": slots[half:] + slots[:half],
        "halves_reversed": slots[:half][::-1] + slots[half:][::-1],
    }[name]


def mixed(a, b):
    slot = defaultdict(float)
    for key, chance in (*a.items(), *b.items()):
        slot[key] += chance / 2
    return dict(slot)


def met(a, b, latest):
    """The chance that the one from `b` has beaten the one from `a` in the winners' bracket."""
    return sum(
        chance * b.get((r, block >> (r - q)), 0.0) * 2.0 ** -(r - q)
        for (q, block), chance in a.items()
        for r in range(q + 1, latest + 1)
    )


def first_rematch(size, names):
    """The first losers' round that can have one."""
    return next(i for i, chance in enumerate(expected_rematches(size, names), 1) if chance)


@pytest.mark.parametrize("size", [8, 16, 32, 64, 128, 256, 512, 1024])
@pytest.mark.parametrize("plain", ORDERS)
def test_rematches_come_later_or_more_rarely_than_by_any_one_plain_order(size, plain):
    depth = size.bit_length() - 1
    plainly = (plain,) * (depth - 1)
    own, other = first_rematch(size, DROP_ORDERS[size]), first_rematch(size, plainly)
    assert own >= other
    if own == other and size > 64:
        assert expected_rematches(size, DROP_ORDERS[size]) <= expected_rematches(size, plainly)


@pytest.mark.parametrize("size", [8, 16, 32, 64, 128])
def test_page_tells_how_many_rematches_are_to_be_expected(size):
    depth = size.bit_length() - 1
    ways = [DROP_ORDERS[size], ("natural",) * (depth - 1), ("reversed",) * (depth - 1)]
    counts = [sum(expected_rematches(size, names)[:-2]) for names in ways]
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {size} |"))
    told = [float(cell) for cell in row.strip("| ").split("|")[1:]]
    assert told == pytest.approx(counts, abs=0.0051)


@pytest.mark.parametrize(
    ("size", "earliest"),
    [(8, 3), (16, 4), (32, 5), (64, 7)],  # no combination of the four orders has it later
)
def test_customary_orders_have_the_first_rematch_as_late_as_can_be(size, earliest):
    depth = size.bit_length() - 1
    combinations = product(ORDERS, repeat=depth - 2)
    assert max(first_rematch(size, (*names, "natural")) for names in combinations) == earliest
    assert first_rematch(size, DROP_ORDERS[size]) == earliest


@pytest.mark.exhaustive
def test_orders_beyond_are_the_best_of_all_combinations():
    combinations = product(ORDERS, repeat=5)
    best = min(expected_rematches(128, (*names, "natural")) for names in combinations)
    assert expected_rematches(128, DROP_ORDERS[128]) == best


@pytest.mark.parametrize("size", [8, 16, 32])
def test_calculated_rematches_are_those_that_happen(size):
    dice = random.Random(size)
    runs = 300
    happened = Counter()
    for _ in range(runs):
        view = play_stage(DE, start(DE, size), lambda _: won_by(dice.randrange(2)))
        seen = set()
        for published in view.rounds:
            for pairing in published.pairings:
                both = frozenset(pairing.entrants)
                if pairing.key[0] == "L" and both in seen:
                    happened[int(pairing.key.split("/")[1][1:])] += 1
                seen.add(both)
    for number, chance in enumerate(expected_rematches(size, DROP_ORDERS[size]), 1):
        assert abs(happened[number] / runs - chance) < 0.15
        assert bool(happened[number]) <= bool(chance)


def test_who_leaves_is_walked_over_in_both_brackets():
    view = leave(play_round(DE, start(DE, 4), better_seed_wins), [101])
    view = play_stage(DE, view)
    walked = [
        (p.key, winner_of(p) - 100)
        for r in view.rounds
        for p in r.pairings
        if p.result.decided_by is DecidedBy.WALKOVER
    ]
    assert walked == [("W/R2/M0", 2), ("L/R2/M0", 3)]
    assert places_by_seed(view) == {2: 1, 3: 2, 1: 3, 4: 4}
    assert notes_by_seed(view)[1] == "lost in losers' round 2, withdrawn"


def test_unbeaten_champion_who_leaves_before_the_final_is_walked_over_twice():
    view = start(DE, 4)
    for _ in range(3):
        view = play_round(DE, view, better_seed_wins)
    view = play_stage(DE, leave(view, [101]))
    assert [[p.key for p in r.pairings] for r in view.rounds[-2:]] == [["GF/1"], ["GF/2"]]
    assert places_by_seed(view)[1] == 2
    assert notes_by_seed(view)[2] == "won the grand final"


def test_who_leaves_before_the_bracket_is_drawn_is_not_in_it():
    view = play_stage(DE, leave(start(DE, 5), [102]))
    assert "W/R2/M0" in keyed(view)
    assert notes_by_seed(view)[2] == "not in the bracket, withdrawn"
    assert places_by_seed(view)[2] == 5


def test_double_forfeit_lets_the_better_seed_go_on_and_the_other_drop():
    view = start(DE, 4)
    view = publish(view, DE.next_round(view))
    both = forfeit_outcome(2, [0, 1], "neither started")
    results = {p.key: DE.decide(view, p, both) for p in view.rounds[0].pairings}
    view = settle(view, results)
    assert keyed(publish(view, DE.next_round(view))) == {
        "W/R1/M0": (1, 4),
        "W/R1/M1": (2, 3),
        "W/R2/M0": (1, 2),
        "L/R1/M0": (4, 3),
    }


def test_tie_goes_to_the_lot_of_its_key():
    view = start(DE, 2)
    result = DE.decide(view, DE.next_round(view).pairings[0], scored((0, 0)))
    assert result.decided_by is DecidedBy.LOT
    assert sorted(result.advances) == [False, True]


def test_voided_match_undoes_neither_bracket():
    view = play_round(DE, start(DE, 4), better_seed_wins)
    result = view.rounds[0].pairings[0].result
    voided = settle(view, {"W/R1/M0": void_result(result)})
    assert DE.next_round(voided) == DE.next_round(view)


def test_table_shows_how_everyone_stands():
    view = start(DE, 4)
    view = publish(view, DE.next_round(view))
    assert set(notes_by_seed(view).values()) == {"plays in winners' round 1"}
    assert set(places_by_seed(view).values()) == {1}
    view = play_round(DE, start(DE, 4), better_seed_wins)
    assert notes_by_seed(view) == {
        1: "won winners' round 1",
        2: "won winners' round 1",
        3: "lost in winners' round 1, plays on",
        4: "lost in winners' round 1, plays on",
    }
    for _ in range(2):
        view = play_round(DE, view, better_seed_wins)
    view = publish(view, DE.next_round(view))
    assert notes_by_seed(view)[1] == notes_by_seed(view)[2] == "plays the grand final"
    final = view.rounds[-1].pairings[0]
    view = settle(view, {"GF/1": DE.decide(view, final, won_by(1))})
    assert places_by_seed(view) == {1: 1, 2: 1, 3: 3, 4: 4}
    assert notes_by_seed(view)[1] == "plays the second grand final"


def test_more_entrants_than_the_drops_are_known_for_are_refused():
    with pytest.raises(FormatError, match="at most 1024 entrants, and there are 1025"):
        DE.check(seeded(1025), DE.make_options())
    assert max(DROP_ORDERS) == double_elimination.MAX_ENTRANTS
