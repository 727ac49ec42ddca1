"""A site goes on elsewhere: from a backup on a new machine, and on hosts that share a store over the network alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.faults import oracle
from tests.faults.cups import make_event, start_cup
from tests.faults.harness import ROOT, Program, Site, administer
from tournament.competitions.models import Attempt, MatchState
from tournament.operations.stack import playing_command
from tournament.players.models import Bot

pytestmark = [
    pytest.mark.faults,
    pytest.mark.stack,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.exhaustive,
]


def manage(site: Site, *arguments: str) -> str:
    """What a command of the site prints."""
    done = subprocess.run(
        [sys.executable, ROOT / "manage.py", *arguments],
        env={**site.environ(), "ARENA_BOOTSTRAP": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_backup_taken_while_a_cup_is_played_finishes_elsewhere_with_the_digests_of_a_quiet_run(
    site: Site, postgresql, tmp_path: Path
):
    event = make_event(site, bots=4, pause=0.05)
    (worker,) = site.start()
    (cup,) = event.tournaments
    site.wait_until(lambda: cup.matches.filter(state=MatchState.FINISHED).first())
    site.running_match()
    worker.freeze()  # or it would be through before the command has begun
    file = tmp_path / "site.tar"
    manage(site, "backup", str(file))
    for program in site.programs.values():
        program.kill()  # the machine is lost, and all that was on it

    name = f"{site.database}_restored"
    administer(postgresql, f"CREATE DATABASE {name}")
    (tmp_path / "elsewhere").mkdir()
    other = Site(postgresql, name, tmp_path / "elsewhere", site.tally)
    manage(other, "restore", str(file))
    with other.entered():
        finished = cup.matches.filter(state=MatchState.FINISHED).count()
        assert 0 < finished < event.size
        other.start()
        other.play_out(event.tournaments)
        event.judge(other)


class FarSite(Site):
    """A site whose hosts reach the store over the network, and have nothing in their homes."""

    endpoint = ""

    def home(self, host: str) -> Path:
        home = self.folder / host
        home.mkdir(mode=0o700, exist_ok=True)
        return home

    def environ(self, host: str = "web") -> dict[str, str]:
        return {
            **super().environ(host),
            "ARENA_STORE": f"s3://arena/site?endpoint={self.endpoint}&region=us-east-1&style=path",
            "AWS_ACCESS_KEY_ID": "arena",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }


@pytest.fixture
def far_site(site: Site) -> Iterator[FarSite]:
    """That site with a store that speaks S3."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    site.__class__ = FarSite
    site.endpoint = f"http://{host}:{port}"
    yield site
    server.stop()


def bucket_of(site: FarSite):
    store = boto3.resource(
        "s3",
        endpoint_url=site.endpoint,
        region_name="us-east-1",
        aws_access_key_id="arena",
        aws_secret_access_key="secret",
    )
    return store.Bucket("arena")


def test_hosts_with_homes_of_their_own_each_play_the_time_controls_that_they_are_kept_to(
    far_site: FarSite,
):
    event = make_event(far_site, bots=4)
    long = start_cup(list(Bot.objects.order_by("pk")[:3]), name="Long Cup", time_control="long")
    bucket = bucket_of(far_site)
    bucket.create()
    for path in far_site.store.glob("??/*"):
        bucket.upload_file(str(path), f"site/{path.relative_to(far_site.store)}")
    far_site.start_broker()
    far_site.start_control()
    far_site.start_beat()
    hosts: dict[str, Program] = {}
    for host, queue in (("north", "matches.fast"), ("south", "matches.long")):
        hosts[host] = far_site._celery(host, host, playing_command(host, 1, [queue]))
    far_site.play_out([*event.tournaments, long])

    def players_of(tournament) -> set[int]:
        rows = Attempt.objects.filter(match__tournament=tournament)
        return {int(name.rpartition(":")[2]) for name in rows.values_list("worker", flat=True)}

    assert players_of(event.tournaments[0]) <= set(hosts["north"].children())
    assert players_of(long) <= set(hosts["south"].children())
    for host in hosts:
        assert not (far_site.home(host) / "blobs").exists()
        assert len(list((far_site.home(host) / "nearby").glob("??/*"))) in {3, 4}, (
            "its wheels alone"
        )
    for found in bucket.objects.all():  # the oracle reads a folder
        path = far_site.store / found.key.removeprefix("site/")
        path.parent.mkdir(exist_ok=True)
        bucket.download_file(found.key, str(path))
    event.judge(far_site)
    far_site.tally.judged(oracle.judge([long]))
