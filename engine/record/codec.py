"""A record as bytes, read strictly, and its digest."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from engine.errors import RecordError
from engine.record.values import MatchRecord, sha256_hex

_MOST_DIGITS = 400
_T = TypeVar("_T")


def encode_record(record: MatchRecord) -> bytes:
    """The record as a UTF-8 JSON document, its fields in their documented order."""
    return msgspec.json.encode(record) + b"\n"


def decode_record(data: bytes) -> MatchRecord:
    """Read a document strictly: no unknown, missing or doubled field, no float or boolean for an integer.

    Raises RecordError with the place. What is read has the right form; whether it is true says
    `replay`.
    """
    record, document = decode_strictly(data, MatchRecord)
    check_contest_is_whole(document["contest"], "contest")
    return record


def decode_strictly(data: bytes, kind: type[_T]) -> tuple[_T, Any]:
    """Read a JSON document of this kind as strictly as a record: its value, and as plain values.

    Raises RecordError with the place, ``record`` for the document as a whole.
    """
    try:
        return _decode(data, kind), _parse_once(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RecordError("record", f"this is no JSON document: {error}") from error


def check_contest_is_whole(contest: dict[str, Any], place: str) -> None:
    """Raise RecordError, at `place`, for a contest that leaves out what has a default.

    That is for those who make a contest; a document writes it.
    """
    if contest.get("kind") == "boards" and "extra_boards" not in contest:
        raise RecordError(place, "Object missing required field `extra_boards`")


def canonical_json(value: Any) -> bytes:
    """Keys sorted, no spaces, UTF-8, nothing escaped that need not be. Raises ValueError for NaN and ±inf."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def compute_digest(record: MatchRecord) -> str:
    """``sha256:`` and the hex SHA-256 of the canonical JSON without digest, timing and deal keys."""
    document = msgspec.to_builtins(record)
    del document["digest"], document["timing"]
    for game in document["games"]:
        for deal in game["deals"]:
            deal["key"] = None
    return "sha256:" + sha256_hex(canonical_json(document))


def record_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a record, as published with the project."""
    schema: dict[str, Any] = json.loads(
        files("engine").joinpath("record_schema.json").read_text("utf-8")
    )
    return schema


def _decode(data: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        _parse_once(data)
        _locate(msgspec.json.decode(data), kind, "")
        raise RecordError("record", str(error)) from error
    except msgspec.DecodeError:
        _parse_once(data)  # knows the place of a number that is too large
        raise


class _Oddity(dict[str, Any]):
    """Stands in a parsed document for what must not be there."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__()
        self.message = message
        self.field = field
        """Which field of the object, if it is one of them."""


def _parse_once(data: bytes) -> Any:
    """The document as plain values.

    Raises RecordError at a field that stands twice in one object, and at a number beyond all reading.
    """
    oddities: list[_Oddity] = []

    def note(message: str, field: str = "") -> _Oddity:
        oddities.append(_Oddity(message, field))
        return oddities[-1]

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) == len(pairs):
            return fields
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        return note("the field stands twice in one object", doubled)

    def whole(text: str) -> int | _Oddity:
        return int(text) if len(text) <= _MOST_DIGITS else note(_too_large(text))

    def fraction(text: str) -> float | _Oddity:
        return value if math.isfinite(value := float(text)) else note(_too_large(text))

    document = json.loads(data, object_pairs_hook=once, parse_int=whole, parse_float=fraction)
    if oddities:
        _find_oddity(document, "")
    return document


def _too_large(text: str) -> str:
    return f"the number {text[:20]}{'…' if len(text) > 20 else ''} is too large"


def _find_oddity(value: Any, place: str) -> None:
    """Raise RecordError at the first oddity below `value`; return if there is none."""
    if isinstance(value, _Oddity):
        path = _join(place, f".{value.field}") if value.field else place
        raise RecordError(path or "record", value.message)
    if isinstance(value, dict):
        for name, part in value.items():
            _find_oddity(part, _join(place, f".{name}"))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            _find_oddity(part, f"{place}[{i}]")


def _locate(value: Any, kind: Any, place: str) -> None:
    """Raise RecordError at the innermost value that is not of its kind; return if all are."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        for part, part_kind, part_place in _parts(value, kind, place):
            _locate(part, part_kind, part_place)
        message, _, path = str(error).partition(" - at `$")
        raise RecordError(_join(place, path.rstrip("`")) or "record", message) from None


def _parts(value: Any, kind: Any, place: str) -> list[tuple[Any, Any, str]]:
    kind = _sole_member(kind)
    arguments = get_args(kind)
    if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        kinds = get_type_hints(kind)
        return [
            (part, kinds[name], _join(place, f".{name}"))
            for name, part in value.items()
            if name in kinds
        ]
    if isinstance(value, dict) and get_origin(kind) is dict:
        return [(part, arguments[1], _join(place, f".{name}")) for name, part in value.items()]
    if isinstance(value, list) and get_origin(kind) in (list, tuple):
        return [(part, arguments[0], f"{place}[{i}]") for i, part in enumerate(value)]
    return []


def _sole_member(kind: Any) -> Any:
    """The one member of an optional type that can have parts; the kind itself if there is no such."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    members = [m for m in get_args(kind) if m not in (NoneType, msgspec.UnsetType)]
    return members[0] if len(members) == 1 else kind


def _join(place: str, path: str) -> str:
    return (place + path).removeprefix(".")
