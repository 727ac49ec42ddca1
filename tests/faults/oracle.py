"""Judges a site after the faults: nothing lost, nothing counted twice, nothing that differs.

It reads the database that this process's Django uses, and its store. A match is *lost* if it came to no
end, or to one without exactly its own result; *doubled* if it has more than one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from engine.record import compute_digest, decode_record
from engine.runner import run_match
from tests.tournament_factories import play_all
from tournament.competitions.models import (
    Attempt,
    AttemptEnding,
    Match,
    MatchState,
    PairingEntrant,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import match_spec, match_to_play
from tournament.competitions.services import playing
from tournament.competitions.services.playing import wheel_source_of
from tournament.leaderboards.models import EventKind, RatingEvent, RatingPool
from tournament.leaderboards.services import verify_ratings
from tournament.store.errors import BlobError
from tournament.store.services import read_packed

ENDED = (MatchState.FINISHED, MatchState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Results:
    """Everything about some tournaments that must not depend on what failed while they were played."""

    matches: dict[str, tuple[Any, ...]]
    """By tournament and key: state, ending, digest, whether rated, and what each entrant got."""
    standings: dict[str, tuple[Any, ...]]
    """By tournament and entrant: seed and place."""
    ratings: dict[str, list[Any]]
    """By tournament: its events in the order of the log."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the oracle found."""

    played: int
    lost: Sequence[str] = ()
    doubled: Sequence[str] = ()
    differing: Sequence[str] = ()

    def check(self) -> None:
        """Raise AssertionError unless all is well."""
        found = {
            "lost": self.lost,
            "doubled": self.doubled,
            "unlike the run without faults": self.differing,
        }
        lines = [f"{kind}: {line}" for kind, lines in found.items() for line in lines]
        assert not lines, "\n".join(lines[:50])


@dataclass(slots=True)
class _Findings:
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)


def judge(
    tournaments: Sequence[Tournament],
    expected: Results | None = None,
    *,
    repeatable: bool = True,
    stuck: Collection[int] = (),
) -> Verdict:
    """Judge what is in the database of these tournaments, which have ended.

    `expected` has the results of the run without faults (`play_without_faults`); without it, each match is
    played once more from its row and its digest compared, unless they are not `repeatable` here. Matches in `stuck` (by id) have to be stuck, and
    their tournaments need not have ended.
    """
    found = _Findings()
    rows = Match.objects.filter(tournament__in=tournaments).order_by("pk")
    matches = list(rows.select_related("tournament", "pairing").prefetch_related("tries"))
    for match in matches:
        _judge_match(match, found, is_stuck=match.pk in stuck)
    open_ones = [match.tournament_id for match in matches if match.pk in stuck]
    for tournament in Tournament.objects.filter(pk__in=[each.pk for each in tournaments]):
        if tournament.state != TournamentState.FINISHED and tournament.pk not in open_ones:
            found.lost.append(f"{tournament} is {tournament.state}, {tournament.paused_reason}")
    _judge_ratings(matches, found)
    if expected is not None:
        found.differing.extend(_differences(expected, read_results(tournaments)))
    elif repeatable:
        found.differing.extend(_differing_digests(matches))
    played = sum(match.state == MatchState.FINISHED for match in matches)
    return Verdict(played, found.lost, found.doubled, found.differing)


def _judge_match(match: Match, found: _Findings, *, is_stuck: bool) -> None:
    tries = list(match.tries.all())
    recorded = [attempt.fence for attempt in tries if attempt.ending == AttemptEnding.RECORDED]
    wanted = (MatchState.STUCK,) if is_stuck else ENDED
    if match.state not in wanted:
        found.lost.append(f"{match} is {match.state}; {_spell(tries)}")
    elif any(attempt.ending == AttemptEnding.RUNNING for attempt in tries):
        found.lost.append(f"{match} has an attempt without an end: {_spell(tries)}")
    if len(recorded) > 1:
        found.doubled.append(f"{match} was recorded more than once: {_spell(tries)}")
    elif match.state == MatchState.FINISHED and recorded != [match.fence]:
        found.lost.append(f"{match}, fence {match.fence}, is another's: {_spell(tries)}")
    elif match.state != MatchState.FINISHED and recorded:
        found.lost.append(f"{match} is {match.state}, though it was recorded: {_spell(tries)}")
    if match.state == MatchState.FINISHED:
        found.lost.extend(_judge_record(match))


