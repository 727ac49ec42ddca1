"""No form of another site acts for a player: every form of ours carries a token, and nothing goes without."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.unit.tournament.web.test_rights import PAGES, Visitors

FORM = re.compile(r"<form\b[^>]*>.*?</form>", re.DOTALL | re.IGNORECASE)


@pytest.mark.parametrize("role", ["nobody", "ann", "root"])
def test_every_form_that_is_posted_carries_a_token(site, role):
    visitors = Visitors(site)
    client = visitors.client(role)
    seen = 0
    bare = []
    for path in [*PAGES, "/tournaments/open-one/"]:
        answer = client.get(visitors.path(path))
        if not answer.headers.get("Content-Type", "").startswith("text/html"):
            continue
        for form in FORM.findall(answer.content.decode()):
            if 'method="post"' in form.lower():
                seen += 1
                if "csrfmiddlewaretoken" not in form:
                    bare.append(path)
    assert seen
    assert bare == []


def test_post_without_a_token_is_refused_on_every_page_that_takes_one(site):
    visitors = Visitors(site)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies["sessionid"] = visitors.cookies["ann"]
    taken = [path for path, (_, post) in PAGES.items() if post[1] in {200, 302, 422}]
    answers = {path: strict.post(visitors.path(path)).status_code for path in taken}
    exempt = {"/api/docs", "/api/openapi.json", "/favicon.ico"}  # they only show
    exempt.add("/account/mail/{stop}/stop/")  # its address is the secret, and mail programs post it
    assert {path for path, status in answers.items() if status != 403} <= exempt
