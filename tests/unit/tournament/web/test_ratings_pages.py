"""What pages, API and admin show of ratings: intervals, newer versions, inactive bots, histories."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from engine.ratings import Rating
from tests.tournament_factories import accept, submit
from tournament.leaderboards import admin as rating_admin
from tournament.leaderboards import selectors
from tournament.leaderboards.models import Rating as StoredRating
from tournament.leaderboards.selectors import INACTIVE_AFTER, HistoryPoint
from tournament.leaderboards.services import RatedResult, RatedTeam, append_results, void_results
from tournament.store.clock import read_clock
from tournament.web import views
from tournament.web.charts import HEIGHT, WIDTH, draw_history

BOARD = "/leaderboards/eighty/mono/"


def rate(number: int, winner: tuple[str, str], loser: tuple[str, str]) -> None:
    teams = (RatedTeam((winner,), 1), RatedTeam((loser,), 2))
    append_results(game="eighty", kind="mono", results=[RatedResult(f"duel/M{number}", teams)])


@pytest.fixture
def newer_alpha(site) -> None:
    """alpha 1.0 is settled, and its 3.0 has played once."""
    StoredRating.objects.filter(bot__name="alpha").update(sigma=1.9)
    accept(submit(site.ann, "alpha", "3.0"))
    rate(1, ("alpha", "3.0"), ("bricks", "1.0"))


@pytest.fixture
def later(monkeypatch):
    """The site, so much later than its last match."""

    def move(ahead: timedelta) -> None:
        for module in (selectors, views, rating_admin):
            monkeypatch.setattr(module, "read_clock", lambda: read_clock() + ahead)

    return move


def row_of(page: str, bot: str) -> str:
    """The leaderboard's line of a bot, without tags."""
    rows = re.findall(r"<tr class=.*?</tr>", page, re.DOTALL)
    (found,) = [row for row in rows if f"/bots/{bot}/" in row]
    return found


def test_row_has_the_interval_and_the_newer_version_beside_the_settled_one(client, newer_alpha):
    row = row_of(client.get(BOARD).content.decode(), "alpha")
    line = next(
        r for r in selectors.leaderboard_page(game="eighty", kind="mono").rows if r.bot == "alpha"
    )
    assert (line.line.version, line.provisional.version) == ("1.0", "3.0")
    assert f"{line.line.low:.1f} – {line.line.high:.1f}" in row
    assert re.search(r"newer: 3\.0 at .*provisional", row, re.DOTALL)
    assert f"({line.provisional.low:.1f} – {line.provisional.high:.1f})" in row


def test_bot_without_a_match_for_long_is_marked_and_keeps_rank_and_rating(client, site, later):
    before = selectors.leaderboard_page(game="eighty", kind="mono").rows
    assert not any(row.is_inactive for row in before)
    assert "inactive" not in row_of(client.get(BOARD).content.decode(), "alpha")
    later(INACTIVE_AFTER + timedelta(hours=1))
    after = selectors.leaderboard_page(game="eighty", kind="mono").rows
    assert all(row.is_inactive for row in after)
    assert [(r.rank, r.bot, r.line) for r in after] == [(r.rank, r.bot, r.line) for r in before]
    assert 'class="badge ">inactive' in row_of(client.get(BOARD).content.decode(), "alpha")
    assert "inactive" in client.get("/bots/alpha/").content.decode()


def test_bots_last_match_is_that_of_whichever_version_played(newer_alpha):
    (old,) = StoredRating.objects.filter(bot__name="alpha", version__version="1.0")
    (row,) = [
        r for r in selectors.leaderboard_page(game="eighty", kind="mono").rows if r.bot == "alpha"
    ]
    assert row.last_match_at == row.provisional.last_match_at
    assert row.line.last_match_at < row.provisional.last_match_at
    assert row.line.version == old.version.version


def test_last_match_is_the_last_that_counts(site, bob):
    rate(1, ("alpha", "1.0"), ("beta", "1.0"))
    rows = {r.bot: r for r in selectors.leaderboard_page(game="eighty", kind="mono").rows}
    voided = rows["alpha"].last_match_at
    void_results(game="eighty", kind="mono", match_keys=["duel/M1"])
    rows = {r.bot: r for r in selectors.leaderboard_page(game="eighty", kind="mono").rows}
    assert rows["alpha"].last_match_at < voided


@pytest.mark.parametrize(
    ("ago", "inactive"),
    [
        pytest.param(timedelta(0), False, id="just played"),
        pytest.param(INACTIVE_AFTER, False, id="to the day"),
        pytest.param(INACTIVE_AFTER + timedelta(seconds=1), True, id="longer ago"),
        pytest.param(None, False, id="no match that is known"),
    ],
)
def test_inactive_is_who_did_not_play_for_longer_than_thirty_days(ago, inactive):
    now = datetime(2026, 12, 1, tzinfo=UTC)
    assert selectors.is_inactive(None if ago is None else now - ago, now) is inactive


