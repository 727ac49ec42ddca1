"""What all tests share: which of them this machine can run, and that none is skipped unseen.

A test marked `sandbox`, `stack` or `browser` is skipped where that is missing, and says why. With
``ARENA_REQUIRE_ALL=1``, as in CI, a skip is a failure.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil

import hypothesis
import pytest

# Failed examples are kept beside the tests, where somebody else's checkout lets us.
EXAMPLES = hypothesis.settings.default.database if os.access(".", os.W_OK) else None
hypothesis.settings.register_profile("house", deadline=None, database=EXAMPLES)
hypothesis.settings.load_profile("house")  # how fast a shared machine is, no test says

gc.disable()  # until all tests are collected: nothing of what that makes goes away again

REQUIRE_ALL = os.environ.get("ARENA_REQUIRE_ALL") == "1"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@functools.cache
def missing_sandbox() -> str | None:
    """Why bots cannot be held on this machine; None if they can."""
    from engine.errors import SandboxUnavailableError
    from engine.sandbox.probe import require_sandbox

    try:
        require_sandbox()
    except SandboxUnavailableError as error:
        return f"no sandbox on this machine: {error}"
    return None


@functools.cache
def missing_stack() -> str | None:
    """Why the embedded stack cannot start on this machine; None if it can."""
    from tournament.operations.broker import BrokerUnavailableError, find_server

    try:
        find_server()
    except BrokerUnavailableError as error:
        return str(error)
    return None


@functools.cache
def chromium() -> str | None:
    """The system's Chromium."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def missing_browser() -> str | None:
    """Why pages cannot be tried in a browser on this machine; None if they can."""
    return None if chromium() else "no Chromium on this machine: apt install chromium"


NEEDS = {"sandbox": missing_sandbox, "stack": missing_stack, "browser": missing_browser}


TOGETHER = (
    "tests/integration/test_stack.py",
    "tests/unit/operations/test_manage.py",
    "tests/faults/",
)
"""Files whose tests share what takes many seconds to make: each is one process's, and begins at once."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """How ``manage.py test`` spreads tests over processes: one by one, but for the files above.

    The marks of xdist do not do: with pytest 9.2, xdist 3.8 overlooks them.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return next((each for each in TOGETHER if path.startswith(each)), nodeid)

    return Scheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On another database only those tests are run that touch it: nothing else could differ.

    Those that ask PostgreSQL for what SQLite cannot tell are run nowhere else. What takes long begins early, so
    that all processes end together.
    """
    is_ours = touches_database if os.environ.get("ARENA_TEST_DATABASE") else runs_on_sqlite
    config.hook.pytest_deselected(items=[item for item in items if not is_ours(item)])
    items[:] = sorted(filter(is_ours, items), key=lambda item: not begins_early(item))


def begins_early(item: pytest.Item) -> bool:
    """Whether a test takes long. On the database those come first that leave it as it was."""
    return item.get_closest_marker("slow") is not None and not touches_database(item)


def pytest_collection_finish() -> None:
    """Let no collection of garbage look at modules and tests any more: they are many, and stay."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # objects, not the usual 700: a request makes more than those
    gc.enable()


def runs_on_sqlite(item: pytest.Item) -> bool:
    """Whether a test can tell anything on SQLite."""
    return item.get_closest_marker("postgresql") is None


def touches_database(item: pytest.Item) -> bool:
    """Whether a test works on the database of the run; by its mark, or by a fixture that it asks for."""
    asked = set(getattr(item, "fixturenames", ()))
    return bool(item.get_closest_marker("django_db") or asked & {"db", "transactional_db"})


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, missing in NEEDS.items():
        if item.get_closest_marker(marker):
            reason = missing()
            if reason:
                pytest.skip(reason)


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure, its reason kept."""
    if report.skipped and not hasattr(report, "wasxfail"):
        where = report.longrepr
        reason = where[2] if isinstance(where, tuple) else str(where)
        report.outcome = "failed"
        report.longrepr = f"{reason}\n(ARENA_REQUIRE_ALL=1: no test may be skipped here)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if REQUIRE_ALL:
        refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if REQUIRE_ALL:
        refuse_skip(report)
    return report


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict) -> dict:
    """Playwright drives the system's Chromium; none is downloaded."""
    return {**browser_type_launch_args, "executable_path": chromium(), "args": CHROMIUM_FLAGS}
