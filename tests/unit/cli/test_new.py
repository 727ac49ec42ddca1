"""`arena new`: what it writes, and which names it refuses."""

from __future__ import annotations

import sys

import pytest

from engine.cli.new import class_prefix, package_of
from engine.errors import UsageError
from engine.wheels import LEFT_OUT, pack_project, read_wheel

FILES = {
    ".gitignore",
    "README.md",
    "pyproject.toml",
    "src/my_bot/__init__.py",
    "src/my_bot/eighty.py",
    "src/my_bot/podkidnoe.py",
    "tests/test_bot.py",
}


def test_project_has_these_files_and_no_placeholder_left(arena, tmp_path):
    answer = arena("new", "my-bot")
    assert answer.code == 0
    project = tmp_path / "my-bot"
    written = [path for path in project.rglob("*") if path.is_file()]
    assert {path.relative_to(project).as_posix() for path in written} == FILES
    for path in written:
        text = path.read_text()
        assert "$" not in text
        assert "PACKAGE" not in text


def test_project_is_a_bot_of_that_name(arena, tmp_path):
    arena("new", "my-bot", "--folder", tmp_path / "elsewhere")
    info = read_wheel(pack_project(tmp_path / "elsewhere"))
    assert (info.bot, info.version, info.entry_point) == ("my-bot", "0.1.0", "my_bot")


def test_next_steps_are_told(arena):
    out = arena("new", "my-bot").out
    assert "cd my-bot" in out
    assert "arena check ." in out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("My-Bot", "lower-case"),
        ("x", "2 to 32"),
        ("a" * 33, "2 to 32"),
        ("9lives", "beginning with a letter"),
        ("my bot", "lower-case"),
        ("bot-", "ending with a letter or digit"),
        ("../bot", "no name for a bot"),
        ("lambda", "word of Python"),
        ("random", "is taken"),  # the standard library has it
        ("engine", "is taken"),
        ("tests", "is taken"),
        ("greedy", "installed here already"),  # the house's
    ],
)
def test_bad_name_is_refused_and_nothing_written(arena, tmp_path, name, says):
    answer = arena("new", name)
    assert answer.code == 2
    assert says in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(name for name in LEFT_OUT if name.isidentifier()))
def test_name_that_packing_leaves_out_is_refused(name):
    with pytest.raises(UsageError, match="is taken"):
        package_of(name)


def test_no_module_of_the_standard_library_can_be_shadowed():
    candidates = [name for name in sys.stdlib_module_names if name.islower() and len(name) > 2]
    for name in candidates:
        with pytest.raises(UsageError):
            package_of(name)


@pytest.mark.parametrize("kind", ["folder", "file", "dead link"])
def test_existing_target_is_refused_and_kept(arena, tmp_path, kind):
    target = tmp_path / "my-bot"
    if kind == "folder":
        target.mkdir()
    elif kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    answer = arena("new", "my-bot")
    assert answer.code == 2
    assert "my-bot exists already" in answer.err
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("name", "title"), [("my-bot", "MyBot"), ("bot", "Bot"), ("a_b-c2", "ABC2")]
)
def test_title_is_made_of_the_name(name, title):
    assert class_prefix(name) == title
