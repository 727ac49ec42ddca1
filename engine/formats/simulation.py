"""Random tournaments, played through the protocol of `engine.formats.base` alone, and what must hold in each.

Who enters, withdraws, comes late, ties, crashes or does not appear, and what is annulled afterwards,
is drawn at random. Of every format it must hold that:

- it raises no error but the refusal of what cannot be run, and it ends;
- a round that is planned again, from the entrants in another order, is the same round;
- keys are unique, slots are numbered, nobody is paired twice in a round or after he left, and in the
  end every pairing has a result;
- everyone stands in the table once, and places are those of a table;
- the same tournament played again is the same tournament.

Where a format spares rematches it must also hold that everyone is paired, that who rests has no more byes
than anyone who does not, and that no pairing of the round has fewer rematches: that is told by a search
of its own, which knows nothing of how the format pairs.
"""

from __future__ import annotations

import hashlib
import random
import traceback
from collections import Counter
from collections.abc import Sequence

import msgspec

from engine.errors import FormatError
from engine.formats.base import (
    DecidedBy,
    Format,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
)
from engine.formats.results import forfeit_outcome, void_result
from engine.outcome import Fault, Outcome, Termination, places_by

LARGEST = 65
"""Entrants of a simulated tournament at most."""
MOST_ROUNDS = 500
"""A stage that has not ended by then does not end."""
CONTINUOUS_ROUNDS = 12
"""Rounds played of a format that has no end of its own."""
OPTION_SPAN = 12
"""An option that is a number is drawn from its lowest so many values."""


class Tally(msgspec.Struct, kw_only=True):
    """What happened in the simulated tournaments of a format."""

    format: str
    tournaments: int = 0
    entrants: int = 0
    rounds: int = 0
    matches: int = 0
    """Decided by play, ties, faults and lots included."""
    ties: int = 0
    faults: int = 0
    forfeits: int = 0
    double_forfeits: int = 0
    voids: int = 0
    byes: int = 0
    walkovers: int = 0
    withdrawals: int = 0
    late_entries: int = 0
    forced_rematches: int = 0
    """Where a format spares rematches: those for which there was no other way."""
    digest: str = ""
    """SHA-256 over all rounds and tables: equal seeds give equal digests, on every machine."""
    troubles: list[str] = []
    """What did not hold, with the tournament's seed; empty if all is well."""

    def add(self, other: Tally) -> None:
        """Count another tally's tournaments in."""
        for field in msgspec.structs.fields(Tally):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if isinstance(mine, int):
                setattr(self, field.name, mine + theirs)
        self.digest = _digest(self.digest, other.digest)
        self.troubles = [*self.troubles, *other.troubles]


class BrokenPromiseError(AssertionError):
    """A format that did what no format may do; the message says what."""


def simulate(fmt: Format, seed: str) -> Tally:
    """One random tournament of `fmt`, played twice. What does not hold stands in the tally's troubles."""
    try:
        tally = _Tournament(fmt, seed).play()
        again = _Tournament(fmt, seed, looks_closely=False).play()
        _require(tally.digest == again.digest, "the same tournament, played again, was another one")
    except Exception as error:  # noqa: BLE001 - whatever a format raises is what we look for
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error}"
        if not isinstance(error, BrokenPromiseError):
            told += f" ({where.name}, line {where.lineno})"
        return Tally(format=fmt.name, tournaments=1, troubles=[f"seed {seed}: {told}"])
    return tally


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise BrokenPromiseError(message)


