"""Tournaments of several stages: Swiss, then the top 8; groups, then a knock-out.

A stage is described by a StagePlan. `check_stages` refuses what cannot be run before anything is
made; `next_stage_entrants` seeds the next stage when one is over. Who goes on, and in what order, is
the format's own: `engine.formats.base.Format.qualify`.

Match keys are unique in a whole tournament, since deals follow from them: the first stage's are the
format's own, those of the second begin with ``S2/``, and so on: ``S2/SE/R1/M3``.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence

import msgspec

from engine.errors import FormatError
from engine.formats import get_format
from engine.formats.base import Format, SeededEntrant, StageView
from engine.shuffle import pack_items

MAX_STAGES = 5
"""More than anyone has asked for; it keeps a page and its keys short."""


class StagePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One stage of a tournament as its organiser asks for it."""

    format: str
    """The format's name."""
    options: Mapping[str, object] = msgspec.field(default_factory=dict)
    """Those that differ from the format's defaults."""
    qualifiers: int | None = None
    """How many go on to the next stage; None in the last one."""


def check_stages(entrants: int | None, plans: Sequence[StagePlan]) -> None:
    """Raise FormatError, naming the stage, if so many entrants cannot play these stages.

    `entrants` is None while nobody knows how many will enter; then the first stage is checked by its
    options alone, and those after it with the qualifiers they get.
    """
    if not 1 <= len(plans) <= MAX_STAGES:
        raise FormatError(f"a tournament has 1 to {MAX_STAGES} stages, not {len(plans)}")
    count = entrants
    for number, plan in enumerate(plans, start=1):
        try:
            _check_stage(plan, count, is_last=number == len(plans))
        except FormatError as error:
            if len(plans) == 1:
                raise
            raise FormatError(f"stage {number}: {error}") from None
        count = plan.qualifiers


def _check_stage(plan: StagePlan, entrants: int | None, *, is_last: bool) -> None:
    fmt = get_format(plan.format)
    options = fmt.make_options(plan.options)
    if entrants is not None:
        fmt.check([SeededEntrant(id=seed, seed=seed) for seed in range(1, entrants + 1)], options)
    if is_last:
        if plan.qualifiers is not None:
            raise FormatError("nobody goes on from the last stage: leave out the qualifiers")
        return
    if not fmt.ends(options):
        raise FormatError(
            f"{fmt.title} has no end with these options, so no stage can follow it: limit its matches, "
            "or put it last"
        )
    if plan.qualifiers is None:
        raise FormatError("say how many go on to the next stage: give the qualifiers")
    if plan.qualifiers < 2:
        raise FormatError(f"{plan.qualifiers} cannot play the next stage: let at least 2 go on")
    if entrants is not None and plan.qualifiers > entrants:
        raise FormatError(
            f"{plan.qualifiers} cannot go on, since only {entrants} play this stage: "
            "lower the qualifiers, or let more enter"
        )


def next_stage_entrants(view: StageView, plan: StagePlan) -> tuple[SeededEntrant, ...]:
    """The entrants of the stage after the one in `view`, which is over and was planned as `plan`.

    If withdrawals have left fewer than were to go on, all who are left do; whether the next format can
    be run with them is for its own `check`. Raises FormatError for a stage that is not over, and for
    the last one.
    """
    if plan.qualifiers is None:
        raise FormatError("nobody goes on from the last stage")
    if not view.active:
        return ()
    going_on = get_format(plan.format).qualify(view, min(plan.qualifiers, len(view.active)))
    return tuple(SeededEntrant(id=entrant, seed=seed) for seed, entrant in enumerate(going_on, 1))


def final_places(stages: Sequence[tuple[Format, StageView]]) -> dict[int, int]:
    """The places in a whole tournament by entrant id; ties share the better one.

    Who played the last stage has the place of its table. Who did not go on from a stage comes after all who
    did, in the order of that stage's table.
    """
    places: dict[int, int] = {}
    for fmt, view in reversed(stages):
        ahead = len(places)
        left = [row for row in fmt.standings(view) if row.entrant not in places]
        better = sorted(row.place for row in left)
        places.update({row.entrant: ahead + 1 + better.index(row.place) for row in left})
    return places


def stage_lot(prk: bytes, tournament_id: str, index: int) -> bytes:
    """The verifiable lot of a stage: HMAC-SHA256(PRK, LP("dt/stage-lot/v1", tournament id, stage) ‖ 0x01).

    It comes from the same key as the deals under a label of its own, so nobody could choose it, and
    everybody can recompute it once the secret is out. `index` counts stages from 0.
    """
    packed = pack_items("dt/stage-lot/v1", tournament_id, index)
    return hmac.digest(prk, packed + b"\x01", "sha256")


def match_key(stage: int, key: str) -> str:
    """The key in the tournament of a format's `key` in the stage of this index (from 0)."""
    return key if stage == 0 else f"S{stage + 1}/{key}"


def split_match_key(key: str) -> tuple[int, str]:
    """The index of a tournament key's stage, and the format's own key: the reverse of `match_key`."""
    found = _STAGE.match(key)
    return (int(found[1]) - 1, key[found.end() :]) if found else (0, key)


_STAGE = re.compile(r"S([2-9]|[1-9][0-9]+)/")
