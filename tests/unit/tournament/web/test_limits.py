"""What bots get, told to people and scripts by the numbers that the code goes by; and the workers, to staff."""

from __future__ import annotations

import msgspec
import pytest

from engine.cli.site_limits import SiteLimits, find_differences
from engine.sandbox.findings import Finding
from engine.sandbox.limits import limits_here
from engine.sdk.timecontrol import TIME_CONTROLS
from tournament.store.clock import in_seconds
from tournament.workers.models import WorkerReport

LIST = "/admin/workers/workerreport/"
FINDINGS = [
    Finding("level", "weak", "landlock; 13 forbidden things tried, all held", ("no namespaces",)),
    Finding("bubblewrap", "weak", "does not work here", ("<install it>",), "profile bwrap {}"),
    Finding("kernel", "ok", "6.12 on x86_64"),
]


def add_worker(name="matches@one", silent_seconds=0.0, **changes) -> WorkerReport:
    values = {
        "host": name.rpartition("@")[2],
        "level": "landlock",
        "findings": msgspec.to_builtins(FINDINGS),
        "python": "3.99.1",
        "packages": {"numpy": "9.9"},
        "rules_version": "arena-rules/1",
        "budget_percent": 170,
        **changes,
    }
    worker = WorkerReport.objects.create(name=name, **values)
    WorkerReport.objects.update(seen_at=in_seconds(-silent_seconds))
    return worker


def text_of(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.django_db
def test_page_tells_the_limits_that_are_enforced(client):
    page = text_of(client, "/limits/")
    here = limits_here()
    assert f"{here.wheel_files} in {here.wheel_folders} folders, each path with at most " in page
    assert f"at most {here.wheel_path_characters} characters" in page
    for name, version in here.packages.items():
        assert f'<th scope="row">{name}</th><td>{version}</td>' in page
    assert f"{here.python}, with its standard library" in page
    for told in ("256 MiB of address space", "120 MiB more", "64 KiB of", "8 KiB of its own"):
        assert told in page
    assert "<td>10 MiB</td>" in page  # a wheel
    assert "<td>20 MiB, and no more than 200 times the size</td>" in page
    for control in TIME_CONTROLS.values():
        assert f'<th scope="col" class="number">{control.name}</th>' in page
        assert f'<td class="number">{control.game_cpu_ms / 1000:g} s</td>' in page
    assert "arena doctor --server http://testserver" in page


@pytest.mark.django_db
def test_page_tells_how_fast_the_workers_are_without_their_names(client):
    assert "No worker was heard of in the last 90 seconds" in text_of(client, "/limits/")
    add_worker("matches@alder-host")
    add_worker("matches@alder-too")
    page = text_of(client, "/limits/")
    assert '<td>2</td><td class="number">170 %</td><td>3.99.1</td>' in page
    assert "alder" not in page


@pytest.mark.django_db
def test_guide_and_footer_lead_to_the_limits(client):
    assert text_of(client, "/guide/").count('href="/limits/"') == 2
    assert text_of(client, "/").count('href="/limits/"') == 1


@pytest.mark.django_db
def test_arena_reads_what_the_api_answers(client, settings):
    settings.WHEEL_MAX_BYTES = 5 << 20  # of a site that takes less
    add_worker()
    add_worker("matches@silent", silent_seconds=0)
    there = msgspec.json.decode(client.get("/api/limits").content, type=SiteLimits)
    assert [(worker.level, worker.budget_percent) for worker in there.workers] == [
        ("landlock", 170),
        ("landlock", 170),
    ]
    wheel = "a wheel: 5 MiB there, 10 MiB here"
    assert list(find_differences(limits_here(), there)) == [
        f"Python: 3.99.1 there, {limits_here().python} here",
        wheel,
    ]


@pytest.mark.django_db
def test_silent_workers_are_not_told_and_trusting_ones_have_no_walls(client):
    add_worker("matches@silent", silent_seconds=1000)
    assert client.get("/api/limits").json()["workers"] == []
    add_worker("matches@trusting", trusts_bots=True)
    WorkerReport.objects.filter(name="matches@silent").delete()
    assert [worker["level"] for worker in client.get("/api/limits").json()["workers"]] == [None]


@pytest.mark.django_db
def test_api_describes_the_limits(client):
    described = client.get("/api/openapi.json").json()
    answer = described["paths"]["/api/limits"]["get"]["responses"]["200"]
    name = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    fields = described["components"]["schemas"][name]["properties"]
    assert fields.keys() == set(SiteLimits.__struct_fields__)


def test_admin_shows_what_the_doctor_finds_on_each_host(olga):
    worker = add_worker()
    assert "level, bubblewrap" in text_of(olga, LIST)
    page = text_of(olga, f"{LIST}{worker.pk.replace('@', '_40')}/change/")
    for finding in FINDINGS:
        assert finding.text in page
    assert "<li>no namespaces</li>" in page
    assert "<li>&lt;install it&gt;</li>" in page
    assert "<pre>profile bwrap {}</pre>" in page
    assert "grants 170 % CPU time" in page
    assert "numpy 9.9" in page


def test_admin_shows_which_hosts_went_silent_and_which_play_no_bot(olga):
    add_worker("matches@gone", silent_seconds=1000)
    assert "silent since" in text_of(olga, LIST)
    WorkerReport.objects.all().delete()
    add_worker("matches@bare", level="")
    page = text_of(olga, LIST)
    assert "silent since" not in page
    assert "none: it plays no bot" in page
    WorkerReport.objects.all().delete()
    add_worker("matches@trusting", level="", trusts_bots=True)
    assert "none: bots are trusted, and no match is rated" in text_of(olga, LIST)


def test_worker_cannot_be_written_in_the_admin(root):
    add_worker()
    assert root.get(f"{LIST}add/").status_code == 403
    assert root.post(f"{LIST}matches_40one/delete/", {"post": "yes"}).status_code == 403
