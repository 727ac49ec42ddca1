"""One door for every play: trusted bots here, all others behind walls, never a silent fallback."""

from __future__ import annotations

import textwrap

import pytest

from engine.errors import InfrastructureError, SandboxUnavailableError, StarvedError
from engine.plugins import BotSource, source_of_plugin
from engine.record import BoardsContest, GamesContest, encode_record, replay
from engine.runner import MOST_ATTEMPTS, repeat_if_void, run_match
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


def attempts(*results):
    """A play that comes to these results one after the other."""
    coming = iter(results)

    def play():
        result = next(coming)
        if isinstance(result, Exception):
            raise result
        return result

    return play


def test_void_attempt_is_made_again_and_said_aloud():
    heard = []
    play = attempts(StarvedError("too busy"), InfrastructureError("zygote died"), "played")
    assert repeat_if_void(play, heard.append) == "played"
    assert heard == [
        f"attempt 1 of {MOST_ATTEMPTS} is void and made again: too busy",
        f"attempt 2 of {MOST_ATTEMPTS} is void and made again: zygote died",
    ]


def test_attempts_that_are_all_void_end_with_the_last_error():
    errors = [InfrastructureError(f"no. {number}") for number in range(1, MOST_ATTEMPTS + 1)]
    heard = []
    with pytest.raises(InfrastructureError, match=f"no. {MOST_ATTEMPTS}"):
        repeat_if_void(attempts(*errors, "never reached"), heard.append)
    assert len(heard) == MOST_ATTEMPTS - 1


def test_error_that_makes_no_attempt_void_passes_through():
    lost = InfrastructureError("the lease is lost")
    with pytest.raises(InfrastructureError, match="lease"):
        repeat_if_void(attempts(lost, "never reached"), is_void=lambda error: error is not lost)


def test_missing_sandbox_is_tried_once():
    with pytest.raises(SandboxUnavailableError):
        repeat_if_void(attempts(SandboxUnavailableError(["no walls"]), "never reached"))
