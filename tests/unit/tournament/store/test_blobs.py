"""Blobs: kept under their hash, private, checked when read, swept when nobody names them."""

from __future__ import annotations

import hashlib
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.storage import storages

from tests.tournament_factories import make_player, submit
from tournament.competitions.services import sweep_blobs
from tournament.competitions.services.sweeping import KEPT_FOR
from tournament.store.clock import read_clock
from tournament.store.errors import BlobDamagedError, BlobMissingError
from tournament.store.services import beat, put_blob, read_blob, sweep


def path_of(sha256: str) -> Path:
    return Path(storages["blobs"].path(f"{sha256[:2]}/{sha256[2:]}"))


def test_what_is_put_can_be_read_under_its_hash():
    data = b"a wheel\x00"
    sha256 = put_blob(data)
    assert sha256 == hashlib.sha256(data).hexdigest()
    assert read_blob(sha256) == data


def test_putting_the_same_twice_keeps_one():
    sha256 = put_blob(b"twice")
    before = path_of(sha256).stat().st_ino
    assert put_blob(b"twice") == sha256
    assert path_of(sha256).stat().st_ino == before
    assert [path.name for path in path_of(sha256).parent.iterdir()].count(sha256[2:]) == 1


def test_only_the_sites_user_can_read_a_blob():
    path = path_of(put_blob(b"private"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_damaged_blob_is_refused():
    sha256 = put_blob(b"true")
    path_of(sha256).write_bytes(b"false")
    with pytest.raises(BlobDamagedError, match=sha256):
        read_blob(sha256)


@pytest.mark.parametrize(
    "name",
    [
        "0" * 64,  # no such blob
        "../../etc/passwd",  # no hash at all
        "",  # a row without a blob
    ],
)
def test_missing_blob_is_refused(name):
    with pytest.raises(BlobMissingError):
        read_blob(name)


def test_failed_write_leaves_nothing(monkeypatch):
    data = b"the disk is full"
    sha256 = hashlib.sha256(data).hexdigest()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tournament.store.storage.os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        put_blob(data)
    assert not path_of(sha256).exists()
    assert not list(path_of(sha256).parent.glob(".new-*"))


def test_blob_has_no_address():
    with pytest.raises(ValueError, match="private"):
        storages["blobs"].url("ab/cd")


@pytest.mark.django_db
def test_sweep_deletes_what_nobody_names_once_it_is_old():
    named, orphan = put_blob(b"named"), put_blob(b"orphan")
    sweep(keep={named}, older_than=read_clock() - timedelta(hours=1))
    assert path_of(orphan).exists()
    sweep(keep={named}, older_than=read_clock() + timedelta(hours=1))
    assert path_of(named).exists()
    assert not path_of(orphan).exists()


@pytest.mark.django_db
def test_sweep_keeps_an_old_orphan_that_was_put_again_for_a_row_to_come():
    sha256 = put_blob(b"left by a crash, and uploaded again")
    os.utime(path_of(sha256), (0, 0))
    assert put_blob(b"left by a crash, and uploaded again") == sha256
    sweep(keep=set(), older_than=read_clock() - timedelta(hours=1))
    assert path_of(sha256).exists()


@pytest.mark.django_db
def test_sweep_keeps_what_versions_name(monkeypatch):
    version = submit(make_player(), "alpha")
    orphan = put_blob(b"left by a crash")
    later = read_clock() + KEPT_FOR + timedelta(minutes=1)
    monkeypatch.setattr("tournament.competitions.services.sweeping.read_clock", lambda: later)
    assert sweep_blobs() >= 1
    assert path_of(version.wheel_sha256).exists()
    assert not path_of(orphan).exists()


@pytest.mark.django_db
def test_pulse_beats_again_only_after_its_pause():
    assert beat(name="test", at_least_seconds=60)
    assert not beat(name="test", at_least_seconds=60)
    assert beat(name="test", at_least_seconds=0)
