"""The site in a real browser, at a desk and on a phone."""

from __future__ import annotations

import pytest

from tournament.players.models import ApiToken, Player
from tournament.scrimmages.services import BatchPlay, play_batch

# The sequences are reset so that the rows of the site can be copied: their keys are the same each time.
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True, reset_sequences=True),
]

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PUBLIC = [
    "/",
    "/guide/",
    "/limits/",
    "/bots/",
    "/bots/alpha/",
    "/players/ann/",
    "/leaderboards/",
    "/leaderboards/eighty/mono/",
    "/tournaments/",
    "/tournaments/cup/",
    "/tournaments/table/",
    "/tournaments/open-one/",
    "/tournaments/cup/matches/SE/R2/M1/",
    "/account/sign-up/",
    "/account/log-in/",
    "/api/docs",
]
OWN = [
    "/account/",
    "/account/bots/",
    "/account/tokens/",
    "/account/upload/",
    "/scrimmages/",
    "/scrimmages/new/",
]
ADMIN = [
    "/admin/",
    "/admin/leaderboards/rating/",
    "/admin/competitions/tournament/",
    "/admin/competitions/tournament/add/",
    "/admin/competitions/match/",
    "/admin/players/botversion/",
    "/admin/workers/workerreport/",
]


NAMELESS = """
    [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button")]
        .filter(e => !(e.labels?.length || e.textContent.trim() || e.ariaLabel))
        .map(e => e.outerHTML)
"""


def too_wide(page) -> list[str]:
    """On which screens the page is too wide, and by how many pixels."""
    found = []
    for name, size in (("phone", PHONE), ("desk", DESK)):
        page.set_viewport_size(size)
        pixels = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if pixels > 0:
            found.append(f"{name}: {pixels}")
    return found


def complaints(page, path: str) -> list[str]:
    """What is wrong with a page of ours."""
    page.goto(path)
    found = [f"too wide on a {each}" for each in too_wide(page)]
    if path.endswith("/api/docs"):
        return found  # which another project draws
    found += [f"no name: {element}" for element in page.evaluate(NAMELESS)]
    headings = page.locator("h1").count()
    return found if headings == 1 else [*found, f"{headings} headings"]


def test_each_page_fits_every_screen_names_its_controls_and_has_one_heading(
    watched, live_server, site, log_in
):
    """And asks no other host, and keeps to its policy: `watched`."""
    wrong = {path: complaints(watched, live_server.url + path) for path in PUBLIC}
    log_in("ann")
    scrimmage = f"/scrimmages/{site.scrimmage.pk}/"
    shown = [f"/account/versions/{site.rejected.pk}/", scrimmage, f"{scrimmage}batches/1/"]
    wrong |= {path: complaints(watched, live_server.url + path) for path in [*OWN, *shown]}
    assert {path: found for path, found in wrong.items() if found} == {}


def test_admin_works_under_its_policy(watched, live_server, site, log_in):
    log_in("olga")
    wrong = {}
    for path in [*ADMIN, f"/admin/competitions/tournament/{site.table.pk}/change/"]:
        watched.goto(live_server.url + path)
        wrong[path] = too_wide(watched)
    assert {path: found for path, found in wrong.items() if found} == {}


def test_newcomer_signs_up_uploads_a_wheel_and_enters(watched, live_server, site, wheel_path):
    watched.goto(live_server.url)
    watched.get_by_role("link", name="Sign up").first.click()
    watched.get_by_label("Username").fill("nina")
    watched.get_by_label("Password", exact=True).fill("correct horse 9")
    watched.get_by_label("Password again").fill("correct horse 9")
    watched.get_by_role("button", name="Make the account").click()
    watched.get_by_label("Wheel", exact=True).set_input_files(wheel_path)
    watched.get_by_role("button", name="Upload").click()
    watched.get_by_role("heading", name="newcomer 1.0").wait_for()
    watched.goto(f"{live_server.url}/tournaments/open-one/")
    watched.get_by_role("button", name="Enter").click()
    assert "newcomer has entered Open One" in watched.locator(".messages").inner_text()
    assert site.open.entrants.filter(bots__bot__owner__username="nina").exists()