class _Tournament:
    """One tournament on its way; all that is random comes from one generator."""

    def __init__(self, fmt: Format, seed: str, *, looks_closely: bool = True) -> None:
        self.fmt = fmt
        self.looks_closely = looks_closely
        """Whether what is planned is also checked; that draws from a generator of its own."""
        self.eye = random.Random(seed)  # noqa: S311 - chance, no secret
        self.rng = random.Random(f"{fmt.name}/{seed}")  # noqa: S311 - chance, no secret
        self.tally = Tally(format=fmt.name, tournaments=1)
        self.mood = self.rng.choice((0.0, 0.05, 0.25))
        """How likely it is that something else happens than a match played to its end."""
        self.view = self._open()

    def play(self) -> Tally:
        """All rounds, then the table."""
        while (planned := self._plan()) is not None:
            self.view = msgspec.structs.replace(self.view, rounds=(*self.view.rounds, planned))
            ahead = self._look_ahead()
            self._decide_round(planned)
            self._check_ahead(ahead)
            self._annul_something()
            self._come_and_go()
            _require(len(self.view.rounds) <= MOST_ROUNDS, "the stage did not end")
        self._finish()
        return self.tally

    def _open(self) -> StageView:
        options, entrants = self._draw_field()
        self.fmt.check(entrants, options)
        self.tally.entrants = len(entrants)
        view = StageView(entrants=entrants, options=options, lot=self.rng.randbytes(8))
        if self._happens():
            view = _without(view, self.rng.choice(entrants).id)
            self.tally.withdrawals += 1
        return view

    def _draw_field(self) -> tuple[object, tuple[SeededEntrant, ...]]:
        """Options and as many entrants as they take, 2 to 65; at last the format's defaults."""
        for options in (self._draw_options(), {}):
            made = self.fmt.make_options(options)
            for size in self.rng.sample(range(2, LARGEST + 1), LARGEST - 1):
                ids = self.rng.sample(range(100, 1000), size)
                entrants = tuple(
                    SeededEntrant(id=entrant, seed=seed)
                    for seed, entrant in enumerate(ids, start=1)
                )
                try:
                    self.fmt.check(entrants, made)
                except FormatError:
                    continue
                return made, entrants
        raise BrokenPromiseError(f"{self.fmt.name} takes no number of entrants from 2 to {LARGEST}")

    def _draw_options(self) -> dict[str, object]:
        drawn: dict[str, object] = {}
        for option in self.fmt.options:
            if option.is_list or self.rng.random() < 0.4:
                continue
            if option.choices:
                drawn[option.name] = self.rng.choice(option.choices)
            elif option.minimum is not None:
                top = option.minimum + OPTION_SPAN
                drawn[option.name] = self.rng.randint(
                    option.minimum, min(top, option.maximum or top)
                )
        return drawn

    def _happens(self) -> bool:
        return self.rng.random() < self.mood

    # Planning

    def _plan(self) -> Round | None:
        """The next round, looked at from all sides; None when the stage is over."""
        if self.fmt.is_continuous and len(self.view.rounds) >= CONTINUOUS_ROUNDS:
            return None
        planned = self.fmt.next_round(self.view)
        if not self.looks_closely:
            return planned
        if self._looks_twice():
            turned = list(self.view.entrants)
            self.eye.shuffle(turned)
            again = self.fmt.next_round(msgspec.structs.replace(self.view, entrants=tuple(turned)))
            _require(
                planned == again, "a round planned again, from turned entrants, is another one"
            )
        if planned is not None:
            _check_round(self.fmt, self.view, planned)
            if self.fmt.spares_rematches:
                self.tally.forced_rematches += _check_rematches(self.view, planned)
        return planned

    def _looks_twice(self) -> bool:
        """In the first rounds, and in every fourth or so of the others."""
        return len(self.view.rounds) < 3 or self.eye.random() < 0.25

    def _look_ahead(self) -> Round | None:
        """The round after the open one, where the format tells it already."""
        if self.view.rounds[-1].is_complete or self.fmt.is_continuous:
            return None
        if not self.looks_closely or not self._looks_twice():
            return None
        try:
            return self.fmt.next_round(self.view)
        except FormatError:
            return None

    def _check_ahead(self, ahead: Round | None) -> None:
        if ahead is None or self.view.inactive - self._inactive_when_published:
            return
        planned = self.fmt.next_round(self.view)
        _require(planned == ahead, "what was planned ahead is another round once results are in")

    # Deciding

    def _decide_round(self, planned: Round) -> None:
        self._inactive_when_published = self.view.inactive
        waiting = [pairing for pairing in planned.pairings if pairing.result is None]
        self.rng.shuffle(waiting)
        for pairing in waiting:
            if self._happens() and self.rng.random() < 0.1:
                self._withdraw_one()
            told = self._told_of(pairing)
            result = self.fmt.walkover(told, pairing)
            if result is None:
                result = self.fmt.decide(told, pairing, self._draw_outcome(pairing))
            _check_result(self.fmt, pairing, result)
            self._store(planned.index, pairing.key, result)

    def _told_of(self, pairing: Pairing) -> StageView:
        """What a site tells of the stage to have a pairing decided."""
        known = self.view.by_id
        return msgspec.structs.replace(
            self.view, entrants=tuple(known[entrant] for entrant in pairing.entrants), rounds=()
        )

    def _draw_outcome(self, pairing: Pairing) -> Outcome:
        count = len(pairing.entrants)
        if self._happens():
            offenders = self.rng.sample(range(count), self.rng.choice((1, 1, 1, count)))
            if self._happens() or self.rng.random() < 0.5:
                return forfeit_outcome(count, offenders, "did not appear")
            return _fault(count, offenders)
        points = [self.rng.randint(-3, 3) for _ in range(count)]
        points[0] -= sum(points)
        return Outcome(
            termination=Termination.COMPLETED,
            faults=(),
            points=tuple(points),
            places=places_by(points),
        )

    def _store(self, index: int, key: str, result: PairingResult) -> None:
        """Write the result of a pairing of round `index`."""
        rounds = list(self.view.rounds)
        published = rounds[index - 1]
        rounds[index - 1] = msgspec.structs.replace(
            published,
            pairings=tuple(
                msgspec.structs.replace(pairing, result=result) if pairing.key == key else pairing
                for pairing in published.pairings
            ),
        )
        self.view = msgspec.structs.replace(self.view, rounds=tuple(rounds))

    # What else happens

    def _annul_something(self) -> None:
        if not self._happens():
            return
        published = self.rng.choice(self.view.rounds)
        played = [pairing for pairing in published.pairings if not pairing.is_bye]
        if played:
            pairing = self.rng.choice(played)
            assert pairing.result is not None
            self._store(published.index, pairing.key, void_result(pairing.result))

    def _come_and_go(self) -> None:
        while self._happens():
            self._withdraw_one()
        while self.fmt.takes_late_entries and self._happens():
            if len(self.view.entrants) >= LARGEST:
                break
            try:
                newcomer = self.fmt.late_entrant(self.view, 1000 + len(self.view.entrants))
            except FormatError:
                break  # no round is left
            self.view = msgspec.structs.replace(self.view, entrants=(*self.view.entrants, newcomer))
            self.tally.late_entries += 1

    def _withdraw_one(self) -> None:
        active = self.view.active
        if active:
            self.view = _without(self.view, self.rng.choice(active).id)
            self.tally.withdrawals += 1

    # The end

    def _finish(self) -> None:
        waiting = [p.key for r in self.view.rounds for p in r.pairings if p.result is None]
        _require(not waiting, f"never decided: {', '.join(waiting)}")
        if not self.fmt.takes_late_entries:
            self._check_refusal()
        rows = self.fmt.standings(self.view)
        _require(
            Counter(row.entrant for row in rows) == Counter(e.id for e in self.view.entrants),
            "not everyone stands in the table once",
        )
        places = [row.place for row in rows]
        _require(places == sorted(places) and places[0] == 1, f"no places of a table: {places}")
        _require(
            all(place == 1 + sum(other < place for other in places) for place in places),
            f"no places of a table: {places}",
        )
        self._count()
        self.tally.digest = _digest(msgspec.json.encode((self.view.rounds, rows), enc_hook=str))

    def _check_refusal(self) -> None:
        try:
            self.fmt.late_entrant(self.view, 1)
        except FormatError:
            return
        raise BrokenPromiseError("a late entrant was let in by a format that takes none")

    def _count(self) -> None:
        tally = self.tally
        tally.rounds = len(self.view.rounds)
        for published in self.view.rounds:
            for pairing in published.pairings:
                result = pairing.result
                assert result is not None
                how = result.decided_by
                tally.matches += how in {DecidedBy.PLAY, DecidedBy.LOT, DecidedBy.FAULT}
                tally.ties += how in {DecidedBy.PLAY, DecidedBy.LOT} and (
                    result.places.count(1) > 1
                )
                tally.faults += how is DecidedBy.FAULT
                tally.forfeits += how is DecidedBy.FORFEIT
                tally.double_forfeits += how is DecidedBy.DOUBLE_FORFEIT
                tally.voids += how is DecidedBy.VOID
                tally.byes += how is DecidedBy.BYE
                tally.walkovers += how is DecidedBy.WALKOVER


