"""Steady counts the tiles that it has not seen and weighs each choice by its chances.

Eighty: it bids what its trumps, doubles and count tiles are worth on the average, compares that with
letting the others play, and names the suit that promises most. It knows who can have no tile of a suit,
reckons with that how likely a tile is to take the trick, draws trumps while the others hold some, and keeps
count tiles for tricks that its side will win. It plays differently as bidder, partner and defender, and
calls Nel-O on hands that can stay below. Podkidnoe: it looks at all that its hand can lay, this turn and
after it, and draws where that pays on the average.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.sdk import Ruleset, Strategy, Tile, eighty, hookimpl, podkidnoe
from engine.sdk.tricks import DOUBLES, count_points, led_suit, strength, winning_play, would_win

EIGHTY_TILES = tuple(Tile(high, low) for high in range(1, 7) for low in range(1, high + 1))
PODKIDNOE_TILES = tuple(Tile(high, low) for high in range(7) for low in range(high + 1))


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Steady plays both games, whatever their options and the number of players."""
    match ruleset:
        case eighty.Ruleset():
            return SteadyEighty(ruleset)
        case podkidnoe.Ruleset():
            return SteadyPodkidnoe(ruleset)
    return None


# Eighty

TRICK = 8.5
"""What a sure trick later is worth: more than most now, as the others keep their count tiles back."""
KEEP = 0.5
"""How likely a count tile that is kept will fall to its own side …"""
KEEP_STRONG = 0.75
"""… if it is a trump or a double."""
PARTNER_FEEDS = 0.85
"""What the partner adds to a trick, in shares of what an unseen tile counts on the average …"""
OTHERS_FEED = 1.15
"""… and what each of the others adds."""
LEAD = 1.7
"""What it is worth to lead next."""
LONG = 0.05
"""How much likelier a low trump takes a trick with each trump beside it."""
SHORT = 0.8
"""What it is worth to be rid of the last tile of a suit, while trumps are left to ruff it."""


@dataclass(frozen=True, slots=True)
class Role:
    """What differs between the bidder, his partner and the defenders; in points or chances.

    As the weights above, tuned by coordinate search on some thousand deals with a set contract, half
    of the time against greedy and half against an earlier steady.
    """

    saves: float
    """What a sure trick later is worth when this seat leads."""
    draws_trumps: float
    """What it is worth to lead a trump while the others may hold two or more."""
    ruffs: float
    """How likely the lowest of three trumps takes a trick of its own."""
    stands: float
    """How likely a tile that could take a trick now can do so later."""
    keeps: float
    """How much of `KEEP` holds."""


BIDDER = Role(saves=11.5, draws_trumps=2.7, ruffs=0.27, stands=0.26, keeps=1.0)
PARTNER = Role(saves=5.5, draws_trumps=2.7, ruffs=0.27, stands=0.26, keeps=1.0)
DEFENDER = Role(saves=19.5, draws_trumps=0.0, ruffs=0.07, stands=0.12, keeps=0.65)

SPREAD = 15.0
"""The standard deviation of what a side takes, about a promise of 50 points …"""
SURER = 0.22
"""… and by how much it falls with each point that is promised above 50."""
LEAST_SPREAD = 9.0
"""… but never below this."""
IN_PLAY = 76.5
"""The points that both sides take on the average; the rest lies dead."""
MARK = 40.0
"""A mark in points, to compare it with a pass."""
THROWN_IN = 0.0
"""What the shaker's pass is worth if nobody has bid: no points for anybody …"""
NOBODY_YET = -3.0
"""… what a pass is worth before others who may bid …"""
PARTNER_BIDS = 30.0
"""… when the partner has bid …"""
OTHERS_BID = -6.0
"""… and when the others have."""


class SteadyEighty(Strategy[eighty.Observation, eighty.Action]):
    """Reckons with what it has not seen."""

    def __init__(self, ruleset: eighty.Ruleset) -> None:
        self.ruleset = ruleset

    def act(self, observation: eighty.Observation) -> eighty.Action:
        """Call, then name the trump suit if the bid was ours, then play tiles."""
        contract = observation.contract
        if contract is None:
            return self.call(observation)
        if contract.trump is None and not contract.nello:
            return eighty.Trump(best_suit(observation.hand))
        table = Table(observation, contract, self.ruleset)
        plays = [action for action in observation.legal if isinstance(action, eighty.Play)]
        if contract.nello:
            return play_nello(table, plays)
        return max(
            plays, key=lambda play: worth_now(table, play.tile) - worth_later(table, play.tile)
        )

    def call(self, observation: eighty.Observation) -> eighty.Action:
        """Make the lowest bid, or call Nel-O, if that promises more than passing."""
        bids = [action for action in observation.legal if isinstance(action, eighty.Bid)]
        promised = promise(observation.hand, best_suit(observation.hand))
        offers: list[tuple[float, eighty.Action]] = []
        if bids:
            offers.append((value_of_bid(bids[0].points, promised, self.ruleset), bids[0]))
        if eighty.Nello() in observation.legal:
            offers.append((value_of_nello(observation.hand, self.ruleset), eighty.Nello()))
        if eighty.Pass() in observation.legal:
            offers.append((value_of_pass(observation), eighty.Pass()))
        return max(offers, key=lambda offer: offer[0])[1]


