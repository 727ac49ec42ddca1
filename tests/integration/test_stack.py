"""The whole site as its users start it: `demo` from end to end, `up` through good and bad days.

Every process that such a start brings along inherits a mark in its environment, by which a test finds
what is left of it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import platform
import re
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from engine.bundle import decode_bundle, verify_bundle
from engine.cli.verify_tournament import read_bundle
from engine.errors import BundleError
from engine.formats import FORMATS
from engine.record import (
    BotRef,
    DealSource,
    EntrantRef,
    compute_digest,
    decode_record,
    encode_record,
    make_spec,
    replay,
)
from engine.runner import run_match
from engine.sandbox.probe import require_sandbox
from engine.shuffle import commitment, deal_key, tournament_prk
from engine.wheels import wheel_source
from tests.changes import UNJUDGED, changed, leaves_of, put
from tests.oracle.judge import judge
from tournament.operations.house import reference_plugins, reference_wheel

pytestmark = [pytest.mark.stack, pytest.mark.sandbox, pytest.mark.slow]

MANAGE = Path(__file__).parents[2] / "manage.py"
MARK = "ARENA_TEST_MARK"
URL = re.compile(r"is up at (http://\S+)")
SEED = "a seed of the tests"


PATIENCE_SECONDS = 120.0
"""How long something may take on a busy machine."""


def wait_for(condition: Callable[[], Any], *, seconds: float = PATIENCE_SECONDS) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.1)
    return value


class Started:
    """`manage.py` with some arguments, and all that it has started."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = uuid.uuid4().hex
        self.errors = folder / f"{self.mark}.stderr"
        temporary = folder / "tmp"  # what is killed leaves things there
        temporary.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ARENA_")}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(MANAGE), *arguments],
                env={**kept, "ARENA_BOOTSTRAP": "0", "TMPDIR": str(temporary), MARK: self.mark},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    @property
    def said(self) -> str:
        return self.errors.read_text()

    def finish(self, *, seconds: float = 600) -> bytes:
        """Wait for its end; what it printed."""
        output, _ = self.process.communicate(timeout=seconds)
        return output

    def processes(self) -> dict[int, str]:
        """The command lines of all that carries the mark, by process id."""
        needle = f"{MARK}={self.mark}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if needle in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (
                        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    )
            except OSError:  # it has just ended
                continue
        return found

    def end(self) -> None:
        """Leave nothing behind, whatever the test came to."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict, Path, Started]]:
    """A demo that was played to its end: its JSON, its records, its process."""
    folder = tmp_path_factory.mktemp("demo")
    started = Started(folder, "demo", "--seed", SEED, "--json", "--records", "records")
    try:
        output = started.finish()
        assert started.process.returncode == 0, started.said
        yield json.loads(output), folder / "records", started
    finally:
        started.end()


def test_demo_plays_both_tournaments_to_their_end(demo):
    results, _, _ = demo
    cup, league = results["tournaments"]
    assert (cup["game"], cup["format"], len(cup["matches"])) == ("eighty", "single_elimination", 7)
    assert (league["game"], league["format"], len(league["matches"])) == (
        "podkidnoe",
        "round_robin",
        6,
    )
    assert {cup["state"], league["state"]} == {"finished"}
    assert len(cup["standings"]) == 8
    assert [row["place"] for row in cup["standings"]] == [1, 2, 3, 3, 5, 5, 5, 5]
    assert sum(results["terminations"].values()) == 13


def test_demo_rates_every_bot_that_played(demo):
    results, _, _ = demo
    boards = results["leaderboards"]
    assert len(boards["eighty/mono"]) == 8
    assert len(boards["podkidnoe/ffa"]) == 4
    assert all(row["matches"] > 0 for rows in boards.values() for row in rows)
    assert all(
        row["shown"] == pytest.approx(row["mu"] - 3 * row["sigma"]) for row in boards["eighty/mono"]
    )


def test_demos_records_are_true_and_hold_the_deals_that_the_secret_yields(demo):
    results, records, _ = demo
    for tournament in results["tournaments"]:
        secret = bytes.fromhex(tournament["secret"])
        assert secret == sha256(SEED.encode()).digest()
        assert tournament["commitment"] == commitment(tournament["slug"], secret)
        prk = tournament_prk(secret, tournament["pub"])
        for match in tournament["matches"]:
            record = decode_record(Path(match["record"]).read_bytes())
            assert Path(match["record"]).parent == records
            replay(record)
            assert (
                judge(json.loads(encode_record(record)), prk=prk, tournament=tournament["id"]) == []
            )
            assert compute_digest(record) == match["digest"] == record.digest
            for deal in (deal for game in record.games for deal in game.deals):
                key = deal_key(prk, record.game, tournament["id"], match["key"], deal.number)
                assert deal.key == key.hex()


def test_match_of_the_demo_can_be_played_again_from_what_was_published(demo, tmp_path: Path):
    results, _, _ = demo
    wheels = {plugin.name: reference_wheel(plugin) for plugin in reference_plugins()}
    cup = results["tournaments"][0]
    match = next(match for match in cup["matches"] if set(match["entrants"]) <= wheels.keys())
    record = decode_record(Path(match["record"]).read_bytes())
    sources = [[wheel_source(wheels[name], tmp_path)] for name in match["entrants"]]
    prk = tournament_prk(bytes.fromhex(cup["secret"]), cup["pub"])
    spec = make_spec(
        game=record.game,
        entrants=[
            EntrantRef(
                name=source.bot,
                bots=(BotRef(bot=source.bot, version=source.version, wheel=source.wheel),),
            )
            for (source,) in sources
        ],
        contest=record.contest,
        time_control=record.time_control,
        deals=DealSource(prk=prk, tournament_id=cup["id"], reveal=True),
        match_key=match["key"],
    )
    assert run_match(spec, sources).record.digest == match["digest"]


def test_demo_leaves_no_process_behind(demo):
    _, _, started = demo
    assert started.processes() == {}


def test_demo_that_cannot_write_its_records_says_so_before_it_plays(tmp_path: Path):
    (tmp_path / "taken").write_text("")
    started = Started(tmp_path, "demo", "--records", "taken")
    assert started.finish() == b""
    assert started.process.returncode == 1
    assert "choose another by --records" in started.said


@pytest.mark.exhaustive  # a site ends in the same way: below
def test_interrupted_demo_ends_everything(tmp_path: Path):
    started = Started(tmp_path, "demo")
    try:
        wait_for(lambda: "The house submitted" in started.said)
        started.process.send_signal(signal.SIGINT)
        assert started.finish() == b""
        assert started.process.returncode == 130
        assert started.processes() == {}
    finally:
        started.end()


class Site:
    """`up` in a home of its own, on a free port."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.home = home
        self.started = Started(folder, "up", "--listen", "127.0.0.1:0", "--home", str(home))

    def wait_until_up(self) -> str:
        def find_url() -> re.Match[str] | None:
            assert self.started.process.poll() is None, self.started.said
            return URL.search(self.started.said)

        return wait_for(find_url).group(1)

    def parts(self) -> dict[int, str]:
        """The command lines of the processes that it started itself and that live, by process id."""
        pid = self.started.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {pid: line for pid, line in self.started.processes().items() if str(pid) in children}

    def find(self, part: str) -> int | None:
        """Of these, the one with `part` in its command line."""
        return next((pid for pid, line in self.parts().items() if part in line), None)

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(
            self.wait_until_up().removeprefix("http://"), timeout=PATIENCE_SECONDS
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def is_healthy(self) -> bool:
        """Whether it answers; what a process that ends just now was asked comes to nothing."""
        try:
            return self.get("/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False


@pytest.fixture(scope="module")
def start_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Site]]:
    """Starts sites in one home; what is still running after the last test is ended."""
    folder = tmp_path_factory.mktemp("site")
    sites: list[Site] = []

    def start() -> Site:
        sites.append(Site(folder, folder / "home"))
        return sites[-1]

    yield start
    for site in sites:
        site.started.end()


