"""The paths in a wheel: only those of plain Python source and data, below the wheel's own folder."""

from __future__ import annotations

import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from engine.wheels.reasons import BUILD_ADVICE

MAX_PATH_LENGTH = 200
_NATIVE = {".so", ".pyd", ".dll", ".dylib", ".a", ".exe"}
COMPILED = {".pyc", ".pyo"}
_CUSTOMIZE = {"sitecustomize", "usercustomize"}


def is_folder(member: zipfile.ZipInfo) -> bool:
    """Whether it is the entry of a folder. zipfile's own question fails for a member without a name."""
    return member.orig_filename.endswith("/")


def path_reasons(members: list[zipfile.ZipInfo]) -> Iterator[str]:
    """What is wrong with the names and kinds of a zip's members."""
    yield from _file_reasons([member for member in members if not is_folder(member)])
    for member in filter(is_folder, members):
        yield from _folder_reasons(member)


def _folder_reasons(member: zipfile.ZipInfo) -> Iterator[str]:
    """Folders are not made of their own entries, but an entry that lies is no honest wheel's."""
    yield from _name_reasons(member.orig_filename.removesuffix("/"))
    if stat.S_IFMT(member.external_attr >> 16) not in {0, stat.S_IFDIR} or member.file_size:
        yield f"{_shown(member.orig_filename)} has the name of a folder and is none: leave it out"


def _file_reasons(members: list[zipfile.ZipInfo]) -> Iterator[str]:
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
        return f"this was zipped by Finder (it contains __MACOSX or .DS_Store); {BUILD_ADVICE}"
    parts = [name.split("/") for name in names]
    if any(path[0].endswith(".dist-info") for path in parts):
        return None
    if names and len({path[0] for path in parts}) == 1 and any(len(path) > 2 for path in parts):
        return (
            f"everything lies in the folder {parts[0][0]!r}: not the folder is to be zipped, "
            f"but a wheel made of it; {BUILD_ADVICE}"
        )
    if any(name in {"pyproject.toml", "setup.py"} for name in names):
        return f"this is the source of a project, not its wheel; {BUILD_ADVICE}"
    return f"there is no .dist-info folder, so this is no wheel; {BUILD_ADVICE}"


def _one_path_reasons(member: zipfile.ZipInfo) -> Iterator[str]:
    name = member.orig_filename
    shown = _shown(name)
    parts = name.split("/")
    yield from _name_reasons(name)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in {0, stat.S_IFREG}:
        yield f"{shown} is a symbolic link or special file: replace it by the file itself"
    suffix = Path(parts[-1]).suffix.lower()
    if suffix in _NATIVE or ".so." in parts[-1].lower():
        yield f"{shown} is compiled code: bots are pure Python"
    if suffix in COMPILED or "__pycache__" in parts:
        yield f"{shown} is compiled Python: ship the source only"
    if suffix == ".pth":
        yield f"{shown} would run at every start of Python: leave it out"
    if parts[0].endswith(".data"):
        yield f"{shown}: a wheel of a bot has no .data folder (scripts, headers): leave it out"
    if Path(parts[-1]).stem.lower() in _CUSTOMIZE or parts[0].lower() in _CUSTOMIZE:
        yield f"{shown} would run at every start of Python: leave it out"


def _name_reasons(name: str) -> Iterator[str]:
    shown, parts = _shown(name), name.split("/")
    if not name.isascii() or not name.isprintable():
        yield f"{shown}: paths must be printable ASCII"
    if "\\" in name or ":" in name:
        yield f"{shown}: paths are written with / and without : or \\"
    if not name or name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        yield f"{shown}: paths must not be absolute, and must not contain .. or empty parts"
    if len(name) > MAX_PATH_LENGTH:
        yield f"{shown}…: paths have at most {MAX_PATH_LENGTH} characters"


def _shown(name: str) -> str:
    return ascii(name[:MAX_PATH_LENGTH])
