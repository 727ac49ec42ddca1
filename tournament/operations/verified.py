"""Tournaments downloaded from a running site and verified by the code of ``arena verify-tournament``."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.bundle import Bundle, decode_bundle
from engine.cli.downloads import fetch
from engine.cli.verify_tournament import MOST_BYTES, Verdict, bundle_address, judge
from engine.formats import get_format
from engine.record import encode_record
from tournament.operations.results import table


class VerifiedTournament(msgspec.Struct, frozen=True, kw_only=True):
    """A finished tournament and the verdict on its bundle."""

    slug: str
    name: str
    game: str
    formats: Sequence[str]
    """Of its stages."""
    winners: Sequence[str]
    entrants: int
    rounds: int
    matches: int
    deals: int
    """0 if it is not true; so for what follows."""
    rated: int
    is_true: bool = msgspec.field(name="true")
    place: str | None
    """Where it is untrue, and why."""
    message: str | None
    digest: str
    bundle: str | None
    """The file that its bundle was written to."""
    records: Sequence[str]
    """The files that its records were written to."""


class VerifiedResults(msgspec.Struct, frozen=True, kw_only=True):
    """All that was played and verified."""

    seed: str | None
    tournaments: Sequence[VerifiedTournament]
    is_true: bool = msgspec.field(name="true")
    """Whether all of it is."""
    seconds: float


def verify_site_tournament(
    url: str, slug: str, *, bundles: Path | None, records: Path | None
) -> VerifiedTournament:
    """Download the bundle of the tournament by its page's address on the site `url`, and verify it.

    The bundle and its records are written into the folders, if given. Raises UsageError if the site has no bundle.
    """
    packed = fetch(bundle_address(f"{url}/tournaments/{slug}/"), MOST_BYTES)
    data = gzip.decompress(packed)
    verdict = judge(slug, data)
    bundle = decode_bundle(data)
    file = None
    if bundles is not None:
        file = bundles / f"{slug}.bundle.json.gz"
        file.write_bytes(packed)
    written = [] if records is None else write_records(bundle, records)
    return verified_tournament(bundle, verdict, file, written)


def write_records(bundle: Bundle, folder: Path) -> Sequence[Path]:
    """Write each record of a bundle into the folder; the files."""
    files = []
    for key, record in bundle.records.items():
        path = folder / f"{bundle.tournament.id}.{key.replace('/', '-')}.json"
        path.write_bytes(encode_record(record))
        files.append(path)
    return files


def verified_tournament(
    bundle: Bundle, verdict: Verdict, file: Path | None, records: Sequence[Path]
) -> VerifiedTournament:
    """A bundle and its verdict as one line."""
    checked = verdict.checked
    return VerifiedTournament(
        slug=bundle.tournament.id,
        name=bundle.tournament.name,
        game=bundle.tournament.game,
        formats=[stage.format for stage in bundle.stages],
        winners=[entrant.name for entrant in bundle.entrants if entrant.place == 1],
        entrants=len(bundle.entrants),
        rounds=sum(len(stage.rounds) for stage in bundle.stages),
        matches=len(bundle.records),
        deals=checked.deals if checked else 0,
        rated=checked.rated if checked else 0,
        is_true=verdict.is_true,
        place=verdict.place,
        message=verdict.message,
        digest=bundle.digest,
        bundle=None if file is None else str(file),
        records=[str(path) for path in records],
    )


def verified_text(results: VerifiedResults) -> str:
    """The results for people: a table, and what is untrue."""
    rows = table(
        (
            "tournament",
            "game",
            "format",
            "entrants",
            "rounds",
            "matches",
            "deals",
            "winner",
            "true",
        ),
        [
            (
                line.name,
                line.game,
                ", then ".join(get_format(name).title.lower() for name in line.formats),
                str(line.entrants),
                str(line.rounds),
                str(line.matches),
                str(line.deals),
                ", ".join(line.winners),
                "yes" if line.is_true else "NO",
            )
            for line in results.tournaments
        ],
    )
    digests = "\n".join(f"{line.slug:<14} {line.digest}" for line in results.tournaments)
    untrue = [
        f"{line.name} is UNTRUE at {line.place}: {line.message}"
        for line in results.tournaments
        if not line.is_true
    ]
    matches = sum(line.matches for line in results.tournaments)
    end = f"{matches} matches. All of it took {results.seconds:.0f} s."
    return "\n\n".join([rows, f"Digests of the bundles:\n{digests}", *untrue, end])
