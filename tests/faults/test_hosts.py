"""Two worker hosts that share PostgreSQL, Valkey and the store, and nothing else; one is cut off."""

from __future__ import annotations

import pytest

from tests.faults import oracle
from tests.faults.cups import make_event, start_cup
from tests.faults.harness import Site
from tournament.competitions.models import Attempt, AttemptEnding, Match, MatchState
from tournament.players.models import Bot

pytestmark = [
    pytest.mark.faults,
    pytest.mark.stack,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.exhaustive,
]


def start_two_hosts(site: Site) -> None:
    site.slots = 2
    site.start_broker()
    site.start_control()
    site.start_beat()
    for host in ("north", "south"):
        site.connect(host)
        site.start_worker(f"{host}-worker", host=host)


@pytest.mark.parametrize(
    "cut",
    [
        "cable",  # nothing comes through, and nobody is told
        "line",  # connections are refused and reset
        "power",  # the whole host is gone
    ],
)
def test_host_that_is_cut_off_in_the_middle_loses_nothing(site: Site, cut: str):
    event = make_event(site, bots=5, pause=0.05)
    start_two_hosts(site)
    worker = site.programs["south-worker"]
    lines = [program for name, program in site.programs.items() if name.endswith("of south")]
    there = Match.objects.filter(state=MatchState.RUNNING)
    match = site.wait_until(
        lambda: next((m for m in there.all() if site.player_of(m) in worker.children()), None),
        what="a match on the host in the south",
    )
    for program in [worker, *lines] if cut == "power" else lines:
        program.freeze() if cut == "cable" else program.kill()
    assert {program.is_running for program in lines} == {cut == "cable"}
    site.play_out(event.tournaments)
    assert not match.tries.filter(fence=match.fence, ending=AttemptEnding.RECORDED).exists()
    played = Attempt.objects.filter(ending=AttemptEnding.RECORDED)
    before = set(played.values_list("pk", flat=True))
    for program in lines:  # the host is back, and late
        program.thaw() if cut == "cable" else program.start()
    worker.start()
    site.programs["north-worker"].kill()  # now the south plays alone
    again = start_cup(list(Bot.objects.order_by("pk")[:3]), name="Cup of the South")
    site.play_out([again])
    later = played.exclude(pk__in=before).values_list("match__tournament", flat=True)
    assert set(later) == {again.pk}, "the late result was written"
    site.tally.judged(oracle.judge([again]))
    event.judge(site)
