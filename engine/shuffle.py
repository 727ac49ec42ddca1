"""From a secret to the order of the tiles, bit by bit, so that anyone can verify a deal.

The steps are those of the page "Verifiable deals" in the docs. `random.shuffle` and numpy's
generators are not used: they are stable across versions only by luck.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

_WORD_LIMIT = 1 << 32
_BLOCK = struct.Struct(">8I")
_HMAC_BLOCK = 64
_INNER_PAD = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD = bytes(byte ^ 0x5C for byte in range(256))


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

    __slots__ = ("_counter", "_inner", "_outer", "_words")

    def __init__(self, key: bytes) -> None:
        """`key`: 32 bytes, or up to the 64 that HMAC-SHA256 takes without hashing them first."""
        if len(key) > _HMAC_BLOCK:
            raise ValueError(f"a deal key has at most {_HMAC_BLOCK} bytes, this one {len(key)}")
        padded = key.ljust(_HMAC_BLOCK, b"\0")
        self._inner = hashlib.sha256(padded.translate(_INNER_PAD))
        self._outer = hashlib.sha256(padded.translate(_OUTER_PAD))
        self._counter = 0
        self._words: list[int] = []  # the rest of the block, the next word last

    def word(self) -> int:
        """The next word, 0 … 2³²-1."""
        if not self._words:
            self._words.extend(reversed(self._block()))
        return self._words.pop()

    def below(self, bound: int) -> int:
        """A number 0 … bound-1, each equally likely: words that would favour some are rejected."""
        limit = _WORD_LIMIT - _WORD_LIMIT % bound
        while (word := self.word()) >= limit:
            pass
        return word % bound

    def permutation(self, size: int) -> list[int]:
        """A shuffled ``range(size)``: from the last place down, each swapped with one not above it."""
        order = list(range(size))
        swaps = max(size - 1, 0)
        words = self._words[::-1]
        while len(words) < swaps:
            words += self._block()
        taken, self._words = words[:swaps], words[swaps:][::-1]
        # `below(bound)`, written out for all places at once: every deal goes through here. A word that is
        # low enough for the largest bound is so for all; that one is not comes about once in 10⁸ deals.
        if max(taken, default=0) >= _WORD_LIMIT - size:
            self._words = words[::-1]
            for place in range(size - 1, 0, -1):
                chosen = self.below(place + 1)
                order[place], order[chosen] = order[chosen], order[place]
            return order
        for place, word in zip(range(size - 1, 0, -1), taken, strict=True):
            chosen = word % (place + 1)
            order[place], order[chosen] = order[chosen], order[place]
        return order

    def _block(self) -> tuple[int, ...]:
        """HMAC(key, be64(counter)) as words, by RFC 2104: hashes begun once cost a quarter of `hmac`."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(self._counter.to_bytes(8, "big"))
        outer.update(inner.digest())
        self._counter += 1
        words: tuple[int, ...] = _BLOCK.unpack(outer.digest())
        return words


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
