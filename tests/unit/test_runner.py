"""One door for every play: trusted bots here, all others behind walls, never a silent fallback."""

from __future__ import annotations

import pytest

from engine.errors import SandboxUnavailableError
from engine.plugins import source_of_plugin
from engine.record import BoardsContest, GamesContest, encode_record, replay
from engine.runner import run_match
from tests.match_fakes import entrant, spec_of

REFERENCE = "random"


def spec_and_sources(tmp_path, game="podkidnoe", contest=BoardsContest(2), entrants=2):  # noqa: B008
    source = source_of_plugin(REFERENCE, tmp_path)
    names = [entrant(REFERENCE, name=f"E{i}") for i in range(entrants)]
    return spec_of(game, contest, entrants=names), [[source]] * entrants


def test_trusted_bots_play_in_this_process(tmp_path):
    spec, sources = spec_and_sources(tmp_path)
    match = run_match(spec, sources, trusted=True)
    assert match.record.outcome.termination == "completed"
    replay(match.record)


def test_without_a_sandbox_nothing_is_played(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise SandboxUnavailableError(["no walls here"])

    monkeypatch.setattr("engine.sandbox.agent.sandbox_factory", refuse)
    spec, sources = spec_and_sources(tmp_path)
    with pytest.raises(SandboxUnavailableError, match="no walls"):
        run_match(spec, sources)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("game", "contest", "entrants"),
    [
        ("eighty", BoardsContest(1), 2),
        ("eighty", GamesContest(1), 2),
        ("podkidnoe", BoardsContest(1), 4),
    ],
)
def test_a_bot_plays_the_same_in_the_sandbox_and_here(tmp_path, game, contest, entrants):
    spec, sources = spec_and_sources(tmp_path, game, contest, entrants)
    here, there = (run_match(spec, sources, trusted=trusted).record for trusted in (True, False))
    assert there.digest == here.digest
    there.timing = here.timing
    assert encode_record(there) == encode_record(here)
