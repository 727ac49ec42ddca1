"""Ratings: Plackett-Luce, and the pure fold of a pool's log into ratings.

The model is algorithm 4 of Weng & Lin, "A Bayesian approximation method for online ranking"
(JMLR 12, 2011), with openskill's choice γ = σ_i/c. Ratings are a pure fold over an append-only log
in the order of its sequence numbers: the same log gives the same bits on every machine, because μ
and σ are rounded to 1e-9 after each step. Nothing else ever makes a rating.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

MU = 25.0
SIGMA = MU / 3
BETA = MU / 6
"""How much one match's luck spreads the performance of a member."""
TAU = MU / 300
"""Uncertainty that every match adds, so that a rating never freezes."""
KAPPA = 1e-4
"""The least factor by which a step can shrink a variance."""
INHERITED_SIGMA = 5.0
"""A new version of a bot is at least so uncertain."""
SETTLED_SIGMA = 2.0
"""Below it a rating is settled; from it on it is provisional."""
DIGITS = 9


class Rating(msgspec.Struct, frozen=True):
    """What is believed of a version's strength: mean and standard deviation."""

    mu: float = MU
    sigma: float = round(SIGMA, DIGITS)

    @property
    def shown(self) -> float:
        """The number to rank by: μ - 3σ, so that few matches never lead the table."""
        return round(self.mu - 3 * self.sigma, DIGITS)

    @property
    def interval(self) -> tuple[float, float]:
        """μ ± 1.96σ: the strength lies between them with 95 % confidence."""
        return (
            round(self.mu - 1.96 * self.sigma, DIGITS),
            round(self.mu + 1.96 * self.sigma, DIGITS),
        )

    @property
    def is_settled(self) -> bool:
        """Whether the version's own rating counts; a provisional one stands beside its parent's."""
        return self.sigma < SETTLED_SIGMA


class EventKind(StrEnum):
    """What an entry of the log says."""

    RESULT = "result"
    """A match was decided by play."""
    VOID = "void"
    """That match counts no more."""
    UNVOID = "unvoid"
    """It counts again, in its old place."""


class Member(msgspec.Struct, frozen=True):
    """A bot version in a team. Without a rating of its own it starts from its parent's."""

    version: int
    parent: int | None = None


class Team(msgspec.Struct, frozen=True):
    """One entrant of a match: one member for a mono entrant, two for a pair."""

    members: tuple[Member, ...]
    rank: int
    """Its place in the match; ties share it."""


class RatingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a pool's log. `match` names the match uniquely in the pool."""

    seq: int
    kind: EventKind
    match: str
    teams: tuple[Team, ...] = ()
    """Only of a result."""


class Step(msgspec.Struct, frozen=True):
    """A version's rating after the result `seq`."""

    seq: int
    version: int
    rating: Rating


class RatedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version's line in a pool."""

    rating: Rating
    matches: int = 0
    wins: int = 0
    """Alone on the best place."""
    ties: int = 0
    """The best place shared."""
    last_seq: int = 0


class Fold(msgspec.Struct, frozen=True):
    """What a log amounts to."""

    versions: dict[int, RatedVersion]
    steps: tuple[Step, ...]
    last_seq: int


def rate(teams: Sequence[Sequence[Rating]], ranks: Sequence[int]) -> tuple[tuple[Rating, ...], ...]:
    """The new ratings of all members after a match in which team i took place ``ranks[i]``."""
    raise NotImplementedError


def inherit(parent: Rating | None) -> Rating:
    """The first rating of a version: its parent's μ with σ at least 5, or the default without a parent."""
    raise NotImplementedError


def apply_result(
    versions: Mapping[int, RatedVersion], event: RatingEvent
) -> dict[int, RatedVersion]:
    """The new lines of the versions that took part in a result; `versions` needs only them and their parents."""
    raise NotImplementedError


def fold(events: Iterable[RatingEvent]) -> Fold:
    """Replay a whole log, or any prefix of it. Raises UsageError for a log that is not in order."""
    raise NotImplementedError
