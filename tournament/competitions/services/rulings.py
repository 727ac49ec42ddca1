"""Rulings: an organiser gives a match another result, annuls it, lets it count again, or has it played again.

Each is one transaction and leaves a row that says who decided what and why. Where losers are out,
another winner takes back the later pairings of all that it touches: they are kept as superseded, void
in the ratings, and paired anew as soon as the rounds before them are complete. What the ruling does
not touch stays as it is, so an equal pairing is never played twice. In other formats published rounds
stay, and only the table changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from engine.errors import FormatError
from engine.formats import Format, void_result
from engine.formats import base as formats
from engine.outcome import Outcome, Termination
from engine.record import decode_record
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    MATCH_TRANSITIONS,
    PLAYED,
    ROUND_TRANSITIONS,
    DecidedBy,
    Match,
    MatchState,
    Pairing,
    PairingEntrant,
    Round,
    RoundState,
    Ruling,
    RulingKind,
    Stage,
    SupersededMatch,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import (
    PARTS,
    engine_pairing,
    engine_pairing_result,
    pairing_view,
    stage_format,
    stage_view,
)
from tournament.competitions.selectors.entries import rated_match_keys
from tournament.competitions.services.notices import tell_of_ruling
from tournament.competitions.services.rounds import (
    advance_round,
    cancel_matches,
    is_rated,
    rate_round,
    replace_result,
    rounds_paired,
    rounds_published,
)
from tournament.competitions.services.stages import (
    has_other_qualifiers,
    later_stages,
    reopen_stage,
    write_places,
)
from tournament.leaderboards.selectors import voided_results
from tournament.leaderboards.services import unvoid_results, void_results
from tournament.players.models import Player
from tournament.store.leases import FREE_FIELDS
from tournament.store.services import read_packed

RULED_IN = (TournamentState.RUNNING, TournamentState.FINISHED)


@dataclass(frozen=True, slots=True)
class _Case:
    """A decided pairing, read under the lock of its tournament."""

    tournament: Tournament
    stage: Stage
    fmt: Format
    pairing: Pairing
    reason: str
    by: Player | None

    @property
    def result(self) -> formats.PairingResult:
        return engine_pairing_result(self.pairing)


@transaction.atomic
def correct_result(
    *, pairing: Pairing, places: Sequence[int], reason: str, by: Player | None = None
) -> Ruling:
    """Give a decided pairing other places (1 is the best; ties share one), in the order of its entrants.

    It counts as decided by the organiser: no points, and void in the ratings. Raises
    TournamentStateError for a pairing that is open or a bye, for places that are none or are its result
    already, without a reason, and if matches would have to be played in a tournament that has ended.
    """
    case = _open_case(pairing, reason, by)
    _check_places(case, places)
    outcome = Outcome(
        termination=Termination.FORFEIT,
        faults=(),
        points=(0,) * len(places),
        places=tuple(places),
    )
    return _rule(case, RulingKind.CORRECTED, _decide(case, outcome))


@transaction.atomic
def void_match(*, pairing: Pairing, reason: str, by: Player | None = None) -> Ruling:
    """Let a decided pairing count for nothing in standings and ratings; who advanced has advanced.

    Raises TournamentStateError as `correct_result`.
    """
    case = _open_case(pairing, reason, by)
    return _rule(case, RulingKind.VOIDED, void_result(case.result))


@transaction.atomic
def restore_match(*, pairing: Pairing, reason: str, by: Player | None = None) -> Ruling:
    """Let a match count again as it was played, after a ruling; in the ratings in its old place.

    Raises TournamentStateError as `correct_result`, and if it has no record.
    """
    case = _open_case(pairing, reason, by)
    match = Match.objects.filter(pairing=case.pairing).first()
    if match is None or not match.record_sha256:
        raise TournamentStateError(
            f"{case.pairing.key} was not played: there is no record that could count"
        )
    outcome = decode_record(read_packed(match.record_sha256)).outcome
    return _rule(case, RulingKind.RESTORED, _decide(case, outcome))


@transaction.atomic
def rerun_match(*, match: Match, reason: str, by: Player | None = None) -> Ruling:
    """Have a finished match played again, with the same key, so with the same deals.

    Bots that only use the random seed that they are given play it the same way again: it is meant for
    doubts about the machines. Raises TournamentStateError as `correct_result`, and where later rounds
    that stay published were paired by its result.
    """
    case = _open_case(Pairing.objects.get(pk=match.pairing_id), reason, by)
    state = Match.objects.values_list("state", flat=True).get(pk=match.pk)
    if state != MatchState.FINISHED:
        raise TournamentStateError(f"{case.pairing.key} is not finished: it cannot be played again")
    _check_rounds_stand(case)
    return _rule(case, RulingKind.RERUN, None)


def note_ruling(
    *,
    tournament: Tournament,
    kind: RulingKind,
    subject: str,
    reason: str,
    by: Player | None,
    published: Round | None = None,
    before: str = "",
    after: str = "",
) -> Ruling:
    """Write down what an organiser decided, in the caller's transaction, and once it is known (`after`) tell whom it concerns."""
    ruling = Ruling.objects.create(
        tournament=tournament,
        kind=kind,
        subject=subject[:80],
        by=by,
        reason=reason.strip()[:300],
        round=published,
        before=before[:200],
        after=after[:200],
    )
    if after:
        tell_of_ruling(ruling)
    return ruling


