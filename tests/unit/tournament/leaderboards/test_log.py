"""The log of a pool only grows, and the ratings are what its fold says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import ratings
from engine.errors import UsageError
from engine.ratings import Rating as EngineRating
from tests.tournament_factories import accept, make_bot, submit
from tournament.leaderboards import selectors, services
from tournament.leaderboards.errors import LogError
from tournament.leaderboards.models import (
    AppendOnlyError,
    EventKind,
    Rating,
    RatingEvent,
    RatingPool,
    RatingStep,
)
from tournament.leaderboards.services import RatedResult, RatedTeam
from tournament.players.models import Bot, BotVersion

pytestmark = pytest.mark.django_db
POOL = {"game": "eighty", "kind": "mono"}


def result(number: int, *places: tuple[str, int], version: str = "1.0") -> RatedResult:
    return RatedResult(
        match_key=f"cup/M{number}",
        teams=tuple(RatedTeam(members=((bot, version),), place=place) for bot, place in places),
    )


def append(*results: RatedResult) -> int:
    return services.append_results(results=results, **POOL)


def ranking() -> list[tuple[int, str]]:
    return [(row.rank, row.bot) for row in selectors.leaderboard_page(**POOL).rows]


def stored() -> dict[str, tuple[float, float, int, int, int, int | None]]:
    return {
        str(row.version): (row.mu, row.sigma, row.matches, row.wins, row.ties, row.rank)
        for row in Rating.objects.select_related("version__bot")
    }


@pytest.fixture
def bots():
    return [make_bot(name) for name in ("alpha", "beta", "gamma")]


@pytest.fixture
def newer(bots):
    """A second version of alpha, which begins where the first one stands."""
    return accept(submit(bots[0].owner, "alpha", "2.0"))


def test_result_rates_its_versions(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    ratings_of = stored()
    assert ratings_of["alpha 1.0"][:2] == (27.635389493, 8.065901414)
    assert ratings_of["alpha 1.0"][2:] == (1, 1, 0, 1)
    assert ratings_of["beta 1.0"][2:] == (1, 0, 0, 2)


def test_events_are_numbered_without_gaps_in_the_order_given(bots):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("beta", 1), ("gamma", 2)))
    append(result(3, ("gamma", 1), ("alpha", 2)))
    events = RatingEvent.objects.order_by("seq").values_list("seq", "match_key")
    assert list(events) == [(1, "cup/M1"), (2, "cup/M2"), (3, "cup/M3")]
    assert RatingPool.objects.get().last_seq == 3


def test_repeated_result_is_left_out(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    before = stored()
    assert append(result(1, ("beta", 1), ("alpha", 2))) == 0
    assert stored() == before


def test_result_and_ratings_come_together_or_not_at_all(bots, monkeypatch):
    monkeypatch.setattr(services, "_rank", lambda pool: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        append(result(1, ("alpha", 1), ("beta", 2)))
    assert not RatingEvent.objects.exists()
    assert not Rating.objects.exists()


def test_unknown_version_is_refused(bots):
    with pytest.raises(LogError, match="nobody"):
        append(result(1, ("alpha", 1), ("nobody", 2)))
    assert not RatingEvent.objects.exists()


def test_log_cannot_be_changed(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    event = RatingEvent.objects.get()
    for attempt in (
        event.save,
        event.delete,
        lambda: RatingEvent.objects.update(seq=9),
        RatingEvent.objects.all().delete,
        lambda: RatingEvent.objects.bulk_update([event], ["seq"]),
    ):
        with pytest.raises(AppendOnlyError):
            attempt()


def test_database_refuses_two_results_of_one_match(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    with pytest.raises(IntegrityError), transaction.atomic():
        RatingEvent.objects.create(
            pool=RatingPool.objects.get(), seq=2, kind="result", match_key="cup/M1", teams=[]
        )


def test_voided_result_counts_as_if_it_had_never_been(bots):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("beta", 1), ("gamma", 2)))
    services.void_results(match_keys=["cup/M1"], **POOL)
    assert "alpha 1.0" not in stored()
    voided = stored()
    assert RatingEvent.objects.count() == 3
    assert RatingStep.objects.filter(event__match_key="cup/M1").count() == 0
    assert voided["beta 1.0"][:2] == (27.635389493, 8.065901414)


def test_void_then_unvoid_is_the_original(bots):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("beta", 1), ("alpha", 2)))
    before = stored()
    services.void_results(match_keys=["cup/M1"], **POOL)
    assert stored() != before
    services.unvoid_results(match_keys=["cup/M1"], **POOL)
    assert stored() == before


@pytest.mark.parametrize(
    ("act", "key"),
    [
        ("void_results", "cup/M9"),  # no such match
        ("void_results", "cup/M1"),  # void already
        ("unvoid_results", "cup/M2"),  # counts
    ],
)
def test_event_that_says_nothing_new_is_refused(bots, act, key):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("beta", 1), ("alpha", 2)))
    services.void_results(match_keys=["cup/M1"], **POOL)
    with pytest.raises(LogError):
        getattr(services, act)(match_keys=[key], **POOL)
    assert RatingEvent.objects.count() == 3


def test_preview_tells_what_voiding_would_change_and_changes_nothing(bots):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("beta", 1), ("gamma", 2)))
    before = stored()
    changes = selectors.preview_void(match_keys=["cup/M1"], **POOL)
    assert stored() == before
    services.void_results(match_keys=["cup/M1"], **POOL)
    after = {row.version_id: EngineRating(row.mu, row.sigma) for row in Rating.objects.all()}
    assert {change.version: change.after for change in changes} == {
        bots[0].versions.get().pk: None,
        **after,
    }


def test_verify_finds_what_was_tampered_with_and_rebuild_mends_it(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    before = stored()
    assert services.verify_ratings(**POOL) == ()
    Rating.objects.filter(bot__name="beta").update(mu=99)
    (found,) = services.verify_ratings(**POOL)
    assert found.version_id == bots[1].versions.get().pk
    assert (found.stored.rating.mu, found.replayed.rating.mu) == (99, before["beta 1.0"][0])
    assert services.rebuild_ratings(**POOL) == (found,)
    assert services.verify_ratings(**POOL) == ()
    assert stored() == before


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(
            lambda: Rating.objects.filter(bot__name="beta").delete(), id="a rating is gone"
        ),
        pytest.param(lambda: Rating.objects.update(wins=7), id="wins that never were"),
        pytest.param(lambda: RatingStep.objects.update(sigma=1.0), id="another history"),
        pytest.param(lambda: RatingStep.objects.all().delete(), id="no history"),
        pytest.param(lambda: Rating.objects.update(rank=5), id="another place"),
        pytest.param(lambda: Rating.objects.update(is_listed=False), id="not listed"),
        pytest.param(
            lambda: Rating.objects.create(
                pool=RatingPool.objects.get(),
                version=BotVersion.objects.get(bot__name="gamma"),
                bot=Bot.objects.get(name="gamma"),
                mu=50,
                sigma=1,
                shown=47,
            ),
            id="a rating without a match",
        ),
    ],
)
def test_anything_but_what_the_log_says_is_found_and_mended(bots, tamper):
    append(result(1, ("alpha", 1), ("beta", 2)))
    before, steps = (
        stored(),
        list(RatingStep.objects.values_list("event__seq", "version", "mu", "sigma")),
    )
    tamper()
    found = services.verify_ratings(**POOL)
    assert found
    assert services.rebuild_ratings(**POOL) == found
    assert services.verify_ratings(**POOL) == ()
    assert stored() == before
    assert list(RatingStep.objects.values_list("event__seq", "version", "mu", "sigma")) == steps


def test_pool_in_which_nothing_was_rated_cannot_be_verified():
    with pytest.raises(LogError, match="nothing was ever rated in eighty/mono"):
        services.verify_ratings(**POOL)


def test_void_leaves_alone_what_came_before_it_and_who_never_met_its_players(bots):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("beta", 1), ("gamma", 2)))
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    Rating.objects.update(changed_at=long_ago)
    first = set(RatingStep.objects.filter(event__seq=1).values_list("pk", flat=True))
    services.void_results(match_keys=["cup/M2"], **POOL)
    assert set(RatingStep.objects.values_list("pk", flat=True)) == first
    assert Rating.objects.get(bot=bots[0]).changed_at == long_ago
    assert Rating.objects.get(bot=bots[1]).changed_at > long_ago
    assert services.verify_ratings(**POOL) == ()


def test_history_without_its_rating_stops_a_void_with_what_to_do(bots):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("beta", 1), ("gamma", 2)))
    Rating.objects.filter(bot=bots[1]).delete()
    with pytest.raises(UsageError, match="rebuild the ratings"):
        services.void_results(match_keys=["cup/M2"], **POOL)
    assert RatingEvent.objects.count() == 2


def test_several_results_are_voided_at_once_and_a_repeated_key_counts_once(bots):
    append(*(result(i, ("alpha", 1), ("beta", 2)) for i in range(1, 5)))
    services.void_results(match_keys=["cup/M4", "cup/M2", "cup/M4"], **POOL)
    assert RatingEvent.objects.filter(kind="void").count() == 2
    assert stored()["alpha 1.0"][2] == 2
    assert services.verify_ratings(**POOL) == ()


def test_nothing_to_void_changes_nothing(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    services.void_results(match_keys=[], **POOL)
    assert RatingEvent.objects.count() == 1


def test_equal_numbers_share_a_rank(bots):
    append(result(1, ("alpha", 1), ("beta", 1), ("gamma", 3)))
    assert ranking() == [(1, "alpha"), (1, "beta"), (3, "gamma")]


def test_new_version_starts_from_the_old_ones_mean(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    newer = accept(submit(bots[0].owner, "alpha", "2.0"))
    old = Rating.objects.get(version__bot__name="alpha")
    (strength,) = selectors.strengths(versions=[newer], **POOL).values()
    assert strength == round(old.mu - 3 * old.sigma, 9)  # σ is above 5, so it is inherited too


def test_settled_version_stands_for_its_bot_and_the_newer_one_beside_it(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    Rating.objects.filter(bot=bots[0]).update(sigma=1.9)  # as after some 200 matches
    accept(submit(bots[0].owner, "alpha", "2.0"))
    append(
        RatedResult(
            "cup/M2",
            (RatedTeam((("alpha", "2.0"),), 2), RatedTeam((("gamma", "1.0"),), 1)),
        )
    )
    row = next(r for r in selectors.leaderboard_page(**POOL).rows if r.bot == "alpha")
    assert row.line.version == "1.0"
    assert row.provisional is not None
    assert row.provisional.version == "2.0"


def test_without_a_settled_version_the_newest_stands_for_its_bot(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    accept(submit(bots[0].owner, "alpha", "2.0"))
    append(
        RatedResult(
            "cup/M2",
            (RatedTeam((("alpha", "2.0"),), 2), RatedTeam((("gamma", "1.0"),), 1)),
        )
    )
    row = next(r for r in selectors.leaderboard_page(**POOL).rows if r.bot == "alpha")
    assert (row.line.version, row.provisional) == ("2.0", None)
    assert Rating.objects.filter(bot=bots[0], is_listed=True).count() == 1


def test_pages_of_a_leaderboard_have_every_bot_once_in_order():
    names = [f"bot{number}" for number in range(7)]
    for name in names:
        make_bot(name)
    append(*(result(i, (name, 1), ("bot6", 2)) for i, name in enumerate(names[:6])))
    seen, after = [], None
    while True:
        page = selectors.leaderboard_page(size=3, after=after, **POOL)
        assert page.total == 7
        seen += [(row.rank, row.bot) for row in page.rows]
        after = page.after
        if after is None:
            break
    assert seen == ranking()
    assert sorted(bot for _, bot in seen) == names


@pytest.mark.parametrize("cursor", ["", "x", "1", "1-", "-1-2", "9" * 50 + "-1"])
def test_cursor_that_is_none_is_refused(cursor):
    with pytest.raises(LogError):
        selectors.leaderboard_page(after=cursor, **POOL)


def test_search_narrows_a_leaderboard_and_keeps_the_ranks(bots):
    append(result(1, ("alpha", 1), ("beta", 2)))
    page = selectors.leaderboard_page(search="BET", **POOL)
    assert [(row.rank, row.bot) for row in page.rows] == [(2, "beta")]


def test_leaderboard_without_a_log_is_empty():
    page = selectors.leaderboard_page(**POOL)
    assert (page.rows, page.after, page.total) == ((), None, 0)


def test_history_has_every_step_in_order(bots):
    append(result(1, ("alpha", 1), ("beta", 2)), result(2, ("alpha", 1), ("gamma", 2)))
    points = selectors.rating_history(bot=bots[0], **POOL)
    assert [point.match_key for point in points] == ["cup/M1", "cup/M2"]
    assert points[-1].mu == Rating.objects.get(bot=bots[0]).mu


VERSIONS = [("alpha", "1.0"), ("alpha", "2.0"), ("beta", "1.0"), ("gamma", "1.0")]


@st.composite
def matches(draw: st.DrawFn) -> tuple[RatedTeam, ...]:
    """Two to four entrants, or two pairs, in any order and with any ties."""
    chosen = draw(st.permutations(VERSIONS))[: draw(st.integers(2, 4))]
    if len(chosen) == 4 and draw(st.booleans()):
        sides = [tuple(chosen[:2]), tuple(chosen[2:])]
    else:
        sides = [(version,) for version in chosen]
    return tuple(RatedTeam(members, draw(st.integers(1, len(sides)))) for members in sides)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_ratings_kept_up_to_date_equal_a_replay_of_the_log(bots, newer, data):
    """After any results, voids and unvoids, in any order and any number at a time."""
    with transaction.atomic():
        counting: list[str] = []
        voided: list[str] = []
        for step in range(data.draw(st.integers(1, 7))):
            acts = ["append"] + ["void"] * bool(counting) + ["unvoid"] * bool(voided)
            act = data.draw(st.sampled_from(acts))
            if act == "append":
                size = data.draw(st.integers(1, 3))
                new = [RatedResult(f"cup/M{step}.{i}", data.draw(matches())) for i in range(size)]
                append(*new)
                counting += [each.match_key for each in new]
            else:
                take, give = (counting, voided) if act == "void" else (voided, counting)
                keys = data.draw(st.lists(st.sampled_from(take), min_size=1, unique=True))
                if act == "void":
                    foretold = selectors.preview_void(match_keys=keys, **POOL)
                    before = engine_ratings()
                    services.void_results(match_keys=keys, **POOL)
                    assert {c.version: c.after for c in foretold} == changed(before)
                else:
                    services.unvoid_results(match_keys=keys, **POOL)
                take[:] = [key for key in take if key not in keys]
                give += keys
            assert services.verify_ratings(**POOL) == ()
        before_rebuild = stored()
        assert services.rebuild_ratings(**POOL) == ()
        assert stored() == before_rebuild
        transaction.set_rollback(True)


def engine_ratings() -> dict[int, EngineRating]:
    return {row.version_id: EngineRating(row.mu, row.sigma) for row in Rating.objects.all()}


def changed(before: dict[int, EngineRating]) -> dict[int, EngineRating | None]:
    after = engine_ratings()
    versions = before.keys() | after.keys()
    return {v: after.get(v) for v in versions if before.get(v) != after.get(v)}


def test_pair_counts_both_its_members(bots):
    services.append_results(
        game="eighty",
        kind="pair",
        results=[
            RatedResult(
                "cup/M1",
                (
                    RatedTeam((("alpha", "1.0"), ("beta", "1.0")), 1),
                    RatedTeam((("gamma", "1.0"), (make_bot("delta").name, "1.0")), 2),
                ),
            )
        ],
    )
    assert stored()["alpha 1.0"][:2] == (26.964294622, 8.177962604)


def test_event_kinds_are_those_of_the_engine():
    assert set(EventKind.values) == {str(kind) for kind in ratings.EventKind}