def value_of_bid(bid: int, promised: float, ruleset: eighty.Ruleset) -> float:
    """The expected difference of the sides' scores after winning the auction with `bid`.

    What the side takes is nearly normal about what the hand promises. By the points: made, the sides
    score what they take; set, the others score what they take and the bid.
    """
    spread = max(SPREAD - SURER * (promised - 50), LEAST_SPREAD)
    away = (bid - 0.5 - promised) / spread
    made = 0.5 * math.erfc(away / math.sqrt(2))
    if ruleset.scoring == "marks":
        return (2 * made - 1) * MARK
    density = math.exp(-away * away / 2) / math.sqrt(2 * math.pi)
    taken_if_made = promised * made + spread * density
    taken_if_set = promised * (1 - made) - spread * density
    return (2 * taken_if_made - IN_PLAY * made) - ((bid + IN_PLAY) * (1 - made) - taken_if_set)


def value_of_nello(hand: Sequence[Tile], ruleset: eighty.Ruleset) -> float:
    """The expected difference of the sides' scores after calling Nel-O on this hand.

    The chance to make it is a fit over 300 low hands: it falls with the sum of the low ends.
    """
    has_low_doubles = ruleset.nello_doubles == "low"
    low_ends = sum(1 if tile.is_double and has_low_doubles else tile.low for tile in hand)
    made = min(max(2.4 - 0.12 * low_ends, 0.0), 1.0)
    return (2 * made - 1) * (MARK if ruleset.scoring == "marks" else ruleset.nello_value)


def value_of_pass(observation: eighty.Observation) -> float:
    """The expected difference of the sides' scores if this seat passes: by who has the highest call."""
    bidders = [call.seat for call in observation.calls if not isinstance(call.action, eighty.Pass)]
    if bidders:
        is_ours = bidders[-1] % 2 == observation.seat % 2
        return PARTNER_BIDS if is_ours else OTHERS_BID
    return THROWN_IN if observation.seat == observation.shaker else NOBODY_YET


def best_suit(hand: Sequence[Tile]) -> int:
    """The trump suit that promises most."""
    return max(range(1, 7), key=lambda suit: promise(hand, suit))


def promise(hand: Sequence[Tile], trump: int) -> float:
    """About how many points the hand's side takes with `trump` as trumps.

    The weights are a least-squares fit over 30000 deals, against itself and against greedy.
    """
    trumps = [tile for tile in hand if tile.has(trump)]
    others = [tile for tile in hand if not tile.has(trump)]
    doubles = [tile for tile in others if tile.is_double]
    void_suits = 5 - len({end for tile in others for end in (tile.high, tile.low)})
    first, second, third = highest_trumps(trump)
    return (
        19.0
        + 4.1 * len(trumps)
        + 4.0 * trumps.count(first)
        + 1.8 * trumps.count(second)
        + 0.5 * trumps.count(third)
        + 2.7 * len(doubles)
        + 0.29 * sum(map(count_points, [*trumps, *doubles]))
        + 0.8 * void_suits
    )


@cache
def highest_trumps(trump: int) -> tuple[Tile, ...]:
    """The three kinds that rank highest among trumps."""
    trumps = [tile for tile in EIGHTY_TILES if tile.has(trump)]
    return tuple(sorted(trumps, key=lambda t: (t.is_double, t.pips), reverse=True)[:3])


