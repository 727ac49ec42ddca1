"""A bundle is true as it was played, and untrue, with the place, after any change of one value."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import msgspec
import pytest
from referencing import Registry, Resource

from engine.bundle import (
    Bundle,
    EarlierResult,
    bundle_digest,
    bundle_schema,
    decode_bundle,
    encode_bundle,
    seal_bundle,
    verify_bundle,
)
from engine.errors import BundleError, UsageError
from engine.formats.stages import StagePlan
from engine.record import BoardsContest, BotRef, canonical_json, encode_record, record_schema
from tests.bundles import played_bundle
from tests.changes import UNJUDGED, changed, leaves_of, put
from tests.oracle.tournament_judge import judge as second_judge

KNOCK_OUT = StagePlan(format="single_elimination", options={"third_place": True})
EIGHT_BOARDS = BoardsContest(8, 0)
TOURNAMENTS = {
    "knock-out": {"plans": [KNOCK_OUT], "entrants": 6, "seeding": "lot"},
    "two losses": {"plans": [StagePlan(format="double_elimination")], "entrants": 5},
    "everyone against everyone": {
        "plans": [StagePlan(format="round_robin")],
        "entrants": 3,
        "game": "eighty",
    },
    "Swiss": {
        "plans": [StagePlan(format="swiss", options={"rounds": 3})],
        "entrants": 7,
        "contest": EIGHT_BOARDS,
    },
    "groups, then a knock-out": {
        "plans": [StagePlan(format="groups", options={"groups": 2}, qualifiers=4), KNOCK_OUT],
        "entrants": 7,
    },
    "Swiss in which someone leaves and someone comes late": {
        "plans": [StagePlan(format="swiss", options={"rounds": 4})],
        "entrants": 7,
        "leaves": {2: 3},
        "late": {6: 2},
        "seeding": "lot",
    },
    "pods": {"plans": [StagePlan(format="pods", options={"rounds": 2})], "entrants": 7},
    "gauntlet": {"plans": [StagePlan(format="gauntlet")], "entrants": 4},
    "ladder": {
        "plans": [StagePlan(format="ladder", options={"at_once": 3})],
        "entrants": 6,
        "contest": EIGHT_BOARDS,
        "late": {5: 3},
        "leaves": {0: 4},
    },
}

every_tournament = pytest.mark.parametrize("name", TOURNAMENTS)


@cache
def bundle_of(name: str) -> Bundle:
    return played_bundle(**TOURNAMENTS[name])


@every_tournament
def test_what_was_played_is_true(name):
    bundle = bundle_of(name)
    report = verify_bundle(decode_bundle(encode_bundle(bundle)))
    assert report.matches == len(bundle.records) > 0
    assert report.deals >= 4 * report.matches
    is_rated = TOURNAMENTS[name].get("contest") == EIGHT_BOARDS
    assert report.rated == (report.matches if is_rated else 0)
    assert report.digest == bundle.digest


@every_tournament
def test_the_same_secret_and_bots_give_the_same_digest(name):
    assert played_bundle(**TOURNAMENTS[name]).digest == bundle_of(name).digest


@every_tournament
def test_any_change_of_one_value_is_refused_with_its_place(name):
    bundle, random = bundle_of(name), Random(name)
    plain = encode_bundle(bundle)
    known = [
        leaf for leaf in leaves_of(msgspec.json.decode(plain)) if not UNJUDGED & {*leaf[0][:3]}
    ]
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


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04", "no bundle of a tournament: JSON"),
        (b'{"format":"arena-match/1"}', "judge a record by arena verify"),
        (b'{"format":"arena-bundle/2"}', "this is no arena-bundle/1, but 'arena-bundle/2'"),
        (b"[]", "no bundle of a tournament: Expected `object`"),
    ],
    ids=["a wheel", "a record", "of a later format", "a list"],
)
def test_what_is_no_bundle_is_said_so(data, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        decode_bundle(data)


def forged(name: str, **changes: Any) -> Bundle:
    """A bundle with other values, sealed anew by its forger."""
    return seal_bundle(msgspec.structs.replace(bundle_of(name), **changes))


def with_pairing(bundle: Bundle, r: int, p: int, **changes: Any) -> tuple[Any, ...]:
    """The stages with another pairing in round `r` of the first one."""
    stage = bundle.stages[0]
    pairings = list(stage.rounds[r].pairings)
    pairings[p] = msgspec.structs.replace(pairings[p], **changes)
    rounds = list(stage.rounds)
    rounds[r] = msgspec.structs.replace(rounds[r], pairings=tuple(pairings))
    return (msgspec.structs.replace(stage, rounds=tuple(rounds)), *bundle.stages[1:])


LATE = "Swiss in which someone leaves and someone comes late"
ALL = "everyone against everyone"
FORGERIES = [
    # of which tournament, where, what stands there, and the place that the verdict names
    (ALL, "stages.0.rounds.0.pairings.0", {"result.scores": ["1e9999", "0"]}, r"scores\[0\]"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.scores": ["2/2", "0"]}, r"scores\[0\]"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.scores": ["2", "-1"]}, r"scores\[0\]"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.scores": ["1/7", "6/7"]}, r"scores\[0\]"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.decided_by": "chance"}, r"decided_by"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.decided_by": "void"}, r"decided_by"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.decided_by": "bye"}, r"decided_by"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.points": [9, -9]}, r"result.points"),
    (ALL, "stages.0.rounds.0.pairings.0", {"result.decided_by": "forfeit",
        "result.points": [0, 0], "result.places": [2, 2]}, r"result.places"),
    ("knock-out", "stages.0.rounds.1.pairings.0", {"result.advances": [False, False]}, r"advances"),
    ("knock-out", "stages.0.rounds.0.pairings.0", {"result.points": [5]}, r"is_ruled"),
    (LATE, "stages.0", {"absent": [2, 2]}, r"stages\[0\].absent\[1\]"),
    (LATE, "stages.0", {"absent": [2, 99]}, r"stages\[0\].absent\[1\]"),
    (LATE, "entrants.1", {"name": "Bot 0"}, r"entrants\[1\].name"),
    (LATE, "tournament", {"id": "cup\n  digest  sha256:00"}, r"tournament.id"),
    (LATE, "tournament", {"game": "chess"}, r"tournament.game"),
    (LATE, "tournament", {"kind": "trio"}, r"tournament.kind"),
    (LATE, "tournament", {"pub": '{"close":NaN,"entrants":[]}'}, r"tournament.pub"),
    (LATE, "tournament", {"pub": '{"close":1,"entrants":[]}'}, r"tournament.pub"),
    (LATE, "entrants.6", {"addendum": '{"entered":"x","entrants":7,"round":2}'}, r"addendum"),
    (ALL, "", {"stages": [], "records": {}}, r"stages"),
    (ALL, "stages.0", {"qualifiers": 2}, r"stages\[0\].qualifiers"),
    (ALL, "stages.0", {"ruleset": {}}, r"stages\[0\].ruleset"),
    (ALL, "stages.0.contest", {"boards": 10**9}, r"stages\[0\].contest.boards"),
    ("Swiss", "stages.0.options", {"rounds": 7}, r"stages"),
    ("Swiss", "ratings.0.teams.0.members.0", {"sigma_before": 1e200}, r"ratings\[0\].*sigma_before"),
    ("Swiss", "ratings.0.teams.0.members.0", {"mu_before": -1e308}, r"ratings\[0\].*sigma_before"),
    ("ladder", "stages.0.entrants.0", {"mu": 1e308, "sigma": 1e200}, r"entrants\[0\].sigma"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "where", "changes", "place"), FORGERIES)
def test_what_no_organiser_could_have_published_is_refused_even_if_sealed_anew(
    name, where, changes, place
):
    """Rulings are taken as given, but they cannot say what no ruling can."""
    document = json.loads(encode_bundle(bundle_of(name)))
    target = document
    for step in _steps(where) if where else ():
        target = target[int(step) if step.isdecimal() else step]
    if "is_ruled" in target:
        target["is_ruled"] = True
    for path, value in changes.items():
        put(target, tuple(_steps(path)), value)
    data = encode_bundle(seal_bundle(decode_bundle(json.dumps(document).encode())))
    with pytest.raises(BundleError) as error:
        verify_bundle(decode_bundle(data))
    assert re.search(place, error.value.place), error.value
    assert len(error.value.message) < 500


def test_a_bracket_larger_than_its_format_takes_is_refused():
    bundle = bundle_of("two losses")
    more = tuple(
        msgspec.structs.replace(
            bundle.entrants[0], name=f"Bot {i}", bots=(BotRef(f"bot{i}", "1", f"sha256:{i:064x}"),),
            seed=i + 1,
        )
        for i in range(1025)
    )  # fmt: skip
    wheels = sorted([f"bot{i}", f"{i:064x}"] for i in range(1025))
    pub = canonical_json({"close": "", "entrants": wheels}).decode()
    tournament = msgspec.structs.replace(bundle.tournament, pub=pub)
    with pytest.raises(BundleError, match=r"^stages: a double elimination takes at most 1024"):
        verify_bundle(forged("two losses", entrants=more, tournament=tournament))


def test_no_rated_match_may_be_left_out():
    last = bundle_of("Swiss").ratings[-1].key
    with pytest.raises(BundleError, match=f"ratings: {last} must be rated, and is not"):
        verify_bundle(forged("Swiss", ratings=bundle_of("Swiss").ratings[:-1]))


def test_the_rated_matches_stand_in_the_order_of_the_rounds():
    first, second, *rest = bundle_of("Swiss").ratings
    with pytest.raises(BundleError, match=r"ratings\[0\].key: it must be 'SW/R1/M1'"):
        verify_bundle(forged("Swiss", ratings=(second, first, *rest)))


def test_what_no_sandbox_held_must_not_be_rated():
    stages = with_pairing(bundle_of("Swiss"), 0, 0, is_sandboxed=False)
    with pytest.raises(BundleError, match=r"ratings\[0\].key: there is no such match"):
        verify_bundle(forged("Swiss", stages=stages))
    report = verify_bundle(forged("Swiss", stages=stages, ratings=bundle_of("Swiss").ratings[1:]))
    assert report.rated == report.matches - 1


def test_a_second_edition_is_rated_under_a_key_of_its_own():
    first, *rest = bundle_of("Swiss").ratings
    stages = with_pairing(bundle_of("Swiss"), 0, 0, edition=2)
    again = msgspec.structs.replace(first, key="SW/R1/M1~2")
    assert verify_bundle(forged("Swiss", stages=stages, ratings=(again, *rest))).rated == 9
    with pytest.raises(BundleError, match=r"ratings\[0\].key"):
        verify_bundle(forged("Swiss", stages=stages))


def test_a_match_of_fewer_boards_than_eight_must_not_be_rated():
    bundle = bundle_of("knock-out")
    rated = msgspec.structs.replace(bundle_of("Swiss").ratings[0], key="SE/R2/M1")
    with pytest.raises(BundleError, match=r"ratings\[0\].key: there is no such match"):
        verify_bundle(forged("knock-out", ratings=(rated,)))
    assert verify_bundle(bundle).rated == 0


def test_seeds_by_lot_are_drawn_again():
    entrants = bundle_of("knock-out").entrants
    one, other, *rest = entrants
    swapped = (
        msgspec.structs.replace(one, seed=other.seed),
        msgspec.structs.replace(other, seed=one.seed),
        *rest,
    )
    with pytest.raises(BundleError, match=r"entrants\[0\].seed"):
        verify_bundle(forged("knock-out", entrants=swapped))


def test_who_comes_late_has_the_last_seed_and_what_was_published_of_him():
    bundle = bundle_of(LATE)
    *others, late = bundle.entrants
    assert late.seed == 7
    assert late.addendum
    other = msgspec.structs.replace(late, addendum=late.addendum.replace('"round":2', '"round":3'))
    with pytest.raises(BundleError, match=r"entrants\[6\].addendum: it must be 2, not 3"):
        verify_bundle(forged(LATE, entrants=(*others, other)))
    sealed = msgspec.structs.replace(late, addendum="")
    with pytest.raises(BundleError, match=r"tournament.pub"):
        verify_bundle(forged(LATE, entrants=(*others, sealed)))


def test_a_batch_is_picked_with_the_matches_open_that_it_names():
    bundle = bundle_of("ladder")
    stage = bundle.stages[0]
    assert any(each.awaited for each in stage.rounds)
    for r, part in enumerate(stage.rounds):
        if part.awaited:
            rounds = list(stage.rounds)
            rounds[r] = msgspec.structs.replace(part, awaited=())
            cut = msgspec.structs.replace(stage, rounds=tuple(rounds))
            with pytest.raises(BundleError, match=rf"stages\[0\].rounds\[{r}\]"):
                verify_bundle(forged("ladder", stages=(cut,)))


def test_a_ruling_that_takes_a_result_back_is_taken_as_given_and_counted():
    bundle = bundle_of("everyone against everyone")
    pairing = next(p for p in bundle.stages[0].rounds[-1].pairings if not p.is_bye)
    p = bundle.stages[0].rounds[-1].pairings.index(pairing)
    turned = msgspec.structs.replace(
        pairing.result, decided_by="forfeit", points=(0, 0), places=pairing.result.places[::-1],
        scores=pairing.result.scores[::-1],
    )  # fmt: skip
    r = len(bundle.stages[0].rounds) - 1
    earlier = (EarlierResult(until_round=r + 1, result=pairing.result),)
    stages = with_pairing(bundle, r, p, result=turned, is_ruled=True, earlier=earlier)
    with pytest.raises(BundleError, match=r"stages\[0\].standings"):
        verify_bundle(forged("everyone against everyone", stages=stages))
    stages = with_pairing(bundle, r, p, result=pairing.result, is_ruled=True, earlier=earlier)
    assert verify_bundle(forged("everyone against everyone", stages=stages)).rulings == 1
    lied = (EarlierResult(until_round=r + 1, result=turned),)
    stages = with_pairing(bundle, r, p, result=pairing.result, is_ruled=True, earlier=lied)
    with pytest.raises(BundleError, match=r"earlier\[0\].result.decided_by: it must be 'play'"):
        verify_bundle(forged("everyone against everyone", stages=stages))


def test_a_replaced_result_has_a_value_for_each_entrant():
    bundle = bundle_of("everyone against everyone")
    pairing = next(p for p in bundle.stages[0].rounds[0].pairings if not p.is_bye)
    short = msgspec.structs.replace(pairing.result, points=(0,))
    earlier = (EarlierResult(until_round=9, result=short, is_ruled=True),)
    p = bundle.stages[0].rounds[0].pairings.index(pairing)
    stages = with_pairing(bundle, 0, p, earlier=earlier)
    with pytest.raises(BundleError, match=r"earlier\[0\].result.points: it must have one value"):
        verify_bundle(forged("everyone against everyone", stages=stages))


@pytest.mark.parametrize("rating", [{"mu": 25.0}, {"sigma": 8.0}, {"mu": 25.0, "sigma": 0.0}])
def test_a_rating_that_was_brought_along_is_whole(rating):
    stage = bundle_of("ladder").stages[0]
    first, *rest = stage.entrants
    entrants = (msgspec.structs.replace(first, **rating), *rest)
    with pytest.raises(BundleError, match=r"stages\[0\].entrants\[0\].sigma"):
        verify_bundle(forged("ladder", stages=(msgspec.structs.replace(stage, entrants=entrants),)))


def test_records_are_read_when_they_are_asked_for():
    bundle = decode_bundle(encode_bundle(bundle_of("gauntlet")))
    key = next(iter(bundle.records))
    assert bundle.records[key].match_key == key
    text = encode_bundle(bundle).decode()
    changed_form = text.replace('"games":[', '"games":[7,', 1)
    with pytest.raises(BundleError, match=r'records\["GT/.*"\].games\[0\]: Expected `object`'):
        verify_bundle(decode_bundle(changed_form.encode()))


def test_a_bundle_may_be_written_with_spaces_but_no_record_twice():
    bundle = bundle_of("gauntlet")
    document = json.loads(encode_bundle(bundle))
    assert verify_bundle(decode_bundle(json.dumps(document, indent=2).encode())).matches == 3
    key = next(iter(bundle.records))
    record = encode_record(bundle.records[key]).decode().rstrip()
    twice = (
        encode_bundle(bundle)
        .decode()
        .replace(f'"{key}":{record}', f'"{key}":{record},"{key}":{record}')
    )
    with pytest.raises(BundleError, match=f"records: {key}: the field stands twice"):
        decode_bundle(twice.encode())


SCHEMA_FILE = files("engine").joinpath("bundle_schema.json")


def test_the_published_schema_is_that_of_the_values():
    jsonschema.Draft202012Validator.check_schema(bundle_schema())
    assert json.loads(SCHEMA_FILE.read_text("utf-8")) == bundle_schema()


@every_tournament
def test_a_bundle_is_as_the_schema_says(name):
    resources = [("record_schema.json", Resource.from_contents(record_schema()))]
    schema = jsonschema.Draft202012Validator(
        bundle_schema(), registry=Registry().with_resources(resources)
    )
    document = json.loads(encode_bundle(bundle_of(name)))
    schema.validate(document)
    document["entrants"][0]["rank"] = 1
    assert not schema.is_valid(document)


@every_tournament
def test_a_second_judge_that_shares_no_code_agrees(name):
    assert second_judge(json.loads(encode_bundle(bundle_of(name)))) == []


@pytest.mark.parametrize(
    ("path", "check"),
    [
        ("tournament.commitment", "seal"),
        ("tournament.pub", "seal"),
        ("entrants.0.bots.0.wheel", "seal"),
        ("entrants.2.seed", "seeds"),
        ("records.SW/R1/M1.games.0.deals.0.hands.0", "records"),
        ("records.SW/R1/M1.games.0.deals.0.key", "records"),
        ("records.SW/R2/M1.games.3.deals.0.actions.2", "records"),
        ("stages.0.rounds.0.pairings.0.result.points.0", "results"),
        ("stages.0.rounds.0.pairings.0.result.scores.0", "results"),
        ("stages.0.standings.1.points_difference", "sums"),
        ("stages.0.standings.0.tie_breaks.0.working", "digest"),
    ],
)
def test_the_second_judge_notices_it_too(path, check):
    document = json.loads(encode_bundle(bundle_of("Swiss")))
    steps = tuple(int(step) if step.isdecimal() else step for step in _steps(path))
    old = document
    for step in steps:
        old = old[step]
    put(document, steps, changed(old, Random(path)))
    assert check in [line.split(":")[0] for line in second_judge(document)]


PAGE = Path(__file__).parents[2] / "docs" / "verify.md"


def test_what_the_page_shows_can_be_done_by_hand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = encode_bundle(bundle_of("Swiss"))
    Path("autumn-cup.bundle.json").write_bytes(data)
    Path("autumn-cup.bundle.json.gz").write_bytes(gzip.compress(data))
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(program, {})
    changed_key = re.sub(rb'"key":"[0-9a-f]{64}"', b'"key":"' + b"0" * 64 + b'"', data, count=1)
    Path("autumn-cup.bundle.json").write_bytes(changed_key)
    with pytest.raises(AssertionError):
        exec(programs[1], {})


def test_every_field_stands_on_the_page():
    text = PAGE.read_text("utf-8")
    for part in bundle_schema()["$defs"].values():
        for field in part.get("properties", {}) if part.get("title") in PARTS else ():
            assert f"`{field}`" in text or f"`{field}[]`" in text, field


PARTS = {
    "Bundle",
    "TournamentPart",
    "EntrantPart",
    "StagePart",
    "StageEntrant",
    "RoundPart",
    "PairingPart",
    "ResultPart",
    "EarlierResult",
    "StandingPart",
    "TieBreakPart",
    "RatedMatch",
    "RatedTeamPart",
    "RatedMember",
}