def test_api_tells_intervals_last_match_and_inactivity(client, newer_alpha, later):
    later(INACTIVE_AFTER * 2)
    alpha = client.get("/api/leaderboards/eighty/mono?q=alpha").json()["rows"][0]
    assert alpha["is_inactive"] is True
    assert alpha["newer"]["version"] == "3.0"
    assert alpha["newer"]["low"] < alpha["newer"]["mu"] < alpha["newer"]["high"]
    assert alpha["last_match_at"] < alpha["newer"]["last_match_at"]


def test_api_has_the_history_with_its_interval(client, newer_alpha):
    found = client.get("/api/leaderboards/eighty/mono/bots/ALPHA").json()
    assert (found["bot"], found["game"], found["kind"]) == ("alpha", "eighty", "mono")
    assert found["points"][-1]["match"] == "duel/M1"
    assert found["points"][-1]["version"] == "3.0"
    for point in found["points"]:
        low, high = Rating(point["mu"], point["sigma"]).interval
        assert (point["low"], point["high"]) == (low, high)
    assert client.get("/api/leaderboards/podkidnoe/ffa/bots/aces").json()["points"] == []


@pytest.mark.parametrize("path", ["eighty/mono/bots/nobody", "chess/mono/bots/alpha"])
def test_history_of_what_is_not_there_is_404(client, site, path):
    assert client.get(f"/api/leaderboards/{path}").status_code == 404


def test_admin_tells_the_last_match_and_who_is_inactive(olga, site, later):
    assert ", inactive" not in olga.get("/admin/leaderboards/rating/").content.decode()
    later(INACTIVE_AFTER * 2)
    assert ", inactive" in olga.get("/admin/leaderboards/rating/").content.decode()
    ordered = olga.get("/admin/leaderboards/rating/?o=8")
    assert ordered.status_code == 200


def test_bot_page_draws_its_history_with_every_version(client, newer_alpha):
    page = client.get("/bots/alpha/").content.decode()
    assert page.count('<figure class="chart">') == 1
    assert page.count('class="band"') == page.count('class="line"') == 2
    now = selectors.rating_history(
        bot=StoredRating.objects.filter(bot__name="alpha").first().bot, game="eighty", kind="mono"
    )[-1]
    assert f"now {now.mu:.1f}" in page
    assert "style=" not in page  # the policy of the site forbids it


def test_bot_that_was_rated_once_has_no_chart(client, site):
    accept(submit(site.bob, "novice"))
    rate(1, ("alpha", "1.0"), ("novice", "1.0"))
    assert '<figure class="chart">' not in client.get("/bots/novice/").content.decode()


def point(seq: int, mu: float, sigma: float = 2.0, version: str = "1.0") -> HistoryPoint:
    rating = Rating(mu, sigma)
    low, high = rating.interval
    return HistoryPoint(
        seq=seq,
        match_key=f"m{seq}",
        at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=seq),
        version=version,
        mu=mu,
        sigma=sigma,
        shown=rating.shown,
        low=low,
        high=high,
    )


def corners(path: str) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in re.findall(r"-?[\d.]+,-?[\d.]+", path)]


def test_chart_holds_every_interval_and_spans_its_width():
    history = [point(seq, mu) for seq, mu in enumerate((25.0, 31.5, 28.0, 12.0), start=1)]
    chart = draw_history(history)
    (curve,) = chart.curves
    assert chart.scale == (40.0, 22.5, 5.0)  # 31.5 + 3.92 and 12 - 3.92, outwards to fives
    line, band = corners(curve.line), corners(curve.band)
    assert [x for x, _ in line] == pytest.approx([0, WIDTH / 3, 2 * WIDTH / 3, WIDTH], abs=0.1)
    assert [40 - y * 35 / HEIGHT for _, y in line] == pytest.approx(
        [each.mu for each in history], abs=0.05
    )
    highs = [each.high for each in history]
    lows = [each.low for each in reversed(history)]
    assert [40 - y * 35 / HEIGHT for _, y in band] == pytest.approx([*highs, *lows], abs=0.05)
    assert (chart.first, chart.last, chart.matches) == (history[0].at, history[-1].at, 4)


def test_chart_has_a_curve_for_each_version_also_of_a_single_match():
    history = [point(1, 25), point(2, 26), point(3, 26, 5, version="1.1")]
    first, second = draw_history(history).curves
    assert (first.version, first.matches, first.start) == ("1.0", 2, 0)
    assert (second.version, second.matches, second.start) == ("1.1", 1, WIDTH)
    assert len(set(corners(second.line))) == 1
    assert len(corners(second.line)) == 2  # a dot: a path of one point alone draws nothing


@pytest.mark.parametrize("history", [[], [point(1, 25)]], ids=["never rated", "rated once"])
def test_too_little_history_is_no_chart(history):
    assert draw_history(history) is None


def test_chart_of_ratings_that_never_move_has_a_height():
    chart = draw_history([point(1, 25, 1e-9), point(2, 25, 1e-9)])
    assert chart.scale[0] > chart.scale[-1]
