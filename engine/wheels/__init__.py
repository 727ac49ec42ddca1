"""Wheels of bots: checked as zip files, unpacked to a folder named by their hash, packed from source.

Installing a wheel would run it (``.pth`` files, ``sitecustomize``) and let it shadow other modules; so a
bot is never installed, and nothing here imports one or runs its build. Every refusal says what the author
has to change. This package must not know sandboxes, matches or accounts.

`directory` and `archive` read the zip file, and `paths` judges its names; `metadata` says what the wheel says of itself,
`record` and `entry_point` two files of that; `unpacking` makes folders of wheels, `packing` wheels of folders.
"""

from __future__ import annotations

from engine.wheels.directory import MAX_WHEEL_BYTES, too_large
from engine.wheels.metadata import (
    PROVIDED,
    PROVIDED_PACKAGES,
    RESERVED_NAMES,
    WheelInfo,
    provided_versions,
    read_wheel,
    requirement_reasons,
)
from engine.wheels.packing import LEFT_OUT, pack_module, pack_project
from engine.wheels.unpacking import mark_of, source_of, unpack_wheel, wheel_source

__all__ = [
    "LEFT_OUT", "MAX_WHEEL_BYTES", "PROVIDED", "PROVIDED_PACKAGES", "RESERVED_NAMES", "WheelInfo", "mark_of", "pack_module", "pack_project", "provided_versions",
    "read_wheel", "requirement_reasons", "source_of", "too_large", "unpack_wheel", "wheel_source",
]  # fmt: skip