class Table:
    """What a seat knows of the tiles of the others."""

    def __init__(
        self, observation: eighty.Observation, contract: eighty.Contract, ruleset: eighty.Ruleset
    ) -> None:
        self.seat = observation.seat
        self.contract = contract
        self.ruleset = ruleset
        self.trick = observation.trick
        tricks = [trick.plays for trick in observation.tricks]
        played = [play for plays in (*tricks, self.trick) for play in plays]
        seen = Counter(observation.hand) + Counter(play.tile for play in played)
        self.unseen = {tile: 2 - seen[tile] for tile in EIGHTY_TILES if seen[tile] < 2}
        absent = {(contract.seat + 2) % 4} if contract.nello else set()
        done = Counter(play.seat for play in played)
        self.sizes = {seat: 10 - done[seat] for seat in range(4) if seat not in absent}
        self.voids = find_voids((*tricks, self.trick), contract, ruleset)
        self.role = role_of(observation.seat, contract)
        self.hand = observation.hand
        self.trumps = sum(self.is_trump(tile) for tile in self.hand)
        self.trumps_outside = sum(n for tile, n in self.unseen.items() if self.is_trump(tile))
        counts = sum(copies * count_points(tile) for tile, copies in self.unseen.items())
        self.unseen_count = counts / max(sum(self.unseen.values()), 1)

    def is_trump(self, tile: Tile) -> bool:
        """Whether a tile has a trump end."""
        return self.contract.trump is not None and tile.has(self.contract.trump)

    def is_last_of_suit(self, tile: Tile) -> bool:
        """Whether this seat has no other tile of the suit that `tile` would ask for, trumps aside."""
        suit = tile.high
        held = sum(other.has(suit) for other in self.hand if not self.is_trump(other))
        return held == 1 and not self.is_trump(tile)

    def later_seats(self) -> list[int]:
        """The seats that play to this trick after this one."""
        done = {play.seat for play in self.trick} | {self.seat}
        return [
            s for k in range(1, 4) if (s := (self.seat + k) % 4) in self.sizes and s not in done
        ]

    def suit_of(self, led: Tile) -> int:
        """The suit that a led tile asks for."""
        return led_suit(led, self.contract, self.ruleset)

    def height(self, tile: Tile, suit: int) -> int:
        """How high a tile stands where `suit` is led."""
        return strength(tile, suit, self.contract, self.ruleset)

    def beats(self, height: int, best: int) -> bool:
        """Whether a tile so high, played later, takes the trick from one so high as `best`."""
        return height > best or (height == best > 0 and self.ruleset.twin_winner == "last")

    def chance_to_beat(self, seat: int, suit: int, best: int) -> float:
        """How likely `seat` can take a trick of `suit` where the highest tile so far is `best` high."""
        excluded = self.voids.get(seat, frozenset())
        follow = follow_set(suit, self.contract.trump, self.ruleset, self.contract.nello)
        pool = following = higher = ruffs = 0
        for tile, copies in self.unseen.items():
            if any(belongs(tile, void, self.contract, self.ruleset) for void in excluded):
                continue
            pool += copies
            height = self.height(tile, suit)
            if tile in follow:
                following += copies
                if self.beats(height, best):
                    higher += copies
            elif self.beats(height, best):
                ruffs += copies
        size = min(self.sizes[seat], pool)
        if self.contract.nello:  # nobody wants it: only who has nothing lower takes it
            return none_of(pool, following - higher, size) - none_of(pool, following, size)
        has_higher = 1 - none_of(pool, higher, size)
        if not ruffs:
            return has_higher
        is_void = none_of(pool, following, size)
        return has_higher + is_void * (1 - none_of(pool - following, ruffs, size))


def role_of(seat: int, contract: eighty.Contract) -> Role:
    """For or against the contract."""
    if seat == contract.seat:
        return BIDDER
    return PARTNER if seat % 2 == contract.seat % 2 else DEFENDER


@cache
def none_of(pool: int, marked: int, drawn: int) -> float:
    """How likely none of `marked` tiles of a pool is among `drawn` ones."""
    if marked + drawn > pool:
        return 0.0 if marked and drawn else 1.0
    return math.comb(pool - marked, drawn) / math.comb(pool, drawn)


@cache
def follow_set(
    suit: int, trump: int | None, ruleset: eighty.Ruleset, is_nello: bool
) -> frozenset[Tile]:
    """The kinds that follow a led suit."""
    contract = eighty.Contract(seat=0, bid=80, nello=is_nello, trump=trump)
    return frozenset(tile for tile in EIGHTY_TILES if belongs(tile, suit, contract, ruleset))


def belongs(tile: Tile, suit: int, contract: eighty.Contract, ruleset: eighty.Ruleset) -> bool:
    """Whether `tile` is of `suit`: a trump only of trumps, another of both its ends."""
    if contract.trump is not None and tile.has(contract.trump):
        return suit == contract.trump
    if contract.nello and ruleset.nello_doubles == "own_suit" and tile.is_double:
        return suit == DOUBLES
    return tile.has(suit)