# A start takes seconds: one site lives through the tests that follow, in this order.


@pytest.fixture(scope="module")
def first(start_site) -> Site:
    """A site in a fresh home."""
    site = start_site()
    site.wait_until_up()
    return site


@pytest.fixture(scope="module")
def interrupted(first: Site) -> Site:
    """That site after a Ctrl-C."""
    first.started.process.send_signal(signal.SIGINT)
    first.started.finish()
    return first


@pytest.fixture(scope="module")
def again(interrupted: Site, start_site) -> Site:
    """A second start in the same home."""
    site = start_site()
    site.wait_until_up()
    return site


def test_site_starts_with_an_operator_bots_and_cups(first: Site):
    assert first.get("/healthz")[0] == 200
    status, page = first.get("/tournaments/")
    assert status == 200
    assert "Eighty Cup" in page
    assert "as admin with the password " in first.started.said


def test_worker_of_a_site_tells_its_sandbox_and_its_speed(first: Site):
    workers = wait_for(lambda: json.loads(first.get("/api/limits")[1])["workers"])
    assert [worker["level"] for worker in workers] == [require_sandbox().level]
    assert workers[0]["python"] == platform.python_version()
    assert workers[0]["budget_percent"] > 0


def test_home_holds_one_site_at_a_time(first: Site, start_site):
    second = start_site()
    second.started.finish()
    assert second.started.process.returncode == 1
    assert "already runs in" in second.started.said
    assert first.get("/healthz")[0] == 200


def test_interrupted_site_ends_in_order_with_all_it_started(interrupted: Site):
    assert interrupted.started.process.returncode == 0
    assert interrupted.started.processes() == {}
    assert not (interrupted.home / "broker-socket").exists()
    with contextlib.closing(sqlite3.connect(interrupted.home / "arena.sqlite3")) as database:
        missed = database.execute("SELECT name FROM workers_workerreport").fetchall()
    assert missed == []  # its worker has signed off


