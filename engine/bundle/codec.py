"""A bundle as bytes, read strictly, and its digest.

Records are most of a bundle, so they are never all in memory as values: a bundle that is read decodes
each when it is asked for, and one that is written takes them one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from engine.bundle.values import FORMAT, Bundle
from engine.errors import BundleError, RecordError, UsageError
from engine.record import (
    MatchRecord,
    canonical_json,
    check_contest_is_whole,
    decode_record,
    decode_strictly,
    encode_record,
    sha256_hex,
)


def encode_bundle(bundle: Bundle) -> bytes:
    """The bundle as a UTF-8 JSON document."""
    return b"".join(bundle_chunks(bundle, bundle.records.items()))


def bundle_chunks(bundle: Bundle, records: Iterable[tuple[str, MatchRecord]]) -> Iterator[bytes]:
    """The document piece by piece, with these records by match key instead of the bundle's own."""
    head = msgspec.structs.replace(bundle, records={})
    fields = {name: getattr(head, name) for name in head.__struct_fields__}
    lead = b"{"
    for name, value in fields.items():
        yield lead + msgspec.json.encode(name) + b":"
        if name == "records":
            yield from _record_chunks(records)
        else:
            yield msgspec.json.encode(value)
        lead = b","
    yield b"}\n"


def _record_chunks(records: Iterable[tuple[str, MatchRecord]]) -> Iterator[bytes]:
    lead = b"{"
    for key, record in records:
        yield lead + msgspec.json.encode(key) + b":" + encode_record(record).rstrip()
        lead = b","
    yield b"{}" if lead == b"{" else b"}"


def decode_bundle(data: bytes) -> Bundle:
    """Read a document strictly; its records are read when they are asked for.

    Raises UsageError for what is no bundle at all, and BundleError, with the place, for one of another
    form. Whether it is true says `verify_bundle`.
    """
    raw = _records_of(data)
    head, document = _decode_head(data.replace(raw, b"{}", 1))
    if document["records"]:
        raise BundleError("records", "the field stands twice in one object")
    return msgspec.structs.replace(head, records=Records(_split(raw)))


class Records(Mapping[str, MatchRecord]):
    """The records of a bundle that was read. Raises BundleError when it is asked for one of another form."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        self._raw = raw

    def __getitem__(self, key: str) -> MatchRecord:
        """The record of this match."""
        try:
            return decode_record(bytes(self._raw[key]))
        except RecordError as error:
            path = "" if error.place == "record" else error.place
            raise BundleError(record_place(key, path), error.message) from error

    def __iter__(self) -> Iterator[str]:
        """The keys as they stand in the document."""
        return iter(self._raw)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._raw)


def record_place(key: str, path: str = "") -> str:
    """A place in a record: ``records["SE/R1/M3"].games[0].score``."""
    return f'records["{key}"]' + (f".{path}" if path else "")


def bundle_digest(bundle: Bundle, digests: Mapping[str, str] | None = None) -> str:
    """``sha256:`` and the hex SHA-256 of the canonical JSON without digest and ratings.

    Of each record only its own digest goes in; `digests` are these by match key, if they are known
    already. So a tournament of deterministic bots that is played again from the same secret has the same
    digest, whenever and wherever that is.
    """
    if digests is None:
        digests = {key: record.digest for key, record in bundle.records.items()}
    document = msgspec.to_builtins(msgspec.structs.replace(bundle, records={}))
    del document["digest"], document["ratings"]
    document["records"] = dict(digests)
    return "sha256:" + sha256_hex(canonical_json(document))


def seal_bundle(bundle: Bundle, digests: Mapping[str, str] | None = None) -> Bundle:
    """`bundle` with its digest; `digests` as in `bundle_digest`."""
    return msgspec.structs.replace(bundle, digest=bundle_digest(bundle, digests))


class _Outline(msgspec.Struct):
    format: str
    records: msgspec.Raw = msgspec.Raw(b"{}")


def _records_of(data: bytes) -> bytes:
    """The bytes of the object of records."""
    try:
        outline = msgspec.json.decode(data, type=_Outline)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"this is no bundle of a tournament: {error}") from error
    if outline.format != FORMAT:
        hint = (
            ": judge a record by arena verify" if outline.format.startswith("arena-match/") else ""
        )
        raise UsageError(f"this is no {FORMAT}, but {outline.format[:40]!r}{hint}")
    return bytes(outline.records)


def _decode_head(data: bytes) -> tuple[Bundle, Any]:
    try:
        head, document = decode_strictly(data, Bundle)
    except RecordError as error:
        place = "bundle" if error.place == "record" else error.place
        raise BundleError(place, error.message) from error
    for i, stage in enumerate(document["stages"]):
        try:
            check_contest_is_whole(stage["contest"], f"stages[{i}].contest")
        except RecordError as error:
            raise BundleError(error.place, error.message) from error
    return head, document


def _split(raw: bytes) -> Mapping[str, msgspec.Raw]:
    """The records by key, each still as it stands in the document."""
    try:
        found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        sizes = (len(msgspec.json.encode(key)) + len(bytes(value)) for key, value in found.items())
        if sum(itertools.chain(sizes, (2 * len(found) + 1,))) != len(raw):
            # There are spaces, or a key that stands twice: only a slow reader can tell.
            decode_strictly(raw, dict[str, dict[str, Any]])
    except msgspec.DecodeError as error:
        raise BundleError("records", str(error)) from error
    except RecordError as error:
        raise BundleError("records", f"{error.place}: {error.message}") from error
    return found
