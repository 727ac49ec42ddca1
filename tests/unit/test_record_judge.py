"""No untruth passes: true records of random matches are accepted, every changed value is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.agents import Failure
from engine.errors import RecordError, RulesetError
from engine.games import GAMES
from engine.outcome import Termination
from engine.record import (
    BoardsContest,
    DealSource,
    GamesContest,
    MatchRecord,
    compute_digest,
    decode_record,
    encode_record,
    record_schema,
    replay,
)
from engine.shuffle import local_prk
from tests.golden.matches import FOLDER
from tests.match_fakes import (
    NAMES,
    at_random,
    entrant,
    fails_on_seat,
    first_legal,
    last_legal,
    play,
    spec_of,
)
from tests.oracle.judge import judge as judge_again
from tests.samples import examples

GOLDEN = sorted(path.stem for path in FOLDER.glob("*.json"))
LIKE_ANOTHER = {
    "podkidnoe-4-boards": "podkidnoe-3-boards, and podkidnoe-4-fault has four",
    "eighty-extra-boards": "eighty-boards",
    "eighty-fault-in-rotation-1": "eighty-boards and eighty-fault-at-turn",
}
"""Which others show the same shapes of a record."""
each_shape = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive) if name in LIKE_ANOTHER else name
        for name in GOLDEN
    ],
)
SCHEMA = jsonschema.Draft202012Validator(record_schema())
Path = tuple[str | int, ...]


def document(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_bytes())


def signed(doc: dict[str, Any]) -> dict[str, Any]:
    """The document with the digest of what it now says: a liar would write it too."""
    return doc | {"digest": compute_digest(decode_record(json.dumps(doc).encode()))}


def verdict(doc: dict[str, Any]) -> str | None:
    """Place of the first untruth; None for a true record."""
    try:
        replay(decode_record(json.dumps(doc).encode()))
    except RecordError as error:
        return error.place
    return None


def verdict_signed(doc: dict[str, Any]) -> str | None:
    """The verdict if timing and digest are written anew."""
    doc = retimed(doc)
    place = verdict(doc)
    return verdict(signed(doc)) if place == "digest" else place


def put(doc: Any, path: Path, value: Any) -> Any:
    """A copy of the document with one value changed."""
    top = target = copy.copy(doc)
    for step in path[:-1]:
        target[step] = copy.copy(target[step])
        target = target[step]
    target[path[-1]] = value
    return retimed(top) if path[0] == "games" else top


def retimed(doc: dict[str, Any]) -> dict[str, Any]:
    """The document with a timing for as many games as it lists."""
    rows = len(doc["games"] or ())
    seats = 4 if doc["game"] == "eighty" else len(doc["entrants"])
    return doc | {"timing": {"cpu_us": [[0] * seats] * rows, "wall_ms": 0}}


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar of a document with its path."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, (*path, name))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from leaves(part, (*path, i))
    else:
        yield path, value


def containers(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every list and object of a document with its path."""
    if isinstance(value, dict | list):
        if path:
            yield path, value
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from containers(part, (*path, name))


def other_values(value: Any) -> list[Any]:
    """What someone might write instead."""
    if value is None:
        return [0, "0", False]
    if isinstance(value, bool):
        return [not value, int(value), None]
    if isinstance(value, int):
        return [value + 1, value - 1, float(value), str(value), None, value == 1]
    words = value.split(" ")
    changed = [value + " ", value[:-1], value.upper(), None]
    changed += [value.replace("6", "5", 1), "1" + value[1:]]
    if len(words) == 2:
        changed += [f"{words[0]} pass", f"{words[0]} bid 50", f"{words[0]} 4-1"]
    if len(words) > 3:
        changed.append(value[1:])
        changed += [" ".join([words[1], words[0], *words[2:]]), " ".join(words[1:])]
    if value[2:].startswith("bid"):
        changed.append(value[:-1] + str(9 - int(value[-1])))
    return [text for text in changed if text != value]


def is_measured(path: Path) -> bool:
    return path[0] == "timing"


def is_key(path: Path) -> bool:
    return path[-1] == "key"


