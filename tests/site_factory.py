"""A small site that has everything on it, for tests of pages."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

from django.apps import apps
from django.contrib.auth.models import Group
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model

from tests.scrimmage_factories import make_scrimmage, version_of
from tests.tournament_factories import (
    make_bot,
    make_player,
    make_tournament,
    play_all,
    start,
    submit,
)
from tournament.competitions import services as competitions
from tournament.competitions.models import Tournament
from tournament.competitions.services.sweeping import blobs_in_use
from tournament.leaderboards import services as leaderboards
from tournament.leaderboards.services import RatedResult, RatedTeam
from tournament.players.models import VERSION_TRANSITIONS, Bot, BotVersion, Player, VersionState
from tournament.scrimmages import selectors as scrimmage_selectors
from tournament.scrimmages import services as scrimmages
from tournament.scrimmages.models import Scrimmage
from tournament.store.leases import FREE_FIELDS
from tournament.store.services import put_blob, read_blob

LOG = b"loading <script>alert(1)</script>\n"
REASON = "eighty, 4 players: seat 2: illegal action: <b>bid 55</b>"


@dataclass
class Site:
    """Who and what is on it."""

    ann: Player
    bob: Player
    olga: Player
    """An organiser."""
    root: Player
    bots: list[Bot]
    """ann's alpha and aces, bob's beta and bricks."""
    rejected: BotVersion
    """ann's alpha 2.0."""
    cup: Tournament
    """Finished, single elimination."""
    table: Tournament
    """Running, a round robin of which one match is played."""
    open: Tournament
    """Open, alpha has entered."""
    scrimmage: Scrimmage
    """ann's, alpha against aces, of which one batch of two is played."""

    def places(self, *, trial: int) -> dict[str, int]:
        """What the names in the addresses of `PAGES` stand for here; `trial` is the key of one."""
        return {
            "rejected": self.rejected.pk,
            "bot": self.bots[0].pk,
            "cup": self.cup.pk,
            "table": self.table.pk,
            "scrimmage": self.scrimmage.pk,
            "trial": trial,
        }


def make_staff(name: str) -> Player:
    player = make_player(name)
    player.is_staff = True
    player.save()
    player.groups.add(Group.objects.get(name="organisers"))
    return player


def reject(version: BotVersion, reason: str = REASON, log: bytes = LOG) -> BotVersion:
    """Let a version be as if the check had found something."""
    rows = BotVersion.objects.filter(pk=version.pk)
    VERSION_TRANSITIONS.move(rows, VersionState.STUCK)
    VERSION_TRANSITIONS.move(
        rows, VersionState.RUNNING, lease_owner="test", lease_until=version.uploaded_at
    )
    VERSION_TRANSITIONS.move(
        rows, VersionState.REJECTED, reason=reason, log_sha256=put_blob(log), **FREE_FIELDS
    )
    version.refresh_from_db()
    return version


def rate(*winners_and_losers: tuple[str, str]) -> None:
    """Let single bots of Eighty have won against each other."""
    leaderboards.append_results(
        game="eighty",
        kind="mono",
        results=[
            RatedResult(
                f"earlier/M{number}",
                (RatedTeam(((winner, "1.0"),), 1), RatedTeam(((loser, "1.0"),), 2)),
            )
            for number, (winner, loser) in enumerate(winners_and_losers, 1)
        ],
    )


def fill_site() -> Site:
    """Make it, by the services."""
    ann, bob = make_player("ann"), make_player("bob")
    olga, root = make_staff("olga"), make_player("root")
    root.is_staff = root.is_superuser = True
    root.save()
    bots = [
        make_bot("alpha", ann),
        make_bot("aces", ann),
        make_bot("beta", bob),
        make_bot("bricks", bob),
    ]
    rejected = reject(submit(ann, "alpha", "2.0"))
    cup = play_all(
        start(make_tournament(bots, name="Cup", organiser=olga, description="<i>first</i>"))
    )
    table = start(make_tournament(bots, name="Table", organiser=olga, format="round_robin"))
    due = competitions.dispatch(rung=True)
    competitions.play_match(match_id=due.blocks[0][0], trusted=True)
    table.refresh_from_db()
    waiting = make_tournament([bots[0]], name="Open One", organiser=olga)
    rate(("alpha", "beta"), ("alpha", "bricks"), ("aces", "beta"))
    scrimmage = make_scrimmage(
        first=BotVersion.objects.select_related("bot__owner").get(bot=bots[0], version="1.0"),
        other=version_of(bots[1]),
        most_sets=40,
    )
    scrimmages.play_batch(scrimmage_id=scrimmage.pk, trusted=True)
    scrimmage.refresh_from_db()
    return Site(ann, bob, olga, root, bots, rejected, cup, table, waiting, scrimmage)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A site that was made once, to be copied."""

    site: Site
    rows: list[Model]
    base: dict[type[Model], list[object]]
    """The keys of the rows that were there before; the site's rows refer to them."""
    blobs: list[bytes]
    """What its rows name in the store: other tests sweep that, or erase somebody."""


_kept: list[_Kept] = []
"""For each base that was met: a database that was emptied has other keys than one that was never filled."""


def copy_site() -> Site:
    """The same site, made by the services once a process and base; from then on its rows are copied."""
    for kept in _kept:
        if all(_keys(model) == keys for model, keys in kept.base.items()):
            for blob in kept.blobs:
                put_blob(blob)
            # Only at its end must the rows be there to which others refer.
            with transaction.atomic():
                _insert(kept.rows)
            break
    else:
        kept = _fill_and_keep()
        _kept.append(kept)
    return copy.deepcopy(kept.site)


def _fill_and_keep() -> _Kept:
    before = {_identity(row): _values(row) for row in _all_rows()}
    site = fill_site()
    rows = list(_all_rows())
    changed = [row for row in rows if before.get(_identity(row), _values(row)) != _values(row)]
    assert not changed, f"a copy would miss how these rows changed: {changed}"
    models = dict.fromkeys(model for model, _ in before)
    base = {model: [pk for of, pk in before if of is model] for model in models}
    hashes = blobs_in_use() | scrimmage_selectors.blobs_in_use()
    blobs = [read_blob(sha256) for sha256 in sorted(hashes)]
    return _Kept(site, [row for row in rows if _identity(row) not in before], base, blobs)


def _all_rows() -> Iterator[Model]:
    for model in apps.get_models(include_auto_created=True):
        yield from model._base_manager.order_by("pk")


def _keys(model: type[Model]) -> list[object]:
    return list(model._base_manager.order_by("pk").values_list("pk", flat=True))


def _identity(row: Model) -> tuple[type[Model], object]:
    return type(row), row.pk


def _values(row: Model) -> list[object]:
    return [getattr(row, field.attname) for field in row._meta.concrete_fields]


def _insert(rows: list[Model]) -> None:
    """Insert rows as they are, with their keys and times."""
    models = dict.fromkeys(type(row) for row in rows)
    for model in models:
        fields = [field for field in model._meta.local_concrete_fields if not field.generated]
        chosen = [row for row in rows if type(row) is model]
        model._base_manager._insert(chosen, fields, using=connection.alias, raw=True)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(models)):
            cursor.execute(statement)
