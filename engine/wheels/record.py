"""RECORD, the list of a wheel's files with their hashes (the binary distribution format, "RECORD")."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Iterator, Mapping

from engine.wheels.reasons import BUILD_ADVICE, quote

ALGORITHMS = ("sha256", "sha384", "sha512")
"""The format: "the hash algorithm must be sha256 or better"."""


def record_reasons(own: str, text: str, files: Mapping[str, bytes]) -> Iterator[str]:
    """How the RECORD at the path `own` differs from the wheel's files."""
    listed: dict[str, tuple[str, str]] = {}
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text), strict=True), start=1):
            if len(row) != 3:
                yield f"{own}: line {number} is not path,hash,size; {BUILD_ADVICE}"
                return
            if row[0] in listed:
                yield f"{own}: line {number} lists {quote(row[0])} again; {BUILD_ADVICE}"
                return
            listed[row[0]] = (row[1], row[2])
    except csv.Error:
        yield f"{own} cannot be read; {BUILD_ADVICE}"
        return
    if listed.get(own, ("", "")) != ("", ""):
        yield f"{own} gives a hash or a size of itself, which none can: leave both empty; {BUILD_ADVICE}"
    unsigned = {own, f"{own}.jws", f"{own}.p7s"}
    for name in sorted(files.keys() - listed.keys() - unsigned):
        yield f"{name} is not listed in RECORD: it was added afterwards; {BUILD_ADVICE}"
    for name in sorted(listed.keys() - files.keys()):
        yield f"{quote(name)} is listed in RECORD and missing; {BUILD_ADVICE}"
    for name in sorted((listed.keys() & files.keys()) - unsigned):
        yield from _file_reasons(name, *listed[name], files[name])


def _file_reasons(name: str, signed: str, size: str, content: bytes) -> Iterator[str]:
    algorithm = signed.partition("=")[0]
    if algorithm not in ALGORITHMS:
        yield f"{name}: RECORD must give its hash by sha256 or better; {BUILD_ADVICE}"
    elif signed != record_hash(content, algorithm):
        yield f"{name} differs from what RECORD says: it was changed; {BUILD_ADVICE}"
    elif size != str(len(content)):
        yield f"{name} has {len(content)} bytes, and not as many as RECORD says; {BUILD_ADVICE}"


def record_hash(content: bytes, algorithm: str = "sha256") -> str:
    """A file's hash as RECORD writes it: unpadded URL-safe base 64 after the algorithm's name."""
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest())
    return f"{algorithm}={digest.rstrip(b'=').decode()}"