# --- what is true ----------------------------------------------------------------------------------------


def ruleset_options(game: str) -> st.SearchStrategy[dict[str, Any]]:
    values = {
        option.name: st.sampled_from(option.choices)
        if option.choices
        else st.integers(option.minimum, option.maximum or 400)
        for option in GAMES[game].options
    }
    if game == "eighty":
        values["target"] = st.integers(1, 150)
    return st.fixed_dictionaries({}, optional=values)


@st.composite
def specs(draw):
    game = draw(st.sampled_from(sorted(GAMES)))
    contest = draw(
        st.builds(BoardsContest, st.integers(1, 3), st.integers(0, 3))
        | st.builds(GamesContest, st.integers(1, 4))
    )
    options = draw(ruleset_options(game))
    try:
        GAMES[game].make_ruleset(options)
    except RulesetError:
        assume(False)
    if game == "eighty" and draw(st.booleans()):
        entrants: Any = [entrant("alpha", "beta", name="Pair"), entrant("gamma")]
    else:
        entrants = draw(st.sampled_from(GAMES[game].entrant_counts))
    deals = DealSource(local_prk(draw(st.text(max_size=5))), "local", draw(st.booleans()))
    return spec_of(game, contest, entrants=entrants, options=options, deals=deals)


@st.composite
def matches(draw):
    """A match of random play, some of them ended by a fault."""
    spec = draw(specs())
    kind = draw(st.sampled_from([None, *sorted({"crash", "time", "illegal_action", "memory"})]))
    policies = [draw(st.sampled_from([at_random, first_legal, last_legal])) for _ in NAMES]
    if kind is not None:
        policies[draw(st.integers(0, 1))] = fails_on_seat(
            draw(st.integers(0, 3)), draw(st.integers(0, 2)), Failure(Termination(kind), "failed")
        )
    ready: Any = {}
    if draw(st.integers(0, 4)) == 0:
        ready["beta"] = Failure(Termination.CRASH, "failed to start")
    return spec, play(spec, *policies, ready=ready, ready_from=draw(st.integers(0, 4)))[0]


@settings(max_examples=examples(40, exhaustive=400), suppress_health_check=[HealthCheck.too_slow])
@given(matches())
def test_what_was_played_replays_true_by_both_judges(played):
    spec, match = played
    record = decode_record(encode_record(match.record))
    found = replay(record)
    assert record == match.record
    assert [deal.score for deal in found.deals] == [
        None if deal.score is None else tuple(deal.score)
        for game in record.games
        for deal in game.deals
    ]
    doc = json.loads(encode_record(record))
    assert judge_again(doc, prk=spec.deals.prk) == []


@settings(max_examples=examples(10, exhaustive=100), suppress_health_check=[HealthCheck.too_slow])
@given(matches())
def test_what_was_played_has_the_form_of_the_schema(played):
    SCHEMA.validate(json.loads(encode_record(played[1].record)))


@settings(max_examples=examples(40, exhaustive=400), suppress_health_check=[HealthCheck.too_slow])
@given(matches(), st.data())
def test_a_changed_value_of_any_match_is_refused(played, data):
    doc = json.loads(encode_record(played[1].record))
    path, value = data.draw(st.sampled_from(list(leaves(doc))))
    assume(not is_measured(path) and not is_key(path))
    changed = put(doc, path, data.draw(st.sampled_from(other_values(value))))
    assume(changed != doc or json.dumps(changed) != json.dumps(doc))
    assert verdict(changed) is not None


# --- one value changed, systematically ---------------------------------------------------------------------


NO_RULE_TELLS = {"match_key", "time_control", "entrants"}


def may_stand_otherwise(path: Path) -> bool:
    """Whether, with a digest of its own, another value can make another true record."""
    match path:
        case ("outcome", "faults", _, "detail" | "seat"):  # at the start no seat need be named
            return True
        case ("games", _, "deals", _, "actions", _):  # another legal action without consequences
            return True
        case ("ruleset" | "contest", *_):  # an option, a number of boards that never mattered
            return True
    return path[0] in NO_RULE_TELLS


