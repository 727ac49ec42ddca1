"""Accounts and tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError

from tests.tournament_factories import make_player
from tournament.players import services
from tournament.players.errors import AccountError, TokenError
from tournament.players.models import ApiToken, Player, TokenScope
from tournament.store.clock import read_clock

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 9"


def test_signed_up_player_can_log_in():
    player = services.sign_up(username="Ada", password=PASSWORD, time_zone="Europe/Paris")
    assert Player.objects.get(slug="ada") == player
    assert player.check_password(PASSWORD)
    assert player.time_zone == "Europe/Paris"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"username": "ada"}, "username"),  # taken
        ({"username": "ADA!"}, "username"),  # no user name at all
        ({"username": "A.da"}, None),  # slug "ada"? no: dots vanish, so it is "ada" and too similar
        ({"username": "house"}, "username"),  # reserved
        ({"username": "..."}, "username"),  # nothing that an address could be made of
        ({"password": "1234"}, "password"),  # short, common, all digits
        ({"time_zone": "Mars/Olympus"}, "time_zone"),  # no such zone
        ({"email": "nobody"}, "email"),  # no address
    ],
)
def test_account_that_cannot_be_made_says_which_field_to_change(changes, field):
    services.sign_up(username="ada", password=PASSWORD)
    with pytest.raises(AccountError) as caught:
        services.sign_up(**{"username": "eve", "password": PASSWORD, **changes})
    assert set(caught.value.fields) == {field or "username"}
    assert Player.objects.count() == 1


def test_every_wrong_field_is_named_at_once():
    with pytest.raises(AccountError) as caught:
        services.sign_up(username="", password="x", time_zone="?")
    assert set(caught.value.fields) == {"username", "password", "time_zone"}


def test_name_taken_in_the_same_moment_is_an_error_of_the_name(monkeypatch):
    make_player("ada")
    monkeypatch.setattr(Player, "full_clean", lambda self: None)
    with pytest.raises(AccountError) as caught:
        services.sign_up(username="ada", password=PASSWORD)
    assert set(caught.value.fields) == {"username"}


def test_account_made_by_a_command_has_an_address_of_its_own():
    make_player("ada")
    names = ["Ada", "ADA", "§"]
    slugs = [Player.objects.create_superuser(name, password=PASSWORD).slug for name in names]
    assert slugs == ["ada-2", "ada-3", "player"]


def test_nobody_can_log_in_as_the_house():
    house = services.ensure_house()
    assert services.ensure_house() == house
    assert not house.has_usable_password()


def test_token_lets_in_by_its_text():
    player = make_player()
    token, text = services.create_token(player=player, scope=TokenScope.SUBMIT, name="laptop")
    found = services.authenticate_token(text)
    assert (found, found.player, found.scope) == (token, player, "submit")


def test_two_tokens_in_use_have_two_names():
    player = make_player()
    token, _ = services.create_token(player=player, name="laptop")
    with pytest.raises(TokenError, match="named laptop"):
        services.create_token(player=player, name="laptop")
    services.revoke_token(token=token)
    services.create_token(player=player, name="laptop")


def test_only_the_hash_of_the_secret_is_kept():
    _, text = services.create_token(player=make_player())
    secret = text.split(".")[1]
    row = ApiToken.objects.values().get()
    assert not any(secret in str(value) for value in row.values())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",  # nothing
        lambda text: text.split(".")[0],  # the prefix alone
        lambda text: text.split(".")[0] + ".",  # an empty secret
        lambda text: text[:-1] + ("a" if text[-1] != "a" else "b"),  # another secret
        lambda text: "0" * 12 + "." + text.split(".")[1],  # another prefix
        lambda text: text + ".x",  # more than there is
    ],
)
def test_any_other_text_does_not_let_in(spoil):
    _, text = services.create_token(player=make_player())
    with pytest.raises(TokenError):
        services.authenticate_token(spoil(text))


def test_revoked_token_does_not_let_in():
    token, text = services.create_token(player=make_player())
    services.revoke_token(token=token)
    when = token.revoked_at
    services.revoke_token(token=token)
    assert token.revoked_at == when
    with pytest.raises(TokenError):
        services.authenticate_token(text)


def test_expired_token_does_not_let_in():
    _, text = services.create_token(
        player=make_player(), days=1, now=read_clock() - timedelta(days=1, seconds=1)
    )
    with pytest.raises(TokenError):
        services.authenticate_token(text)


def test_token_of_a_player_who_is_shut_out_does_not_let_in():
    player = make_player()
    _, text = services.create_token(player=player)
    Player.objects.update(is_active=False)
    with pytest.raises(TokenError):
        services.authenticate_token(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": "admin"},  # no such scope
        {"days": 0},  # would be expired
        {"days": 100_000},  # for ever
    ],
)
def test_token_that_cannot_be_is_refused(wrong):
    with pytest.raises(TokenError):
        services.create_token(player=make_player(), **wrong)
    assert not ApiToken.objects.exists()


def test_database_refuses_an_unknown_scope():
    with pytest.raises(IntegrityError):
        ApiToken.objects.create(
            player=make_player(), prefix="p", sha256="0", scope="all", expires_at=read_clock()
        )
