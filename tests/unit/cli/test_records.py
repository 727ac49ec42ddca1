"""`arena verify` and `arena replay` on true, changed and broken records."""

from __future__ import annotations

import json

import pytest

from engine.cli.play import play_locally
from engine.record import BoardsContest, encode_record


@pytest.fixture(scope="module")
def record() -> dict:
    match = play_locally(
        ["greedy", "random"],
        game="podkidnoe",
        contest=BoardsContest(3),
        seed="records",
        trusted=True,
    )
    return json.loads(encode_record(match.played.record))


@pytest.fixture
def write(tmp_path):
    def write(name: str, document: object) -> str:
        (tmp_path / name).write_text(json.dumps(document))
        return name

    return write


def test_true_record_is_said_to_be_true(arena, write, record):
    answer = arena("verify", write("true.json", record))
    assert (answer.code, answer.out) == (0, "true.json: true\n")


def test_each_file_is_judged_and_one_untruth_is_enough(arena, write, record):
    changed = json.loads(json.dumps(record))
    changed["games"][1]["score"][0] += 1
    files = [write("true.json", record), write("changed.json", changed)]
    answer = arena("verify", *files)
    assert answer.code == 1
    first, second = answer.out.splitlines()
    assert first == "true.json: true"
    assert second.startswith("changed.json: UNTRUE at games[1].score[0]: it must be ")


def test_verdicts_as_json(arena, write, record):
    (write("broken.json", {"format": "arena-match/1"}))
    answer = arena("verify", write("true.json", record), "broken.json", "--json")
    assert answer.code == 1
    true, broken = answer.json["files"]
    assert true == {
        "file": "true.json",
        "true": True,
        "digest": record["digest"],
        "place": None,
        "message": None,
    }
    assert broken["true"] is False
    assert broken["message"]


@pytest.mark.parametrize(
    "content",
    [b"", b"not json", b"\xff\xfe", b"[]", b"{}", b"[" * 100_000],  # nothing that is a record
)
def test_file_that_is_no_record_is_untrue(arena, tmp_path, content):
    (tmp_path / "odd.json").write_bytes(content)
    answer = arena("verify", "odd.json")
    assert answer.code == 1
    assert answer.out.startswith("odd.json: UNTRUE at ")


def test_missing_file_keeps_no_other_from_being_judged(arena, write, record):
    good = write("true.json", record)
    answer = arena("verify", good, "nowhere.json", good)
    assert answer.code == 2
    assert answer.out.splitlines() == [
        "true.json: true",
        "nowhere.json: NOT JUDGED: cannot read nowhere.json: no such file or directory",
        "true.json: true",
    ]
    listed = arena("verify", good, "nowhere.json", "--json").json["files"]
    assert [verdict["true"] for verdict in listed] == [True, None]


def test_untruth_weighs_more_than_a_missing_file(arena, write):
    assert arena("verify", write("broken.json", {}), "nowhere.json").code == 1


def test_missing_file_is_one_clear_line(arena):
    answer = arena("replay", "nowhere.json")
    assert answer.code == 2
    assert answer.err == "error: cannot read nowhere.json: no such file or directory\n"


def test_replay_draws_the_whole_match(arena, write, record):
    answer = arena("replay", write("true.json", record))
    assert answer.code == 0
    assert "1. greedy: greedy" in answer.out
    for board in (1, 2, 3):
        assert f"Board {board}, rotation 2" in answer.out


def test_replay_draws_one_deal_in_every_seating(arena, write, record):
    out = arena("replay", write("true.json", record), "--deal", 1).out
    assert out.count("=== Board") == 2
    assert "Board 2, rotation 1 (deal 1)" in out
    assert "Board 2, rotation 2 (deal 1)" in out


def test_deal_that_is_not_there_is_refused(arena, write, record):
    answer = arena("replay", write("true.json", record), "--deal", 3)
    assert answer.code == 2
    assert answer.err == "error: the record has no deal 3; its deals are 0 to 2\n"


def test_untrue_record_is_not_drawn(arena, write, record):
    changed = json.loads(json.dumps(record))
    changed["games"][0]["deals"][0]["actions"][0] = "0 lay 9-9"
    answer = arena("replay", write("changed.json", changed))
    assert answer.code == 1
    assert answer.out == ""
    assert answer.err.startswith("error: changed.json is untrue at games[0].deals[0].actions[0]: ")


@pytest.mark.parametrize(
    "command",
    [
        ("replay", "odd.json"),
        ("debug", "odd.json"),
        ("play", "greedy", "random", "--deals-from", "odd.json"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"{}", b"\xff"])  # nothing, another document, no text
def test_file_that_is_no_record_is_told_with_its_name_and_what_would_do(
    arena, tmp_path, command, content
):
    (tmp_path / "odd.json").write_bytes(content)
    answer = arena(*command)
    assert answer.code == 2
    assert answer.err.startswith("error: odd.json is no match record (")
    assert "arena play --records" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [("debug", "changed.json"), ("play", "greedy", "random", "--deals-from", "changed.json")],
)
def test_untrue_record_is_told_with_its_name_and_what_to_do(arena, write, record, command):
    changed = json.loads(json.dumps(record))
    changed["games"][1]["score"][0] += 1
    write("changed.json", changed)
    answer = arena(*command)
    assert answer.code == 1
    assert answer.err.startswith("error: changed.json is untrue at games[1].score[0]: ")
    assert "fetch it anew" in answer.err
    assert answer.err.count("\n") == 1