def passes(doc: dict[str, Any], path: Path, other: Any) -> bool:
    """Whether a change passes once the digest is written anew; as it stands it never does."""
    changed = put(doc, path, other)
    place = verdict(changed)
    assert place is not None, (path, other)
    if place != "digest":
        return False
    changed = signed(changed)
    if verdict(changed) is not None:
        return False
    assert judge_again(changed) == [], (path, other)
    return True


@each_shape
def test_every_changed_value_is_refused(name):
    """Whatever is changed, the digest tells; if that is written anew too, the rules tell."""
    doc = document(name)
    passed = {
        path
        for path, value in leaves(doc)
        if not is_measured(path) and not is_key(path) and path != ("digest",)
        for other in other_values(value)
        if passes(doc, path, other)
    }
    assert {path for path in passed if not may_stand_otherwise(path)} == set()


@each_shape
def test_every_missing_doubled_or_exchanged_part_is_refused(name):
    doc = document(name)
    passed = {
        path
        for path, value in containers(doc)
        if not is_measured(path)
        for other in other_shapes(value)
        if other != value and passes(doc, path, other)
    }
    allowed = {path for path in passed if path[0] in {"entrants", "contest"}}
    allowed |= {path for path in passed if path[-1] == "actions"}  # two exchanged, without effect
    if name.endswith("fault-at-start"):
        allowed.add(("outcome", "faults"))  # fewer failed to start
    if "fault" in name:
        allowed.add(("games",))  # nobody begins the cut rotation: then its agents failed to start
    assert passed - allowed == set()


def other_shapes(value: Any) -> Iterator[Any]:
    """A list or object with a part missing, doubled, exchanged or added."""
    yield from (None, [], {})
    if isinstance(value, list):
        yield [*value, *value[-1:]]
        yield value[::-1]
        for i in range(len(value)):
            yield [*value[:i], *value[i + 1 :]]
            yield [*value[:i], *value[i + 1 : i + 2], value[i], *value[i + 2 :]]
    else:
        yield value | {"surprise": 1}
        for gone in value:
            yield {name: part for name, part in value.items() if name != gone}


# --- the places of untruths --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "value", "place"),
    [
        ("eighty-boards", ("games", 3, "deals", 0, "score", 1), 99, "games[3].deals[0].score[1]"),
        ("eighty-boards", ("games", 3, "score", 1), 99, "games[3].score[1]"),
        ("eighty-boards", ("games", 2, "deals", 0, "actions", 9), "0 play 7-7", "*"),
        ("eighty-boards", ("games", 2, "deals", 0, "actions", 9), "3 pass", "*"),
        ("eighty-boards", ("games", 1, "deals", 0, "actions", 0), "0 bid 50 ", "*"),
        ("eighty-boards", ("games", 1, "seating", 2), 0, "*"),
        ("eighty-boards", ("games", 1, "deals", 0, "first"), 9, "*"),
        ("eighty-boards", ("games", 1, "deals", 0, "number"), 1, "*"),
        ("eighty-games", ("games", 1, "deals", 1, "first"), 0, "*"),
        ("eighty-games", ("games", 2, "deals", 0, "number"), 0, "*"),
        ("eighty-games", ("ruleset", "target"), 0, "*"),
        ("podkidnoe-4-boards", ("ruleset", "top_up"), "off", "ruleset.empty_hand"),  # contradiction
        ("podkidnoe-3-boards", ("games", 4, "deals", 0, "starter"), "9-9", "*"),
        ("podkidnoe-3-boards", ("outcome", "points", 2), 1, "*"),
        ("podkidnoe-3-boards", ("outcome", "places", 0), 2, "*"),
        ("podkidnoe-3-boards", ("digest",), "sha256:0", "*"),
        ("eighty-fault-at-turn", ("outcome", "faults", 0, "seat"), 1, "*"),
        ("eighty-fault-at-turn", ("outcome", "faults", 0, "entrant"), 0, "*"),
        ("eighty-fault-at-turn", ("outcome", "faults", 0, "kind"), "completed", "*"),
        ("eighty-fault-at-turn", ("outcome", "faults", 0, "kind"), "time", "outcome.termination"),
        ("eighty-fault-at-turn", ("outcome", "faults", 0, "detail"), "a\nb", "*"),
        ("eighty-fault-at-turn", ("outcome", "points", 0), 5, "*"),
        ("eighty-fault-at-turn", ("outcome", "places", 0), 2, "*"),
    ],
)
def test_an_untruth_is_told_with_its_place(name, path, value, place):
    if place == "*":
        place = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path)[1:]
    assert verdict(put(document(name), path, value)) == place


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("timing", "wall_ms"), -1, "timing.wall_ms"),
        (("timing", "cpu_us"), [], "timing.cpu_us"),
        (("timing", "cpu_us", 1), [0, 0, 0], "timing.cpu_us[1]"),
        (("timing", "cpu_us", 1, 2), -5, "timing.cpu_us[1]"),
        (("timing", "cpu_us", 1, 2), 5_000_000, None),  # who knows
        (("timing", "action_cpu_us"), [], "timing.action_cpu_us"),
        (("timing", "action_cpu_us"), [[]] * 4, "timing.action_cpu_us[0]"),
        (("timing", "action_cpu_us"), [[[1, 2]]] * 4, "timing.action_cpu_us[0][0]"),
        (("timing", "budget_percent"), 0, "timing.budget_percent"),
        (("timing", "budget_percent"), 170, None),
    ],
)
def test_of_the_timing_only_the_form_is_judged(path, value, place):
    assert verdict(put(document("eighty-boards"), path, value)) == place