def test_token_is_made_and_shown_once(watched, live_server, site, log_in):
    log_in("ann")
    watched.goto(f"{live_server.url}/account/tokens/")
    watched.get_by_label("Name").fill("laptop")
    watched.get_by_role("button", name="Make it").click()
    text = watched.locator(".secret").inner_text()
    assert text.startswith(ApiToken.objects.get(player=site.ann).prefix + ".")
    watched.reload()  # sends the form again
    assert watched.locator(".secret").count() == 0
    assert "you have a token named laptop" in watched.locator("form .errorlist").first.inner_text()
    watched.goto(f"{live_server.url}/account/tokens/")
    assert watched.locator(".secret").count() == 0
    assert ApiToken.objects.filter(player=site.ann).count() == 1


def test_moments_are_shown_in_the_time_zone_of_the_browser(watched, live_server, site):
    watched.goto(f"{live_server.url}/tournaments/open-one/")
    moment = watched.locator("dd:has(time)").first.inner_text()
    assert "UTC" in moment
    assert "GMT+9" in moment


def test_keyboard_reaches_the_content_first(watched, live_server, site):
    watched.goto(live_server.url)
    watched.keyboard.press("Tab")
    watched.keyboard.press("Enter")
    assert watched.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_follows_the_viewers_colour_scheme(watched, live_server, site, scheme):
    watched.emulate_media(color_scheme=scheme)
    watched.goto(live_server.url)
    colours = watched.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    background, ink = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
    assert (background > ink) is (scheme == "light")


def test_organiser_pauses_and_resumes_a_tournament(watched, live_server, site, log_in):
    log_in("olga")
    watched.goto(f"{live_server.url}/admin/competitions/tournament/{site.table.pk}/change/")
    watched.get_by_role("link", name="Pause", exact=True).click()
    watched.get_by_label("Reason").fill("The hall is dark")
    watched.get_by_role("button", name="Pause").click()
    watched.get_by_text("Pause: done for Table").wait_for()
    site.table.refresh_from_db()
    assert site.table.paused_reason == "The hall is dark"
    watched.get_by_role("link", name="Resume", exact=True).click()
    watched.get_by_role("button", name="Resume").click()
    watched.get_by_text("Resume: done for Table").wait_for()
    site.table.refresh_from_db()
    assert site.table.paused_reason == ""


def test_admin_log_in_of_a_player_without_rights_leads_nowhere(watched, live_server, site, log_in):
    log_in("bob")
    watched.goto(f"{live_server.url}/admin/")
    assert "/admin/login/" in watched.url
    assert Player.objects.get(username="bob").is_staff is False


@pytest.mark.parametrize("name", ["ann", "olga"])
def test_head_of_the_page_takes_two_lines_on_a_phone(watched, live_server, site, log_in, name):
    watched.set_viewport_size(PHONE)
    log_in(name)
    tops = watched.evaluate(
        "[...document.querySelectorAll('.site-header li')].map(e => Math.round(e.getBoundingClientRect().top))"
    )
    assert len(set(tops)) == 2


def test_phone_shows_the_interval_and_the_whole_leaderboard(watched, live_server, site):
    watched.set_viewport_size(PHONE)
    watched.goto(f"{live_server.url}/leaderboards/eighty/mono/")
    assert watched.get_by_text("95 %: ").first.is_visible()
    scrolled = "e => e.scrollWidth - e.clientWidth"
    assert watched.locator(".table-scroll").evaluate(scrolled) == 0


def test_page_of_a_scrimmage_renews_itself_until_it_is_over(watched, live_server, site, log_in):
    log_in("ann")
    watched.goto(f"{live_server.url}/scrimmages/{site.scrimmage.pk}/")
    assert watched.get_by_role("heading", name="Numbers").is_visible()
    assert watched.locator("[data-live]").count() == 1
    assert play_batch(scrimmage_id=site.scrimmage.pk, trusted=True) is BatchPlay.RECORDED
    watched.wait_for_selector("main:not(:has([data-live]))")
    assert watched.get_by_role("link", name="M2").is_visible()
