"""`arena pack`: a project's wheel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.wheels import pack_project, read_wheel


def test_wheel_is_written_where_uploads_look_for_it(arena, tmp_path):
    arena("new", "my-bot")
    answer = arena("pack", "my-bot")
    assert answer.code == 0
    assert answer.out == "my-bot/dist/my_bot-0.1.0-py3-none-any.whl\n"
    data = (tmp_path / answer.out.strip()).read_bytes()
    assert read_wheel(data).bot == "my-bot"


def test_packing_again_gives_equal_bytes(arena, tmp_path):
    arena("new", "my-bot")
    arena("pack", "my-bot", "--folder", "once")
    arena("pack", "my-bot", "--folder", "again")
    once, again = ((tmp_path / folder).glob("*.whl") for folder in ("once", "again"))
    data = next(once).read_bytes()
    assert data == next(again).read_bytes() == pack_project(tmp_path / "my-bot")


@pytest.mark.parametrize(
    ("target", "says"),
    [("nowhere", "nowhere is no folder"), (".", "no pyproject.toml")],
)
def test_what_is_no_project_is_refused(arena, target, says):
    answer = arena("pack", target)
    assert answer.code == 2
    assert says in answer.err


def test_package_with_a_fifo_is_refused(arena, tmp_path):
    arena("new", "my-bot")
    os.mkfifo(next((tmp_path / "my-bot/src").iterdir()) / "pipe.txt")
    answer = arena("pack", "my-bot")
    assert answer.code == 2
    assert "pipe.txt is a symbolic link or special file" in answer.err


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["a folder", "a FIFO"])
def test_pyproject_that_is_no_file_is_refused(arena, tmp_path, make):
    make(tmp_path / "pyproject.toml")
    answer = arena("pack", ".")
    assert answer.code == 2
    assert "pyproject.toml is no file" in answer.err
