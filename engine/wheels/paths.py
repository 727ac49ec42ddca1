"""The paths in a wheel: only those of plain Python source and data, below the wheel's own folder."""

from __future__ import annotations

import stat
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from engine.wheels.directory import MAX_PATH_LENGTH, Member
from engine.wheels.reasons import BUILD_ADVICE, quote

MAX_FOLDERS = 500
COMPILED = (".pyc", ".pyo")
_NATIVE = (".so", ".pyd", ".dll", ".dylib", ".a", ".o", ".exe")
_CUSTOMIZE = {"sitecustomize", "usercustomize"}
_DEVICES = {
    "con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(10)),
}  # fmt: skip
"""What no file can be called on Windows, with whatever ending."""
_MAC_LEFT_OVERS = {"__macosx", ".ds_store"}
_SOURCE_FILES = {"pyproject.toml", "setup.py", "setup.cfg", "pkg-info"}


def path_reasons(members: Sequence[Member]) -> Iterator[str]:
    """What is wrong with the names and kinds of a zip's members."""
    mistake = _whole_mistake([member.name for member in members if not member.is_folder])
    if mistake is not None:
        yield mistake
        return
    for member in members:
        yield from _name_reasons(member.name.removesuffix("/"))
        yield from _kind_reasons(member)
        yield from _content_reasons(member.name.removesuffix("/"))
    yield from _clash_reasons(members)


def _whole_mistake(names: Sequence[str]) -> str | None:
    """A mistake in how the zip was made, that would else be told as many small ones."""
    parts = [name.split("/") for name in names]
    if any(part.lower() in _MAC_LEFT_OVERS for path in parts for part in path):
        return f"this was zipped by Finder (it contains __MACOSX or .DS_Store); {BUILD_ADVICE}"
    if any(path[0].lower().endswith(".dist-info") for path in parts):
        return None
    if len({path[0] for path in parts}) == 1 and any(
        len(path) > 2 or path[-1].lower() in _SOURCE_FILES for path in parts if len(path) > 1
    ):
        return (
            f"everything lies in the folder {quote(parts[0][0])}: not the folder is to be zipped, "
            f"but a wheel made of it; {BUILD_ADVICE}"
        )
    if any(name.lower() in _SOURCE_FILES for name in names):
        return f"this is the source of a project, not its wheel; {BUILD_ADVICE}"
    return f"there is no .dist-info folder, so this is no wheel; {BUILD_ADVICE}"


def _name_reasons(name: str) -> Iterator[str]:
    shown, parts = quote(name), name.split("/")
    if not name.isascii() or not name.isprintable():
        yield f"{shown}: paths must be printable ASCII: rename it"
    if "\\" in name or ":" in name:
        yield f"{shown}: paths are written with / and without : or \\: rename it"
    if not name or name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        yield f"{shown}: paths must not be absolute, and must not contain .. or empty parts"
    if any(part.endswith((".", " ")) or part.startswith(" ") for part in parts if part.strip(".")):
        yield f"{shown}: a name must not begin with a space, or end with one or a dot: rename it"
    if any(part.lower().partition(".")[0].rstrip() in _DEVICES for part in parts):
        yield f"{shown}: on Windows that is the name of a device, and of no file: rename it"
    if len(name) > MAX_PATH_LENGTH:
        yield f"{shown}: paths have at most {MAX_PATH_LENGTH} characters: shorten it"


def _kind_reasons(member: Member) -> Iterator[str]:
    kind = stat.S_IFMT(member.mode)
    if member.is_folder:
        if kind not in {0, stat.S_IFDIR} or member.unpacked_bytes:
            yield f"{quote(member.name)} has the name of a folder and is none: leave it out"
    elif kind not in {0, stat.S_IFREG}:
        yield (
            f"{quote(member.name)} is a symbolic link or special file: replace it by the file itself"
        )


def _content_reasons(name: str) -> Iterator[str]:
    """What its name says that it holds, in any spelling of case."""
    shown = quote(name)
    parts = name.lower().split("/")
    if any(part.endswith(_NATIVE) or ".so." in part for part in parts):
        yield f"{shown} is compiled code: bots are pure Python"
    if parts[-1].endswith(COMPILED) or "__pycache__" in parts:
        yield f"{shown} is compiled Python: ship the source only"
    if any(part.endswith(".pth") for part in parts) or any(
        part.partition(".")[0] in _CUSTOMIZE for part in parts
    ):
        yield f"{shown} would run at every start of Python: leave it out"
    if parts[0].endswith(".data"):
        yield f"{shown}: a wheel of a bot has no .data folder (scripts, headers): leave it out"


def _clash_reasons(members: Sequence[Member]) -> Iterator[str]:
    """Names that would be one file on some machine; and so many folders that they are a load by themselves."""
    files = {member.name for member in members if not member.is_folder}
    folders = {member.name.removesuffix("/") for member in members if member.is_folder}
    for name in files | folders:
        parts = name.split("/")
        folders.update("/".join(parts[:length]) for length in range(1, len(parts)))
    for name, count in Counter(member.name for member in members).items():
        if count > 1:
            yield f"{quote(name)} is in the zip file {count} times: keep one of them"
    spellings = defaultdict(set)
    for name in files | folders:
        spellings[name.lower()].add(name)
    for name, found in sorted(spellings.items()):
        if len(found) > 1:
            shown = " and ".join(map(quote, sorted(found)[:3]))
            yield f"{shown} are the same but for upper and lower case: rename one"
        if name in files and name in folders:
            yield f"{quote(name)} is both a file and a folder: rename one"
    if len(folders) > MAX_FOLDERS:
        yield f"its files lie in {len(folders)} folders; at most {MAX_FOLDERS} are allowed"
