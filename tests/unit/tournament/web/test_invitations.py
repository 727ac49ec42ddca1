"""Invitations to form a pair, by pages and by the API."""

from __future__ import annotations

import re

import pytest

from tests.tournament_factories import make_bot, make_player, make_tournament
from tournament.competitions import services
from tournament.competitions.models import Entrant, InvitationState, PairInvitation
from tournament.competitions.services.invitations import expire_invitations
from tournament.players import services as players

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return make_player("ann")


@pytest.fixture
def bob():
    return make_player("bob")


@pytest.fixture
def cup(ann, bob):
    make_bot("alpha", ann)
    make_bot("beta", bob)
    return make_tournament(name="Cup", kind="pair")


@pytest.fixture
def invitation(cup, ann, bob):
    return services.invite_partner(
        tournament=cup, bot=ann.bots.get(), invited=bob.bots.get(), by=ann
    )


def test_player_invites_and_the_owner_accepts_on_the_tournaments_page(client, cup, ann, bob):
    client.force_login(ann)
    assert "Form a pair with another player" in client.get("/tournaments/cup/").content.decode()
    client.post("/tournaments/cup/invite/", {"bot": "alpha", "invited": "Beta", "name": "Both"})
    mine = client.get("/tournaments/cup/").content.decode()
    assert "waits for the answer of bob" in mine
    assert 'value="accept"' not in mine
    client.force_login(bob)
    page = client.get("/tournaments/cup/").content.decode()
    assert "ann asks you" in page
    pk = PairInvitation.objects.get().pk
    client.post(f"/tournaments/cup/invitations/{pk}/", {"answer": "accept"})
    assert Entrant.objects.get().name == "Both"


def test_stranger_sees_and_answers_no_invitation(client, cup, invitation):
    client.force_login(make_player("eve"))
    assert "asks you" not in client.get("/tournaments/cup/").content.decode()
    answer = client.post(f"/tournaments/cup/invitations/{invitation.pk}/", {"answer": "accept"})
    assert answer.status_code == 404
    assert not Entrant.objects.exists()


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"bot": "alpha", "invited": "nobody"}, "there is no bot"),  # no such bot
        ({"bot": "beta", "invited": "alpha"}, "not a bot of yours"),  # another's
        ({"bot": "alpha", "invited": "alpha"}, "both bots are yours"),  # with itself
        ({}, "required"),  # nothing at all
    ],
)
def test_invitation_that_makes_no_sense_says_so(client, cup, ann, sent, says):
    client.force_login(ann)
    page = client.post("/tournaments/cup/invite/", sent, follow=True)
    assert says in page.content.decode()
    assert not PairInvitation.objects.exists()


def test_answer_that_is_none_changes_nothing(client, cup, invitation, bob):
    client.force_login(bob)
    path = f"/tournaments/cup/invitations/{invitation.pk}/"
    client.post(path, {"answer": "perhaps"})
    client.post(path, {"answer": "withdraw"})  # not bob's to take back
    assert client.post(f"/tournaments/cup/invitations/{10**30}/", {"answer": "accept"}).status_code
    invitation.refresh_from_db()
    assert invitation.state == InvitationState.OPEN


class TestApi:
    def call(self, client, player, method, path, body=None):
        token = players.create_token(player=player, scope="submit")[1]
        return getattr(client, method)(
            f"/api/tournaments/cup/invitations{path}",
            body,
            content_type="application/json",
            HTTP_AUTHORIZATION=f"Bearer {token}",
        )

    def test_invites_lists_and_accepts(self, client, cup, ann, bob):
        made = self.call(client, ann, "post", "", {"bot": "alpha", "invited": "beta"})
        assert made.status_code == 201
        assert made.json()["is_mine"]
        (listed,) = self.call(client, bob, "get", "").json()
        assert (listed["bot"], listed["invited"], listed["is_mine"]) == ("alpha", "beta", False)
        answer = self.call(client, bob, "post", f"/{listed['id']}/accept")
        assert answer.status_code == 201
        assert answer.json()["name"] == "alpha + beta"

    def test_declines_and_takes_back(self, client, cup, ann, bob, invitation):
        assert self.call(client, bob, "delete", f"/{invitation.pk}").status_code == 422
        assert self.call(client, bob, "post", f"/{invitation.pk}/decline").status_code == 204
        again = self.call(client, ann, "post", "", {"bot": "alpha", "invited": "beta"}).json()
        assert self.call(client, ann, "delete", f"/{again['id']}").status_code == 204
        assert not Entrant.objects.exists()

    def test_is_closed_to_strangers(self, client, cup, invitation):
        eve = make_player("eve")
        assert self.call(client, eve, "get", "").json() == []
        assert self.call(client, eve, "post", f"/{invitation.pk}/accept").status_code == 404
        assert self.call(client, eve, "post", f"/{10**30}/accept").status_code in {404, 422}
        refused = self.call(client, eve, "post", "", {"bot": "alpha", "invited": "beta"})
        assert refused.status_code == 404


def fields_on_page(client) -> list[str]:
    return re.findall(r'<(?:select|input)[^>]* id="([^"]+)"', client.get("/tournaments/cup/").text)


def test_forms_for_pairs_have_fields_of_their_own_and_fit_the_bots_that_one_has(client, cup, ann):
    client.force_login(make_player("newcomer"))
    assert "You have no bot yet" in client.get("/tournaments/cup/").text
    assert fields_on_page(client) == []
    client.force_login(ann)
    assert fields_on_page(client) == ["invite_bot", "invite_invited", "invite_name"]
    make_bot("aces", ann)
    fields = fields_on_page(client)
    assert len(fields) == len(set(fields)) == 5
    page = client.get("/tournaments/cup/").text
    partner = page[page.index('id="pair_partner"') :]
    assert '<option value="alpha" selected' in partner[: partner.index("</select>")]


@pytest.mark.parametrize("end", ["accepted", "declined", "withdrawn", "expired"])
def test_question_is_asked_no_more_once_it_is_answered(client, cup, invitation, ann, bob, end):
    client.force_login(bob)
    question = "ann invites your bot beta to enter Cup together with alpha"
    assert question in client.get("/account/bots/").text
    if end == "accepted":
        services.accept_invitation(invitation=invitation, by=bob)
    elif end == "declined":
        services.decline_invitation(invitation=invitation, by=bob)
    elif end == "withdrawn":
        services.withdraw_invitation(invitation=invitation, by=ann)
    else:
        expire_invitations(cup)
    assert question not in client.get("/account/bots/").text
