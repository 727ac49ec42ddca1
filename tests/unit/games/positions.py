"""Positions in notation, for the tests of the games."""

from __future__ import annotations

from engine.games import eighty, podkidnoe
from engine.games.base import Board, State
from engine.games.eighty import EIGHTY, EightyState
from engine.games.podkidnoe import PODKIDNOE, PodkidnoeState
from engine.tiles import parse_tile, parse_tiles

LEFT_OF_SHAKER = 0
SHAKER = 3


def eighty_with(hands: list[str], calls: str, **options: object) -> EightyState:
    """Eighty with hands of any size; seat 3 shakes. `calls`: actions separated by commas."""
    state = EightyState(
        EIGHTY.make_ruleset(options), [eighty._pack(parse_tiles(hand)) for hand in hands], SHAKER
    )
    do(EIGHTY, state, calls)
    return state


def podkidnoe_with(
    hands: list[str],
    starter: str,
    reserve: str,
    actions: str = "",
    first: int = 0,
    **options: object,
) -> PodkidnoeState:
    """Podkidnoe with hands and a reserve of any size."""
    state = PodkidnoeState(
        PODKIDNOE.make_ruleset(options),
        [podkidnoe._pack(parse_tiles(hand)) for hand in hands],
        parse_tile(starter),
        [podkidnoe._KIND_OF[tile] for tile in parse_tiles(reserve)],
        first,
    )
    do(PODKIDNOE, state, actions)
    return state


def do(game, state: State, actions: str) -> None:
    """Play actions separated by commas, each by the seat whose turn it is."""
    for text in filter(None, actions.split(", ")):
        state.apply(game.encode(game.parse_action(text)))


def legal(game, state: State) -> set[str]:
    """What is legal, in notation."""
    return {str(game.decode(code)) for code in state.legal()}


def board_of(
    hands: list[str], first: int, dead: str = "", starter: str = "", reserve: str = ""
) -> Board:
    return Board(
        hands=tuple(parse_tiles(hand) for hand in hands),
        first=first,
        dead=parse_tiles(dead),
        starter=parse_tile(starter) if starter else None,
        reserve=parse_tiles(reserve),
    )