def test_site_that_starts_again_gives_no_new_password(again: Site):
    assert "with the password" not in again.started.said
    assert "changepassword admin" in again.started.said


@pytest.mark.parametrize(
    "part", ["valkey-server", "-m gunicorn", "--pool solo", "--pool prefork", " beat "]
)
def test_killed_part_of_a_site_comes_back_and_the_others_go_on(again: Site, part: str):
    killed = wait_for(lambda: again.find(part))
    others = again.parts().keys() - {killed}
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: again.find(part) not in (None, killed))
    assert others < again.parts().keys()
    wait_for(again.is_healthy)


AUTHOR = """
from pathlib import Path
from engine.wheels import pack_module
from tournament.players.services import create_token, sign_up, submit_wheel
author = sign_up(username="author", password="correct horse 9")
for source, version in (("chance", "7.0"), ("cautious", "8.0")):
    data = pack_module(Path({bots!r}) / (source + ".py"), bot="my-bot", version=version)
    submit_wheel(owner=author, data=data)
print("token", create_token(player=author, scope="submit")[1])
"""


def test_author_asks_whether_version_8_is_better_and_the_workers_play_until_they_know(again: Site):
    done = subprocess.run(
        [sys.executable, MANAGE, "shell", "-c", AUTHOR.format(bots=str(MANAGE.parent / "bots"))],
        env={
            **os.environ,
            "ARENA_BOOTSTRAP": "0",
            "ARENA_HOME": str(again.home),
            "DJANGO_SETTINGS_MODULE": "tournament.settings",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    token = done.stdout.split()[-1]

    def call(method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection(
            again.wait_until_up().removeprefix("http://"), timeout=PATIENCE_SECONDS
        )
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with contextlib.closing(connection):
            connection.request(method, f"/api{path}", json.dumps(body), headers)
            return json.loads(connection.getresponse().read())

    wait_for(lambda: len(call("GET", "/bots?q=my-bot")["bots"]) == 1)
    wish = {"bot": "my-bot", "version": "8.0", "against": "my-bot", "game": "eighty"}
    asked = wait_for(lambda: call("POST", "/scrimmages", wish).get("id"))
    found = wait_for(
        lambda: (told := call("GET", f"/scrimmages/{asked}"))["is_over"] and told, seconds=300
    )
    assert (found["verdict"], found["reason"], found["sandboxed"]) == ("better", "", True)
    assert found["against_version"] == "7.0"
    assert found["likelihood_ratio"] > found["bound"]
    assert 20 <= found["sets"] < found["most_sets"], "the test has ended it, not the limit"
    assert len(found["digests"]) == -(-found["sets"] // 20)


def test_nothing_outlives_a_killed_site(again: Site):
    again.started.process.kill()
    wait_for(lambda: again.started.processes() == {})


@pytest.mark.exhaustive  # all signals are one to it: operations/test_console.py
def test_site_that_is_asked_to_end_does(start_site):
    site = start_site()
    site.wait_until_up()
    site.started.process.send_signal(signal.SIGTERM)
    site.started.finish()
    assert site.started.process.returncode == 0
    assert site.started.processes() == {}


@pytest.mark.exhaustive
def test_every_format_is_played_and_verified_and_again_with_the_same_digests(tmp_path: Path):
    told = []
    for name in ("first", "second"):
        started = Started(
            tmp_path, *("demo", "--formats", "all", "--seed", SEED, "--json", "--bundles", name)
        )
        try:
            output = started.finish(seconds=900)
            assert started.process.returncode == 0, started.said
            assert started.processes() == {}
        finally:
            started.end()
        told.append(json.loads(output))
    first, _ = told
    assert {name for line in first["tournaments"] for name in line["formats"]} == set(FORMATS)
    assert all(line["true"] and line["matches"] == line["rated"] for line in first["tournaments"])
    digests = [{line["slug"]: line["digest"] for line in run["tournaments"]} for run in told]
    assert digests[0] == digests[1]
    random = Random(SEED)
    for line in first["tournaments"]:
        data = read_bundle(line["bundle"])
        assert verify_bundle(decode_bundle(data)).digest == line["digest"]
        refuse_changes(data, random)


def refuse_changes(data: bytes, random: Random, *, changes: int = 50) -> None:
    """Of random changes of one value each is refused, with its place."""
    values = [leaf for leaf in leaves_of(json.loads(data)) if not UNJUDGED & {*leaf[0][:3]}]
    for path, old in random.sample(values, changes):
        document = json.loads(data)
        put(document, path, changed(old, random))
        with pytest.raises(BundleError) as error:
            verify_bundle(decode_bundle(json.dumps(document).encode()))
        assert error.value.place, path
