"""Pairs of two players: invited, and entered only by who agrees."""

from __future__ import annotations

import pytest

from tests.tournament_factories import make_bot, make_player, make_tournament, start
from tournament.competitions import services
from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import Entrant, InvitationState, Notice, PairInvitation
from tournament.competitions.selectors import invitations_of
from tournament.competitions.services.invitations import MOST_SENT

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return make_player("ann")


@pytest.fixture
def bob():
    return make_player("bob")


@pytest.fixture
def alpha(ann):
    return make_bot("alpha", ann)


@pytest.fixture
def beta(bob):
    return make_bot("beta", bob)


def pairs(**changes):
    return make_tournament(name="Cup", kind="pair", **changes)


def invite(cup, bot, invited, **changes):
    return services.invite_partner(
        tournament=cup, bot=bot, invited=invited, by=bot.owner, **changes
    )


def told(player) -> list[str]:
    return list(Notice.objects.filter(player=player).order_by("pk").values_list("text", flat=True))


def test_pair_enters_when_the_other_owner_accepts(ann, bob, alpha, beta):
    cup = pairs()
    invitation = invite(cup, alpha, beta, name="The Pair")
    assert not Entrant.objects.exists()
    assert "ann invites your bot beta" in told(bob)[0]
    entrant = services.accept_invitation(invitation=invitation, by=bob)
    assert entrant.name == "The Pair"
    assert [part.bot for part in entrant.bots.all()] == [alpha, beta]
    assert "bob has accepted" in told(ann)[-1]
    assert not invitations_of(cup, ann).exists()


def test_nobody_answers_for_another(ann, alpha, beta):
    invitation = invite(pairs(), alpha, beta)
    staff = make_player("olga")
    staff.is_staff = True
    staff.save()
    for other in (ann, make_player("eve"), staff):
        with pytest.raises(EntryError, match="not yours"):
            services.accept_invitation(invitation=invitation, by=other)
        with pytest.raises(EntryError, match="not yours"):
            services.decline_invitation(invitation=invitation, by=other)
    assert not Entrant.objects.exists()
    invitation.refresh_from_db()
    assert invitation.state == InvitationState.OPEN


def test_who_declines_does_not_enter_and_cannot_accept_later(ann, bob, alpha, beta):
    invitation = invite(pairs(), alpha, beta)
    services.decline_invitation(invitation=invitation, by=bob)
    assert "bob has declined" in told(ann)[-1]
    with pytest.raises(EntryError, match="declined"):
        services.accept_invitation(invitation=invitation, by=bob)


def test_invitation_can_be_taken_back_by_who_sent_it_alone(ann, bob, alpha, beta):
    invitation = invite(pairs(), alpha, beta)
    with pytest.raises(EntryError, match="not an invitation of yours"):
        services.withdraw_invitation(invitation=invitation, by=bob)
    services.withdraw_invitation(invitation=invitation, by=ann)
    assert "taken back" in told(bob)[-1]
    with pytest.raises(EntryError, match="taken back"):
        services.accept_invitation(invitation=invitation, by=bob)


def test_nobody_is_told_of_invitations_without_end(ann, bob, alpha, beta):
    cup = pairs()
    PairInvitation.objects.bulk_create(
        PairInvitation(tournament=cup, bot=alpha, invited=beta, state=InvitationState.WITHDRAWN)
        for _ in range(MOST_SENT - 1)
    )
    services.withdraw_invitation(invitation=invite(cup, alpha, beta), by=ann)
    with pytest.raises(EntryError, match=f"you have sent {MOST_SENT} invitations"):
        invite(cup, alpha, beta)
    assert len(told(bob)) == 2, "of the one that was sent, and of its being taken back"


def test_what_nobody_answered_expires_at_the_close(ann, bob, alpha, beta):
    cup = pairs()
    invitation = invite(cup, alpha, beta)
    services.close_tournament(tournament=cup, now=cup.closes_at)
    invitation.refresh_from_db()
    assert invitation.state == InvitationState.EXPIRED
    assert "entries are closed" in told(ann)[-1]
    with pytest.raises(TournamentStateError, match="not open"):
        services.accept_invitation(invitation=invitation, by=bob)


