"""A finished tournament as one document that anyone can verify.

Its records are most of it: they are read one after the other while it is written, so that a tournament
of any size takes no more memory than its pairings do.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from django.conf import settings

from engine import bundle as engine_bundle
from engine.bundle import (
    Bundle,
    EarlierResult,
    EntrantPart,
    PairingPart,
    RatedMatch,
    RatedMember,
    RatedTeamPart,
    RoundPart,
    StageEntrant,
    StagePart,
    StandingPart,
    TournamentPart,
    result_part,
    standing_part,
)
from engine.record import MatchRecord, decode_record, show_keys
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    Entrant,
    Match,
    MatchState,
    Pairing,
    Stage,
    StageState,
    Tournament,
    TournamentState,
    spell_rating_key,
)
from tournament.competitions.selectors.engine_values import (
    engine_pairing_result,
    entrant_ref,
    stage_contest,
    stage_format,
    stage_time_control,
    stage_view,
    tournament_key,
    whole_rounds,
)
from tournament.competitions.selectors.entries import entrants_with_bots
from tournament.competitions.selectors.pages import has_sealed_results, revealed_secret
from tournament.competitions.selectors.trials import CONTINUOUS
from tournament.leaderboards.selectors import RatedChange, rated_changes
from tournament.store.services import read_packed

PACKING_LEVEL = 6
_CHUNK_BYTES = 1 << 16


class StoredRecords(Mapping[str, MatchRecord]):
    """The records of a tournament by match key, each read when it is asked for, its deal keys shown.

    Raises BlobError or RecordError when one is asked for that is not what was recorded.
    """

    def __init__(self, tournament: Tournament, blobs: Mapping[str, str]) -> None:
        self._prk = tournament_key(tournament)
        self._slug = tournament.slug
        self._blobs = blobs
        """By match key the SHA-256 of the stored record."""

    def __getitem__(self, key: str) -> MatchRecord:
        """The record of this match."""
        record = decode_record(read_packed(self._blobs[key]))
        show_keys(record, self._prk, self._slug)
        return record

    def __iter__(self) -> Iterator[str]:
        """The keys in the order of the rounds and slots."""
        return iter(self._blobs)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._blobs)


def why_no_bundle(tournament: Tournament) -> str:
    """Why there is no bundle of a tournament, in words; empty if there is one."""
    if tournament.state == TournamentState.CANCELLED:
        return (
            f"{tournament.name} was cancelled: its secret stays one, and there is nothing to verify"
        )
    if tournament.state != TournamentState.FINISHED:
        return (
            f"{tournament.name} is not over ({tournament.get_state_display()}): it can be verified once it "
            "has ended and its secret is published"
        )
    if has_sealed_results(tournament):
        return (
            f"results of {tournament.name} are sealed: it can be verified once they are published"
        )
    if has_expired_records(tournament):
        return (
            f"{tournament.name} was played for longer than records of a ladder are kept "
            f"({settings.ARENA_RECORD_DAYS} days): without those that have expired it cannot be verified as a whole; "
            "each record that is left can be by itself"
        )
    return ""


def has_expired_records(tournament: Tournament) -> bool:
    """Whether records of it were let go for their age, as only those of a ladder are."""
    if not tournament.stages.filter(format__in=CONTINUOUS).exists():
        return False
    played = tournament.matches.filter(state=MatchState.FINISHED, record_sha256="")
    return played.exclude(digest="").exists()


def tournament_bundle(tournament: Tournament) -> Bundle:
    """The bundle of a finished tournament; its records are `StoredRecords`.

    The number of queries does not depend on the number of matches. Raises TournamentStateError if there is
    none, with the reason.
    """
    reason = why_no_bundle(tournament)
    secret = revealed_secret(tournament)
    if reason or secret is None:
        raise TournamentStateError(reason)
    return _Maker(tournament, secret).bundle()


def packed_bundle(bundle: Bundle) -> Iterator[bytes]:
    """The document packed by gzip, piece by piece; equal bundles give equal bytes."""
    packer = zlib.compressobj(PACKING_LEVEL, wbits=31)  # 31: with gzip's head, which holds no time
    for chunk in plain_bundle(bundle):
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()


def plain_bundle(bundle: Bundle) -> Iterator[bytes]:
    """The document piece by piece."""
    waiting = bytearray()
    for chunk in engine_bundle.bundle_chunks(bundle, bundle.records.items()):
        waiting += chunk
        if len(waiting) >= _CHUNK_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def told_digest(tournament: Tournament) -> str | None:
    """The digest of its bundle as it was noted; None if there is none, or none is noted yet."""
    noted = tournament.bundle_digest
    is_told = tournament.state == TournamentState.FINISHED and noted.startswith("sha256:")
    return noted if is_told and not why_no_bundle(tournament) else None


def bundle_file(tournament: Tournament) -> tuple[str, str, Iterator[bytes]]:
    """The packed document as a file: its name, the bundle's digest, its bytes made while they are read.

    Raises TournamentStateError as `tournament_bundle`.
    """
    bundle = tournament_bundle(tournament)
    return bundle_name(tournament), bundle.digest, packed_bundle(bundle)


def bundle_name(tournament: Tournament) -> str:
    """The name of the packed document as a file."""
    return f"{tournament.slug}.bundle.json.gz"


class _Maker:
    """Reads a tournament's rows once and puts them together."""

    def __init__(self, tournament: Tournament, secret: str) -> None:
        self.tournament, self.secret = tournament, secret
        self.entrants = _entrants_in(tournament)
        self.index = {entrant.pk: index for index, entrant in enumerate(self.entrants)}
        self.matches = {
            match.pairing_id: match
            for match in Match.objects.filter(tournament=tournament)
            .exclude(record_sha256="")
            .only("pairing", "record_sha256", "digest", "is_sandboxed")
        }
        self.blobs: dict[str, str] = {}
        self.digests: dict[str, str] = {}
        self.rated: dict[str, str] = {}
        """By key in the log of the ratings the key in the bundle."""

    def bundle(self) -> Bundle:
        row = self.tournament
        stages = tuple(
            self._stage(stage)
            for stage in row.stages.select_related("tournament").order_by("index")
        )
        return engine_bundle.seal_bundle(
            Bundle(
                format=engine_bundle.FORMAT,
                tournament=TournamentPart(
                    id=row.slug,
                    name=row.name,
                    game=row.game,
                    kind=row.kind,
                    rules=row.rules_version,
                    commitment=row.commitment,
                    secret=self.secret,
                    pub=row.pub,
                    rated=row.rated,
                    seeding=row.seeding,
                ),
                entrants=tuple(
                    EntrantPart(
                        name=entrant.name,
                        bots=entrant_ref(entrant).bots,
                        seed=entrant.seed,
                        addendum=entrant.addendum,
                        place=entrant.place,
                    )
                    for entrant in self.entrants
                ),
                stages=stages,
                records=StoredRecords(row, self.blobs),
                ratings=tuple(self._ratings()),
                digest="",
            ),
            self.digests,
        )

    def _stage(self, stage: Stage) -> StagePart:
        was_played = stage.state == StageState.FINISHED
        return StagePart(
            format=stage.format,
            options=stage.options,
            qualifiers=stage.qualifiers,
            ruleset=stage.ruleset,
            contest=stage_contest(stage),
            time_control=stage_time_control(stage),
            entrants=tuple(
                StageEntrant(
                    entrant=self.index[entry.entrant_id],
                    seed=entry.seed,
                    first_round=entry.first_round,
                    mu=entry.mu,
                    sigma=entry.sigma,
                )
                for entry in stage.entrants.order_by("seed")
            ),
            rounds=tuple(self._rounds(stage)),
            absent=self._indexes(stage.absent),
            standings=self._standings(stage) if was_played else (),
        )

    def _standings(self, stage: Stage) -> tuple[StandingPart, ...]:
        rows = stage_format(stage).standings(stage_view(stage))
        return tuple(standing_part(row, self.index) for row in rows)

    def _rounds(self, stage: Stage) -> Iterator[RoundPart]:
        by_round: dict[int, list[PairingPart]] = defaultdict(list)
        rows = (
            Pairing.objects.filter(round__stage=stage)
            .prefetch_related("entrants")
            .order_by("round__index", "slot")
        )
        for pairing in rows:
            by_round[pairing.round_id].append(self._pairing(pairing))
        for published in whole_rounds(stage):
            yield RoundPart(
                index=published.index,
                absent=self._indexes(published.absent),
                pairings=tuple(by_round[published.pk]),
                awaited=tuple(published.awaited),
            )

    def _pairing(self, pairing: Pairing) -> PairingPart:
        match = self.matches.get(pairing.pk)
        part = PairingPart(
            key=pairing.key,
            slot=pairing.slot,
            entrants=tuple(self.index[each.entrant_id] for each in pairing.entrants.all()),
            is_bye=pairing.is_bye,
            result=result_part(engine_pairing_result(pairing)),
            edition=pairing.edition,
            is_sandboxed=match is None or match.is_sandboxed,
            is_ruled=pairing.is_ruled,
            earlier=msgspec.convert(pairing.earlier, tuple[EarlierResult, ...]),
        )
        if match is not None:
            self.blobs[pairing.key] = match.record_sha256
            self.digests[pairing.key] = match.digest
            in_log = spell_rating_key(self.tournament.slug, pairing.key, pairing.edition)
            self.rated[in_log] = engine_bundle.rating_key(part)
        return part

    def _indexes(self, ids: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(self.index[pk] for pk in ids))

    def _ratings(self) -> Iterator[RatedMatch]:
        changes = rated_changes(
            game=self.tournament.game, kind=self.tournament.kind, match_keys=list(self.rated)
        )
        for change in changes:
            yield RatedMatch(key=self.rated[change.match_key], teams=_rated_teams(change))


def _entrants_in(tournament: Tournament) -> Sequence[Entrant]:
    """Who played, by first seed; then who was sealed but did not start, by name."""
    sealed = {tuple(line) for line in json.loads(tournament.pub)["entrants"]}
    rows = [
        entrant
        for entrant in entrants_with_bots(tournament)
        if entrant.seed is not None or _wheels(entrant) & sealed
    ]
    return sorted(rows, key=lambda row: (row.seed is None, row.seed, row.name))


def _wheels(entrant: Entrant) -> set[tuple[str, str]]:
    return {
        (part.bot.name, part.version.wheel_sha256)
        for part in entrant.bots.all()
        if part.version is not None
    }


def _rated_teams(change: RatedChange) -> tuple[RatedTeamPart, ...]:
    return tuple(
        RatedTeamPart(
            place=team.place,
            members=tuple(
                RatedMember(
                    bot=member.bot,
                    version=member.version,
                    mu_before=member.before.rating.mu,
                    sigma_before=member.before.rating.sigma,
                    matches_before=member.before.matches,
                    mu=member.after.mu,
                    sigma=member.after.sigma,
                    matches=member.before.matches + 1,
                )
                for member in team.members
            ),
        )
        for team in change.teams
    )
