"""Ratings: Plackett-Luce, and the pure fold of a pool's log into ratings.

The model is algorithm 4 of Weng & Lin, "A Bayesian approximation method for online ranking"
(JMLR 12, 2011), with openskill's choice γ = σ_i/c. Ratings are a pure fold over an append-only log
in the order of its sequence numbers: the same log gives the same bits on every machine, because μ
and σ are rounded to 1e-9 after each step. Nothing else ever makes a rating.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from engine.errors import UsageError

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
    sigma: float = SIGMA

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
    """A bot version in a team."""

    version: int
    ancestors: tuple[int, ...] = ()
    """The bot's earlier versions, the newest first; without a rating of its own a version starts
    from that of the first of them that has one."""


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
    """Of the results that count, in their order; within one, in the order of its members."""
    last_seq: int
    voided: frozenset[str]
    """The matches that do not count."""


class RatingChange(msgspec.Struct, frozen=True):
    """What happens to one version between two folds; None: it has no rating there."""

    version: int
    before: Rating | None
    after: Rating | None


def rate(teams: Sequence[Sequence[Rating]], ranks: Sequence[int]) -> tuple[tuple[Rating, ...], ...]:
    """The new ratings of all members after a match in which team i took place ``ranks[i]``.

    Only the order and equality of the ranks matter, the lowest is the best. A member's share of its
    team's change is its share of the team's variance.
    Weng & Lin 2011, algorithm 4, with σ² += τ² before the update. Raises UsageError for fewer than
    two teams, an empty team, or a rank missing.
    """
    _check_teams(teams, ranks)
    variances = [[member.sigma**2 + TAU**2 for member in team] for team in teams]
    mus = [sum(member.mu for member in team) for team in teams]
    team_variances = [sum(members) for members in variances]
    c = math.sqrt(sum(variance + BETA**2 for variance in team_variances))
    omegas, deltas = _gradients(mus, team_variances, ranks, c)
    return tuple(
        tuple(
            _update(member, variance, variance / team_variances[i], omegas[i], deltas[i])
            for member, variance in zip(team, variances[i], strict=True)
        )
        for i, team in enumerate(teams)
    )


def _check_teams(teams: Sequence[Sequence[Rating]], ranks: Sequence[int]) -> None:
    if len(teams) < 2:
        raise UsageError(f"a rated match has at least two teams; got {len(teams)}")
    if len(ranks) != len(teams):
        raise UsageError(f"each team needs one rank; got {len(teams)} teams and {len(ranks)} ranks")
    if not all(teams):
        raise UsageError("a team needs at least one member")


def _gradients(
    mus: Sequence[float], variances: Sequence[float], ranks: Sequence[int], c: float
) -> tuple[list[float], list[float]]:
    """Ω and Δ of each team, from the chances that each of the ranks was taken as it was."""
    omegas = [0.0] * len(mus)
    deltas = [0.0] * len(mus)
    for q, rank in enumerate(ranks):
        tied = sum(other == rank for other in ranks)
        rivals = [i for i, other in enumerate(ranks) if other >= rank]
        best = max(mus[i] for i in rivals)
        weights = {i: math.exp((mus[i] - best) / c) for i in rivals}
        total = sum(weights.values())
        for i in rivals:
            chance = weights[i] / total
            omegas[i] += ((i == q) - chance) / tied * variances[i] / c
            gamma = math.sqrt(variances[i]) / c
            deltas[i] += gamma * chance * (1 - chance) / tied * variances[i] / c**2
    return omegas, deltas


def _update(member: Rating, variance: float, share: float, omega: float, delta: float) -> Rating:
    return Rating(
        mu=round(member.mu + share * omega, DIGITS),
        sigma=round(math.sqrt(variance * max(1 - share * delta, KAPPA)), DIGITS),
    )


def inherit(parent: Rating | None) -> Rating:
    """The first rating of a version: its parent's μ with σ at least 5, or the default without a parent."""
    if parent is None:
        return Rating()
    return Rating(mu=parent.mu, sigma=max(parent.sigma, INHERITED_SIGMA))


def first_line(versions: Mapping[int, RatedVersion], member: Member) -> RatedVersion:
    """The line with which `member` enters its next match: its own, or a new one from its ancestors'."""
    if member.version in versions:
        return versions[member.version]
    known = (versions[ancestor].rating for ancestor in member.ancestors if ancestor in versions)
    return RatedVersion(rating=inherit(next(known, None)))


def apply_result(
    versions: Mapping[int, RatedVersion], event: RatingEvent
) -> dict[int, RatedVersion]:
    """The new lines of the versions that took part in a result.

    `versions` needs only them and their ancestors, as they were after the event before. Raises
    UsageError for an event that is no result or names a version twice.
    """
    members = [member for team in event.teams for member in team.members]
    if event.kind is not EventKind.RESULT:
        raise UsageError(f"event {event.seq} is a {event.kind}: replay the log with fold")
    if len({member.version for member in members}) < len(members):
        raise UsageError(
            f"event {event.seq} names a version twice: a match has one entrant of each"
        )
    lines = [[first_line(versions, member) for member in team.members] for team in event.teams]
    rated = rate(
        [[line.rating for line in team] for team in lines], [team.rank for team in event.teams]
    )
    entered = [line for team_lines in lines for line in team_lines]
    after = [new for team_rated in rated for new in team_rated]
    return {
        version: RatedVersion(
            rating=new,
            matches=line.matches + 1,
            wins=line.wins + is_won,
            ties=line.ties + is_tied,
            last_seq=event.seq,
        )
        for (version, is_won, is_tied), line, new in zip(
            _merits(event), entered, after, strict=True
        )
    }