@pytest.mark.parametrize("leaver", ["ann", "bob"])
def test_either_takes_the_pair_out_and_the_other_is_told(ann, bob, alpha, beta, leaver):
    cup = pairs()
    entrant = services.accept_invitation(invitation=invite(cup, alpha, beta), by=bob)
    who, other = (ann, bob) if leaver == "ann" else (bob, ann)
    services.leave(entrant=entrant, by=who)
    assert not Entrant.objects.exists()
    assert f"{leaver} has taken alpha + beta out" in told(other)[-1]


def test_withdrawing_from_a_running_tournament_tells_the_other(ann, bob, alpha, beta):
    cup = pairs()
    entrant = services.accept_invitation(invitation=invite(cup, alpha, beta), by=bob)
    gamma, delta = make_bot("gamma", ann), make_bot("delta", ann)
    services.enter(tournament=cup, bots=[gamma, delta], by=ann)
    start(cup)
    services.withdraw_entrant(entrant=entrant, by=ann)
    assert "ann has taken alpha + beta out" in told(bob)[-1]


def test_other_invitations_of_the_two_end_when_they_have_entered(ann, bob, alpha, beta):
    cup = pairs()
    eve = make_player("eve")
    gamma = make_bot("gamma", eve)
    first, second = invite(cup, alpha, beta), invite(cup, gamma, beta)
    services.accept_invitation(invitation=first, by=bob)
    second.refresh_from_db()
    assert second.state == InvitationState.DECLINED
    assert "entered with another" in told(eve)[-1]


@pytest.mark.parametrize("most", [1, 2])
def test_open_invitation_holds_a_place_among_its_senders_bots(ann, alpha, beta, most):
    cup = pairs(max_bots_per_player=most)
    invite(cup, alpha, beta)
    aces, asp = make_bot("aces", ann), make_bot("asp", ann)
    with pytest.raises(EntryError, match=f"at most {most} bot"):
        services.enter(tournament=cup, bots=[aces, asp], by=ann)
    if most == 1:
        with pytest.raises(EntryError, match="take one back first"):
            invite(cup, aces, beta)


def test_limits_count_when_the_pair_enters(ann, bob, alpha, beta):
    cup = pairs(max_bots_per_player=2)
    invitation = invite(cup, alpha, beta)
    services.enter(tournament=cup, bots=[make_bot("bricks", bob), make_bot("brisk", bob)], by=bob)
    with pytest.raises(EntryError, match="at most 2 bots of a player"):
        services.accept_invitation(invitation=invitation, by=bob)
    assert Entrant.objects.count() == 1
    invitation.refresh_from_db()
    assert invitation.state == InvitationState.OPEN


def test_invitation_that_could_not_be_is_refused(ann, bob, alpha, beta):
    cup = pairs()
    aces = make_bot("aces", ann)
    with pytest.raises(EntryError, match="both bots are yours"):
        invite(cup, alpha, aces)
    with pytest.raises(EntryError, match="not yours"):
        services.invite_partner(tournament=cup, bot=beta, invited=alpha, by=ann)
    with pytest.raises(EntryError, match="not for pairs"):
        invite(make_tournament(name="Mono"), alpha, beta)
    invite(cup, alpha, beta)
    with pytest.raises(EntryError, match="invited beta already"):
        invite(cup, alpha, beta)
    with pytest.raises(EntryError, match="accept that"):
        invite(cup, beta, alpha)
    with pytest.raises(EntryError, match="1 to 80"):
        invite(cup, aces, beta, name="x" * 81)
    assert PairInvitation.objects.count() == 1


def test_player_floods_nobody_with_invitations(ann, alpha, bob, monkeypatch):
    monkeypatch.setattr("tournament.competitions.services.invitations.MOST_OPEN", 2)
    cup = pairs()
    for number in range(2):
        invite(cup, alpha, make_bot(f"b{number}", bob))
    with pytest.raises(EntryError, match="2 invitations of yours are open"):
        invite(cup, alpha, make_bot("b9", bob))


def test_bot_that_cannot_play_is_not_invited(ann, alpha, bob):
    cup = pairs()
    rejected = make_bot("beta", bob)
    rejected.versions.all().delete()
    with pytest.raises(EntryError, match="no version that could play"):
        invite(cup, alpha, rejected)