def find_voids(
    tricks: Iterable[Sequence[eighty.Played]], contract: eighty.Contract, ruleset: eighty.Ruleset
) -> dict[int, frozenset[int]]:
    """The suits of which each seat has shown that it has none."""
    voids: dict[int, set[int]] = {}
    for plays in tricks:
        if plays:
            suit = led_suit(plays[0].tile, contract, ruleset)
            for play in plays[1:]:
                if not belongs(play.tile, suit, contract, ruleset):
                    voids.setdefault(play.seat, set()).add(suit)
    return {seat: frozenset(suits) for seat, suits in voids.items()}


def chance_to_win(table: Table, tile: Tile) -> float:
    """How likely our side takes the trick if `tile` is played to it now."""
    led = table.trick[0].tile if table.trick else tile
    suit = table.suit_of(led)
    ours, best = True, table.height(tile, suit)
    if table.trick and not would_win(tile, table.trick, table.contract, table.ruleset):
        winner = winning_play(table.trick, table.contract, table.ruleset)
        ours, best = winner.seat % 2 == table.seat % 2, table.height(winner.tile, suit)
    chance = float(ours)
    for seat in table.later_seats():
        beats = table.chance_to_beat(seat, suit, best)
        if seat % 2 == table.seat % 2:
            # Where an opponent took it from us, the partner needs a higher tile than `best`: half as likely.
            chance += (1 - chance) * beats * (0.5 if ours else 1.0)
        else:
            chance *= 1 - beats
    return chance


def worth_now(table: Table, tile: Tile) -> float:
    """The points of this trick that are expected with `tile`, and what it does for later tricks."""
    in_trick = sum(count_points(play.tile) for play in table.trick) + count_points(tile)
    fed = table.unseen_count * sum(
        PARTNER_FEEDS if seat % 2 == table.seat % 2 else OTHERS_FEED for seat in table.later_seats()
    )
    value = chance_to_win(table, tile) * (2 + in_trick + fed + LEAD)
    if not table.trick and table.is_trump(tile):
        value += table.role.draws_trumps * min(table.trumps_outside, 2) / 2
    if table.trumps and table.is_last_of_suit(tile):
        value += SHORT
    return value


def worth_later(table: Table, tile: Tile) -> float:
    """What keeping `tile` is expected to bring."""
    is_strong = tile.is_double or table.is_trump(tile)
    kept = table.role.keeps * (KEEP_STRONG if is_strong else KEEP) * count_points(tile)
    return (TRICK if table.trick else table.role.saves) * chance_later(table, tile) + kept


def chance_later(table: Table, tile: Tile) -> float:
    """How likely `tile` takes a trick of its own later on."""
    suit = table.suit_of(tile)
    best = table.height(tile, suit)
    stands = math.prod(
        1 - table.chance_to_beat(seat, suit, best)
        for seat in table.sizes
        if seat % 2 != table.seat % 2
    )
    if table.is_trump(tile):
        ruffs = max(table.role.ruffs + LONG * (table.trumps - 3), 0.0)
        return stands + ruffs * (1 - stands)
    return table.role.stands * stands


def play_nello(table: Table, plays: Sequence[eighty.Play]) -> eighty.Play:
    """Stay below, bidder and defenders alike; where that is equally sure, shed the highest tile."""

    def order(play: eighty.Play) -> tuple[float, int, int]:
        led = table.trick[0].tile if table.trick else play.tile
        height = table.height(play.tile, table.suit_of(led))
        return round(chance_to_win(table, play.tile), 1), -play.tile.low, -height

    return min(plays, key=order)


# Podkidnoe

KEPT = 0.45
"""What each tile kept in hand is worth …"""
KEPT_AT_THE_END = 0.25
"""… and once nothing is left to draw …"""
READY = 0.3
"""… and that one of them fits the open end, if nobody changes it …"""
VARIED = 0.9
"""… and that they fit every pip …"""
STUCK = 0.7
"""… and that the next player cannot lay."""
OUT = 1.5
"""What it costs to have no tile, and so no turn, while there are tiles to draw."""
TOPPED_UP = 0.7
"""What it is worth to have the one tile that is topped up for free."""
POSITIONS = 4000
"""How many positions it looks at before it acts; hands of up to ten tiles are searched whole."""


