"""Blobs: kept under their hash, private, checked when read, swept when nobody names them."""

from __future__ import annotations

import hashlib
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch as patched

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages

from tests.tournament_factories import make_player, submit
from tournament import settings as site
from tournament.competitions.services import sweep_blobs
from tournament.competitions.services.sweeping import KEPT_FOR
from tournament.store.clock import read_clock
from tournament.store.errors import BlobDamagedError, BlobMissingError, StoreUnavailableError
from tournament.store.services import (
    beat,
    check_store,
    has_blob,
    put_blob,
    read_blob,
    read_often,
    sweep,
)


@pytest.fixture(scope="module")
def bucket():
    """A bucket on a server that speaks S3, on a port of its own: where it is, and boto's view of it."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "arena")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        found = boto3.resource("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        yield found.create_bucket(Bucket="arena-blobs")
    server.stop()


@pytest.fixture
def on_s3(bucket, settings, tmp_path):
    """The site keeps its blobs in that bucket; its server's address can be changed."""

    def use(endpoint: str = "", name: str = "arena-blobs"):
        address = f"s3://{name}/site?region=us-east-1&style=path&endpoint="
        found = site._store(address + (endpoint or bucket.meta.client.meta.endpoint_url), tmp_path)
        settings.STORAGES = {**settings.STORAGES, **found}

    use()
    return use


@pytest.fixture(params=["folder", "s3"])
def anywhere(request):
    """Each kind of store in turn: what puts other bytes under a hash."""
    if request.param == "folder":
        return lambda sha256, data: path_of(sha256).write_bytes(data)
    request.getfixturevalue("on_s3")
    bucket = request.getfixturevalue("bucket")
    return lambda sha256, data: bucket.put_object(Key=key_of(sha256), Body=data)


def key_of(sha256: str) -> str:
    return f"site/{sha256[:2]}/{sha256[2:]}"


def path_of(sha256: str) -> Path:
    return Path(storages["blobs"].path(f"{sha256[:2]}/{sha256[2:]}"))


def test_what_is_put_can_be_read_under_its_hash(anywhere):
    data = b"a wheel\x00"
    sha256 = put_blob(data)
    assert sha256 == hashlib.sha256(data).hexdigest()
    assert read_blob(sha256) == data
    assert has_blob(sha256)


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


def test_damaged_blob_is_refused_by_its_hash(anywhere):
    sha256 = put_blob(b"true")
    anywhere(sha256, b"lies")
    with pytest.raises(BlobDamagedError, match=sha256):
        read_blob(sha256)


def test_blob_that_was_cut_is_mended_by_putting_it_again(anywhere):
    sha256 = put_blob(b"whole")
    anywhere(sha256, b"who")
    assert read_blob(put_blob(b"whole")) == b"whole"


def test_object_is_written_once(on_s3, bucket):
    sha256 = put_blob(b"once")
    before = bucket.Object(key_of(sha256)).last_modified, bucket.Object(key_of(sha256)).e_tag
    with patched("tournament.store.s3.S3BlobStorage._save") as saved:
        assert put_blob(b"once") == sha256
    assert saved.call_count == 0
    assert before == (
        bucket.Object(key_of(sha256)).last_modified,
        bucket.Object(key_of(sha256)).e_tag,
    )


def test_old_object_is_renewed_by_putting_it_again(on_s3, bucket, monkeypatch):
    sha256 = put_blob(b"left by a crash")
    monkeypatch.setattr("tournament.store.s3._YOUNG_SECONDS", -1)
    with patched("tournament.store.s3.S3BlobStorage._save") as saved:
        put_blob(b"left by a crash")
    assert saved.call_count == 0
    assert read_blob(sha256) == b"left by a crash"
    assert bucket.Object(key_of(sha256)).metadata == {}


def test_object_is_private_and_below_the_prefix(on_s3, bucket):
    sha256 = put_blob(b"a wheel of mine")
    grants = bucket.Object(key_of(sha256)).Acl().grants
    assert [grant["Grantee"]["Type"] for grant in grants] == ["CanonicalUser"]
    with pytest.raises(ValueError, match="private"):
        storages["blobs"].url("ab/cd")


@pytest.mark.parametrize(
    ("endpoint", "name", "told"),
    [
        ("http://127.0.0.1:9", "arena-blobs", "connect"),  # nobody listens there
        ("", "no-such-bucket", "NoSuchBucket"),  # the operator has not made it
    ],
)
def test_store_that_cannot_be_used_is_no_missing_blob(on_s3, endpoint, name, told):
    on_s3(endpoint, name)
    for use in (lambda: put_blob(b"x"), lambda: read_blob("0" * 64), sweep_all):
        with pytest.raises(StoreUnavailableError, match=f"{told}.*ARENA_STORE"):
            use()


def sweep_all() -> int:
    return sweep(in_use=lambda _: (), older_than=datetime(2000, 1, 1, tzinfo=UTC))


def test_fork_makes_connections_of_its_own(on_s3):
    sha256 = put_blob(b"read by a child")
    ours = storages["blobs"]._client
    child = os.fork()
    if child == 0:
        fine = read_blob(sha256) == b"read by a child" and storages["blobs"]._client is not ours
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert storages["blobs"]._client is ours


