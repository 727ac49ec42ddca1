"""The same rules a second time: slow, without tables or masks, straight from the text.

`judge_eighty` and `judge_podkidnoe` replay a finished deal action by action. They share nothing with
the engine but Tile and the action structs, so what both say is right unless both misread the rules.
"""

from __future__ import annotations

from collections import Counter

from engine.games import eighty, podkidnoe
from engine.games.base import Board
from engine.tiles import Tile


class Judged:
    """What the rules say about a deal: what was legal at each step, and the score."""

    def __init__(self) -> None:
        self.seats: list[int] = []
        self.legal: list[set[str]] = []
        self.score: tuple[int, ...] = ()
        self.took: list[int] = []


# Eighty


def judge_eighty(rules: eighty.Ruleset, board: Board, actions: list[tuple[int, object]]) -> Judged:
    judged = Judged()
    todo = iter(actions)

    def step(seat: int, legal: set[str]) -> object:
        judged.seats.append(seat)
        judged.legal.append(legal)
        who, action = next(todo)
        assert who == seat
        assert str(action) in legal
        return action

    highest, bidder, is_nello = rules.min_bid - 1, None, False
    for turn in range(1, 5):
        seat = (board.first + turn) % 4
        legal = {f"bid {points}" for points in range(highest + 1, 81)}
        if rules.nello and rules.nello_value > highest:
            legal.add("nello")
        if not (rules.forced_shaker_bid and turn == 4 and bidder is None):
            legal.add("pass")
        call = step(seat, legal)
        if str(call) != "pass":
            bidder, is_nello = seat, str(call) == "nello"
            highest = rules.nello_value if is_nello else call.points
    if bidder is None:
        judged.score = (0, 0)
        return judged

    trump = None
    if not is_nello:
        trump = step(bidder, {f"trump {suit}" for suit in range(1, 7)}).suit
    doubles = rules.nello_doubles if is_nello else "high"
    hands = [list(hand) for hand in board.hands]
    order = [(bidder + i) % 4 for i in range(4) if not (is_nello and i == 2)]
    sides = [0, 0]
    for _ in range(10):
        trick: list[tuple[int, Tile]] = []
        for seat in order:
            may = hands[seat]
            if trick:
                suit = suit_led(trick[0][1], trump, doubles)
                may = [t for t in may if suit in suits(t, trump, doubles)] or may
            tile = step(seat, {f"play {t}" for t in may}).tile
            hands[seat].remove(tile)
            trick.append((seat, tile))
        winner = take(trick, trump, doubles, rules.twin_winner)
        judged.took.append(winner)
        if is_nello and winner == bidder:
            break
        sides[winner % 2] += 2 + sum(counts(tile) for _, tile in trick)
        at = order.index(winner)
        order = order[at:] + order[:at]

    side = bidder % 2
    made = judged.took[-1] != bidder if is_nello else sides[side] >= highest
    scores = [0, 0]
    if rules.scoring == "marks":
        scores[side if made else 1 - side] = 1
    elif is_nello:
        scores[side if made else 1 - side] = rules.nello_value
    elif made:
        scores = sides
    else:
        scores[1 - side] = highest + sides[1 - side]
    judged.score = tuple(scores)
    if not is_nello:
        assert sum(sides) + sum(counts(tile) for tile in board.dead) == 80
    return judged


def suits(tile: Tile, trump: int | None, doubles: str) -> set[object]:
    if trump in tile:
        return {trump}
    if doubles == "own_suit" and tile.high == tile.low:
        return {"doubles"}
    return set(tile)


def suit_led(tile: Tile, trump: int | None, doubles: str) -> object:
    mine = suits(tile, trump, doubles)
    return tile.high if tile.high in mine else next(iter(mine))


def take(trick, trump, doubles, twin_winner) -> int:
    led = suit_led(trick[0][1], trump, doubles)
    for suit in (trump, led):
        ranked = ranking(suit, doubles)
        for tile in ranked:
            players = [seat for seat, t in trick if t == tile and suit in suits(t, trump, doubles)]
            if players:
                return players[0 if twin_winner == "first" else -1]
    raise AssertionError("the led tile is of the led suit")


def ranking(suit: object, doubles: str) -> list[Tile]:
    """The tiles with that suit at an end, the highest first."""
    if suit is None:
        return []
    if suit == "doubles":
        return [Tile(pip, pip) for pip in (6, 5, 4, 3, 2, 1)]
    others = [Tile(max(suit, n), min(suit, n)) for n in (6, 5, 4, 3, 2, 1) if n != suit]
    double = Tile(suit, suit)
    return [*others, double] if doubles == "low" else [double, *others]


def counts(tile: Tile) -> int:
    return {(5, 5): 10, (6, 4): 10, (4, 1): 5, (3, 2): 5}.get(tuple(tile), 0)


# Podkidnoe


def judge_podkidnoe(
    rules: podkidnoe.Ruleset, board: Board, actions: list[tuple[int, object]]
) -> Judged:
    judged = Judged()
    todo = iter(actions)
    seats = len(board.hands)
    hands = [set(hand) for hand in board.hands]
    reserve = list(board.reserve)
    ends = set(board.starter)
    score: Counter[int] = Counter()

    def playable(seat: int) -> set[Tile]:
        return {tile for tile in hands[seat] if ends & set(tile)}

    def nothing_can_come() -> bool:
        if not reserve and not any(playable(seat) for seat in range(seats)):
            return True
        return not any(hands) and not (rules.empty_hand == "top_up" and reserve)

    def take_turn(seat: int) -> bool:
        """Whether anything was laid or drawn."""
        nonlocal ends
        draws, laid = 0, 0
        while True:
            can = playable(seat)
            legal = {f"lay {tile}" for tile in can}
            if laid:
                legal.add("end")
            else:
                if rules.voluntary_pass or not can:
                    legal.add("end" if draws else "pass")
                if (
                    reserve
                    and (rules.max_draws is None or draws < rules.max_draws)
                    and (rules.voluntary_draw or not can)
                ):
                    legal.add("draw")
            judged.seats.append(seat)
            judged.legal.append(legal)
            who, action = next(todo)
            assert who == seat
            assert str(action) in legal
            match str(action).split():
                case ["lay", _]:
                    tile = action.tile
                    (matched,) = ends & set(tile) if tile.high != tile.low else {tile.high}
                    ends = {tile.low if tile.high == matched else tile.high}
                    hands[seat].remove(tile)
                    laid += 1
                case ["draw"]:
                    hands[seat].add(reserve.pop(0))
                    draws += 1
                case ["pass"]:
                    score[seat] -= 1
                    return False
                case ["end"]:
                    score[seat] += laid
                    if not (laid and not rules.penalise_successful_draw):
                        score[seat] -= draws
                    return True

    def play() -> None:
        while True:
            busy, last = False, board.first
            for place in range(seats):
                seat = (board.first + place) % seats
                if not hands[seat]:
                    continue
                last = seat
                busy |= take_turn(seat)
                if rules.empty_hand == "end_game" and not hands[seat]:
                    return
                if nothing_can_come():
                    return
            if not busy:
                return
            if rules.top_up == "end_of_circuit":
                low = 0 if rules.empty_hand == "top_up" else 1
                for seat in [(last - back) % seats for back in range(seats)]:
                    if reserve and low <= len(hands[seat]) <= 1:
                        hands[seat].add(reserve.pop(0))
            if nothing_can_come():
                return

    play()
    judged.score = tuple(score[seat] for seat in range(seats))
    return judged
