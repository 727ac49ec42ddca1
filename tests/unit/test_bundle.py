"""A bundle is true as it was played, and untrue, with the place, after any change of one value."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any

import msgspec
import pytest

from engine.bundle import (
    Bundle,
    bundle_digest,
    decode_bundle,
    encode_bundle,
    seal_bundle,
    verify_bundle,
)
from engine.errors import BundleError
from engine.formats.stages import StagePlan
from tests.bundles import played_bundle

KNOCK_OUT = StagePlan(format="single_elimination", options={"third_place": True})
TOURNAMENTS = {
    "knock-out": ([KNOCK_OUT], 6, {}),
    "two losses": ([StagePlan(format="double_elimination")], 5, {}),
    "everyone against everyone": ([StagePlan(format="round_robin")], 4, {}),
    "Swiss": ([StagePlan(format="swiss", options={"rounds": 3})], 7, {}),
    "groups, then a knock-out": (
        [StagePlan(format="groups", options={"groups": 2}, qualifiers=4), KNOCK_OUT],
        7,
        {},
    ),
    "Swiss in which someone leaves": (
        [StagePlan(format="swiss", options={"rounds": 4})],
        6,
        {2: 3},
    ),
}

every_tournament = pytest.mark.parametrize("name", TOURNAMENTS)


@cache
def bundle_of(name: str) -> Bundle:
    plans, entrants, leaves = TOURNAMENTS[name]
    return played_bundle(plans, entrants, leaves=leaves)


@every_tournament
def test_what_was_played_is_true(name):
    bundle = bundle_of(name)
    report = verify_bundle(decode_bundle(encode_bundle(bundle)))
    assert report.matches == len(bundle.records) > 0
    assert report.deals >= 4 * report.matches
    assert report.rated == report.matches
    assert report.digest == bundle.digest


@every_tournament
def test_the_same_secret_and_bots_give_the_same_digest(name):
    plans, entrants, leaves = TOURNAMENTS[name]
    assert played_bundle(plans, entrants, leaves=leaves).digest == bundle_of(name).digest


def leaves_of(value: Any, path: tuple[Any, ...] = ()):
    """Every single value of a document with its path."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if parts is None:
        yield path, value
    else:
        for name, part in parts:
            yield from leaves_of(part, (*path, name))


def changed(value: Any, random: Random) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + random.choice((1, -1, 7))
        case float():
            return value + random.choice((0.5, -1e-9))
        case str() if value:
            place = random.randrange(len(value))
            other = chr(ord(value[place]) ^ 1)
            return value[:place] + other + value[place + 1 :]
        case None:
            return 1
    return "x"


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for name in path[:-1]:
        document = document[name]
    document[path[-1]] = value


MEASURED = {"timing"}
"""Of a record: measured, so no claim that anyone could check, and in no digest."""


@every_tournament
def test_any_change_of_one_value_is_refused_with_its_place(name):
    bundle, random = bundle_of(name), Random(name)
    plain = encode_bundle(bundle)
    known = [leaf for leaf in leaves_of(msgspec.json.decode(plain)) if not MEASURED & {*leaf[0]}]
    for path, old in random.sample(known, 30):
        document = msgspec.json.decode(plain)
        put(document, path, changed(old, random))
        with pytest.raises(BundleError) as error:
            verify_bundle(decode_bundle(msgspec.json.encode(document)))
        assert error.value.place, path