def fold(events: Iterable[RatingEvent]) -> Fold:
    """Replay a whole log, or any prefix of it.

    A result that is void at the end counts nowhere, as if it had never been; an unvoided one counts
    in its old place. Raises UsageError for a log that is not in order: sequence numbers that do not
    rise, two results of one match, a void of what does not count, an unvoid of what is not void.
    """
    log = tuple(events)
    voided = _read_log(log)
    versions, steps = resume({}, log, voided)
    return Fold(
        versions=versions,
        steps=steps,
        last_seq=log[-1].seq if log else 0,
        voided=frozenset(voided),
    )


def resume(
    before: Mapping[int, RatedVersion], events: Iterable[RatingEvent], voided: Collection[str]
) -> tuple[dict[int, RatedVersion], tuple[Step, ...]]:
    """Go on with a fold from the middle of a log: all lines, and the steps of `events`.

    `before`: the lines as the counting results before the first of `events` left them, at least of the
    versions in `events` and of their ancestors. `voided`: the matches that do not count at the log's end.
    Equal to what `fold` makes of the whole log.
    """
    versions = dict(before)
    steps: list[Step] = []
    for event in events:
        if event.kind is EventKind.RESULT and event.match not in voided:
            changed = apply_result(versions, event)
            versions.update(changed)
            steps.extend(Step(event.seq, version, line.rating) for version, line in changed.items())
    return versions, tuple(steps)


def rewind(
    lines: Mapping[int, RatedVersion],
    counted: Iterable[RatingEvent],
    last_steps: Iterable[Step],
) -> dict[int, RatedVersion]:
    """The lines before the results `counted`, which are the last in `lines`; `resume` goes on from there.

    `last_steps`: of each version that is wanted and was rated before, its last step before them. Raises
    UsageError for one that has no line.
    """
    taken: dict[int, tuple[int, int, int]] = {}
    for event in counted:
        for version, is_won, is_tied in _merits(event):
            matches, wins, ties = taken.get(version, (0, 0, 0))
            taken[version] = (matches + 1, wins + is_won, ties + is_tied)
    rewound = {}
    for step in last_steps:
        if step.version not in lines:
            raise UsageError(
                f"version {step.version} has a history but no rating: rebuild the ratings from their log"
            )
        line, (matches, wins, ties) = lines[step.version], taken.get(step.version, (0, 0, 0))
        rewound[step.version] = RatedVersion(
            rating=step.rating,
            matches=line.matches - matches,
            wins=line.wins - wins,
            ties=line.ties - ties,
            last_seq=step.seq,
        )
    return rewound


def _merits(event: RatingEvent) -> list[tuple[int, bool, bool]]:
    """By member in their order: its version, whether it was alone on the best place, and whether it shared it."""
    best = min(team.rank for team in event.teams)
    is_shared = sum(team.rank == best for team in event.teams) > 1
    return [
        (member.version, team.rank == best and not is_shared, team.rank == best and is_shared)
        for team in event.teams
        for member in team.members
    ]


def _read_log(log: Sequence[RatingEvent]) -> set[str]:
    """The matches that are void at the end of `log`, checked for its order on the way."""
    known: set[str] = set()
    voided: set[str] = set()
    last = 0
    for event in log:
        if event.seq <= last:
            raise UsageError(
                f"event {event.seq} stands after event {last}: the log must be in order"
            )
        last = event.seq
        match event.kind:
            case EventKind.RESULT:
                if event.match in known:
                    raise UsageError(f"event {event.seq} is a second result of {event.match}")
                known.add(event.match)
            case EventKind.VOID:
                if event.match not in known - voided:
                    raise UsageError(f"event {event.seq} voids {event.match}, which does not count")
                voided.add(event.match)
            case EventKind.UNVOID:
                if event.match not in voided:
                    raise UsageError(f"event {event.seq} unvoids {event.match}, which is not void")
                voided.remove(event.match)
    return voided


def preview(log: Iterable[RatingEvent], added: Iterable[RatingEvent]) -> tuple[RatingChange, ...]:
    """What `added` events would change, the biggest change of the shown number first.

    So a disqualification's effect can be shown before it is made.
    """
    log = tuple(log)
    return compare_lines(fold(log).versions, fold((*log, *added)).versions)


def compare_lines(
    before: Mapping[int, RatedVersion], after: Mapping[int, RatedVersion]
) -> tuple[RatingChange, ...]:
    """Whose rating is another one, the biggest change of the shown number first."""
    changes = (
        RatingChange(
            version,
            before[version].rating if version in before else None,
            after[version].rating if version in after else None,
        )
        for version in before.keys() | after.keys()
    )
    return tuple(
        sorted(
            (change for change in changes if change.before != change.after),
            key=lambda change: (-_size_of(change), change.version),
        )
    )


def _size_of(change: RatingChange) -> float:
    if change.before is None or change.after is None:
        return math.inf
    return abs(change.after.shown - change.before.shown)
