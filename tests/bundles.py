"""Whole tournaments played in the engine alone, as bundles: what tests of bundles start from."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from engine.bundle import (
    FORMAT,
    Bundle,
    EntrantPart,
    PairingPart,
    RatedMatch,
    RatedMember,
    RatedTeamPart,
    RoundPart,
    StageEntrant,
    StagePart,
    TournamentPart,
    result_part,
    seal_bundle,
    standing_part,
)
from engine.errors import FormatError
from engine.formats import Format, Pairing, Round, StageView, get_format
from engine.formats.base import SeededEntrant
from engine.formats.stages import (
    StagePlan,
    final_places,
    match_key,
    next_stage_entrants,
    stage_lot,
)
from engine.games import get_game
from engine.ratings import Rating, rate
from engine.record import (
    BoardsContest,
    BotRef,
    DealSource,
    EntrantRef,
    MatchRecord,
    canonical_json,
    is_rated_contest,
    with_keys,
)
from engine.sdk.timecontrol import time_control
from engine.shuffle import commitment, tournament_prk
from engine.standings import draw_lot
from tests.match_fakes import play, spec_of

SECRET = bytes(range(32))


def played_bundle(
    plans: Sequence[StagePlan],
    entrants: int,
    *,
    game: str = "podkidnoe",
    contest: BoardsContest | None = None,
    leaves: Mapping[int, int] | None = None,
    late: Mapping[int, int] | None = None,
    seeding: Literal["hand", "lot"] = "hand",
    batches: int = 6,
) -> Bundle:
    """A tournament of bots that choose at random by their seeds.

    `leaves`: by entrant's index the first round of the first stage that it misses. `late`: by index the
    first round of who comes late, the last ones. A ladder ends after so many `batches`; each is picked as
    soon as one may be, while others are open.
    """
    return _Maker(
        plans,
        entrants,
        game,
        contest or BoardsContest(2, 2),
        leaves or {},
        late or {},
        seeding,
        batches,
    ).bundle()


class _Maker:
    def __init__(
        self,
        plans: Sequence[StagePlan],
        entrants: int,
        game: str,
        contest: BoardsContest,
        leaves: Mapping[int, int],
        late: Mapping[int, int],
        seeding: Literal["hand", "lot"],
        batches: int,
    ) -> None:
        self.plans, self.game, self.contest = plans, game, contest
        self.leaves, self.late, self.seeding, self.batches = leaves, late, seeding, batches
        self.refs = [
            EntrantRef(f"Bot {i}", (BotRef(f"bot{i}", "1.0", f"sha256:{i:064x}"),))
            for i in range(entrants)
        ]
        wheels = sorted(
            [ref.bots[0].bot, f"{i:064x}"] for i, ref in enumerate(self.refs) if i not in self.late
        )
        self.pub = json.dumps(
            {"close": "2026-12-01T00:00:00Z", "entrants": wheels},
            sort_keys=True,
            separators=(",", ":"),
        )
        self.prk = tournament_prk(SECRET, self.pub)
        self.records: dict[str, MatchRecord] = {}
        self.ratings: dict[str, RatedMember] = {}
        self.rated: list[RatedMatch] = []
        self.seeds = self._seeds()

    def _seeds(self) -> list[int]:
        """By entrant's index."""
        order = list(range(len(self.refs)))
        if self.seeding == "lot":
            lot = stage_lot(self.prk, "cup", 0)
            order.sort(key=lambda i: draw_lot(lot, f"seed/{self.refs[i].name}"))
        order.sort(key=lambda i: i in self.late)
        return [order.index(i) + 1 for i in range(len(self.refs))]

    def bundle(self) -> Bundle:
        seeded = tuple(
            SeededEntrant(id=i, seed=seed)
            for seed, i in sorted((seed, i) for i, seed in enumerate(self.seeds))
        )
        stages, views = [], []
        for number, plan in enumerate(self.plans):
            stage, fmt, view = self._play_stage(number, plan, seeded)
            stages.append(stage)
            views.append((fmt, view))
            if plan.qualifiers is not None:
                seeded = next_stage_entrants(view, plan)
        places = final_places(views)
        return seal_bundle(
            Bundle(
                format=FORMAT,
                tournament=TournamentPart(
                    id="cup",
                    name="Cup",
                    game=self.game,
                    kind="mono",
                    rules="arena-rules/1",
                    commitment=commitment("cup", SECRET),
                    secret=SECRET.hex(),
                    pub=self.pub,
                    rated=True,
                    seeding=self.seeding,
                ),
                entrants=tuple(
                    EntrantPart(
                        name=ref.name,
                        bots=ref.bots,
                        seed=self.seeds[i],
                        addendum=self._addendum(i),
                        place=places[i],
                    )
                    for i, ref in enumerate(self.refs)
                ),
                stages=tuple(stages),
                records=self.records,
                ratings=tuple(self.rated),
                digest="",
            )
        )

    def _play_stage(
        self, number: int, plan: StagePlan, seeded: Sequence[SeededEntrant]
    ) -> tuple[StagePart, Format, StageView]:
        fmt = get_format(plan.format)
        options = fmt.make_options(plan.options)
        view = StageView(
            entrants=tuple(seeded), options=options, lot=stage_lot(self.prk, "cup", number)
        )
        play = self._play_batches if fmt.is_continuous else self._play_rounds
        rounds, view = play(number, fmt, view)
        index = {each.id: each.id for each in seeded}
        stage = StagePart(
            format=fmt.name,
            options=msgspec.to_builtins(options),
            qualifiers=plan.qualifiers,
            ruleset=msgspec.to_builtins(get_game(self.game).make_ruleset({})),
            contest=self.contest,
            time_control=time_control("fast"),
            entrants=tuple(
                StageEntrant(
                    entrant=each.id,
                    seed=each.seed,
                    first_round=1 if number else self.late.get(each.id, 1),
                )
                for each in seeded
            ),
            rounds=tuple(rounds),
            absent=tuple(sorted(view.inactive)),
            standings=tuple(standing_part(row, index) for row in fmt.standings(view)),
        )
        return stage, fmt, view

    def _play_rounds(
        self, number: int, fmt: Format, view: StageView
    ) -> tuple[list[RoundPart], StageView]:
        rounds: list[RoundPart] = []
        everyone = view.entrants
        while True:
            view = self._as_they_are(number, view, everyone)
            planned = fmt.next_round(view)
            if planned is None:
                return rounds, view
            decided = self._play_round(number, fmt, view, planned)
            view = msgspec.structs.replace(view, rounds=(*view.rounds, decided))
            rounds.append(_round_part(number, decided, view.inactive))

    def _as_they_are(
        self, number: int, view: StageView, everyone: tuple[SeededEntrant, ...]
    ) -> StageView:
        """Who has come by the next round, and has not left."""
        coming = len(view.rounds) + 1
        here = [each for each in everyone if number or self.late.get(each.id, 1) <= coming]
        gone = {i for i, first in self.leaves.items() if number or coming >= first}
        return _without(msgspec.structs.replace(view, entrants=tuple(here)), gone)

    def _play_batches(
        self, number: int, fmt: Format, view: StageView
    ) -> tuple[list[RoundPart], StageView]:
        """Of the open matches always the one that was opened last is decided first."""
        everyone, awaited, gone = view.entrants, [], []
        while True:
            view = self._as_they_are(number, view, everyone)
            waiting = [p for each in view.rounds for p in each.pairings if p.result is None]
            planned = None
            if len(view.rounds) < self.batches:
                with suppress(FormatError):
                    planned = fmt.next_round(view)
            if planned is not None:
                awaited.append(tuple(pairing.key for pairing in waiting))
                gone.append(view.inactive)
                view = msgspec.structs.replace(view, rounds=(*view.rounds, planned))
            elif waiting:
                view = self._decide_one(number, fmt, view, waiting[-1])
            else:
                break
        rounds = [
            msgspec.structs.replace(_round_part(number, each, left), awaited=keys)
            for each, left, keys in zip(view.rounds, gone, awaited, strict=True)
        ]
        return rounds, view

    def _decide_one(self, number: int, fmt: Format, view: StageView, open_: Pairing) -> StageView:
        record = self._play_match(number, open_)
        self._rate(record)
        decided = msgspec.structs.replace(open_, result=fmt.decide(view, open_, record.outcome))
        rounds = tuple(
            msgspec.structs.replace(
                each, pairings=tuple(decided if p.key == open_.key else p for p in each.pairings)
            )
            for each in view.rounds
        )
        return msgspec.structs.replace(view, rounds=rounds)

    def _play_round(self, number: int, fmt: Format, view: StageView, planned: Round) -> Round:
        records = {
            pairing.key: self._play_match(number, pairing)
            for pairing in planned.pairings
            if pairing.result is None
        }
        for key in sorted(records):
            self._rate(records[key])
        pairings = [
            msgspec.structs.replace(
                pairing, result=fmt.decide(view, pairing, records[pairing.key].outcome)
            )
            if pairing.result is None
            else pairing
            for pairing in planned.pairings
        ]
        return Round(index=planned.index, pairings=tuple(pairings))

    def _play_match(self, number: int, pairing: Pairing) -> MatchRecord:
        key = match_key(number, pairing.key)
        spec = spec_of(
            self.game,
            self.contest,
            entrants=[self.refs[entrant] for entrant in pairing.entrants],
            deals=DealSource(self.prk, "cup", reveal=False),
            match_key=key,
        )
        played, _ = play(spec)
        self.records[key] = with_keys(played.record, self.prk, "cup")
        return self.records[key]

    def _addendum(self, index: int) -> str:
        if index not in self.late:
            return ""
        return canonical_json(
            {
                "entered": "2026-12-01T09:30:00Z",
                "entrants": [[self.refs[index].bots[0].bot, f"{index:064x}"]],
                "round": self.late[index],
            }
        ).decode()

    def _rate(self, record: MatchRecord) -> None:
        if not is_rated_contest(record.contest):
            return
        bots = [entrant.bots[0] for entrant in record.entrants]
        before = [self.ratings.get(bot.bot) for bot in bots]
        old = [Rating() if line is None else Rating(line.mu, line.sigma) for line in before]
        played = [0 if line is None else line.matches for line in before]
        new = rate([[rating] for rating in old], record.outcome.places)
        lines = [
            RatedMember(
                bot=bot.bot,
                version="1.0",
                mu_before=o.mu,
                sigma_before=o.sigma,
                matches_before=count,
                mu=n.mu,
                sigma=n.sigma,
                matches=count + 1,
            )
            for bot, o, (n,), count in zip(bots, old, new, played, strict=True)
        ]
        self.ratings.update({line.bot: line for line in lines})
        teams = [
            RatedTeamPart(place=place, members=(line,))
            for place, line in zip(record.outcome.places, lines, strict=True)
        ]
        self.rated.append(RatedMatch(key=record.match_key, teams=tuple(teams)))


def _without(view: StageView, gone: Collection[int]) -> StageView:
    return msgspec.structs.replace(
        view,
        entrants=tuple(
            msgspec.structs.replace(each, active=each.id not in gone) for each in view.entrants
        ),
    )


def _round_part(number: int, decided: Round, gone: Collection[int]) -> RoundPart:
    return RoundPart(
        index=decided.index,
        absent=tuple(sorted(gone)),
        pairings=tuple(
            PairingPart(
                key=match_key(number, pairing.key),
                slot=pairing.slot,
                entrants=pairing.entrants,
                is_bye=pairing.is_bye,
                result=result_part(pairing.result),
            )
            for pairing in decided.pairings
            if pairing.result is not None
        ),
    )
