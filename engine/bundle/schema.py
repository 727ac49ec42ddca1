"""The JSON Schema of a bundle, as ``engine/bundle_schema.json`` publishes it."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.bundle.values import Bundle

RECORD = {"$ref": "record_schema.json"}


def bundle_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a bundle, made from its values; that of a record lies beside it."""
    (root,), parts = msgspec.json.schema_components([Bundle], ref_template="#/$defs/{name}")
    parts["MatchRecord"] = RECORD
    wanted = _referenced(root, parts)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A tournament of Domino Arena, arena-bundle/1",
        **root,
        "$defs": {name: parts[name] for name in sorted(wanted)},
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return plain


def _referenced(value: Any, parts: dict[str, Any]) -> set[str]:
    """The names of the parts that a schema refers to, directly or by another."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            name = str(each.get("$ref", "")).removeprefix("#/$defs/")
            if name in parts and name not in found:
                found.add(name)
                waiting.append(parts[name])
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return found
