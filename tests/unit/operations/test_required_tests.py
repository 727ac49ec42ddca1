"""How the tests run: one that is skipped is seen, and fails where all are required; some stay together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import TOGETHER

ROOT = Path(__file__).parents[3]
pytest_plugins = ["pytester"]
CONFTEST = (Path(__file__).parents[2] / "conftest.py").read_text()


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with our conftest, and tests that are skipped in each of the usual ways."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        test_marked="import pytest\n@pytest.mark.skip(reason='later')\ndef test_it(): pass",
        test_called="import pytest\ndef test_it(): pytest.skip('not here')",
        test_module="import pytest\npytest.importorskip('no_such_module_anywhere')",
        test_expected="import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert 0",
    )
    return pytester


def run(project: pytest.Pytester) -> pytest.RunResult:
    return project.runpytest_subprocess("--continue-on-collection-errors", "-p", "no:django")


def test_skips_are_allowed_on_a_developers_machine(project, monkeypatch):
    monkeypatch.delenv("ARENA_REQUIRE_ALL", raising=False)
    run(project).assert_outcomes(skipped=3, xfailed=1)


def test_every_kind_of_skip_fails_where_all_are_required(project, monkeypatch):
    monkeypatch.setenv("ARENA_REQUIRE_ALL", "1")
    result = run(project)
    result.assert_outcomes(failed=1, errors=2, xfailed=1)
    result.stdout.fnmatch_lines(["*not here*"])


def test_on_another_database_what_touches_none_is_left_out(pytester, monkeypatch):
    monkeypatch.setenv("ARENA_TEST_DATABASE", "postgresql://host/name")
    pytester.makeconftest(f"{CONFTEST}\n\n@pytest.fixture\ndef db(): pass\n")
    pytester.makepyfile(
        test_plain="def test_it(): assert 0",
        test_marked="import pytest\npytestmark = pytest.mark.django_db\ndef test_it(): pass",
        test_asking="def test_it(db): pass",
    )
    run(pytester).assert_outcomes(passed=2, deselected=1)


@pytest.mark.parametrize("path", TOGETHER)
def test_file_whose_tests_stay_in_one_process_is_there(path):
    assert (ROOT / path).exists()
