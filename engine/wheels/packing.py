"""Wheels made of source: equal source gives equal bytes, and nothing of it is run."""

from __future__ import annotations

import io
import re
import stat
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from packaging.utils import canonicalize_name

from engine.errors import WheelError
from engine.sdk import ENTRY_POINT_GROUP
from engine.wheels.archive import MAX_FILES, MAX_WHEEL_BYTES
from engine.wheels.metadata import OWN_DISTRIBUTION, normal_version, read_wheel
from engine.wheels.paths import COMPILED
from engine.wheels.reasons import BUILD_ADVICE, refuse_any
from engine.wheels.record import record_hash

_EPOCH = (1980, 1, 1, 0, 0, 0)


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
    version = normal_version(project.version)
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
        f"{name},{record_hash(entries[name])},{len(entries[name])}" for name in sorted(entries)
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


LEFT_OUT = {
    "tests", "test", "docs", "doc", "examples", "scripts", "benchmarks", "build", "dist", "setup",
    "conftest", "noxfile", "src", "venv",
}  # fmt: skip


def _read_project(folder: Path) -> _Project:
    """What pyproject.toml says. Raises WheelError saying what to write."""
    path = folder / "pyproject.toml"
    if not path.exists():
        raise WheelError(["there is no pyproject.toml in the folder"])
    if not path.is_file():
        raise WheelError(["pyproject.toml is no file: replace it by one"])
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise WheelError([f"pyproject.toml cannot be read: {error.strerror}"]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WheelError([f"pyproject.toml cannot be read: {error}"]) from None
    table = document.get("project")
    if not isinstance(table, dict):
        raise WheelError(["pyproject.toml has no [project] table with name and version"])
    refuse_any(_project_reasons(table))
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
            yield f"[project] {key} is dynamic: write it into pyproject.toml, or {BUILD_ADVICE}"
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
    try:
        return _read_files_of(folder, project)
    except OSError as error:
        raise WheelError([f"{error.filename} cannot be read: {error.strerror}"]) from None


def _read_files_of(folder: Path, project: _Project) -> dict[str, bytes]:
    root = folder / "src" if (folder / "src").is_dir() else folder
    paths = sorted(path for top in _top_levels(root) for path in _files_below(top))
    ((_, value),) = project.bots.items()
    module = value.partition(":")[0].partition(".")[0]
    if not any(path.relative_to(root).parts[0] in {module, f"{module}.py"} for path in paths):
        missing = f"there is no {module}.py and no folder {module} with Python files"
        raise WheelError([f"the entry point names {module!r}, but {missing}; or {BUILD_ADVICE}"])
    reasons = [
        f"{path.relative_to(folder)} is a symbolic link or special file: replace it by the file itself"
        for path in paths
        if path.is_symlink() or not path.is_file()
    ]
    refuse_any(reasons)
    if len(paths) > MAX_FILES or sum(path.stat().st_size for path in paths) > MAX_WHEEL_BYTES:
        raise WheelError(
            [f"its packages have more than {MAX_FILES} files or {MAX_WHEEL_BYTES} bytes"]
        )
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def _top_levels(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        name = path.name.removesuffix(".py")
        if name in LEFT_OUT or not name.isidentifier():
            continue
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py"))):
            yield path


def _files_below(path: Path) -> Iterator[Path]:
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for child in sorted(path.iterdir()):
        is_left_over = child.name.startswith(".") or child.name == "__pycache__"
        if not is_left_over and child.suffix not in COMPILED:
            yield from _files_below(child)