def _fault(count: int, offenders: Sequence[int]) -> Outcome:
    """The outcome of a match in which these crashed."""
    innocent = count - len(offenders)
    return Outcome(
        termination=Termination.CRASH,
        faults=tuple(
            Fault(entrant=index, seat=index, kind=Termination.CRASH, detail="exited")
            for index in sorted(offenders)
        ),
        points=(0,) * count,
        places=tuple(innocent + 1 if index in offenders else 1 for index in range(count)),
    )


def _without(view: StageView, entrant: int) -> StageView:
    return msgspec.structs.replace(
        view,
        entrants=tuple(
            msgspec.structs.replace(e, active=e.active and e.id != entrant) for e in view.entrants
        ),
    )


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()


# What must hold of a round


def _check_round(fmt: Format, view: StageView, planned: Round) -> None:
    active = {entrant.id for entrant in view.active}
    known = {entrant.id for entrant in view.entrants}
    earlier = {pairing.key for published in view.rounds for pairing in published.pairings}
    keys = [pairing.key for pairing in planned.pairings]
    _require(planned.index == len(view.rounds) + 1, f"round {planned.index} is not the next one")
    _require(
        len(set(keys)) == len(keys) and not earlier & set(keys), f"a key is not unique: {keys}"
    )
    slots = [pairing.slot for pairing in planned.pairings]
    _require(slots == list(range(1, len(slots) + 1)), f"the slots are not numbered: {slots}")
    paired = [entrant for pairing in planned.pairings for entrant in pairing.entrants]
    _require(len(set(paired)) == len(paired), "someone is paired twice in one round")
    _require(set(paired) <= known, "someone is paired who is not in the stage")
    for pairing in planned.pairings:
        sizes = (1,) if pairing.is_bye else fmt.pairing_sizes
        _require(
            len(pairing.entrants) in sizes, f"{pairing.key} has {len(pairing.entrants)} entrants"
        )
        if pairing.result is None:
            _require(not pairing.is_bye, f"the bye {pairing.key} is open")
            _require(set(pairing.entrants) <= active, f"{pairing.key} awaits who has left")
        else:
            _check_result(fmt, pairing, pairing.result)


