"""Installed plugins are found and staged without importing any of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.errors import PluginError
from engine.plugins import find_plugin, installed_plugins, source_of_plugin

REFERENCE = "random"
BOOBY_TRAP = "raise AssertionError('a plugin was imported')\n"


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """A folder on the import path, as pip fills one."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(
    site: Path, distribution: str, version: str, bots: dict[str, str], files: dict[str, str]
) -> None:
    """Put a distribution there: its metadata, its entry points, its files."""
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    points = "".join(f"{name} = {value}\n" for name, value in bots.items())
    (info / "entry_points.txt").write_text(f"[domino_arena.bots]\n{points}")
    for name, text in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def files_under(folder: str) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def test_a_module_is_staged_alone(site, tmp_path):
    install(site, "my-bot", "1.2", {"my_bot": "solo"}, {"solo.py": BOOBY_TRAP, "other.py": ""})
    source = source_of_plugin("my_bot", tmp_path / "stage")
    assert (source.bot, source.version, source.wheel) == ("my_bot", "1.2", None)
    assert source.entry_point == "solo"
    assert files_under(source.folder) == {"solo.py": BOOBY_TRAP}
    assert "solo" not in sys.modules


def test_a_package_is_staged_whole_without_what_python_leaves_behind(site, tmp_path):
    files = {
        "pack/__init__.py": BOOBY_TRAP,
        "pack/brain/__init__.py": "",
        "pack/brain/plugin.py": "",
        "pack/table.json": "{}",
    }
    left = {"pack/__pycache__/x.cpython-311.pyc": "", "pack/old.pyc": ""}
    install(site, "packed", "3", {"packed": "pack.brain.plugin:Plugin"}, files | left)
    source = source_of_plugin("packed", tmp_path / "stage")
    assert files_under(source.folder) == files
    assert source.entry_point == "pack.brain.plugin:Plugin"


def test_a_reference_bot_is_staged_with_its_packages_init_alone(tmp_path):
    source = source_of_plugin(REFERENCE, tmp_path)
    module = source.entry_point.partition(":")[0]
    assert sorted(files_under(source.folder)) == sorted(
        ["bots/__init__.py", module.replace(".", "/") + ".py"]
    )


def test_equal_content_has_one_folder_and_other_content_another(site, tmp_path):
    install(site, "my-bot", "1", {"my_bot": "solo"}, {"solo.py": "A = 1\n"})
    stage = tmp_path / "stage"
    one, same = source_of_plugin("my_bot", stage), source_of_plugin("my_bot", stage)
    (site / "solo.py").write_text("A = 2\n")
    other = source_of_plugin("my_bot", stage)
    assert one.folder == same.folder
    assert one.folder != other.folder
    assert {path.name for path in stage.iterdir()} == {
        Path(one.folder).name,
        Path(other.folder).name,
    }, "nothing half-made is left"


def test_every_installed_bot_is_listed_with_its_problem(site):
    install(site, "good", "1", {"good_one": "good_module"}, {"good_module.py": ""})
    install(site, "gone", "1", {"gone": "gone_module"}, {})
    install(site, "cut", "1", {"cut": "cut_pack.missing"}, {"cut_pack/__init__.py": ""})
    install(site, "deep", "1", {"deep": "flat.inner"}, {"flat.py": ""})
    install(site, "shout", "1", {"SHOUT": "shout_module"}, {"shout_module.py": ""})
    install(site, "odd", "1", {"odd": "odd-module"}, {})
    install(site, "one", "1", {"same": "same_one"}, {"same_one.py": ""})
    install(site, "two", "1", {"same": "same_two"}, {"same_two.py": ""})
    problems = {plugin.name: plugin.problem for plugin in installed_plugins()}
    assert problems["good_one"] is None
    assert "gone_module is missing" in problems["gone"]
    assert "cut_pack.missing is missing" in problems["cut"]
    assert "flat.py is no package" in problems["deep"]
    assert "a-z" in problems["SHOUT"]
    assert "odd-module" in problems["odd"]
    assert "one, two" in problems["same"]
    names = [plugin.name for plugin in installed_plugins()]
    assert names == sorted(names)


def test_a_compiled_module_is_no_bot(site):
    install(site, "fast", "1", {"fast": "_json"}, {})
    assert "no file of Python source" in find_problem("fast")


def find_problem(name: str) -> str:
    with pytest.raises(PluginError) as refused:
        find_plugin(name)
    return str(refused.value)


def test_a_bot_that_is_not_there_is_refused_with_those_that_are(site, tmp_path):
    install(site, "good", "1", {"good_one": "good_module"}, {"good_module.py": ""})
    assert "good_one" in find_problem("absent")
    with pytest.raises(PluginError, match="good_one"):
        source_of_plugin("absent", tmp_path)


def test_a_broken_bot_is_refused_with_its_problem(site, tmp_path):
    install(site, "gone", "1", {"gone": "gone_module"}, {})
    with pytest.raises(PluginError, match=r"'gone' of gone: its module gone_module is missing"):
        source_of_plugin("gone", tmp_path)


def test_of_a_distribution_that_is_there_twice_the_first_on_the_path_counts(
    site, tmp_path, monkeypatch
):
    install(site, "my-bot", "1", {"my_bot": "solo"}, {"solo.py": ""})
    newer = tmp_path / "newer"
    newer.mkdir()
    install(newer, "my-bot", "2", {"my_bot": "solo"}, {"solo.py": "A = 2\n"})
    monkeypatch.syspath_prepend(str(newer))
    plugin = find_plugin("my_bot")
    assert (plugin.version, plugin.problem) == ("2", None)
