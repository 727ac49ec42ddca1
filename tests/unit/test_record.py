"""What can be asked for, and the record as bytes."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ContestError, RecordError, RulesetError, UsageError
from engine.games import GAMES
from engine.record import (
    BoardsContest,
    BotRef,
    DealSource,
    EntrantRef,
    GamesContest,
    MatchRecord,
    MatchSpec,
    canonical_json,
    check_spec,
    compute_digest,
    decode_record,
    encode_record,
    record_schema,
    replay,
    with_keys,
)
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import local_prk
from tests.golden.matches import FOLDER, make_matches
from tests.match_fakes import entrant, play, spec_of

GOLDEN = sorted(FOLDER.glob("*.json"))
SCHEMA = jsonschema.Draft202012Validator(record_schema())


def read(name: str) -> MatchRecord:
    return decode_record((FOLDER / f"{name}.json").read_bytes())


def document(name: str):
    return json.loads((FOLDER / f"{name}.json").read_bytes())


def decode(doc) -> MatchRecord:
    return decode_record(json.dumps(doc).encode())


# --- what can be asked for ---------------------------------------------------------------------------


def changed(**fields: object) -> MatchSpec:
    return msgspec.structs.replace(spec_of(), **fields)


SLOW = TimeControl("slow", 1, 1, 0, 1)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"contest": BoardsContest(0)}, "contest.boards"),  # nothing would be played
        ({"contest": BoardsContest(1, 11)}, "contest.extra_boards"),  # ten at most
        ({"contest": BoardsContest(1, -1)}, "contest.extra_boards"),
        ({"contest": BoardsContest(True)}, "contest.boards"),  # a boolean is no number
        ({"contest": GamesContest(0)}, "contest.best_of"),
        ({"match_key": ""}, "match_key"),  # it goes into the deal keys
        ({"match_key": "R1 M1"}, "match_key"),
        ({"match_key": "x" * 121}, "match_key"),
        ({"time_control": TimeControl("fast", 1, 1, 1, 1)}, "time_control.start_cpu_ms"),
        ({"time_control": msgspec.structs.replace(SLOW, name="")}, "time_control.name"),
        ({"time_control": msgspec.structs.replace(SLOW, game_cpu_ms=0)}, "time_control.game"),
        ({"time_control": msgspec.structs.replace(SLOW, action_wall_ms=0)}, "time_control.action"),
        ({"entrants": (entrant("alpha"),)}, "entrants"),  # one entrant is no match
        ({"entrants": (entrant("alpha"),) * 3}, "entrants"),  # Eighty is for two sides
        ({"entrants": (entrant("alpha"), EntrantRef("B", ()))}, "entrants[1].bots"),
        ({"entrants": (entrant("alpha"), entrant(*["beta"] * 3))}, "entrants[1].bots"),
        ({"entrants": (entrant("alpha", name=" "), entrant("beta"))}, "entrants[0].name"),
        ({"entrants": (entrant("alpha", name="a\nb"), entrant("beta"))}, "entrants[0].name"),
        ({"entrants": (entrant("Alpha"), entrant("beta"))}, "entrants[0].bots[0].bot"),
        (
            {"entrants": (EntrantRef("A", (BotRef("alpha", "", None),)), entrant("beta"))},
            "entrants[0].bots[0].version",
        ),
        (
            {"entrants": (EntrantRef("A", (BotRef("alpha", "1", "sha256:1"),)), entrant("beta"))},
            "entrants[0].bots[0].wheel",
        ),
    ],
)
def test_what_cannot_be_played_is_refused_with_its_place(fields, place):
    with pytest.raises(ContestError, match="^" + re.escape(place)):
        check_spec(changed(**fields))


def test_a_time_control_of_ones_own_may_have_any_figures():
    check_spec(changed(time_control=SLOW))


@pytest.mark.parametrize(
    "deals", [DealSource(b"short", "T1", True), DealSource(bytes(32), "", True)]
)
def test_deals_need_a_whole_key_and_a_tournament(deals):
    with pytest.raises(ContestError, match=r"^deals"):
        check_spec(changed(deals=deals))


def test_podkidnoe_has_no_pairs():
    with pytest.raises(ContestError, match=r"entrants\[0\]\.bots: .* has 1 bot, not 2"):
        spec_of("podkidnoe", entrants=[entrant("alpha", "beta"), entrant("gamma")])


def test_an_unknown_game_or_option_is_refused():
    with pytest.raises(UsageError, match="eighty"):
        spec_of("chess")
    with pytest.raises(RulesetError, match="min_bid"):
        spec_of(options={"lowest_bid": 50})


def test_a_ruleset_of_another_game_is_refused():
    with pytest.raises(ContestError, match="ruleset"):
        check_spec(changed(ruleset=GAMES["podkidnoe"].make_ruleset()))


# --- bytes ---------------------------------------------------------------------------------------------


def test_the_golden_records_are_all_there():
    assert {path.stem for path in GOLDEN} == set(make_matches())


@pytest.mark.parametrize("name", [path.stem for path in GOLDEN])
def test_a_golden_match_is_played_today_as_ever(name):
    assert encode_record(make_matches()[name]) == (FOLDER / f"{name}.json").read_bytes()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_record_is_true_and_survives_reading_and_writing(path):
    record = decode_record(path.read_bytes())
    replay(record)
    assert encode_record(record) == path.read_bytes()


def test_the_digests_are_these_on_every_machine():
    assert read("eighty-boards").digest == DIGESTS["eighty-boards"]
    assert read("podkidnoe-4-boards").digest == DIGESTS["podkidnoe-4-boards"]


DIGESTS = {
    "eighty-boards": "sha256:206cb80cfcc2e7ddbc556313b43f1b13f68138df45d8046079add07d115d53d6",
    "podkidnoe-4-boards": "sha256:41e950f6a3d94fd73a73ea2eaa68479e2d3d0d1270a3dec6ef37cc8a1d9d7f85",
}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_digest_is_what_the_documentation_says(path):
    doc = json.loads(path.read_bytes())
    digest = doc.pop("digest")
    del doc["timing"]
    for game in doc["games"]:
        for deal in game["deals"]:
            deal["key"] = None
    text = json.dumps(doc, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_the_digest_knows_neither_keys_nor_timing():
    record = read("eighty-games")
    before = compute_digest(record)
    record.games[0].deals[0].key = None
    record.timing.wall_ms += 1
    assert compute_digest(record) == before
    record.games[0].deals[0].number += 1
    assert compute_digest(record) != before


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_canonical_json_loses_nothing_and_has_one_spelling(value):
    data = canonical_json({"b": value, "a": 1})
    assert data.startswith(b'{"a":1,"b":')
    assert json.loads(data) == {"a": 1, "b": value}


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("games", 0, "deals", 0, "number"), 0.0, "games[0].deals[0].number"),  # a float
        (("games", 1, "rotation"), True, "games[1].rotation"),  # a boolean
        (("games", 0, "deals", 0, "actions", 3), None, "games[0].deals[0].actions[3]"),
        (("games", 0, "score", 1), "20", "games[0].score[1]"),  # a number as text
        (("ruleset", "min_bid"), 50.0, "ruleset.min_bid"),
        (("ruleset", "min_bid"), [50], "ruleset.min_bid"),
        (("contest", "boards"), "1", "contest.boards"),
        (("contest", "kind"), "knockout", "contest.kind"),
        (("contest", "surprise"), 1, "contest"),
        (("outcome", "termination"), "bored", "outcome.termination"),
        (("outcome", "places", 0), 1.0, "outcome.places[0]"),
        (("entrants", 1, "bots", 0, "wheel"), 7, "entrants[1].bots[0].wheel"),
        (("entrants", 1, "surprise"), 7, "entrants[1]"),  # unknown fields everywhere
        (("games", 1, "deals", 0, "surprise"), 7, "games[1].deals[0]"),
        (("surprise",), 7, "record"),
        (("format",), "arena-match/2", "format"),
        (("timing", "cpu_us", 0, 0), 0.5, "timing.cpu_us[0][0]"),
        (("games",), {}, "games"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(path, value, place):
    doc = document("eighty-boards")
    *parents, last = path
    target = doc
    for step in parents:
        target = target[step]
    target[last] = value
    with pytest.raises(RecordError) as refused:
        decode(doc)
    assert refused.value.place == place


def test_a_missing_field_is_refused_with_its_place():
    doc = document("eighty-boards")
    del doc["games"][1]["deals"][0]["first"]
    with pytest.raises(RecordError, match=r"^games\[1\]\.deals\[0\]: .*first"):
        decode(doc)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"games": NaN}',
        b"[" * 100_000,  # deeper than any reader goes
        b'{"format": 1,',  # wrong first, then cut
    ],
)
def test_what_is_no_record_at_all_is_refused(data):
    with pytest.raises(RecordError):
        decode_record(data)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("9" * 5000, "the number 99999999999999999999… is too large"),
        ("-" + "9" * 5000, "the number -9999999999999999999… is too large"),
        ("1e999", "the number 1e999 is too large"),
    ],
    ids=["5000 digits", "below nothing", "infinite"],
)
def test_a_number_beyond_all_reading_is_refused_at_its_place(number, said):
    data = (
        json.dumps(document("eighty-boards"))
        .replace('"number": 0', f'"number": {number}', 1)
        .encode()
    )
    with pytest.raises(RecordError) as caught:
        decode_record(data)
    assert (caught.value.place, caught.value.message) == ("games[0].deals[0].number", said)


def test_a_field_that_stands_twice_is_named_by_its_whole_path():
    data = (
        json.dumps(document("eighty-boards"))
        .replace('"first":', '"first": 0, "first":', 1)
        .encode()
    )
    with pytest.raises(RecordError) as caught:
        decode_record(data)
    assert caught.value.place == "games[0].deals[0].first"


def test_a_field_that_stands_twice_is_refused():
    data = (FOLDER / "eighty-boards.json").read_bytes()
    with pytest.raises(RecordError, match="twice"):
        decode_record(data.replace(b'"rotation":0', b'"rotation":1,"rotation":0', 1))


def test_a_refusal_quotes_a_document_shortly_and_printably():
    doc = document("eighty-boards")
    doc["\x1b[31m" * 1000] = 1
    with pytest.raises(RecordError) as refused:
        decode(doc)
    doc = document("eighty-boards")
    doc["games"][0]["deals"][0]["actions"][0] = "0 \x07" + "x" * 10_000
    with pytest.raises(RecordError) as false:
        replay(decode(doc))
    for error in (refused.value, false.value):
        assert str(error).isprintable()
        assert len(str(error)) < 700


# --- keys ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [path.stem for path in GOLDEN])
def test_the_secret_fills_in_every_key(name):
    shown, hidden = read(name), read(name)
    for game in hidden.games:
        for deal in game.deals:
            deal.key = None
    replay(hidden)
    assert with_keys(hidden, local_prk("tests"), "local") == shown
    assert all(deal.key is None for game in hidden.games for deal in game.deals), "a copy, please"


@pytest.mark.parametrize("name", ["eighty-games", "podkidnoe-3-boards"])
def test_another_secret_or_tournament_does_not_fit(name):
    record = read(name)
    for game in record.games:
        for deal in game.deals:
            deal.key = None
    with pytest.raises(RecordError, match=r"^games\[0\]\.deals\[0\]\.hands"):
        with_keys(record, local_prk("another"), "local")
    with pytest.raises(RecordError, match=r"^games\[0\]\.deals\[0\]\.hands"):
        with_keys(record, local_prk("tests"), "elsewhere")


def test_a_key_that_is_shown_must_be_the_secrets():
    record = read("eighty-games")
    with pytest.raises(RecordError, match=r"^games\[0\]\.deals\[0\]\.key"):
        with_keys(record, local_prk("another"), "local")


def test_a_record_may_keep_its_keys_to_itself():
    deals = DealSource(local_prk("tests"), "local", reveal=False)
    hidden = play(spec_of("eighty", GamesContest(1), deals=deals))[0].record
    shown = play(spec_of("eighty", GamesContest(1)))[0].record
    assert {deal.key for game in hidden.games for deal in game.deals} == {None}
    assert hidden.digest == shown.digest


# --- the page about it -------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "record.md").read_text("utf-8")


def test_the_page_names_every_field():
    def names(schema) -> set[str]:
        found = set()
        for part in schema.values() if isinstance(schema, dict) else schema:
            if isinstance(part, dict | list):
                found |= names(part)
        return found | set(schema.get("properties", {}) if isinstance(schema, dict) else {})

    schema = record_schema()
    del schema["$defs"]["ruleset_eighty"]  # its options stand in the page of the rules
    assert {name for name in names(schema) if not re.search(rf"\b{name}\b", PAGE)} == set()


@pytest.mark.parametrize("name", ["eighty-boards", "podkidnoe-4-fault"])
def test_the_pages_own_program_agrees_with_the_digest(name, tmp_path, monkeypatch):
    program = (
        PAGE.partition("```python\n")[2].partition("```")[0].replace("json.load(open", "read(open")
    )
    monkeypatch.chdir(tmp_path)
    Path("match.json").write_bytes((FOLDER / f"{name}.json").read_bytes())

    def read(file):
        with file:
            return json.load(file)

    exec(program, {"read": read})
    Path("match.json").write_text(json.dumps(document(name) | {"digest": "sha256:0"}))
    with pytest.raises(AssertionError):
        exec(program, {"read": read})


# --- the schema ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_true_record_has_the_form_of_the_schema(path):
    SCHEMA.validate(json.loads(path.read_bytes()))


def test_the_schema_is_itself_sound():
    jsonschema.Draft202012Validator.check_schema(record_schema())


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: game.name)
def test_the_schema_knows_each_option_of_each_game(game):
    ruleset = record_schema()["$defs"][f"ruleset_{game.name}"]
    assert set(ruleset["required"]) == {option.name for option in game.options}
    for option in game.options:
        known = ruleset["properties"][option.name]
        if option.choices:
            assert known["enum"] == list(option.choices)
        else:
            assert (known.get("minimum"), known.get("maximum")) == (option.minimum, option.maximum)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("eighty-boards", ("games", 0, "board"), None),  # a boards match has boards
        ("eighty-games", ("games", 0, "board"), 0),  # a games match has none
        ("eighty-boards", ("games", 0, "deals", 0, "hands", 0), "1-1 2-1"),  # ten tiles a hand
        ("eighty-boards", ("games", 0, "deals", 0, "actions", 0), "0 bid 81"),
        ("eighty-boards", ("games", 0, "deals", 0, "actions", 4), "0 play 4-6"),  # high end first
        ("eighty-boards", ("games", 0, "deals", 0, "starter"), "6-6"),  # the other game's
        ("podkidnoe-3-boards", ("games", 0, "deals", 0, "dead"), "6-6 5-5"),
        ("podkidnoe-3-boards", ("entrants", 0, "name"), ""),
        ("podkidnoe-3-boards", ("ruleset", "max_draws"), 3),
        ("eighty-boards", ("ruleset", "surprise"), 1),
        ("eighty-boards", ("contest", "boards"), 0),
        ("eighty-boards", ("digest",), "sha256:0"),
        ("eighty-boards", ("outcome", "termination"), "crash"),  # then there is a fault
        ("eighty-fault-at-turn", ("outcome", "termination"), "completed"),  # then there is none
        ("eighty-fault-at-turn", ("outcome", "faults", 0, "kind"), "forfeit"),  # has no record
        ("eighty-fault-at-turn", ("outcome", "points", 0), 5),
    ],
)
def test_the_schema_refuses_another_form(name, path, value):
    doc = document(name)
    *parents, last = path
    target = doc
    for step in parents:
        target = target[step]
    target[last] = value
    assert not SCHEMA.is_valid(doc)


@settings(max_examples=200)
@given(st.data())
def test_what_the_schema_refuses_for_a_missing_field_the_reader_refuses_too(data):
    doc = document(data.draw(st.sampled_from([path.stem for path in GOLDEN])))
    target = doc
    while True:
        inner = [v for v in (target.values() if isinstance(target, dict) else target)
                 if isinstance(v, dict | list) and v]  # fmt: skip
        if isinstance(target, dict) and (not inner or data.draw(st.booleans())):
            break
        target = data.draw(st.sampled_from(inner)) if inner else doc
    before = copy.deepcopy(doc)
    del target[data.draw(st.sampled_from(sorted(target)))]
    assert before != doc
    assert not SCHEMA.is_valid(doc)
    with pytest.raises(RecordError):
        replay(decode(doc))


def test_a_key_that_one_play_of_a_board_hides_and_another_shows_is_refused():
    doc = document("eighty-boards")
    keys = [game["deals"][0]["key"] for game in doc["games"] if game["board"] == 0]
    assert None not in keys
    second = next(i for i, game in enumerate(doc["games"]) if game["rotation"] == 1)
    doc["games"][second]["deals"][0]["key"] = None
    with pytest.raises(RecordError) as caught:
        replay(decode(doc))
    assert caught.value.place == f"games[{second}].deals[0].key"
    assert "hidden here and not in games[0].deals[0]" in caught.value.message
