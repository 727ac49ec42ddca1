"""The verdict on what a bundle says of the ratings."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from engine.bundle.comparing import compare
from engine.bundle.values import (
    Bundle,
    PairingPart,
    RatedMatch,
    RatedMember,
    StagePart,
)
from engine.errors import BundleError
from engine.formats import DecidedBy, get_format
from engine.ratings import INHERITED_SIGMA, Rating, rate
from engine.record import MatchRecord, is_ratable, is_rated_contest

PLAYED = frozenset({DecidedBy.PLAY, DecidedBy.LOT, DecidedBy.FAULT})
"""What decides a pairing whose match counts as it was played."""


MOST = 1000.0
"""No rating is near it: far enough for any, near enough to reckon with."""
NO_RATING = f"a rating has a mu, no further from 0 than {MOST:g}, and a sigma above 0 up to that"


def is_rating(mu: float | None, sigma: float | None) -> bool:
    """Whether the two can be a rating."""
    return mu is not None and sigma is not None and abs(mu) <= MOST and 0 < sigma <= MOST


def must_be_rated(bundle: Bundle, stage: int, pairing: PairingPart, record: MatchRecord) -> bool:
    """Whether the match must stand among the rated ones.

    The organiser wants it, its contest is one that is rated, a sandbox held its bots, it counts as it
    was played, and its record says something about strength.
    """
    return (
        bundle.tournament.rated
        and pairing.is_sandboxed
        and pairing.result.decided_by in PLAYED
        and is_rated_contest(bundle.stages[stage].contest)
        and is_ratable(record)
    )


def judge_ratings(bundle: Bundle, wanted: Mapping[str, PairingPart]) -> None:
    """Raise BundleError unless exactly the matches in `wanted` are rated, each step following from the one before.

    `wanted` is by key in the log.
    """
    known: dict[tuple[str, str], RatedMember] = {}
    seen: set[str] = set()
    for e, event in enumerate(bundle.ratings):
        place = f"ratings[{e}]"
        pairing = wanted.get(event.key)
        if pairing is None or event.key in seen:
            raise BundleError(
                f"{place}.key", "there is no such match, it is not rated, or it was before"
            )
        seen.add(event.key)
        _judge_teams(bundle, event, pairing, place)
        _judge_members(event, known, place)
    for key in wanted:
        if key not in seen:
            raise BundleError("ratings", f"{key} must be rated, and is not")
    _judge_order(bundle, wanted)


def _judge_order(bundle: Bundle, wanted: Collection[str]) -> None:
    """They stand in the order of the rounds, and in each of the keys.

    Unless rulings mixed them, or the batches of a continuous format, which end when they end.
    """
    if any(_is_mixed(stage) for stage in bundle.stages):
        return
    keys = (
        pairing.key
        for stage in bundle.stages
        for each in stage.rounds
        for pairing in sorted(each.pairings, key=lambda pairing: pairing.key)
    )
    in_order = [key for key in keys if key in wanted]
    for e, (event, key) in enumerate(zip(bundle.ratings, in_order, strict=True)):
        compare(event.key, key, f"ratings[{e}].key")


def _is_mixed(stage: StagePart) -> bool:
    return get_format(stage.format).is_continuous or any(
        pairing.is_ruled or pairing.earlier or pairing.edition > 1
        for each in stage.rounds
        for pairing in each.pairings
    )


def _judge_teams(bundle: Bundle, event: RatedMatch, pairing: PairingPart, place: str) -> None:
    entrants = [bundle.entrants[index] for index in pairing.entrants]
    found = [
        (team.place, [(each.bot, each.version) for each in team.members]) for team in event.teams
    ]
    wanted = [
        (rank, [(ref.bot, ref.version) for ref in entrant.bots])
        for rank, entrant in zip(pairing.result.places, entrants, strict=True)
    ]
    compare(found, wanted, f"{place}.teams")


def _judge_members(
    event: RatedMatch, known: dict[tuple[str, str], RatedMember], place: str
) -> None:
    for t, team in enumerate(event.teams):
        for m, member in enumerate(team.members):
            if not is_rating(member.mu_before, member.sigma_before):
                where = f"{place}.teams[{t}].members[{m}].sigma_before"
                raise BundleError(where, NO_RATING)
    rated = rate(
        [[Rating(m.mu_before, m.sigma_before) for m in team.members] for team in event.teams],
        [team.place for team in event.teams],
    )
    for t, (team, ratings) in enumerate(zip(event.teams, rated, strict=True)):
        for m, (member, rating) in enumerate(zip(team.members, ratings, strict=True)):
            here = f"{place}.teams[{t}].members[{m}]"
            compare(member.mu, rating.mu, f"{here}.mu")
            compare(member.sigma, rating.sigma, f"{here}.sigma")
            compare(member.matches, member.matches_before + 1, f"{here}.matches")
            _judge_before(member, known.get((member.bot, member.version)), here)
            known[member.bot, member.version] = member


def _judge_before(member: RatedMember, last: RatedMember | None, place: str) -> None:
    """With what it came into the match: a first rating, or what a match before has left."""
    if last is not None and last.matches == member.matches_before:
        compare(member.mu_before, last.mu, f"{place}.mu_before")
        compare(member.sigma_before, last.sigma, f"{place}.sigma_before")
    elif last is not None and last.matches > member.matches_before:
        raise BundleError(f"{place}.matches_before", f"it had {last.matches} matches before")
    elif member.matches_before < 0:
        raise BundleError(f"{place}.matches_before", "it must not be below 0")
    elif member.matches_before == 0 and member.sigma_before < INHERITED_SIGMA:
        raise BundleError(f"{place}.sigma_before", f"a new version has at least {INHERITED_SIGMA}")
