"""`arena` run inside the test's process, its two streams and exit code kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine.cli.app import make_app


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout; anything beside it is an error."""
        return json.loads(self.out)


Arena = Callable[..., Answer]


@pytest.fixture
def arena(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Arena:
    """Run `arena` with these arguments in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Answer:
        result = CliRunner().invoke(make_app(), [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def install_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Make a bot look installed: a module and a distribution with an entry point, on the import path."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(name: str, source: str, version: str = "1.0", entry_point: str = "") -> None:
        (site / f"{name}.py").write_text(source)
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(
            f"[domino_arena.bots]\n{name} = {entry_point or name}\n"
        )

    return install