def spell_result(pairing: Pairing) -> str:
    """How a pairing came out, in a few words; wants its entrants loaded."""
    if not pairing.decided_by:
        return "open"
    if pairing.decided_by == DecidedBy.VOID:
        return "annulled"
    parts = list(pairing.entrants.all())
    best = [part.entrant.name for part in parts if part.place == 1]
    advancing = [part.entrant.name for part in parts if part.advances]
    won = advancing or (best if len(best) < len(parts) or len(parts) == 1 else [])
    how = pairing.get_decided_by_display()
    return f"{' and '.join(won)} won, by {how}" if won else f"tied, by {how}"


def _open_case(pairing: Pairing, reason: str, by: Player | None) -> _Case:
    if not reason.strip():
        raise TournamentStateError("give a reason: the players will read it")
    tournament = Tournament.objects.select_for_update().get(pk=pairing.tournament_id)
    if tournament.state not in RULED_IN:
        raise TournamentStateError(
            f"{tournament.name} is {tournament.get_state_display()}: there are no results to change"
        )
    fresh = (
        Pairing.objects.select_related("round__stage__tournament", "tournament")
        .prefetch_related(PARTS)
        .filter(pk=pairing.pk)
        .first()
    )
    if fresh is None or not fresh.decided_by or fresh.is_bye:
        raise TournamentStateError(
            f"{pairing.key} is {'a bye' if pairing.is_bye else 'not decided'}: no result of it can change"
        )
    stage = fresh.round.stage
    return _Case(tournament, stage, stage_format(stage), fresh, reason, by)


def _check_places(case: _Case, places: Sequence[int]) -> None:
    count = len(case.pairing.entrants.all())
    shared = sorted(places)
    proper = len(places) == count and all(
        place == 1 + sum(other < place for other in places) for place in shared
    )
    if not proper:
        raise TournamentStateError(
            f"give each of the {count} entrants a place: 1 to the best, and those who tie the same one"
        )
    if case.fmt.knocks_out and shared.count(1) > 1:
        raise TournamentStateError("one must go on: give the first place to one entrant alone")


def _decide(case: _Case, outcome: Outcome) -> formats.PairingResult:
    return case.fmt.decide(
        pairing_view(case.stage, case.pairing), engine_pairing(case.pairing), outcome
    )


