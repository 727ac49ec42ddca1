"""What no linter of ours knows: rules of the house that hold for the whole repository."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from engine.formats import FORMATS
from engine.games import GAMES

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for room in ("engine", "bots", "tournament")
    for path in (ROOT / room).rglob("*.py")
    if "project_template" not in path.parts
)
TEXTS = {".py", ".md", ".toml", ".txt", ".html", ".yaml", ".yml", ".json", ".sh", ""}


def committed_files() -> list[Path]:
    """Every file that belongs to the repository, committed or about to be; all files of a copy without git."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        own = (path for path in ROOT.iterdir() if path.name not in {".venv", ".git"})
        return [path for top in own for path in (top, *top.rglob("*")) if path.is_file()]
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def imports_of(path: Path) -> set[str]:
    """The modules that a file imports, by their full names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_contracts_of_who_may_import_whom_hold():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_room_of_the_engine_stands_in_a_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(c for c in contracts["contracts"] if c.get("containers") == ["engine"])["layers"]
    placed = set(re.findall(r"\w+", " ".join(layers)))
    rooms = {
        path.stem
        for path in (ROOT / "engine").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"__init__"} <= placed


@pytest.mark.parametrize(
    ("registry", "contract"),
    [
        (GAMES, "Games do not know each other"),  # a new game is one file
        (FORMATS, "Formats do not know each other"),  # and so is a new format
    ],
)
def test_what_is_registered_is_named_as_independent(registry, contract: str):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    named = next(c for c in contracts["contracts"] if c["name"] == contract)["modules"]
    assert {type(entry).__module__ for entry in registry.values()} == set(named)


@pytest.mark.parametrize("bot", sorted((ROOT / "bots").glob("*.py")), ids=lambda path: path.stem)
def test_bot_imports_only_the_sdk_and_the_standard_library(bot: Path):
    allowed = sys.stdlib_module_names | {"engine.sdk"}
    foreign = {
        name
        for name in imports_of(bot)
        if name.split(".")[0] not in allowed and not (name + ".").startswith("engine.sdk.")
    }
    assert foreign == set()


def test_only_the_tasks_publish_messages():
    publishes = re.compile(r"\.(delay|apply_async|send_task)\(|\.s\(\)\.|\bchord\(")
    guilty = [
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if publishes.search(path.read_text()) and path.name != "tasks.py"
    ]
    assert guilty == []


def test_nothing_is_called_utils():
    vague = re.compile(r"(^|/)(utils?|helpers?|common|misc)(\.py|/)")
    guilty = [
        path.relative_to(ROOT).as_posix()
        for path in committed_files()
        if vague.search(path.relative_to(ROOT).as_posix()) and "vendor" not in path.parts
    ]
    assert guilty == []


def test_every_module_says_what_it_is():
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if "migrations" not in path.parts
        and path.read_text().strip()
        and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_package_of_the_site_itself_stays_empty():
    assert (ROOT / "tournament" / "__init__.py").read_text().strip() == ""


def without_code(markdown: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)


def headings(markdown: str) -> set[str]:
    """The anchors of a page's headings, as they are made from their text."""
    titles = re.findall(
        r"^#+ +(.+)$", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL), re.MULTILINE
    )
    return {
        re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).strip().replace(" ", "-")
        for title in titles
    }


def dead_links(page: Path) -> list[str]:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", without_code(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name) if name else page
        if not linked.exists() or (
            anchor and linked.suffix == ".md" and anchor not in headings(linked.read_text())
        ):
            dead.append(target)
    return dead


def test_every_link_between_pages_leads_somewhere():
    pages = [path for path in committed_files() if path.suffix == ".md"]
    dead = {page.relative_to(ROOT).as_posix(): dead_links(page) for page in pages}
    assert {page: links for page, links in dead.items() if links} == {}


def test_dead_link_and_dead_anchor_are_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# One `x` thing\n[a](#one-x-thing) [b](#two) [c](gone.md) `[d](code.md)`\n")
    assert dead_links(page) == ["#two", "gone.md"]


def test_no_file_names_a_registry_or_a_developers_folder():
    hosts = ["pypi" + ".org", "python" + "hosted", "npm" + "js.", "deb." + "debian"]
    folders = ["/" + "root/", "/home/" + "runner", "/Use" + "rs/"]
    forbidden = re.compile("|".join(map(re.escape, hosts + folders)))
    guilty = [
        path.relative_to(ROOT).as_posix()
        for path in committed_files()
        if path.suffix in TEXTS and forbidden.search(path.read_text(errors="replace"))
    ]
    assert guilty == []
