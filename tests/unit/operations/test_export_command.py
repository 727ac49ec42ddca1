"""`manage.py export-tournament` writes a bundle, whole or not at all, or says why there is none."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from engine.bundle import decode_bundle, verify_bundle
from engine.cli.verify_tournament import read_bundle
from tests.tournament_factories import make_bot, make_player, make_tournament, play_all, start
from tournament.operations.management.commands import export_tournament

pytestmark = pytest.mark.django_db


@pytest.fixture
def cup():
    owner = make_player()
    return start(make_tournament([make_bot(name, owner) for name in ("alpha", "beta")]))


@pytest.mark.parametrize("name", ["cup.json", "folder/cup.json.gz", None])
def test_what_it_writes_is_true(cup, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    play_all(cup)
    call_command("export_tournament", *filter(None, ["autumn-cup", name]))
    file = tmp_path / (name or "autumn-cup.bundle.json.gz")
    report = verify_bundle(decode_bundle(read_bundle(str(file))))
    told = capsys.readouterr().out
    assert f"1 matches, {file.stat().st_size} bytes, {report.digest}" in told
    assert "arena verify-tournament " in told
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_why_there_is_none_is_told(cup, tmp_path):
    with pytest.raises(CommandError, match="is not over") as error:
        call_command("export_tournament", "autumn-cup", str(tmp_path / "cup.json"))
    assert error.value.returncode == 2
    with pytest.raises(CommandError, match="there is no tournament 'other'"):
        call_command("export_tournament", "other")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_file_is_told(cup, tmp_path):
    play_all(cup)
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="name another file"):
        call_command("export_tournament", "autumn-cup", str(tmp_path / "file" / "cup.json"))


def test_what_breaks_off_leaves_no_half_a_file(cup, tmp_path, monkeypatch):
    play_all(cup)

    def breaks(_):
        yield b"{"
        raise RuntimeError("a blob is missing")

    monkeypatch.setattr(export_tournament, "plain_bundle", breaks)
    with pytest.raises(RuntimeError):
        call_command("export_tournament", "autumn-cup", str(tmp_path / "cup.json"))
    assert list(tmp_path.iterdir()) == []
