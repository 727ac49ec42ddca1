"""`arena verify-tournament` on true, changed and broken bundles, as files and over the net."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

import msgspec
import pytest

from engine.bundle import encode_bundle
from engine.cli import verify_tournament
from engine.cli.downloads import fetch
from engine.cli.verify_tournament import bundle_address
from engine.errors import UsageError
from engine.formats.stages import StagePlan
from tests.bundles import played_bundle


@pytest.fixture(scope="module")
def document() -> bytes:
    plan = StagePlan(format="single_elimination", options={"third_place": True})
    return encode_bundle(played_bundle([plan], 4, leaves={0: 2}))


@pytest.fixture
def write(tmp_path):
    def write(name: str, data: bytes) -> str:
        (tmp_path / name).write_bytes(data)
        return name

    return write


@pytest.fixture
def site():
    """A server that answers each path with (status, headers, body)."""
    answers: dict[str, tuple[int, dict[str, str], bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answers.get(self.path, (404, {}, b"no"))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield answers, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_all_that_was_checked_is_told(arena, write, document):
    answer = arena("verify-tournament", write("cup.json", document))
    assert answer.code == 0
    first, *lines = answer.out.splitlines()
    assert first == "cup.json: true"
    told = {line[2:14].strip(): line[15:] for line in lines}
    assert told == {
        "tournament": "cup",
        "commitment": "fits the secret, and the published list the entrants",
        "deals": "12 deals dealt again from the secret",
        "matches": "3 matches replayed",
        "pairings": "4 pairings in 2 rounds of 1 stage paired again",
        "standings": "4 rows with their tie-breaks computed again",
        "ratings": "0 steps computed again",
        "digest": json.loads(document)["digest"],
        "as given": "seeds by the organiser's hand, 2 absences",
    }


def test_a_packed_bundle_is_the_same(arena, write, document):
    answer = arena("verify-tournament", write("cup.json.gz", gzip.compress(document)), "--json")
    assert answer.code == 0
    assert answer.json["true"] is True
    assert answer.json["checked"]["matches"] == 3
    assert answer.json["checked"]["digest"] == json.loads(document)["digest"]


def test_what_is_untrue_is_told_with_its_place(arena, write, document):
    changed = msgspec.json.decode(document)
    changed["stages"][0]["standings"][1]["wins"] += 1
    source = write("changed.json", msgspec.json.encode(changed))
    answer = arena("verify-tournament", source)
    assert answer.code == 1
    assert answer.out.startswith("changed.json: UNTRUE at stages[0].standings[1].wins: it must be ")
    answer = arena("verify-tournament", source, "--json")
    assert answer.code == 1
    assert answer.json["place"] == "stages[0].standings[1].wins"
    assert answer.json["checked"] is None


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("none.json", None, "cannot read none.json: no such file or directory"),
        ("wheel.whl", b"PK\x03\x04", "this is no bundle of a tournament: JSON"),
        ("record.json", b'{"format":"arena-match/1"}', "judge a record by arena verify"),
        ("cut.gz", gzip.compress(b"{}" * 99)[:-9], "cut.gz cannot be unpacked"),
        ("no.gz", b"\x1f\x8b\x00\x00", "no.gz cannot be unpacked"),
    ],
    ids=["no file", "a wheel", "a record", "a packed file that ends early", "no packed file"],
)
def test_what_cannot_be_judged_is_said_so(arena, write, name, data, message):
    if data is not None:
        write(name, data)
    answer = arena("verify-tournament", name)
    assert answer.code == 2
    assert answer.out == ""
    assert message in answer.err


def test_no_file_is_unpacked_beyond_all_bounds(arena, write, monkeypatch):
    monkeypatch.setattr(verify_tournament, "MOST_BYTES", 1 << 20)
    large = gzip.compress(Random(1).randbytes(1 << 19).hex().encode() + b"{}")
    answer = arena("verify-tournament", write("large.gz", large))
    assert answer.code == 2
    assert "large.gz is larger than 1 MiB" in answer.err
    bomb = gzip.compress(b'{"format":"arena-bundle/1","entrants":[' + b"0," * (1 << 18))
    answer = arena("verify-tournament", write("bomb.gz", bomb))
    assert answer.code == 2
    assert "bomb.gz unpacks to over 100 times its size" in answer.err
    answer = arena("verify-tournament", write("big.json", bytes((1 << 20) + 1)))
    assert "big.json is larger than 1 MiB" in answer.err


ADDRESSES = [
    # what a visitor has before him, and where its bundle lies
    ("https://a.example/tournaments/cup/", "https://a.example/api/tournaments/cup/bundle"),
    ("https://a.example/tournaments/cup?x=1#y", "https://a.example/api/tournaments/cup/bundle"),
    ("http://a:8000/arena/tournaments/cup/", "http://a:8000/arena/api/tournaments/cup/bundle"),
    ("https://a.example/api/tournaments/cup", "https://a.example/api/tournaments/cup/bundle"),
    ("https://a.example/files/cup.json.gz", "https://a.example/files/cup.json.gz"),
    (
        "https://a.example/api/tournaments/cup/bundle",
        "https://a.example/api/tournaments/cup/bundle",
    ),
]


@pytest.mark.parametrize(("given", "wanted"), ADDRESSES)
def test_the_address_of_a_page_leads_to_its_bundle(given, wanted):
    assert bundle_address(given) == wanted


def test_a_tournament_is_judged_by_the_address_of_its_page(arena, site, document):
    answers, url = site
    answers["/api/tournaments/cup/bundle"] = (200, {}, gzip.compress(document))
    assert arena("verify-tournament", f"{url}/tournaments/cup/").code == 0
    answers["/moved"] = (302, {"Location": f"{url}/tournaments/cup/bundle.json.gz"}, b"")
    answers["/tournaments/cup/bundle.json.gz"] = (200, {}, gzip.compress(document))
    assert arena("verify-tournament", f"{url}/moved").code == 0


def test_why_there_is_no_bundle_is_told_as_the_site_says_it(arena, site):
    answers, url = site
    body = b'{"error":{"code":"not_over","message":"Cup is not over (being played)"}}'
    answers["/api/tournaments/cup/bundle"] = (409, {}, body)
    answer = arena("verify-tournament", f"{url}/tournaments/cup/")
    assert answer.code == 2
    assert answer.err.endswith(
        "/api/tournaments/cup/bundle answers 409: Cup is not over (being played)\n"
    )
    answer = arena("verify-tournament", f"{url}/tournaments/other/")
    assert answer.code == 2
    assert answer.err.endswith("/api/tournaments/other/bundle answers 404\n")


@pytest.mark.parametrize(
    "source", ["file:///etc/passwd", "ftp://a.example/cup.json", "http:///cup", "data://x"]
)
def test_other_addresses_are_refused(arena, source):
    answer = arena("verify-tournament", source)
    assert answer.code == 2
    assert "is no address of a site: it begins with https:// or http://" in answer.err


def test_no_site_leads_to_a_file(site, tmp_path):
    answers, url = site
    (tmp_path / "cup.json").write_text("{}")
    answers["/file"] = (302, {"Location": (tmp_path / "cup.json").as_uri()}, b"")
    with pytest.raises(UsageError, match="302"):
        fetch(f"{url}/file", 100)


def test_a_download_is_bounded_in_size_and_time(site):
    answers, url = site
    answers["/big"] = (200, {}, bytes(3 << 20))
    with pytest.raises(UsageError, match="is larger than 1 MiB"):
        fetch(f"{url}/big", 1 << 20)
    with pytest.raises(UsageError, match="takes too long"):
        fetch(f"{url}/big", 9 << 20, most_seconds=-1)


def test_an_answer_that_is_cut_is_no_bundle(site):
    answers, url = site
    answers["/cut"] = (200, {"Content-Length": "99"}, b"{}")
    with pytest.raises(UsageError, match="broke off 97 bytes before its end"):
        fetch(f"{url}/cut", 100)


def test_a_site_that_does_not_answer_is_said_so():
    with pytest.raises(UsageError, match=r"cannot be read: .*refused"):
        fetch("http://127.0.0.1:9/cup", 100)