def _judge_record(match: Match) -> Iterator[str]:
    try:
        record = decode_record(read_packed(match.record_sha256))
    except BlobError as error:
        yield f"{match}: {error}"
        return
    if not match.digest == record.digest == compute_digest(record):
        yield f"{match}: its record has another digest than its row"


def _spell(tries: Sequence[Attempt]) -> str:
    return ", ".join(f"{each.fence} {each.ending} {each.detail}".strip() for each in tries)


def _judge_ratings(matches: Sequence[Match], found: _Findings) -> None:
    """The log has each rated match once, and its replay gives what is stored."""
    keys = {match.pairing.rating_key: match for match in matches}
    events = RatingEvent.objects.filter(kind=EventKind.RESULT, match_key__in=keys)
    logged = Counter(events.values_list("match_key", flat=True))
    found.doubled.extend(f"{keys[key]} is rated {n} times" for key, n in logged.items() if n > 1)
    found.lost.extend(
        f"{match} is not in the log of ratings"
        for key, match in keys.items()
        if match.rated
        and match.state == MatchState.FINISHED
        and match.tournament.state == TournamentState.FINISHED
        and not logged[key]
    )
    for pool in RatingPool.objects.all():
        differences = verify_ratings(game=pool.game, kind=pool.kind)
        found.differing.extend(f"the stored ratings of {pool}: {each}" for each in differences)
        seqs = list(pool.events.order_by("seq").values_list("seq", flat=True))
        if seqs != list(range(1, pool.last_seq + 1)):
            found.lost.append(f"the log of {pool} has gaps")


def _differing_digests(matches: Sequence[Match]) -> Iterator[str]:
    """The matches that come out otherwise when they are played again from their rows."""
    for match in matches:
        if match.state == MatchState.FINISHED:
            spec = match_spec(match_to_play(match.pk))
            sources = [[wheel_source_of(bot.wheel or "") for bot in e.bots] for e in spec.entrants]
            with mock.patch("time.sleep"):
                again = run_match(spec, sources, trusted=True).record.digest
            if again != match.digest:
                yield f"{match} has the digest {match.digest}, played again {again}"


def play_without_faults(tournaments: Sequence[Tournament]) -> Results:
    """Play running tournaments to their end in this process, with nothing that fails; what came of it.

    Made on a copy of the database, from the same secret. Bots are played without walls, as fast as they
    can (nobody sleeps), and their results count as those of walled ones.
    """

    def play_here(*arguments: Any, **options: Any) -> Any:
        return run_match(*arguments, **{**options, "trusted": True})

    with mock.patch.object(playing, "run_match", play_here), mock.patch("time.sleep"):
        for tournament in tournaments:
            play_all(tournament, trusted=False)
    return read_results(tournaments)


def read_results(tournaments: Sequence[Tournament]) -> Results:
    """What is in the database of these tournaments."""
    slugs = dict(
        Tournament.objects.filter(pk__in=[t.pk for t in tournaments]).values_list("pk", "slug")
    )
    parts: dict[int, list[tuple[Any, ...]]] = {}
    for pairing, *part in (
        PairingEntrant.objects.filter(pairing__tournament__in=slugs)
        .order_by("pairing", "index")
        .values_list("pairing", "entrant__name", "place", "points", "score_twelfths", "advances")
    ):
        parts.setdefault(pairing, []).append(tuple(part))
    matches = Match.objects.filter(tournament__in=slugs).select_related("pairing")
    return Results(
        matches={
            f"{slugs[match.tournament_id]}/{match.pairing.key}": (
                match.state,
                match.termination,
                match.digest,
                match.rated,
                match.pairing.decided_by,
                *parts[match.pairing_id],
            )
            for match in matches
        },
        standings={
            f"{slug}/{name}": (seed, place)
            for slug, name, seed, place in Tournament.objects.filter(pk__in=slugs).values_list(
                "slug", "entrants__name", "entrants__seed", "entrants__place"
            )
        },
        ratings={
            slug: list(
                RatingEvent.objects.filter(match_key__startswith=f"{slug}/")
                .order_by("pool", "seq")
                .values_list("kind", "match_key", "teams")
            )
            for slug in slugs.values()
        },
    )


def _differences(expected: Results, found: Results) -> Iterator[str]:
    for of in ("matches", "standings", "ratings"):
        wanted, here = getattr(expected, of), getattr(found, of)
        for key in sorted(wanted.keys() | here.keys()):
            if wanted.get(key) != here.get(key):
                yield f"{of} of {key}: {here.get(key)} instead of {wanted.get(key)}"
