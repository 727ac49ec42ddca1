"""The demo of all formats: what it plays, and how it tells what was verified."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.bundle import Bundle, decode_bundle, encode_bundle
from engine.cli.verify_tournament import judge
from engine.formats import FORMATS
from engine.formats.stages import StagePlan, check_stages
from engine.games import GAMES
from engine.record import decode_record, replay
from tests.bundles import played_bundle
from tournament.operations import verified
from tournament.operations.cups import CUPS, EVERY_FORMAT
from tournament.operations.demo import read_arguments
from tournament.operations.verified import (
    VerifiedResults,
    verified_text,
    verified_tournament,
    verify_site_tournament,
)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return played_bundle([StagePlan(format="single_elimination")], 3)


def plans(cup) -> list[StagePlan]:
    wishes = cup.stages or [cup]
    return [
        StagePlan(
            format=wish.format,
            options=wish.format_options or {},
            qualifiers=getattr(wish, "qualifiers", None),
        )
        for wish in wishes
    ]


def test_every_format_and_game_is_played():
    assert {plan.format for cup in EVERY_FORMAT for plan in plans(cup)} == set(FORMATS)
    assert {cup.game for cup in EVERY_FORMAT} == set(GAMES)
    assert sum(len(plans(cup)) > 1 for cup in EVERY_FORMAT) == 2
    assert len({cup.slug for cup in (*CUPS, *EVERY_FORMAT)}) == len(CUPS) + len(EVERY_FORMAT)


@pytest.mark.parametrize("cup", EVERY_FORMAT, ids=[cup.slug for cup in EVERY_FORMAT])
def test_each_can_be_played_with_its_entrants(cup):
    check_stages(cup.entrants, plans(cup))


def test_bundles_are_written_only_where_there_are_some(capsys):
    assert read_arguments(["--formats", "all", "--bundles", "b"]).bundles == Path("b").absolute()
    with pytest.raises(SystemExit):
        read_arguments(["--bundles", "b"])
    assert "--bundles goes with --formats all" in capsys.readouterr().err


def test_a_tournament_is_downloaded_verified_and_written(bundle, tmp_path, monkeypatch):
    asked = []

    def fetch(address: str, _: int) -> bytes:
        asked.append(address)
        return gzip.compress(encode_bundle(bundle))

    monkeypatch.setattr(verified, "fetch", fetch)
    line = verify_site_tournament("http://site", "cup", bundles=tmp_path, records=tmp_path)
    assert asked == ["http://site/api/tournaments/cup/bundle"]
    assert (line.is_true, line.matches, line.digest) == (True, 2, bundle.digest)
    assert line.bundle == str(tmp_path / "cup.bundle.json.gz")
    assert decode_bundle(gzip.decompress(Path(line.bundle).read_bytes())).digest == bundle.digest
    for file in line.records:
        replay(decode_record(Path(file).read_bytes()))
    assert len(line.records) == 2


def test_what_is_untrue_stands_below_the_table(bundle):
    data = encode_bundle(bundle).replace(b'"place":1', b'"place":2', 1)
    lines = [
        verified_tournament(bundle, judge("cup", document), None, [])
        for document in (encode_bundle(bundle), data)
    ]
    assert [line.is_true for line in lines] == [True, False]
    results = VerifiedResults(seed=None, tournaments=lines, is_true=False, seconds=1.0)
    text = verified_text(results)
    assert "single elimination" in text
    assert f"cup            {bundle.digest}" in text
    assert f"Cup is UNTRUE at {lines[1].place}: " in text
    assert text.splitlines()[1].endswith("yes")
    assert text.splitlines()[2].endswith("NO")
