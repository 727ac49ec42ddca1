"""Whole tournaments played in the engine alone, as bundles: what tests of bundles start from."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

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
    with_keys,
)
from engine.sdk.timecontrol import time_control
from engine.shuffle import commitment, tournament_prk
from tests.match_fakes import play, spec_of

SECRET = bytes(range(32))


def played_bundle(
    plans: Sequence[StagePlan],
    entrants: int,
    *,
    game: str = "podkidnoe",
    contest: BoardsContest | None = None,
    leaves: Mapping[int, int] | None = None,
) -> Bundle:
    """A tournament of bots that choose at random by their seeds.

    `leaves`: by entrant's index the first round of the first stage that it misses.
    """
    return _Maker(plans, entrants, game, contest or BoardsContest(2, 2), leaves or {}).bundle()


class _Maker:
    def __init__(
        self,
        plans: Sequence[StagePlan],
        entrants: int,
        game: str,
        contest: BoardsContest,
        leaves: Mapping[int, int],
    ) -> None:
        self.plans, self.game, self.contest, self.leaves = plans, game, contest, leaves
        self.refs = [
            EntrantRef(f"Bot {i}", (BotRef(f"bot{i}", "1.0", f"sha256:{i:064x}"),))
            for i in range(entrants)
        ]
        wheels = sorted([ref.bots[0].bot, f"{i:064x}"] for i, ref in enumerate(self.refs))
        self.pub = json.dumps(
            {"close": "2026-12-01T00:00:00Z", "entrants": wheels},
            sort_keys=True,
            separators=(",", ":"),
        )
        self.prk = tournament_prk(SECRET, self.pub)
        self.records: dict[str, MatchRecord] = {}
        self.ratings: dict[str, RatedMember] = {}
        self.rated: list[RatedMatch] = []

    def bundle(self) -> Bundle:
        seeded = tuple(SeededEntrant(id=i, seed=i + 1) for i in range(len(self.refs)))
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
                ),
                entrants=tuple(
                    EntrantPart(name=ref.name, bots=ref.bots, seed=i + 1, place=places[i])
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
        rounds: list[RoundPart] = []
        while True:
            gone = {i for i, r in self.leaves.items() if number or len(rounds) + 1 >= r}
            view = _without(view, gone)
            planned = fmt.next_round(view)
            if planned is None:
                break
            decided = self._play_round(number, fmt, view, planned)
            view = msgspec.structs.replace(view, rounds=(*view.rounds, decided))
            rounds.append(_round_part(number, decided, gone & view.by_id.keys()))
        index = {each.id: each.id for each in seeded}
        stage = StagePart(
            format=fmt.name,
            options=msgspec.to_builtins(options),
            qualifiers=plan.qualifiers,
            ruleset=msgspec.to_builtins(get_game(self.game).make_ruleset({})),
            contest=self.contest,
            time_control=time_control("fast"),
            entrants=tuple(StageEntrant(entrant=each.id, seed=each.seed) for each in seeded),
            rounds=tuple(rounds),
            absent=tuple(sorted(view.inactive)),
            standings=tuple(standing_part(row, index) for row in fmt.standings(view)),
        )
        return stage, fmt, view

    def _play_round(self, number: int, fmt: Format, view: StageView, planned: Round) -> Round:
        pairings = []
        for pairing in planned.pairings:
            if pairing.result is None:
                record = self._play_match(number, pairing)
                result = fmt.decide(view, pairing, record.outcome)
                pairings.append(msgspec.structs.replace(pairing, result=result))
                self._rate(record)
            else:
                pairings.append(pairing)
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

    def _rate(self, record: MatchRecord) -> None:
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