CHANGES = [
    # what is changed, where it is found: the place that the verdict names
    ("tournament.commitment", r"tournament\.commitment"),
    ("tournament.secret", r"tournament\.commitment"),
    ("tournament.pub", r"tournament\.pub"),
    ("entrants.0.bots.0.wheel", r"tournament\.pub"),
    (
        "stages.0.rounds.1.pairings.0.entrants.1",
        r"stages\[0\]\.rounds\[1\]\.pairings\[0\]\.entrants\[1\]",
    ),
    ("stages.0.rounds.0.pairings.0.key", r"stages\[0\]\.rounds\[0\]\.pairings\[0\]\.key"),
    (
        "stages.0.rounds.0.pairings.0.result.points.0",
        r"stages\[0\]\.rounds\[0\]\.pairings\[0\]\.result\.points\[0\]",
    ),
    (
        "stages.0.standings.2.tie_breaks.1.value",
        r"stages\[0\]\.standings\[2\]\.tie_breaks\[1\]\.value",
    ),
    (
        "stages.0.standings.0.tie_breaks.0.working",
        r"stages\[0\]\.standings\[0\]\.tie_breaks\[0\]\.working",
    ),
    ("stages.0.standings.1.place", r"stages\[0\]\.standings\[1\]\.place"),
    ("entrants.1.place", r"entrants\[1\]\.place"),
    (
        "records.SW/R1/M1.games.0.deals.0.hands.0",
        r'records\["SW/R1/M1"\]\.games\[0\]\.deals\[0\]\.',
    ),
    ("records.SW/R1/M1.games.0.deals.0.actions.0", r'records\["SW/R1/M1"\]\.games\[0\]'),
    ("records.SW/R1/M1.games.0.deals.0.key", r'records\["SW/R1/M1"\]\.games\[0\]\.deals\[0\]\.key'),
    ("records.SW/R1/M1.games.0.score.0", r'records\["SW/R1/M1"\]\.games\[0\]\.score'),
    ("ratings.1.teams.0.members.0.mu", r"ratings\[1\]\.teams\[0\]\.members\[0\]\.mu"),
    ("ratings.1.teams.0.members.0.sigma_before", r"ratings\[1\]\.teams\[0\]\.members\[0\]"),
    ("ratings.4.teams.1.place", r"ratings\[4\]\.teams\[1\]"),
    ("tournament.name", r"digest"),
]


@pytest.mark.parametrize(("path", "place"), CHANGES, ids=[path for path, _ in CHANGES])
def test_the_verdict_names_the_place(path, place):
    document = msgspec.json.decode(encode_bundle(bundle_of("Swiss")))
    steps = tuple(int(step) if step.isdecimal() else step for step in _steps(path))
    old = document
    for step in steps:
        old = old[step]
    put(document, steps, changed(old, Random(path)))
    with pytest.raises(BundleError) as error:
        verify_bundle(decode_bundle(msgspec.json.encode(document)))
    assert re.match(place, error.value.place), error.value


def _steps(path: str) -> list[str]:
    return path.split(".")


def test_a_forger_who_seals_his_bundle_anew_is_found_by_what_it_says():
    bundle = bundle_of("knock-out")
    record = next(iter(bundle.records.values()))
    without = {key: each for key, each in bundle.records.items() if each is not record}
    forged = seal_bundle(msgspec.structs.replace(bundle, records=without))
    assert forged.digest == bundle_digest(forged)
    with pytest.raises(BundleError, match="the record of this match is missing"):
        verify_bundle(forged)


def test_a_round_that_was_left_out_is_missed():
    bundle = bundle_of("Swiss")
    stage = bundle.stages[0]
    cut = msgspec.structs.replace(stage, rounds=stage.rounds[:-1])
    with pytest.raises(BundleError, match=r"stages\[0\].rounds: there is a round to come"):
        verify_bundle(seal_bundle(msgspec.structs.replace(bundle, stages=(cut,))))


def test_a_field_that_stands_twice_is_no_bundle():
    data = encode_bundle(bundle_of("knock-out")).replace(
        b'"name":"Cup"', b'"name":"Cup","name":"Cap"'
    )
    with pytest.raises(BundleError, match="twice"):
        decode_bundle(data)


def test_what_is_no_bundle_is_said_so():
    with pytest.raises(BundleError, match="no JSON document"):
        decode_bundle(b"PK\x03\x04")
