"""`arena new`: a bot project that works from its first minute."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from engine.cli.exits import ExitCode
from engine.cli.files import write_file
from engine.cli.output import say
from engine.errors import UsageError
from engine.plugins import installed_plugins
from engine.record import BOT_NAME
from engine.wheels import RESERVED_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

TAKEN_PACKAGES = RESERVED_NAMES | {
    *(
        "benchmarks",
        "build",
        "dist",
        "doc",
        "docs",
        "examples",
        "noxfile",
        "scripts",
        "src",
        "venv",
    ),
    "pytest",
}
"""Package names that would shadow what bots and their tests need, or that no wheel is made of."""


def run(name: str, *, folder: Path | None) -> ExitCode:
    """Write the project and say what to do next. Raises UsageError for a name or folder that is taken."""
    package = package_of(name)
    if any(plugin.name == name for plugin in installed_plugins()):
        raise UsageError(f"a bot called {name!r} is installed here already; choose another name")
    target = Path(name) if folder is None else folder
    if target.exists() or target.is_symlink():
        raise UsageError(
            f"{target} exists already; choose another name, or a new folder by --folder"
        )
    values = {"name": name, "package": package, "title": class_prefix(name)}
    for relative, text in render(values):
        write_file(target / relative, text.encode())
    say(f"Wrote the bot {name} into {target}. Next:")
    say(f"  cd {target}")
    say("  python -m pytest          # its own tests")
    say("  arena play . greedy --game eighty")
    say("  arena check .             # what the server will say")
    say("  arena pack .              # the file to upload")
    return ExitCode.OK


def package_of(name: str) -> str:
    """The import name of the bot called `name`. Raises UsageError for a name that cannot be used."""
    if not BOT_NAME.fullmatch(name) or not name[-1].isalnum():
        raise UsageError(
            f"{name!r} is no name for a bot; use 2 to 32 lower-case letters, digits, - and _, "
            "beginning with a letter and ending with a letter or digit"
        )
    package = name.replace("-", "_")
    if keyword.iskeyword(package):
        raise UsageError(
            f"{name!r} is a word of Python and cannot be imported; choose another name"
        )
    if package in TAKEN_PACKAGES:
        raise UsageError(
            f"{name!r} is taken: a module {package!r} would stand in the way of another; "
            "choose another name"
        )
    return package


def class_prefix(name: str) -> str:
    """`name` as the beginning of a class's name: ``my-bot`` becomes ``MyBot``."""
    return "".join(part.capitalize() for part in re.split(r"[-_]+", name))


def render(values: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """Every file of a new project, with its path inside."""
    root = resources.files("engine.cli") / "project_template"
    for path, file in _walk(root, Path()):
        relative = Path(*(part.replace("PACKAGE", values["package"]) for part in path.parts))
        yield relative.with_suffix(""), Template(file.read_text("utf-8")).substitute(values)


def _walk(folder: Traversable, path: Path) -> Iterator[tuple[Path, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _walk(entry, path / entry.name)
        elif entry.name.endswith(".tmpl"):
            yield path / entry.name, entry
