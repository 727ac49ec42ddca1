"""One door for every play: trusted bots here, all others behind walls, never a silent fallback."""

from __future__ import annotations

import textwrap

import pytest

from engine.errors import SandboxUnavailableError
from engine.plugins import BotSource, source_of_plugin
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


HEAD = """
from engine.sdk import Strategy, hookimpl
from engine.sdk.podkidnoe import Draw, End

@hookimpl
def make_strategy(game, ruleset, players):
    return Bot()

"""
ACT = HEAD + "class Bot(Strategy):\n    def act(self, observation):\n        "


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ACT + "raise ValueError('odd')", "crash"),
        (ACT + "return self.act(observation)", "crash"),  # RecursionError
        (ACT + "raise MemoryError", "memory"),
        (ACT + "import absent", "crash"),
        (ACT + "return End()", "illegal_action"),
        (ACT + "return 'pass'", "protocol"),
        (ACT + "return None", "protocol"),
        (HEAD + "class Bot(Strategy):\n    pass", "crash"),  # it cannot be made
        (HEAD + "class Bot:\n    pass", "crash"),  # it is no Strategy
        ("1 +", "crash"),
        ("import absent", "crash"),
        ("x = 1", "crash"),  # no hook
        (HEAD.replace("Bot()", "None"), "protocol"),  # it declines
    ],
)
def test_a_bot_fails_the_same_in_the_sandbox_and_here(tmp_path, text, kind):
    """Whoever plays it, the record says the same of it, word by word."""
    (tmp_path / "faulty").mkdir()
    (tmp_path / "faulty" / "faulty.py").write_text(textwrap.dedent(text))
    faulty = BotSource(
        bot="faulty",
        version="1.0",
        wheel=None,
        folder=str(tmp_path / "faulty"),
        entry_point="faulty",
    )
    spec = spec_of("podkidnoe", entrants=[entrant(REFERENCE, name="A"), entrant("faulty")])
    sources = [[source_of_plugin(REFERENCE, tmp_path)], [faulty]]
    here, there = (run_match(spec, sources, trusted=trusted).record for trusted in (True, False))
    assert here.outcome.faults[0].kind == kind
    assert there.outcome == here.outcome
    assert there.digest == here.digest
    replay(there)
