"""A full disk: what needs it is tried again, and no bot loses by it."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections

from tests.faults import oracle
from tests.faults.databases import Database, make_cup, play_on, published_here
from tests.faults.harness import Tally
from tests.processes import leave_inherited_connections
from tests.scrimmage_factories import make_scrimmage
from tests.tournament_factories import make_player, submit
from tournament.competitions import services
from tournament.competitions.models import AttemptEnding, Match, MatchState, Tournament
from tournament.competitions.services import Play
from tournament.competitions.services.playing import _unpack
from tournament.players.models import BotVersion, VersionState
from tournament.players.services import run_validation
from tournament.scrimmages.models import Scrimmage, ScrimmageState
from tournament.scrimmages.services import BatchPlay, play_batch

pytestmark = [pytest.mark.faults, pytest.mark.exhaustive]
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x00020000
DISK_BYTES = 1024 * 1024


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own at `folder`, seen by this process and its children alone, and a file that fills it.

    Made in a namespace of its own, so it needs no rights and goes away with the process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    ids = os.geteuid(), os.getegid()
    wanted = CLONE_NEWNS if ids[0] == 0 else CLONE_NEWUSER | CLONE_NEWNS
    if libc.unshare(wanted):
        raise OSError(ctypes.get_errno(), "no namespace for a small disk")
    if wanted & CLONE_NEWUSER:
        Path("/proc/self/setgroups").write_text("deny")
        for name, number in zip(("uid_map", "gid_map"), ids, strict=True):
            Path(f"/proc/self/{name}").write_text(f"{number} {number} 1")
    folder.mkdir(parents=True, exist_ok=True)
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    libc.mount(b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE: nobody else sees it
    options = f"size={DISK_BYTES + sum(map(len, kept.values()))},mode=700".encode()
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options):
        raise OSError(ctypes.get_errno(), "no small disk")
    for path, data in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    yield folder / "filler"


def fill(filler: Path) -> None:
    """Leave no room on the disk."""
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017 - what the loop waits for


def in_a_process(act: Callable[[], None]) -> None:
    """Do it in a process whose disks may be changed; fail as it fails."""
    connections.close_all()
    child = os.fork()
    if not child:
        status = 1
        leave_inherited_connections()
        try:
            act()
            status = 0
        except BaseException:  # noqa: BLE001 - told, and the status says so
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def store() -> Path:
    return Path(settings.STORAGES["blobs"]["OPTIONS"]["location"])


def wheel_cache() -> Path:
    _unpack.cache_clear()
    return settings.WHEEL_CACHE


@pytest.mark.parametrize(
    "disk",
    [
        store,  # played, and its record cannot be kept
        wheel_cache,  # its bots cannot be unpacked, so it cannot be played
    ],
)
def test_match_that_finds_the_disk_full_is_played_again_and_no_bot_forfeits(
    database: Database, tally: Tally, disk: Callable[[], Path]
):
    with database.entered():
        cup = make_cup(bots=2)
        connections.close_all()
    with database.tried():
        expected = oracle.play_without_faults([cup])

    def play_on_a_full_disk() -> None:
        with small_disk(disk()) as filler, published_here():
            fill(filler)
            match = Match.objects.get()
            for attempt in (1, 2):
                assert services.play_match(match_id=match.pk) is Play.FAILED
                match.refresh_from_db()
                assert (match.state, match.attempts) == (MatchState.PENDING, attempt)
                assert match.tries.filter(ending=AttemptEnding.FAILED).count() == attempt
                assert "no space left" in match.tries.latest("fence").detail.lower()
            filler.unlink()
            play_on([cup])
            oracle.judge([cup], expected).check()

    with database.entered():
        tally.fault("disk full", 2)
        in_a_process(play_on_a_full_disk)
        assert Match.objects.get().termination == "completed"
        assert Tournament.objects.get().paused_reason == ""
        connections.close_all()


def test_check_and_scrimmage_that_find_the_disk_full_are_made_again(
    database: Database, tally: Tally
):
    def work_on_a_full_disk() -> None:
        version = BotVersion.objects.get(bot__name="checked")
        scrimmage = Scrimmage.objects.get()
        with small_disk(wheel_cache()) as filler:
            fill(filler)
            assert not run_validation(version_id=version.pk, trusted=True)
            assert play_batch(scrimmage_id=scrimmage.pk, trusted=True) is BatchPlay.FAILED
            version.refresh_from_db()
            scrimmage.refresh_from_db()
            assert (version.state, version.attempts) == (VersionState.SUBMITTED, 1)
            assert (scrimmage.state, scrimmage.attempts) == (ScrimmageState.WAITING, 1)
            filler.unlink()
            assert run_validation(version_id=version.pk, trusted=True)
            assert play_batch(scrimmage_id=scrimmage.pk, trusted=True) is BatchPlay.RECORDED

    with database.entered():
        make_scrimmage(most_sets=40)
        submit(make_player(), "checked")
        tally.fault("disk full", 2)
        in_a_process(work_on_a_full_disk)
        assert BotVersion.objects.get(bot__name="checked").state == VersionState.ACCEPTED
        connections.close_all()