def test_wheel_is_fetched_once_and_then_read_nearby(on_s3, bucket):
    sha256 = put_blob(b"a wheel")
    assert read_often(sha256) == b"a wheel"
    bucket.Object(key_of(sha256)).delete()
    assert read_often(sha256) == b"a wheel"
    nearby = Path(storages["nearby"].path(f"{sha256[:2]}/{sha256[2:]}"))
    nearby.write_bytes(b"a wreck")
    with pytest.raises(BlobMissingError):
        read_often(sha256)
    put_blob(b"a wheel")
    assert read_often(sha256) == b"a wheel" == nearby.read_bytes()


def test_what_is_kept_nearby_is_bounded(on_s3, settings):
    settings.NEARBY_BYTES = 25
    hashes = [put_blob(bytes(10) + bytes([number])) for number in range(3)]
    for age, sha256 in enumerate(hashes):
        read_often(sha256)
        path = Path(storages["nearby"].path(f"{sha256[:2]}/{sha256[2:]}"))
        os.utime(path, (age, age))
    kept = [path.parent.name + path.name for path in Path(storages["nearby"].location).glob("??/*")]
    assert sorted(kept) == sorted(hashes[1:])


@pytest.mark.parametrize(
    ("address", "backend", "options"),
    [
        (
            "",
            "BlobStorage",
            {"location": "/home/arena/blobs", "must_be_there": False},
        ),  # in the home
        (
            "/srv/blobs",
            "BlobStorage",
            {"location": "/srv/blobs", "must_be_there": True},
        ),  # mounted by several machines
        (
            "file:///srv/a%20b",
            "BlobStorage",
            {"location": "/srv/a b", "must_be_there": True},
        ),  # the same as an address
        ("s3://arena", "S3BlobStorage", {"bucket": "arena", "prefix": ""}),  # Amazon's own
        (
            "s3://arena/a/b?endpoint=https://s3.example.org:9000&style=path",
            "S3BlobStorage",
            {
                "bucket": "arena",
                "prefix": "a/b",
                "endpoint": "https://s3.example.org:9000",
                "style": "path",
            },
        ),
    ],
)
def test_store_is_where_its_address_says(address, backend, options):
    found = site._store(address, Path("/home/arena"))["blobs"]
    assert found["BACKEND"].rpartition(".")[2] == backend
    assert found["OPTIONS"] == options


@pytest.mark.parametrize(
    "address",
    [
        "blobs",  # of which folder?
        "file://host/srv",  # another machine's folder is mounted here first
        "s3://",  # no bucket
        "s3:///prefix",  # nor here
        "s3://arena?acl=public-read",  # blobs are private
        "gs://arena",  # speak S3 to it
    ],
)
def test_store_that_is_none_is_refused_with_what_to_write(address):
    with pytest.raises(ImproperlyConfigured, match=r"ARENA_STORE is .* write a folder"):
        site._store(address, Path("/home/arena"))


def test_folder_that_an_operator_names_and_that_is_away_is_told_and_not_made_anew(
    settings, tmp_path
):
    """As where a mount is missing: what was written into its place would be gone when it is back."""
    mounted, away = tmp_path / "mount" / "blobs", tmp_path / "unmounted"
    mounted.mkdir(parents=True)
    settings.STORAGES = {**settings.STORAGES, **site._store(str(mounted), tmp_path)}
    sha256 = put_blob(b"of the site")
    mounted.parent.rename(away)
    for ask in (lambda: put_blob(b"new"), lambda: read_blob(sha256), check_store):
        with pytest.raises(StoreUnavailableError, match="is not there; make it, or mount it"):
            ask()
    assert not mounted.parent.exists()
    away.rename(mounted.parent)
    assert read_blob(sha256) == b"of the site"
    with pytest.raises(BlobMissingError):
        read_blob("0" * 64)


def test_of_a_folder_nothing_is_kept_twice():
    assert "nearby" not in storages.backends
    sha256 = put_blob(b"near enough")
    assert read_often(sha256) == b"near enough"


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
def test_sweep_deletes_what_nobody_names_once_it_is_old(anywhere):
    named, orphan = put_blob(b"named"), put_blob(b"orphan")
    sweep(in_use=lambda _: {named}, older_than=read_clock() - timedelta(hours=1))
    assert has_blob(orphan)
    sweep(in_use=lambda _: {named}, older_than=read_clock() + timedelta(hours=1))
    assert has_blob(named)
    assert not has_blob(orphan)


@pytest.mark.django_db
def test_sweep_has_only_a_part_of_all_hashes_in_memory_at_a_time(anywhere):
    named = {put_blob(f"named {number}".encode()) for number in range(40)}
    left = {put_blob(f"left {number}".encode()) for number in range(40)}
    asked = []

    def in_use(start: str) -> set[str]:
        asked.append(start)
        return {sha256 for sha256 in named if sha256.startswith(start)}

    assert sweep(in_use=in_use, older_than=read_clock() + timedelta(hours=1)) >= len(left)
    assert "".join(asked) == "0123456789abcdef"
    assert all(has_blob(sha256) for sha256 in named)
    assert not any(has_blob(sha256) for sha256 in left)


@pytest.mark.django_db
def test_sweep_keeps_an_old_orphan_that_was_put_again_for_a_row_to_come():
    sha256 = put_blob(b"left by a crash, and uploaded again")
    os.utime(path_of(sha256), (0, 0))
    assert put_blob(b"left by a crash, and uploaded again") == sha256
    sweep(in_use=lambda _: (), older_than=read_clock() - timedelta(hours=1))
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
