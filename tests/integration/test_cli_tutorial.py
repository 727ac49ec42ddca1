"""The tutorial is true: its commands run as they stand there, and say what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BREAK = "=== next block ==="


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of the page that is run (`sh`), written to a file (`python`) or compared (`text`)."""

    language: str
    text: str


def parse(page: str) -> list[Block]:
    fences = re.findall(r"^```(sh|python|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [Block(language, text) for language, text in fences]


def script(blocks: list[Block]) -> Iterator[str]:
    """The page as one shell script, a mark after each block of commands."""
    yield "set -e"
    for block in blocks:
        if block.language == "sh":
            yield block.text
            yield f"echo '{BREAK}'"
        elif block.language == "python":
            path = re.match(r"# (\S+)\n", block.text)
            assert path is not None, "a python block names its file in its first line"
            yield f"cat > {path[1]} <<'END OF FILE'\n{block.text}END OF FILE"


def run_tutorial(page: str, folder: Path) -> list[str]:
    """What each block of commands prints, run one after the other in one shell."""
    programs = folder / "programs"
    programs.mkdir()
    for name, arguments in (
        ("python", ""),
        ("arena", " -c 'from engine.cli import main; main()'"),
    ):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        (programs / name).chmod(0o755)
    home = folder / "home"
    home.mkdir()
    done = subprocess.run(
        ["bash", "-c", "\n".join(script(parse(page)))],
        cwd=home,
        env={
            **{name: value for name, value in os.environ.items() if "DJANGO" not in name},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    *outputs, rest = done.stdout.split(f"{BREAK}\n")
    assert rest == ""
    return outputs


def comparable(text: str) -> str:
    """Without times, and without what a traceback says of the arena's own files and of columns.

    The clock is one of the times: budgets follow the speed of the machine.
    """
    text = re.sub(r'^  File "<sandbox>/.*\n|^ +[~^]+\n', "", text, flags=re.MULTILINE)
    text = re.sub(r"^clock_ms: \d+$", "clock_ms: N", text, flags=re.MULTILINE)
    return re.sub(r"\d+\.\d+ ?s\b", "T s", text).strip()


def shown(page: str) -> list[str]:
    """What the page shows after each block of commands; nothing where it shows nothing."""
    outputs: list[str] = []
    for block in parse(page):
        if block.language == "sh":
            outputs.append("")
        elif block.language == "text":
            outputs[-1] = block.text
    return outputs


@pytest.mark.sandbox
@pytest.mark.slow
def test_tutorial_says_what_its_commands_say(tmp_path):
    page = PAGE.read_text()
    said = run_tutorial(page, tmp_path)
    assert [comparable(text) for text in said] == [comparable(text) for text in shown(page)]


def test_tutorial_goes_all_the_way():
    commands = "".join(block.text for block in parse(PAGE.read_text()) if block.language == "sh")
    for command in ("new", "play", "replay", "check", "pack"):
        assert f"arena {command}" in commands