def _check_rounds_stand(case: _Case) -> None:
    """Raise TournamentStateError if later rounds stay that could not be paired without this result."""
    index = case.pairing.round.index
    if case.fmt.knocks_out or not case.stage.rounds.filter(index__gt=index).exists():
        return
    view = stage_view(case.stage)
    opened = formats.StageView(
        entrants=view.entrants,
        options=view.options,
        lot=view.lot,
        rounds=tuple(
            formats.Round(
                index=each.index,
                pairings=tuple(
                    formats.Pairing(key=row.key, slot=row.slot, entrants=row.entrants)
                    if row.key == case.pairing.key
                    else row
                    for row in each.pairings
                ),
            )
            for each in view.rounds
            if each.index <= index
        ),
    )
    try:
        case.fmt.next_round(opened)
    except FormatError:
        raise TournamentStateError(
            f"the rounds after {case.pairing.key} were paired by its result and stay: correct the "
            "result or annul it instead"
        ) from None


def _rule(case: _Case, kind: RulingKind, result: formats.PairingResult | None) -> Ruling:
    """Write the new result (None: open again), take back what depended on the old, go on from there."""
    before = case.result
    if result == before:
        raise TournamentStateError(f"that is the result of {case.pairing.key} already")
    has_new_fate = result is None or result.advances != before.advances
    dependents = _dependents(case) if case.fmt.knocks_out and has_new_fate else []
    if case.tournament.state != TournamentState.RUNNING and (dependents or result is None):
        raise _has_ended(case)
    ruling = note_ruling(
        tournament=case.tournament,
        kind=kind,
        subject=case.pairing.key,
        reason=case.reason,
        by=case.by,
        published=case.pairing.round,
        before=spell_result(case.pairing),
    )
    _void(case, [case.pairing, *dependents])
    _take_back(ruling, dependents)
    if result is None:
        _open_again(ruling, case)
    else:
        replace_result(case.pairing, result, until_round=_paired_by(case, kind, result))
    if kind != RulingKind.VOIDED:
        _take_back_stages(ruling, case)
    if kind == RulingKind.RESTORED:
        _rate_again(case)
    _go_on(case)
    fresh = Pairing.objects.prefetch_related("entrants__entrant").get(pk=case.pairing.pk)
    ruling.after = spell_result(fresh)[:200]
    ruling.save(update_fields=["after"])
    tell_of_ruling(ruling)
    return ruling


def _has_ended(case: _Case) -> TournamentStateError:
    return TournamentStateError(
        f"{case.tournament.name} has ended: no match of it can be played any more"
    )


def _paired_by(case: _Case, kind: RulingKind, result: formats.PairingResult) -> int:
    """How many rounds stay that were paired by the result that is replaced.

    Where losers are out none of those after its own does if another one goes on: what follows from it is
    paired anew, the rest did not. Only an annulled result still decides who has gone on to the next stage.
    """
    if case.fmt.knocks_out and result.advances != case.result.advances:
        return case.pairing.round.index
    return rounds_paired(case.stage) if kind == RulingKind.VOIDED else rounds_published(case.stage)


def _take_back_stages(ruling: Ruling, case: _Case) -> None:
    """If others would go on now than those who have, take all later stages back: they begin anew.

    Who has gone on by an annulled match has gone on, as who has advanced by it has advanced.
    """
    begun = later_stages(case.stage).filter(entrants__isnull=False).distinct()
    nxt = begun.first()
    if nxt is None or not has_other_qualifiers(case.stage, nxt):
        return
    if case.tournament.state != TournamentState.RUNNING:
        raise _has_ended(case)
    taken = list(
        Pairing.objects.filter(round__stage__in=list(begun))
        .select_related("round", "tournament")
        .order_by("round__stage__index", "round__index", "slot")
    )
    _void(case, taken)
    _take_back(ruling, taken)
    Round.objects.filter(stage__in=list(later_stages(case.stage))).delete()
    reopen_stage(case.stage)


def _dependents(case: _Case) -> list[Pairing]:
    """The later pairings of all whose way through the bracket the result has shaped."""
    touched = {part.entrant_id for part in case.pairing.entrants.all()}
    later = (
        Pairing.objects.filter(round__stage=case.stage, round__index__gt=case.pairing.round.index)
        .select_related("round", "tournament")
        .prefetch_related(PARTS)
        .order_by("round__index", "slot")
    )
    found = []
    for pairing in later:
        entrants = {part.entrant_id for part in pairing.entrants.all()}
        if entrants & touched:
            touched |= entrants
            found.append(pairing)
    return found