# --- faults --------------------------------------------------------------------------------------------------


def test_after_a_fault_in_rotation_1_the_boards_before_it_are_all_there():
    doc = document("eighty-fault-in-rotation-1")
    listed = [(game["board"], game["rotation"], len(game["deals"])) for game in doc["games"]]
    assert listed == [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1), (2, 0, 1)]
    assert doc["games"][3]["deals"][0]["score"] is None
    assert doc["games"][3]["score"] == [0, 0]


@pytest.mark.parametrize("gone", range(5))
def test_after_a_fault_no_game_before_it_may_be_missing(gone):
    doc = document("eighty-fault-in-rotation-1")
    del doc["games"][gone]
    assert verdict_signed(doc) is not None


def test_a_fault_at_the_start_stands_only_where_agents_start():
    doc = document("eighty-fault-in-rotation-1")
    doc["outcome"]["faults"][0]["detail"] = "raised SyntaxError while starting"
    del doc["games"][3]  # now board 1 of rotation 1 was not begun, but its agents sat there already
    assert verdict_signed(doc) == "games"
    del doc["games"][1]  # now all of rotation 1 was not begun: that is where agents start
    assert verdict_signed(doc) is None


def test_a_match_that_was_over_cannot_end_by_a_fault():
    doc = document("eighty-boards")
    fault = {"entrant": 1, "seat": 1, "kind": "crash", "detail": "too late"}
    doc["outcome"] = {"termination": "crash", "faults": [fault], "points": [0, 0], "places": [1, 2]}
    assert verdict_signed(doc) == "outcome.termination"


def test_a_fault_needs_somebody():
    doc = document("eighty-fault-at-turn")
    doc["outcome"]["faults"] = []
    assert verdict_signed(doc) == "outcome.faults"


def test_only_one_fault_can_stop_a_deal():
    doc = document("eighty-fault-at-turn")
    doc["outcome"]["faults"].append(doc["outcome"]["faults"][0])
    assert verdict_signed(doc) == "outcome.faults[1]"


def test_what_is_forced_cannot_be_a_fault():
    """The deal is cut before an action that had no alternative: nobody was asked there."""
    doc = document("eighty-fault-in-rotation-1")
    whole, cut = doc["games"][2]["deals"][0], doc["games"][3]["deals"][0]
    cut["actions"] = whole["actions"][:-1]  # the last tile of the last trick
    seat = int(whole["actions"][-1][0])
    doc["outcome"]["faults"][0] |= {"seat": seat, "entrant": (seat + 1) % 2}
    doc["outcome"]["places"] = [1, 2] if (seat + 1) % 2 else [2, 1]
    assert verdict_signed(doc) == "outcome.faults[0]"