def _check_result(fmt: Format, pairing: Pairing, result: PairingResult) -> None:
    count = len(pairing.entrants)
    lengths = {len(t) for t in (result.places, result.points, result.scores, result.advances)}
    _require(lengths == {count}, f"the result of {pairing.key} is not of its {count} entrants")
    _require(
        sum(result.advances) == (1 if fmt.knocks_out else 0), f"{pairing.key}: not one goes on"
    )
    _require(
        pairing.is_bye == (result.decided_by is DecidedBy.BYE), f"{pairing.key}: a bye or none?"
    )


def _check_rematches(view: StageView, planned: Round) -> int:
    """How many of the round meet again; raises if fewer could, if someone rests too often, or is missing."""
    active = [entrant.id for entrant in view.active]
    paired = [entrant for pairing in planned.pairings for entrant in pairing.entrants]
    _require(sorted(paired) == sorted(active), "not everyone who is there is paired")
    met: set[frozenset[int]] = set()
    byes: Counter[int] = Counter()
    for published in view.rounds:
        for pairing in published.pairings:
            met.add(frozenset(pairing.entrants))
            byes[pairing.entrants[0]] += pairing.is_bye
    fewest = min(byes[entrant] for entrant in active)
    resting = [pairing.entrants[0] for pairing in planned.pairings if pairing.is_bye]
    _require(len(resting) == len(active) % 2, f"{len(resting)} rest of {len(active)}")
    _require(all(byes[entrant] == fewest for entrant in resting), "a bye too early")
    rematches = sum(frozenset(p.entrants) in met for p in planned.pairings if not p.is_bye)
    may_rest = [entrant for entrant in active if byes[entrant] == fewest]
    least = _least_rematches(active, met, may_rest)
    _require(rematches == least, f"{rematches} meet again where {least} would do")
    return rematches


def _least_rematches(
    active: Sequence[int], met: set[frozenset[int]], may_rest: Sequence[int]
) -> int:
    """As few as any pairing has: a largest matching in which only who has not met counts."""
    import rustworkx

    index = {entrant: i for i, entrant in enumerate(active)}
    graph = rustworkx.PyGraph()
    graph.add_nodes_from([*active, None] if len(active) % 2 else list(active))
    edges = [
        (i, j, int(frozenset((active[i], active[j])) not in met))
        for i in range(len(active))
        for j in range(i + 1, len(active))
    ]
    if len(active) % 2:
        edges += [(index[entrant], len(active), 0) for entrant in may_rest]
    graph.add_edges_from(edges)
    matching = rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int)
    assert 2 * len(matching) == graph.num_nodes()
    fresh = sum(graph.get_edge_data(i, j) for i, j in matching)
    return len(active) // 2 - int(fresh)
