"""``manage.py ratings``: what differs is told by name, and mended by a rebuild."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from tests.tournament_factories import make_bot
from tournament.leaderboards.models import Rating, RatingEvent, RatingPool, RatingStep
from tournament.leaderboards.services import RatedResult, RatedTeam, append_results

pytestmark = pytest.mark.django_db


def manage(*arguments: str) -> tuple[int, str]:
    """The exit code, and what was printed."""
    out = io.StringIO()
    try:
        call_command("ratings", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def rated():
    """A match of Eighty that alpha won against beta."""
    for name in ("alpha", "beta"):
        make_bot(name)
    teams = tuple(RatedTeam(((name, "1.0"),), place) for place, name in ((1, "alpha"), (2, "beta")))
    append_results(game="eighty", kind="mono", results=[RatedResult("cup/M1", teams)])


def test_ratings_that_follow_from_the_log_are_good(rated):
    assert manage("verify") == (0, "eighty/mono, 1 events: all is as the log says.\n")


def test_difference_is_told_with_bot_version_and_both_values(rated):
    Rating.objects.filter(bot__name="beta").update(mu=40.5)
    code, said = manage("verify")
    assert code == 1
    assert "1 difference" in said
    assert "beta 1.0, rating: stored mu 40.5, sigma 8.0659" in said
    assert "the log says mu 22.364610507, sigma 8.0659" in said
    assert Rating.objects.get(bot__name="beta").mu == 40.5  # looked at, not touched


def test_rebuild_mends_and_says_what_it_changed(rated):
    RatingStep.objects.filter(version__bot__name="alpha").update(mu=0)
    code, said = manage("rebuild", "--game", "eighty")
    assert code == 0
    assert "1 difference, mended" in said
    assert "alpha 1.0, after event 1: stored mu 0.0" in said
    assert manage("verify")[0] == 0
    assert manage("rebuild") == (0, "eighty/mono, 1 events: all is as the log says.\n")


def test_json_has_every_difference(rated):
    Rating.objects.filter(bot__name="alpha").update(rank=9)
    RatingStep.objects.filter(version__bot__name="beta").delete()
    code, said = manage("verify", "--json")
    answer = json.loads(said)
    assert (code, answer["action"], answer["good"]) == (1, "verify", False)
    (pool,) = answer["pools"]
    assert (pool["game"], pool["kind"], pool["events"]) == ("eighty", "mono", 1)
    step, place = pool["differences"]
    assert (step["bot"], step["what"], step["seq"], step["stored"]) == ("beta", "step", 1, None)
    assert (place["bot"], place["what"]) == ("alpha", "place")
    assert (place["stored"]["rank"], place["replayed"]["rank"]) == (9, 1)
    assert json.loads(manage("rebuild", "--json")[1])["pools"] == [pool]
    assert json.loads(manage("verify", "--json")[1])["good"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--game", "chess"], id="no such game"),
        pytest.param(["--kind", "trio"], id="no such kind"),
        pytest.param(["--game", "podkidnoe", "--kind", "mono"], id="not this game's kind"),
    ],
)
def test_unknown_pool_is_refused_with_those_there_are(arguments):
    with pytest.raises(CommandError, match="there are: eighty/mono, eighty/pair") as refused:
        manage("verify", *arguments)
    assert refused.value.returncode == 2


def test_known_pool_without_a_match_has_nothing_to_verify():
    assert manage("verify", "--kind", "ffa") == (0, "Nothing was ever rated there.\n")


def test_log_that_cannot_be_replayed_is_told(rated):
    RatingEvent.objects.create(
        pool=RatingPool.objects.get(), seq=2, kind="void", match_key="cup/M9", teams=[]
    )
    with pytest.raises(
        CommandError, match="eighty mono: the log cannot be replayed: event 2 voids"
    ):
        manage("verify")


def test_long_list_is_cut_for_people(rated):
    for number in range(2, 60):
        teams = (RatedTeam((("alpha", "1.0"),), 1), RatedTeam((("beta", "1.0"),), 2))
        append_results(game="eighty", kind="mono", results=[RatedResult(f"cup/M{number}", teams)])
    RatingStep.objects.all().delete()
    code, said = manage("verify")
    assert code == 1
    assert "… and 68 more; --json has them all" in said