def test_a_deal_that_is_complete_is_not_cut():
    doc = document("eighty-fault-in-rotation-1")
    whole, cut = doc["games"][2]["deals"][0], doc["games"][3]["deals"][0]
    cut["actions"] = whole["actions"]
    assert verdict_signed(doc) == "games[3].deals[0].score"


def test_faults_at_the_start_stand_in_the_order_of_seats_and_once():
    doc = document("eighty-fault-at-start")
    first, second = doc["outcome"]["faults"]
    for faults, place in (
        ([second, first], "outcome.faults[1]"),
        ([first, first], "outcome.faults[1]"),
        ([first | {"kind": "illegal_action"}], "outcome.faults[0].kind"),
        ([first | {"entrant": 7, "seat": None}], "outcome.faults[0].entrant"),
        ([first | {"seat": 4}], "outcome.faults[0].seat"),
        ([first | {"seat": None}], None),  # the entrant alone is named
        ([second], None),  # only one of its bots failed
    ):
        told = doc["outcome"] | {"faults": faults, "termination": faults[0]["kind"]}
        assert verdict_signed(doc | {"outcome": told}) == place


# --- contests --------------------------------------------------------------------------------------------------


def test_an_extra_board_stands_only_after_a_tie():
    doc = document("eighty-boards")
    doc["contest"] = {"kind": "boards", "boards": 1, "extra_boards": 1}
    assert doc["outcome"]["points"] != [0, 0]
    assert verdict_signed(doc) is not None


@pytest.mark.parametrize(
    ("boards", "extra", "place"),
    [
        (1, 1, None),  # as it was
        (2, 0, None),  # nobody tells regular from extra boards
        (1, 0, "games[2]"),  # no extra board was due
        (1, 2, "games"),  # after another tie another one was due
        (2, 1, "games"),
        (3, 0, "games[1]"),  # rotation 1 came before rotation 0 had its third board
    ],
)
def test_extra_boards_are_neither_more_nor_fewer_than_the_ties_ask_for(boards, extra, place):
    doc = document("eighty-extra-boards")  # both boards tie: one regular, one extra
    assert len(doc["games"]) == 4
    doc["contest"] = {"kind": "boards", "boards": boards, "extra_boards": extra}
    assert verdict_signed(doc) == place


def test_a_board_must_be_the_same_in_each_rotation():
    record = play(spec_of("podkidnoe", BoardsContest(1), entrants=3))[0].record
    other = play(spec_of("podkidnoe", BoardsContest(2), entrants=3))[0].record
    other.games[4].deals[0].number = 0
    for game in (*record.games, *other.games):
        game.deals[0].key = None
    record.games[1].deals = other.games[4].deals
    record.games[1].score = other.games[4].score
    assert place_of(record) == "games[1].deals[0].hands"


def test_a_key_must_yield_its_deal():
    record = play(spec_of("podkidnoe", BoardsContest(2), entrants=3))[0].record
    record.games[3].deals[0].key = record.games[0].deals[0].key
    assert place_of(record) == "games[3].deals[0].hands"
    record.games[3].deals[0].key = "AB" * 32
    assert place_of(record) == "games[3].deals[0].key"


def test_all_rotations_of_a_board_show_its_key_or_none():
    record = play(spec_of("podkidnoe", BoardsContest(2), entrants=3))[0].record
    for entry in record.games:
        if entry.board == 1:
            entry.deals[0].key = None
    assert place_of(record) is None
    record.games[0].deals[0].key = None
    assert place_of(record) == "games[1].deals[0].key"


def test_eighty_stops_when_one_entrant_has_won_more_than_half():
    record = play(spec_of("eighty", GamesContest(3), options={"target": 60}))[0].record
    won = [2 if game.score[0] < game.score[1] else 1 for game in record.games]
    assert len(record.games) in {2, 3}, won
    record.games.pop()
    assert place_of(record) == "games"


def place_of(record: MatchRecord) -> str | None:
    record.digest = compute_digest(record)
    try:
        replay(record)
    except RecordError as error:
        return error.place
    return None
