"""Brackets as they are drawn: what stands in a box to come is who comes there in the end."""

from __future__ import annotations

import random
import re

import msgspec
import pytest

from engine.formats import get_format
from engine.formats.knockout import losers_of, winner_of
from tests.unit.formats.stages import play_round, play_stage, start, won_by
from tournament.competitions.models import RoundState, Stage, StageState
from tournament.competitions.selectors.brackets import BracketMatch, brackets_of
from tournament.competitions.selectors.stages import PairingPart, PairingRow, RoundRow, StagePage


def page_of(fmt, view) -> StagePage:
    """The page of a stage that has come so far, every entrant called by its id."""
    return StagePage(
        stage=Stage(index=0, format=fmt.name),
        number=1,
        format=fmt.name,
        format_title=fmt.title,
        summary="",
        knocks_out=True,
        is_continuous=False,
        state=StageState.RUNNING,
        state_label="",
        note="",
        is_shown=True,
        seeds={},
        rounds=tuple(
            RoundRow(
                index=each.index,
                state=RoundState.COMPLETE if each.is_complete else RoundState.OPEN,
                state_label="",
                pairings=tuple(row_of(pairing) for pairing in each.pairings),
                pairing_count=len(each.pairings),
            )
            for each in view.rounds
        ),
        standings=(),
        going_on=frozenset(),
        hidden_from=None,
    )


def row_of(pairing) -> PairingRow:
    result = pairing.result
    return PairingRow(
        key=pairing.key,
        slot=pairing.slot,
        is_bye=pairing.is_bye,
        decided_by=str(result.decided_by) if result else "",
        decided_label="",
        parts=tuple(
            PairingPart(
                entrant=entrant,
                name=str(entrant),
                seed=entrant,
                score=None,
                points=None,
                place=None,
                advances=result.advances[index] if result else None,
            )
            for index, entrant in enumerate(pairing.entrants)
        ),
        match_state="",
        match_label="",
        termination="",
        termination_label="",
        rated=False,
    )


def boxes(page: StagePage) -> dict[str, BracketMatch]:
    return {
        box.key: box
        for bracket in brackets_of(page)
        for column in bracket.rounds
        for box in column.matches
    }


def comes_true(side: str, played) -> set[int]:
    """Who the words of a side stand for, once all has been played."""
    if side.isdecimal():
        return {int(side)}
    champions = {"winners’ champion": 0, "losers’ champion": 1}
    if side in champions:
        return {played["GF/1"].entrants[champions[side]]}
    role, key = re.fullmatch(r"(winner|loser) of (\S+)", side).groups()
    pairing = played[key if key in played else f"SE/{key}"]
    return {winner_of(pairing)} if role == "winner" else set(losers_of(pairing))


@pytest.mark.parametrize("count", [*range(2, 18), 33])
@pytest.mark.parametrize("name", ["single_elimination", "double_elimination"])
def test_whoever_is_drawn_to_come_comes_there_in_the_end(name, count):
    fmt, dice = get_format(name), random.Random(count)
    view, drawn = start(fmt, count), []
    while (after := play_round(fmt, view, lambda _: won_by(dice.randrange(2)))) is not None:
        drawn += [boxes(page_of(fmt, undecided(after))), boxes(page_of(fmt, after))]
        view = after
    played = {pairing.key: pairing for each in view.rounds for pairing in each.pairings}
    for each in drawn:
        assert set(played) - {"GF/2"} <= set(each)
        for key, box in each.items():
            names = [side.name for side in box.sides if side.name != "bye"]
            came = {who for words in names for who in comes_true(words, played)}
            assert came == set(played[key].entrants if key in played else ())


def undecided(view):
    """The stage before the matches of its last round were played."""
    last = view.rounds[-1]
    pairings = tuple(
        pairing if pairing.is_bye else msgspec.structs.replace(pairing, result=None)
        for pairing in last.pairings
    )
    return msgspec.structs.replace(
        view, rounds=(*view.rounds[:-1], msgspec.structs.replace(last, pairings=pairings))
    )


def test_match_that_is_taken_back_is_drawn_with_who_comes_there_again():
    fmt = get_format("single_elimination")
    view = play_stage(fmt, start(fmt, 8))
    first, second, final = view.rounds
    view = msgspec.structs.replace(
        view, rounds=(first, msgspec.structs.replace(second, pairings=second.pairings[1:]))
    )
    drawn = boxes(page_of(fmt, view))
    assert [side.name for side in drawn["SE/R2/M1"].sides] == ["101", "104"]
    assert [side.name for side in drawn["SE/R3/M1"].sides] == ["winner of R2/M1", "102"]
    assert len(final.pairings) == 1
