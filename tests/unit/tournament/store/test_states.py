"""Tables of transitions: what they allow happens, everything else changes nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

import tournament
from tests.tournament_factories import make_player, submit
from tournament.competitions import models as competitions
from tournament.players import models as players
from tournament.players.models import VERSION_TRANSITIONS, BotVersion, VersionState
from tournament.scrimmages import models as scrimmages

ROOT = Path(tournament.__file__).parent
TABLES = {
    players.VersionState: players.VERSION_TRANSITIONS,
    competitions.TournamentState: competitions.TOURNAMENT_TRANSITIONS,
    competitions.MatchState: competitions.MATCH_TRANSITIONS,
    competitions.RoundState: competitions.ROUND_TRANSITIONS,
    competitions.EntrantState: competitions.ENTRANT_TRANSITIONS,
    competitions.StageState: competitions.STAGE_TRANSITIONS,
    competitions.TrialState: competitions.TRIAL_TRANSITIONS,
    competitions.InvitationState: competitions.INVITATION_TRANSITIONS,
    scrimmages.ScrimmageState: scrimmages.SCRIMMAGE_TRANSITIONS,
}
ENDS = {
    players.VersionState: {"withdrawn"},
    competitions.TournamentState: {"finished", "cancelled"},
    competitions.MatchState: {"cancelled"},  # a ruling has a finished one played again
    competitions.RoundState: set(),  # and a complete round open again
    competitions.EntrantState: set(),
    competitions.StageState: set(),
    competitions.TrialState: {"passed"},
    competitions.InvitationState: {"accepted", "declined", "withdrawn", "expired"},
    scrimmages.ScrimmageState: {"finished", "cancelled"},
}


@pytest.mark.parametrize("states", TABLES, ids=lambda states: states.__name__)
def test_every_state_is_in_its_table_and_only_ends_lead_nowhere(states):
    ends = {state for state in states if not TABLES[states].targets(state)}
    assert ends == ENDS[states]


@pytest.mark.parametrize("states", TABLES, ids=lambda states: states.__name__)
def test_every_state_but_the_first_can_be_reached(states):
    first, *others = states
    assert all(TABLES[states].sources(state) for state in others)
    assert TABLES[states].targets(first)


@pytest.mark.django_db
def test_move_that_the_table_does_not_allow_changes_nothing():
    version = submit(make_player(), "alpha")
    assert not VERSION_TRANSITIONS.move(BotVersion.objects.all(), VersionState.ACCEPTED)
    version.refresh_from_db()
    assert version.state == VersionState.SUBMITTED


@pytest.mark.django_db
def test_move_of_an_outdated_copy_changes_nothing():
    version = submit(make_player(), "alpha")
    other = BotVersion.objects.get(pk=version.pk)
    assert VERSION_TRANSITIONS.move_row(other, VersionState.QUEUED)
    assert not VERSION_TRANSITIONS.move_row(version, VersionState.WITHDRAWN)
    assert version.state == VersionState.QUEUED


@pytest.mark.django_db
def test_database_refuses_a_state_that_there_is_not():
    version = submit(make_player(), "alpha")
    with pytest.raises(IntegrityError), transaction.atomic():
        BotVersion.objects.filter(pk=version.pk).update(state="lost")


@pytest.mark.django_db
def test_database_refuses_running_without_a_lease():
    version = submit(make_player(), "alpha")
    with pytest.raises(IntegrityError), transaction.atomic():
        BotVersion.objects.filter(pk=version.pk).update(state=VersionState.RUNNING)


@pytest.mark.django_db
def test_guard_that_would_hide_in_a_subquery_is_refused():
    """PostgreSQL let two claims of one match succeed that way."""
    submit(make_player(), "alpha")
    joined = BotVersion.objects.filter(bot__name="alpha")
    with pytest.raises(ValueError, match="own table"):
        VERSION_TRANSITIONS.move(joined, VersionState.QUEUED)
    assert BotVersion.objects.get().state == VersionState.SUBMITTED


def _writes_of_state(tree: ast.Module) -> list[int]:
    """The lines that write a field `state` of existing rows by hand."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            lines += [
                node.lineno
                for target in node.targets
                if isinstance(target, ast.Attribute) and target.attr == "state"
            ]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "update":
            lines += [node.lineno for word in node.keywords if word.arg == "state"]
    return lines


def test_nothing_but_the_tables_writes_a_state():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in ROOT.rglob("*.py")
        if path.name != "states.py"
        and path.parent.name != "migrations"  # which fill in what no table knew yet
        and (lines := _writes_of_state(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (players.BotVersion, "reason"),  # of a check
        (competitions.EntryTrial, "reason"),  # of a trial
        (competitions.Attempt, "detail"),  # of a match
        (scrimmages.Scrimmage, "failure"),  # of a batch
        (scrimmages.Scrimmage, "reason"),
    ],
)
def test_what_programs_say_of_a_failure_can_be_kept_by_every_database(model, field):
    assert model._meta.get_field(field).get_prep_value("a\0b") == "a\ufffdb"