class SteadyPodkidnoe(Strategy[podkidnoe.Observation, podkidnoe.Action]):
    """Looks at all that its hand can lay, and reckons with what it may draw."""

    def __init__(self, ruleset: podkidnoe.Ruleset) -> None:
        self.ruleset = ruleset

    def act(self, observation: podkidnoe.Observation) -> podkidnoe.Action:
        """Lay the next tile of the best run, or draw, or close the turn: whatever promises most."""
        turn = Turn(observation, self.ruleset)
        offers = [(turn.value_of(action), action) for action in observation.legal]
        return max(offers, key=lambda offer: offer[0])[1]


class Turn:
    """What can come of one turn."""

    def __init__(self, observation: podkidnoe.Observation, ruleset: podkidnoe.Ruleset) -> None:
        self.observation = observation
        self.ruleset = ruleset
        seen = {observation.starter, *observation.line, *observation.hand}
        self.unseen = [tile for tile in PODKIDNOE_TILES if tile not in seen]
        self.values: dict[tuple[tuple[Tile, ...], int], float] = {}
        self.stuck: dict[tuple[int, ...], float] = {}

    def value_of(self, action: podkidnoe.Action) -> float:
        """The points that are expected from here on after `action`, this turn's and what is kept."""
        hand, ends = self.observation.hand, self.observation.open_ends
        match action:
            case podkidnoe.Lay(tile):
                rest = without(hand, tile)
                return (
                    1
                    + self.refund()
                    + max(self.best_run(rest, tile.other(end)) for end in ends if tile.has(end))
                )
            case podkidnoe.Draw():
                return self.value_of_draw()
            case podkidnoe.Pass():
                return self.value_kept(hand, ends) - 1
        return self.value_kept(hand, ends)

    def refund(self) -> float:
        """What a first tile laid gives back: the draws of this turn, where the rules say so."""
        if self.ruleset.penalise_successful_draw or self.observation.lays:
            return 0
        return self.observation.draws

    def value_of_draw(self) -> float:
        """The mean over the tiles that may come, if what can be laid is laid after it."""
        hand, ends = self.observation.hand, self.observation.open_ends
        total = 0.0
        for drawn in self.unseen:
            held = (*hand, drawn)
            laid = [
                1 + self.best_run(without(held, tile), tile.other(end))
                for end in ends
                for tile in held
                if tile.has(end)
            ]
            if laid and not self.ruleset.penalise_successful_draw:
                total += max(laid) + self.observation.draws
            else:
                total += max([self.value_kept(held, ends), *laid]) - 1
        return total / len(self.unseen)

    def best_run(self, hand: tuple[Tile, ...], end: int) -> float:
        """The value of the best way on from an open end: to stop, or to lay one more tile."""
        known = self.values.get((hand, end))
        if known is not None:
            return known
        best = self.value_kept(hand, (end,))
        self.values[hand, end] = best  # what stands if the search grows too large below
        if len(self.values) < POSITIONS:
            for tile in hand:
                if tile.has(end):
                    best = max(best, 1 + self.best_run(without(hand, tile), tile.other(end)))
            self.values[hand, end] = best
        return best

    def value_kept(self, hand: tuple[Tile, ...], ends: tuple[int, ...]) -> float:
        """What a hand promises for later turns, if this turn ends with these open ends."""
        reserve = self.observation.reserve_size
        if not hand:
            is_final = self.ruleset.empty_hand == "end_game" or not reserve
            return 0.0 if is_final else -OUT
        value = (KEPT if reserve else KEPT_AT_THE_END) * len(hand)
        value += VARIED * len({pip for tile in hand for pip in tile}) / 7
        fits = any(tile.has(end) for tile in hand for end in ends)
        stuck = self.chance_stuck(ends)
        value += STUCK * stuck + READY * fits * (0.5 + 0.5 * stuck)
        if len(hand) == 1 and reserve and self.ruleset.top_up != "off":
            value += TOPPED_UP
        return value

    def chance_stuck(self, ends: tuple[int, ...]) -> float:
        """How likely the next player holds nothing that fits."""
        if ends not in self.stuck:
            fitting = sum(any(tile.has(end) for end in ends) for tile in self.unseen)
            following = (self.observation.seat + 1) % len(self.observation.hand_sizes)
            size = min(self.observation.hand_sizes[following], len(self.unseen))
            self.stuck[ends] = none_of(len(self.unseen), fitting, size)
        return self.stuck[ends]


def without(hand: tuple[Tile, ...], tile: Tile) -> tuple[Tile, ...]:
    """`hand` less one tile."""
    place = hand.index(tile)
    return hand[:place] + hand[place + 1 :]
