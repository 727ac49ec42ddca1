"""A whole tournament as one document, and the verdict on it.

A bundle (``arena-bundle/1``) holds what was published of a finished tournament: the commitment, the
secret and `pub`, entrants, stages, rounds and pairings, every match record, the standings and what the
ratings made of it. `verify_bundle` believes none of it: it recomputes the commitment, every deal,
every match, every result, every pairing, the tables and the ratings, with nothing but the rules.

What nobody can recompute is taken as given and counted in the report: an organiser's rulings, who was
absent when a round was paired, seeds that follow from ratings or a hand, and the ratings that entrants
brought along from elsewhere.
"""

from __future__ import annotations

from engine.bundle.codec import (
    Records,
    bundle_chunks,
    bundle_digest,
    decode_bundle,
    encode_bundle,
    seal_bundle,
)
from engine.bundle.judge import BundleReport, verify_bundle
from engine.bundle.schema import bundle_schema
from engine.bundle.values import (
    FORMAT,
    RULES,
    Bundle,
    EarlierResult,
    EntrantPart,
    PairingPart,
    RatedMatch,
    RatedMember,
    RatedTeamPart,
    ResultPart,
    RoundPart,
    StageEntrant,
    StagePart,
    StandingPart,
    TieBreakPart,
    TournamentPart,
    rating_key,
    result_part,
    standing_part,
)

__all__ = [
    "FORMAT",
    "RULES",
    "Bundle",
    "BundleReport",
    "EarlierResult",
    "EntrantPart",
    "PairingPart",
    "RatedMatch",
    "RatedMember",
    "RatedTeamPart",
    "Records",
    "ResultPart",
    "RoundPart",
    "StageEntrant",
    "StagePart",
    "StandingPart",
    "TieBreakPart",
    "TournamentPart",
    "bundle_chunks",
    "bundle_digest",
    "bundle_schema",
    "decode_bundle",
    "encode_bundle",
    "rating_key",
    "result_part",
    "seal_bundle",
    "standing_part",
    "verify_bundle",
]
