"""From a secret to the order of the tiles, bit by bit, so that anyone can verify a deal.

The steps are those of the page "Verifiable deals" in the docs. `random.shuffle` and numpy's
generators are not used: they are stable across versions only by luck.
"""

from __future__ import annotations

import hashlib
import hmac

_WORD_LIMIT = 1 << 32


def pack_items(*items: str | int | bytes) -> bytes:
    """LP: each item as its length (32 bits, big-endian) and its bytes; text as UTF-8, integers in decimal."""
    packed = bytearray()
    for item in items:
        raw = item if isinstance(item, bytes) else str(item).encode()
        packed += len(raw).to_bytes(4, "big") + raw
    return bytes(packed)


def commitment(tournament_id: str, secret: bytes) -> str:
    """What is published before registration opens: the hex SHA-256 that binds the organiser to `secret`."""
    return hashlib.sha256(pack_items("dt/commit/v1", tournament_id, secret)).hexdigest()


def tournament_prk(secret: bytes, pub: str) -> bytes:
    """The tournament's key: 32 bytes from its `secret` and the canonical JSON `pub` published at its close."""
    return _hmac(hashlib.sha256(pack_items("dt/public/v1", pub)).digest(), secret)


def local_prk(seed: str) -> bytes:
    """The key of local matches: 32 bytes from a seed text."""
    return _hmac(hashlib.sha256(pack_items("dt/local/v1")).digest(), pack_items(seed))


def deal_key(prk: bytes, game: str, tournament_id: str, match_key: str, number: int) -> bytes:
    """The 32 bytes from which one deal follows; mirrored plays share them."""
    return _hmac(prk, pack_items("dt/deal/v1", game, tournament_id, match_key, number) + b"\x01")


def bot_seed(
    prk: bytes, game: str, tournament_id: str, match_key: str, rotation: int, seat: int
) -> bytes:
    """A bot's own 32 random bytes; they tell nothing of any deal."""
    return _hmac(
        prk, pack_items("dt/bot/v1", game, tournament_id, match_key, rotation, seat) + b"\x01"
    )


class Stream:
    """The endless stream of unsigned 32-bit words that follows from a deal key."""

    __slots__ = ("_block", "_counter", "_key", "_offset")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._counter = 0
        self._block = b""
        self._offset = 32

    def word(self) -> int:
        """The next word, 0 … 2³²-1."""
        if self._offset >= 32:
            self._block = hmac.digest(self._key, self._counter.to_bytes(8, "big"), "sha256")
            self._counter += 1
            self._offset = 0
        start = self._offset
        self._offset = start + 4
        return int.from_bytes(self._block[start : start + 4], "big")

    def below(self, bound: int) -> int:
        """A number 0 … bound-1, each equally likely: words that would favour some are rejected."""
        limit = _WORD_LIMIT - _WORD_LIMIT % bound
        while (word := self.word()) >= limit:
            pass
        return word % bound

    def permutation(self, size: int) -> list[int]:
        """A shuffled ``range(size)``: from the last place down, each swapped with one not above it."""
        order = list(range(size))
        for last in range(size - 1, 0, -1):
            chosen = self.below(last + 1)
            order[last], order[chosen] = order[chosen], order[last]
        return order


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