def _void(case: _Case, pairings: Sequence[Pairing]) -> None:
    counting = rated_match_keys(Pairing.objects.filter(pk__in=[each.pk for each in pairings]))
    if counting:
        void_results(game=case.tournament.game, kind=case.tournament.kind, match_keys=counting)


def _take_back(ruling: Ruling, pairings: Sequence[Pairing]) -> None:
    """Keep pairings as superseded, and leave their places in the rounds empty."""
    if not pairings:
        return
    ids = [pairing.pk for pairing in pairings]
    cancel_matches(Match.objects.filter(pairing__in=ids))
    _supersede(ruling, ids)
    broken = Round.objects.filter(pk__in={pairing.round_id for pairing in pairings})
    broken.update(is_partial=True)
    ROUND_TRANSITIONS.move(broken, RoundState.OPEN, completed_at=None)
    Pairing.objects.filter(pk__in=ids).delete()
    for each in broken.order_by("-index"):
        last = Round.objects.filter(stage=each.stage_id).order_by("-index").first()
        if each == last and not each.pairings.exists():
            each.delete()


def _supersede(ruling: Ruling, ids: Sequence[int]) -> None:
    rows = (
        Pairing.objects.filter(pk__in=ids)
        .select_related("round", "match")
        .prefetch_related(PARTS)
        .order_by("round__index", "slot")
    )
    SupersededMatch.objects.bulk_create(_superseded(ruling, pairing) for pairing in rows)


def _superseded(ruling: Ruling, pairing: Pairing) -> SupersededMatch:
    match: Match | None = getattr(pairing, "match", None)
    return SupersededMatch(
        ruling=ruling,
        tournament_id=ruling.tournament_id,
        key=pairing.key,
        edition=pairing.edition,
        round_index=pairing.round.index,
        entrants=[
            {"name": part.entrant.name, "place": part.place, "points": part.points}
            for part in pairing.entrants.all()
        ],
        decided_by=pairing.decided_by,
        record_sha256=match.record_sha256 if match else "",
        digest=match.digest if match else "",
        finished_at=match.finished_at if match else None,
    )


def _open_again(ruling: Ruling, case: _Case) -> None:
    _supersede(ruling, [case.pairing.pk])
    Pairing.objects.filter(pk=case.pairing.pk).update(
        decided_by="", edition=F("edition") + 1, is_ruled=False, earlier=[]
    )
    PairingEntrant.objects.filter(pairing=case.pairing).update(
        score_twelfths=None, points=None, place=None, advances=None
    )
    MATCH_TRANSITIONS.move(
        Match.objects.filter(pairing=case.pairing),
        MatchState.PENDING,
        only_from=MatchState.FINISHED,
        fence=F("fence") + 1,
        attempts=0,
        run_after=Now(),
        rated=is_rated(case.stage),
        is_sandboxed=True,
        termination="",
        record_sha256="",
        logs_sha256="",
        digest="",
        wall_ms=None,
        finished_at=None,
        **FREE_FIELDS,
    )
    ROUND_TRANSITIONS.move(
        Round.objects.filter(pk=case.pairing.round_id), RoundState.OPEN, completed_at=None
    )


def _rate_again(case: _Case) -> None:
    """Let the match count in the ratings, if it is to: in its old place, or now."""
    match = Match.objects.get(pairing=case.pairing)
    fresh = Pairing.objects.select_related("round__stage__tournament").get(pk=case.pairing.pk)
    if not match.rated or fresh.decided_by not in PLAYED:
        return
    voided = voided_results([case.pairing.rating_key])
    if voided:
        unvoid_results(game=case.tournament.game, kind=case.tournament.kind, match_keys=voided)
    elif fresh.round.state == RoundState.COMPLETE and fresh.round.published_at is not None:
        rate_round(fresh.round)


def _go_on(case: _Case) -> None:
    if case.tournament.state == TournamentState.RUNNING:
        advance_round(tournament=case.tournament)
    else:
        write_places(case.tournament)
