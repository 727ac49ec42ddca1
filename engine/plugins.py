"""Finds the bots that are installed here, by their entry point, without importing any of them.

A `BotSource` says where a bot's code lies. An installed plugin's own files are copied to a folder of
their own, so that a sandbox can show a bot that folder and nothing else. This module must not know how
a bot is run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import msgspec

from engine.errors import PluginError
from engine.record import BOT_NAME
from engine.sdk import ENTRY_POINT_GROUP

_OWN_DISTRIBUTION = "domino-arena"


class BotSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a bot's code lies, and how the record names it."""

    bot: str
    version: str | None
    """None: a local plugin without a version."""
    wheel: str | None
    """``sha256:`` and 64 hex digits; None for a local plugin that is no wheel."""
    folder: str
    """The folder that goes on the bot's import path: an unpacked wheel, holding nothing else."""
    entry_point: str
    """``module`` or ``module:attribute``."""


class InstalledPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A bot that some installed distribution offers."""

    name: str
    """The bot's name: that of its entry point."""
    distribution: str
    version: str
    entry_point: str
    """``module`` or ``module:attribute``."""
    problem: str | None
    """Why it cannot play; None if its files were found."""


def installed_plugins() -> tuple[InstalledPlugin, ...]:
    """Every bot installed here, by name; broken and doubly named ones too, each with its problem."""
    found = sorted(
        (entry.name, entry.dist.name, entry.dist.version, entry.value)
        for entry in entry_points(group=ENTRY_POINT_GROUP)
        if entry.dist is not None
    )
    owners: dict[str, list[str]] = {}
    for name, distribution, _, _ in found:
        owners.setdefault(name, []).append(distribution)
    return tuple(
        InstalledPlugin(
            name=name,
            distribution=distribution,
            version=version,
            entry_point=value,
            problem=_name_problem(name, owners[name]) or _file_problem(value),
        )
        for name, distribution, version, value in found
    )


def find_plugin(name: str) -> InstalledPlugin:
    """The installed bot called `name`. Raises PluginError naming the known ones, or its problem."""
    plugins = installed_plugins()
    for plugin in plugins:
        if plugin.name == name:
            if plugin.problem is not None:
                raise PluginError(f"the bot {name!r} of {plugin.distribution}: {plugin.problem}")
            return plugin
    known = ", ".join(sorted({plugin.name for plugin in plugins})) or "none"
    raise PluginError(f"no bot called {name!r} is installed here; installed: {known}")


def source_of_plugin(name: str, stage: Path) -> BotSource:
    """Copy the installed bot's own files to a folder under `stage`, named by their content.

    A plugin in a package gets the whole top-level package; the reference bots of this project, one
    file each, get that file and the package's ``__init__``. Raises PluginError if it cannot be found.
    """
    plugin = find_plugin(name)
    files = dict(_own_files(plugin))
    digest = hashlib.sha256()
    for path in sorted(files):
        content = files[path].read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    folder = stage / f"{name}-{digest.hexdigest()[:32]}"
    if not folder.is_dir():
        _copy(files, folder)
    return BotSource(
        bot=name,
        version=plugin.version,
        wheel=None,
        folder=str(folder),
        entry_point=plugin.entry_point,
    )


def _name_problem(name: str, owners: list[str]) -> str | None:
    if len(owners) > 1:
        return f"{len(owners)} installed plugins bear this name ({', '.join(owners)}); keep one"
    if not BOT_NAME.fullmatch(name):
        return "its name must be 2 to 32 of a-z, 0-9, _ and -, beginning with a letter"
    return None


def _file_problem(value: str) -> str | None:
    try:
        _locate_module(_module_of(value))
    except PluginError as error:
        return str(error)
    return None


def _module_of(value: str) -> str:
    matched = EntryPoint.pattern.fullmatch(value)
    if matched is None or not all(part.isidentifier() for part in matched["module"].split(".")):
        raise PluginError(f"its entry point {value!r} is no module or module:attribute")
    return str(matched["module"])


def _locate_module(module: str) -> Path:
    """The file of a module, or of a package's ``__init__``, found without importing what contains it."""
    root, *rest = module.split(".")
    path = _root_of(root)
    for depth, part in enumerate(rest, start=2):
        name = ".".join(module.split(".")[:depth])
        if path.name != "__init__.py":
            raise PluginError(f"its module {name} cannot be: {path.name} is no package")
        candidates = (path.parent / part / "__init__.py", path.parent / f"{part}.py")
        found = next((candidate for candidate in candidates if candidate.is_file()), None)
        if found is None:
            raise PluginError(f"its module {name} is missing: install its distribution again")
        path = found
    return path


def _root_of(name: str) -> Path:
    spec = _find_spec(name)
    if spec is None:
        raise PluginError(f"its module {name} is missing: install its distribution again")
    if spec.origin is None or not spec.has_location or Path(spec.origin).suffix != ".py":
        raise PluginError(f"its module {name} is no file of Python source")
    return Path(spec.origin)


def _find_spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ValueError:  # a module without a spec is in the way, e.g. __main__
        return None


def _own_files(plugin: InstalledPlugin) -> Iterator[tuple[str, Path]]:
    """Pairs of the path in the stage and the file to copy there."""
    module = _module_of(plugin.entry_point)
    root, *rest = module.split(".")
    top = _root_of(root)
    if top.name != "__init__.py":
        yield top.name, top
    elif plugin.distribution == _OWN_DISTRIBUTION and rest:
        own = _locate_module(module)
        yield f"{root}/__init__.py", top
        yield f"{root}/{own.relative_to(top.parent).as_posix()}", own
    else:
        for path in _source_files(top.parent):
            yield f"{root}/{path.relative_to(top.parent).as_posix()}", path


def _source_files(folder: Path) -> Iterable[Path]:
    """The files of a package, without what Python leaves behind."""
    return (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )


def _copy(files: dict[str, Path], folder: Path) -> None:
    """Fill `folder` in one step: who finds it, finds it whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".stage-") as scratch:
        whole = Path(scratch) / "files"
        for name, path in files.items():
            target = whole / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        try:
            whole.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another one was faster, with the same content
                raise
