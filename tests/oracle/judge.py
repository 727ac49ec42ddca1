"""A second judge of match records, written from the published rules and record format alone.

It imports nothing of the engine and plays with tuples, lists and words where the engine uses bitmasks:
what both accept has been read the same way twice. `judge(document)` returns the list of untruths.

    python -m tests.oracle.judge FILE…
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from collections import Counter

FAULTS = {"illegal_action", "time", "crash", "protocol", "memory"}


class Untrue(Exception):  # noqa: N818 - it is a verdict
    """The record says something that cannot be."""


def need(condition: object, message: str) -> None:
    if not condition:
        raise Untrue(message)


def tile(text: str) -> tuple[int, int]:
    need(len(text) == 3 and text[1] == "-", f"tile {text!r}")
    a, b = int(text[0]), int(text[2])
    need(a >= b, f"tile {text!r} has its low end first")
    return a, b


def tiles(text: str) -> list[tuple[int, int]]:
    return [tile(part) for part in text.split(" ")] if text else []


# --- deals -----------------------------------------------------------------------------------------


def lp(*items: object) -> bytes:
    out = b""
    for item in items:
        raw = item if isinstance(item, bytes) else str(item).encode()
        out += len(raw).to_bytes(4, "big") + raw
    return out


def mac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


def prk_of(secret: bytes, pub: str) -> bytes:
    return mac(hashlib.sha256(lp("dt/public/v1", pub)).digest(), secret)


def local_prk_of(seed: str) -> bytes:
    return mac(hashlib.sha256(lp("dt/local/v1")).digest(), lp(seed))


def key_of(prk: bytes, game: str, tournament: str, match_key: str, number: int) -> bytes:
    return mac(prk, lp("dt/deal/v1", game, tournament, match_key, number) + b"\x01")


def words(key: bytes):
    counter = 0
    while True:
        block = mac(key, counter.to_bytes(8, "big"))
        for i in range(0, 32, 4):
            yield int.from_bytes(block[i : i + 4], "big")
        counter += 1


def below(stream, m: int) -> int:
    top = 2**32 - (2**32 % m)
    while True:
        w = next(stream)
        if w < top:
            return w % m


def full_set(game: str) -> list[tuple[int, int]]:
    if game == "eighty":
        return [(b, a) for a in range(1, 7) for b in range(a, 7) for _twin in (0, 1)]
    return [(b, a) for a in range(7) for b in range(a, 7)]


def deal_of(key: bytes, game: str, seats: int):
    """Hands, rest and first seat that a deal key yields."""
    stream = words(key)
    pack = full_set(game)
    for i in range(len(pack) - 1, 0, -1):
        j = below(stream, i + 1)
        pack[i], pack[j] = pack[j], pack[i]
    size = 10 if game == "eighty" else 5
    hands = [sorted(pack[s * size : (s + 1) * size], reverse=True) for s in range(seats)]
    return hands, pack[seats * size :], below(stream, seats)


# --- Eighty ------------------------------------------------------------------------------------------


EIGHTY_DEFAULTS = {
    "min_bid": {50, 60}, "forced_shaker_bid": {True, False}, "dead_tiles": {"dead"},
    "twin_winner": {"first", "last"}, "scoring": {"points", "marks"}, "nello": {True, False},
    "nello_doubles": {"high", "own_suit", "low"},
}  # fmt: skip
COUNT = {(5, 5): 10, (6, 4): 10, (4, 1): 5, (3, 2): 5}


def is_in_suit(t, suit, trump, nello, rules) -> bool:
    """Whether a tile belongs to a suit (1-6, or the word doubles)."""
    if nello and rules["nello_doubles"] == "own_suit":
        return t[0] == t[1] if suit == "doubles" else (suit in t and t[0] != t[1])
    if trump is not None and trump in t:
        return suit == trump
    return suit in t


def led_suit(t, trump, nello, rules):
    if nello and rules["nello_doubles"] == "own_suit" and t[0] == t[1]:
        return "doubles"
    if trump is not None and trump in t:
        return trump
    return t[0]


def height(t, suit, nello, rules) -> int:
    """How high a tile stands within a suit it belongs to."""
    if t[0] == t[1]:
        if nello and rules["nello_doubles"] == "low":
            return 0
        if suit == "doubles":
            return t[0]
        return 7
    return t[1] if t[0] == suit else t[0]


def trick_winner(plays, trump, nello, rules) -> int:
    """Index, among the plays of a trick, of the one that takes it."""
    led = led_suit(plays[0], trump, nello, rules)
    best = None
    for i, t in enumerate(plays):
        if trump is not None and trump in t:
            rank = (2, height(t, trump, nello, rules))
        elif is_in_suit(t, led, trump, nello, rules):
            rank = (1, height(t, led, nello, rules))
        else:
            continue
        if (
            best is None
            or rank > best[0]
            or (rank == best[0] and plays[best[1]] == t and rules["twin_winner"] == "last")
        ):
            best = (rank, i)
    return best[1]


def play_eighty(deal, rules, *, cut: bool):
    """Replay; returns (score by side or None when cut, side that had the bid or None)."""
    hands = [tiles(h) for h in deal["hands"]]
    actions = [a.split(" ", 1) for a in deal["actions"]]
    actions = [(int(s), what) for s, what in actions]
    place = 0

    def take(seat: int) -> str | None:
        nonlocal place
        if place == len(actions):
            need(cut, f"deal {deal['number']} stops too early")
            return None
        who, what = actions[place]
        need(who == seat, f"deal {deal['number']} action {place}: seat {who} acts, not {seat}")
        place += 1
        return what

    def done(score, side):
        need(place == len(actions), f"deal {deal['number']}: actions after its end")
        need(not cut, f"deal {deal['number']} is said to be cut but is complete")
        return score, side

    best, bidder, called = 0, None, None
    passes = 0
    for turn in range(4):
        seat = (deal["first"] + 1 + turn) % 4
        what = take(seat)
        if what is None:
            return None, None
        if what == "pass":
            passes += 1
            need(
                not (rules["forced_shaker_bid"] and turn == 3 and passes == 4),
                "the shaker may not pass here",
            )
            continue
        if what == "nello":
            need(rules["nello"], "Nel-O is not allowed")
            value = rules["nello_value"]
        else:
            need(what.startswith("bid ") and what[4:].isdigit(), f"no call: {what}")
            value = int(what[4:])
            need(rules["min_bid"] <= value <= 80, f"bid {value} out of range")
        need(value > best, f"{what} is not above {best}")
        best, bidder, called = value, seat, what
    if bidder is None:
        return done([0, 0], None)
    side = bidder % 2
    nello = called == "nello"
    trump = None
    if not nello:
        what = take(bidder)
        if what is None:
            return None, side
        need(what[:6] == "trump " and what[6:] in list("123456"), f"no trump: {what}")
        trump = int(what[6:])
    taken = [0, 0]
    leader = bidder
    while any(hands[s] for s in range(4) if not (nello and s == (bidder + 2) % 4)):
        order = [(leader + i) % 4 for i in range(4)]
        if nello:
            order.remove((bidder + 2) % 4)
        plays = []
        for seat in order:
            what = take(seat)
            if what is None:
                return None, side
            need(what.startswith("play "), f"no play: {what}")
            t = tile(what[5:])
            need(t in hands[seat], f"seat {seat} does not hold {what[5:]}")
            if plays:
                led = led_suit(plays[0], trump, nello, rules)
                follow = [x for x in hands[seat] if is_in_suit(x, led, trump, nello, rules)]
                need(not follow or t in follow, f"seat {seat} must follow {led}, not {what[5:]}")
            hands[seat].remove(t)
            plays.append(t)
        leader = order[trick_winner(plays, trump, nello, rules)]
        taken[leader % 2] += 2 + sum(COUNT.get(t, 0) for t in plays)
        if nello and leader == bidder:
            score = [0, 0]
            score[1 - side] = 1 if rules["scoring"] == "marks" else rules["nello_value"]
            return done(score, side)
    if nello:
        score = [0, 0]
        score[side] = 1 if rules["scoring"] == "marks" else rules["nello_value"]
        return done(score, side)
    dead = sum(COUNT.get(t, 0) for t in tiles(deal["dead"]))
    need(sum(taken) + dead == 80, "the points of a deal do not sum to 80")
    made = taken[side] >= best
    if rules["scoring"] == "marks":
        score = [0, 0]
        score[side if made else 1 - side] = 1
    elif made:
        score = taken
    else:
        score = [0, 0]
        score[1 - side] = best + taken[1 - side]
    return done(score, side)


# --- Podkidnoe ---------------------------------------------------------------------------------------


def play_podkidnoe(deal, rules, *, cut: bool):
    hands = [tiles(h) for h in deal["hands"]]
    reserve = tiles(deal["reserve"])
    starter = tile(deal["starter"])
    k = len(hands)
    points, penalties = [0] * k, [0] * k
    open_ends = set(starter)
    begun = False
    actions = [(int(s), w) for s, w in (a.split(" ", 1) for a in deal["actions"])]
    place = 0

    def fits(t) -> bool:
        return bool(open_ends & set(t))

    def over() -> bool:
        if not reserve and not any(fits(t) for h in hands for t in h):
            return True
        if not any(hands):
            return rules["empty_hand"] != "top_up" or not reserve
        return False

    def finish():
        need(place == len(actions), f"deal {deal['number']}: actions after its end")
        need(not cut, f"deal {deal['number']} is said to be cut but is complete")
        return [a - b for a, b in zip(points, penalties, strict=True)], None

    while True:
        lively, last_turn = False, None
        for step in range(k):
            seat = (deal["first"] + step) % k
            if not hands[seat]:
                continue
            last_turn = seat
            laid, drawn = 0, 0
            while True:
                if place == len(actions):
                    need(cut, f"deal {deal['number']} stops too early")
                    return None, None
                who, what = actions[place]
                spot = f"deal {deal['number']} action {place} ({who} {what})"
                place += 1
                need(who == seat, f"{spot}: it is seat {seat}'s turn")
                can_lay = any(fits(t) for t in hands[seat])
                if what.startswith("lay "):
                    t = tile(what[4:])
                    need(t in hands[seat], f"{spot}: not in hand")
                    need(fits(t), f"{spot}: does not fit {open_ends}")
                    hands[seat].remove(t)
                    if begun:
                        (end,) = open_ends
                        open_ends = {t[0] if t[1] == end else t[1]}
                    else:
                        (joint, *rest) = open_ends & set(t)
                        need(not rest, f"{spot}: the starter again")
                        open_ends = {t[0] if t[1] == joint else t[1]}
                        begun = True
                    laid += 1
                    points[seat] += 1
                elif what == "draw":
                    need(not laid, f"{spot}: draw after laying")
                    need(reserve, f"{spot}: the reserve is empty")
                    need(
                        rules["max_draws"] is None or drawn < rules["max_draws"],
                        f"{spot}: too many",
                    )
                    need(rules["voluntary_draw"] or not can_lay, f"{spot}: can lay")
                    hands[seat].append(reserve.pop(0))
                    drawn += 1
                elif what == "end":
                    need(laid or drawn, f"{spot}: nothing was done")
                    need(laid or rules["voluntary_pass"] or not can_lay, f"{spot}: can lay")
                    break
                else:
                    need(what == "pass", f"{spot}: no action")
                    need(not laid and not drawn, f"{spot}: pass after acting")
                    need(rules["voluntary_pass"] or not can_lay, f"{spot}: can lay")
                    penalties[seat] += 1
                    break
            if not (laid and not rules["penalise_successful_draw"]):
                penalties[seat] += drawn
            lively = lively or laid > 0 or drawn > 0
            if over() or (rules["empty_hand"] == "end_game" and not hands[seat]):
                return finish()
        if rules["top_up"] == "end_of_circuit" and last_turn is not None:
            sizes = {1, 0} if rules["empty_hand"] == "top_up" else {1}
            for step in range(k):
                seat = (last_turn - step) % k
                if len(hands[seat]) in sizes and reserve:
                    hands[seat].append(reserve.pop(0))
        if not lively or over():
            return finish()


PODKIDNOE_OPTIONS = {
    "voluntary_pass": {True, False}, "voluntary_draw": {True, False}, "max_draws": {2, 1, None},
    "penalise_successful_draw": {True, False}, "top_up": {"end_of_circuit", "off"},
    "empty_hand": {"skip", "top_up", "end_game"},
}  # fmt: skip


# --- the record --------------------------------------------------------------------------------------


def check_ruleset(game: str, rules: dict) -> None:
    if game == "eighty":
        need(set(rules) == {*EIGHTY_DEFAULTS, "target", "nello_value"}, "options of the ruleset")
        for name, values in EIGHTY_DEFAULTS.items():
            need(_among(rules[name], values), f"ruleset.{name}")
        need(type(rules["target"]) is int and rules["target"] >= 1, "ruleset.target")
        value = rules["nello_value"]
        need(type(value) is int and rules["min_bid"] <= value <= 80, "ruleset.nello_value")
    else:
        need(set(rules) == set(PODKIDNOE_OPTIONS), "options of the ruleset")
        for name, values in PODKIDNOE_OPTIONS.items():
            need(_among(rules[name], values), f"ruleset.{name}")
        need(not (rules["top_up"] == "off" and rules["empty_hand"] == "top_up"), "contradiction")


def _among(value, values) -> bool:
    return any(type(value) is type(v) and value == v for v in values)


def competition_places(values) -> list[int]:
    return [1 + sum(o > v for o in values) for v in values]


def judge(doc: dict, *, prk: bytes | None = None, tournament: str = "local") -> list[str]:
    """The untruths of a record (empty: true). With `prk` each deal is recomputed from it too."""
    try:
        _judge(doc, prk, tournament)
    except Untrue as untruth:
        return [str(untruth)]
    return []


def _judge(doc: dict, prk: bytes | None, tournament: str) -> None:
    need(
        set(doc)
        == {"format", "game", "ruleset", "match_key", "contest", "time_control", "entrants", "games",
            "outcome", "digest", "timing"},
        "fields of the record",
    )  # fmt: skip
    need(doc["format"] == "arena-match/1", "format")
    game, rules, k = doc["game"], doc["ruleset"], len(doc["entrants"])
    need(game in ("eighty", "podkidnoe"), "game")
    check_ruleset(game, rules)
    need(k == 2 if game == "eighty" else 2 <= k <= 4, "number of entrants")
    seats = 4 if game == "eighty" else k
    play = play_eighty if game == "eighty" else play_podkidnoe
    contest, outcome = doc["contest"], doc["outcome"]
    fault = outcome["termination"] != "completed"
    need(outcome["termination"] in FAULTS | {"completed"}, "termination")
    need(bool(outcome["faults"]) == fault, "faults")

    game_sums: list[tuple[list[int], list[int]]] = []  # score by entrant, seating
    boards: dict[int, dict] = {}
    order_played = []
    cuts = 0
    number = 0
    opening = None
    game_places = []
    for g, entry in enumerate(doc["games"]):
        rotation = entry["rotation"]
        need(0 <= rotation < k, f"games[{g}].rotation")
        need(entry["seating"] == [(s + rotation) % k for s in range(seats)], f"games[{g}].seating")
        totals, last_side = [0] * k, None
        if contest["kind"] == "boards":
            need(type(entry["board"]) is int and len(entry["deals"]) == 1, f"games[{g}]")
            order_played.append((entry["board"], rotation))
        else:
            need(entry["board"] is None and rotation == g % k, f"games[{g}]")
        finished_deals = 0
        for d, deal in enumerate(entry["deals"]):
            hands = [tiles(h) for h in deal["hands"]]
            need(len(hands) == seats, "hands")
            need(all(h == sorted(h, reverse=True) for h in hands), "a hand is not sorted")
            size = 10 if game == "eighty" else 5
            need(all(len(h) == size for h in hands), "size of a hand")
            if game == "eighty":
                rest = tiles(deal["dead"])
                need(rest == sorted(rest, reverse=True), "dead not sorted")
            else:
                rest = [tile(deal["starter"]), *tiles(deal["reserve"])]
            everything = Counter(t for h in [*hands, rest] for t in h)
            need(everything == Counter(full_set(game)), f"games[{g}].deals[{d}]: not the set")
            if contest["kind"] == "boards":
                need(deal["number"] == entry["board"], "number of a deal")
                same = {x: deal.get(x) for x in ("hands", "first", "dead", "starter", "reserve")}
                same["shown"] = deal["key"] is not None
                need(boards.setdefault(entry["board"], same) == same, "a board differs by rotation")
                drawn_first = True
            else:
                need(deal["number"] == number, "number of a deal")
                drawn_first = number == 0
                number += 1
                if opening is None:
                    opening = deal["first"]
                need(deal["first"] == (opening + d) % seats, "first seat")
            need(0 <= deal["first"] < seats, "first")
            keys = [bytes.fromhex(deal["key"])] if deal["key"] is not None else []
            if prk is not None:
                keys.append(key_of(prk, game, tournament, doc["match_key"], deal["number"]))
            for key in keys:
                need(key == keys[-1], "the deal key is not that of the secret")
                k_hands, k_rest, k_first = deal_of(key, game, seats)
                need(k_hands == hands, "the key yields other hands")
                need(
                    sorted(k_rest, reverse=True) == rest if game == "eighty" else k_rest == rest,
                    "rest",
                )
                need(
                    not drawn_first or k_first == deal["first"], "the key yields another first seat"
                )
            cut = deal["score"] is None
            score, side = play(deal, rules, cut=cut)
            need(score == deal["score"], f"games[{g}].deals[{d}].score is {score}")
            if cut:
                cuts += 1
                need(fault and d == len(entry["deals"]) - 1, "a deal without a score")
                continue
            finished_deals += 1
            last_side = side
            for s, value in enumerate(score):
                totals[s] += value
            if contest["kind"] == "games":
                places = _game_over(game, rules, totals, finished_deals, last_side)
                need((places is not None) == (d == len(entry["deals"]) - 1) or fault,
                     f"games[{g}] stops at the wrong deal")  # fmt: skip
                if places is not None:
                    game_places.append([places[_side(game, entry["seating"], e)] for e in range(k)])
        need(entry["score"] == totals, f"games[{g}].score is {totals}")
        if not cuts:
            game_sums.append((totals, entry["seating"]))
    if contest["kind"] == "boards":
        need(order_played == sorted(set(order_played)), "order of the games")
    points = [0] * k
    for totals, seating in game_sums:
        for e in range(k):
            own = totals[_side(game, seating, e)]
            points[e] += (k - 1) * own - (sum(totals) - own)
    if fault:
        offenders = {f["entrant"] for f in outcome["faults"]}
        need(all(f["kind"] in FAULTS for f in outcome["faults"]), "kind of a fault")
        need(outcome["points"] == [0] * k, "points after a fault")
        need(
            outcome["places"] == competition_places([-(e in offenders) for e in range(k)]),
            "places after a fault",
        )
        need(cuts <= 1, "more than one cut deal")
    else:
        need(outcome["points"] == points, f"outcome.points is {points}")
        need(cuts == 0, "a cut deal without a fault")
        if contest["kind"] == "boards":
            _check_boards(contest, doc["games"], k, game)
            need(outcome["places"] == competition_places(points), "places")
        else:
            n = contest["best_of"]
            if game == "eighty":
                wins = [sum(p[e] == 1 and p.count(1) == 1 for p in game_places) for e in range(k)]
                for i in range(1, len(game_places)):
                    before = [
                        sum(p[e] == 1 and p.count(1) == 1 for p in game_places[:i])
                        for e in range(k)
                    ]
                    need(max(before) * 2 <= n, "played on after the match was decided")
                need(len(game_places) == n or max(wins) * 2 > n, "too few games")
                need(len(game_places) <= n, "too many games")
                values = wins
            else:
                need(len(game_places) == n, "number of games")
                values = [
                    sum(
                        2 * sum(o > p[e] for o in p) + sum(o == p[e] for o in p) - 1
                        for p in game_places
                    )
                    for e in range(k)
                ]
            need(outcome["places"] == competition_places(values), "places")
    bare = {x: v for x, v in doc.items() if x not in ("digest", "timing")}
    bare = json.loads(json.dumps(bare))
    for entry in bare["games"]:
        for deal in entry["deals"]:
            deal["key"] = None
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    need(doc["digest"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest(), "digest")


def _side(game: str, seating: list[int], entrant: int) -> int:
    seat = seating.index(entrant)
    return seat % 2 if game == "eighty" else seat


def _game_over(game, rules, totals, deals, bid_side):
    if game == "podkidnoe":
        return competition_places(totals)
    reached = [t >= rules["target"] for t in totals]
    if all(reached):
        return [1 if s == bid_side else 2 for s in (0, 1)]
    if any(reached):
        return [1 if r else 2 for r in reached]
    return competition_places(totals) if deals == 200 else None


def _check_boards(contest, games, k, game) -> None:
    base, extra = contest["boards"], contest["extra_boards"]
    played = len(games) // k
    need(
        [(x["board"], x["rotation"]) for x in games]
        == [(b, r) for b in range(played) for r in range(k)],
        "boards or rotations are missing",
    )
    need(base <= played <= base + extra, "number of boards")

    def tied_after(count: int) -> bool:
        points = [0] * k
        for entry in games[: count * k]:
            for e in range(k):
                own = entry["score"][_side(game, entry["seating"], e)]
                points[e] += (k - 1) * own - (sum(entry["score"]) - own)
        return points.count(max(points)) > 1

    for count in range(base, played):
        need(tied_after(count), "an extra board without a tie")
    need(played == base + extra or not tied_after(played), "an extra board is missing")


if __name__ == "__main__":
    bad = 0
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:  # noqa: PTH123
            found = judge(json.load(file))
        bad += bool(found)
        print(name, found or "true")
    sys.exit(bool(bad))
