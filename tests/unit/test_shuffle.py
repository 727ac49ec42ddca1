"""The verifiable shuffle: published vectors, and laws of the stream."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.shuffle import (
    Stream,
    bot_seed,
    commitment,
    deal_key,
    local_prk,
    pack_items,
    tournament_prk,
)

SECRET = bytes(range(32))
PUB = '{"close":"2026-12-01T00:00:00Z","entrants":[["alpha","aa"],["beta","bb"]]}'
PRK = bytes.fromhex("b26e4b6ba9a2a0e78877e109a4ef489ee7836fe2cbafb0e533601ceb793c27d8")
KEY = bytes.fromhex("23b0339cc847137c613ecf9bc549e87b3eba623009221763a53c4f46095078a3")
KEYS = st.binary(min_size=32, max_size=32)


# The published vector


def test_commitment_binds_the_secret_to_the_tournament():
    published = "1979d154476048b18a91766a3ac06df20230dd0cf51e168dea61d4dd75f02516"
    assert commitment("T1", SECRET) == published
    assert commitment("T2", SECRET) != published


def test_tournament_key_follows_from_the_secret_and_what_was_published_at_the_close():
    assert tournament_prk(SECRET, PUB) == PRK
    assert tournament_prk(SECRET, PUB + " ") != PRK


def test_deal_key_follows_from_the_tournament_key_and_the_place_of_the_deal():
    assert deal_key(PRK, "eighty", "T1", "SE/R1/M1", 0) == KEY


def test_words_follow_from_the_deal_key():
    stream = Stream(KEY)
    assert [f"{stream.word():08x}" for _ in range(4)] == [
        "d19f7279",
        "5c1c7f4b",
        "a880b06d",
        "14c3dee8",
    ]


def test_permutation_follows_from_the_words():
    published = "2 15 12 19 20 11 26 24 14 25 13 6 21 8 10 22 3 1 27 23 0 16 17 18 4 9 7 5"
    assert " ".join(map(str, Stream(KEY).permutation(28))) == published


# Laws


def test_items_are_packed_with_their_length_so_that_none_runs_into_the_next():
    assert pack_items("ab", 12, b"\xff") == (
        b"\x00\x00\x00\x02ab\x00\x00\x00\x0212\x00\x00\x00\x01\xff"
    )
    assert pack_items("a", "bc") != pack_items("ab", "c")
    assert pack_items("Ж")[:4] == b"\x00\x00\x00\x02"  # bytes are counted, not letters


@given(KEYS)
def test_the_stream_is_hmac_of_a_counter(key):
    blocks = b"".join(hmac.digest(key, n.to_bytes(8, "big"), "sha256") for n in range(3))
    stream = Stream(key)
    assert b"".join(stream.word().to_bytes(4, "big") for _ in range(24)) == blocks


@given(KEYS, st.integers(1, 100), st.integers(0, 9))
def test_a_permutation_is_the_swaps_of_the_published_steps(key, size, words_before):
    stream, by_hand = Stream(key), Stream(key)
    for _ in range(words_before):  # wherever in a block it begins
        assert stream.word() == by_hand.word()
    order = list(range(size))
    for i in range(size - 1, 0, -1):
        j = by_hand.below(i + 1)
        order[i], order[j] = order[j], order[i]
    assert stream.permutation(size) == order
    assert stream.word() == by_hand.word()


class Scripted(Stream):
    """A stream whose words are given."""

    def __init__(self, *words: int) -> None:
        super().__init__(bytes(32))
        self._words = list(reversed(words))


@pytest.mark.parametrize(
    ("bound", "words", "chosen"),
    [
        (42, [2**32 - 4, 43], 1),  # 2³² mod 42 = 4: the last four words are rejected
        (42, [2**32 - 1, 2**32 - 2, 44], 2),
        (42, [2**32 - 5, 43], 41),  # the one before them is the last that is taken
        (4, [2**32 - 1, 0], 3),  # a power of two rejects nothing
        (1, [7], 0),
    ],
)
def test_words_that_would_favour_some_are_rejected(bound, words, chosen):
    assert Scripted(*words).below(bound) == chosen


def test_permutation_rejects_what_below_rejects():
    words = [2**32 - 1, 0, 1]  # 2³² mod 3 = 1: the first word is rejected
    assert Scripted(*words).permutation(3) == [2, 1, 0]


@given(KEYS, st.integers(1, 60))
def test_a_permutation_holds_everything_once(key, size):
    assert sorted(Stream(key).permutation(size)) == list(range(size))


def test_all_permutations_are_about_equally_likely():
    counts = Counter(tuple(Stream(n.to_bytes(32, "big")).permutation(4)) for n in range(2400))
    assert len(counts) == math.factorial(4)
    chi_squared = sum((count - 100) ** 2 / 100 for count in counts.values())
    assert (
        chi_squared < 49.7
    )  # 23 degrees of freedom: one in a thousand is above; the keys are fixed


@pytest.mark.parametrize(
    "changed",
    [
        {"game": "podkidnoe"},
        {"tournament_id": "U"},
        {"match_key": "M2"},
        {"number": 1},
    ],
)
def test_each_part_of_a_deals_place_changes_its_key(changed):
    place = {"game": "eighty", "tournament_id": "T", "match_key": "M1", "number": 0}
    assert deal_key(PRK, **{**place, **changed}) != deal_key(PRK, **place)


def test_bot_seeds_differ_by_rotation_and_seat_and_from_every_deal():
    seeds = {
        bot_seed(PRK, "eighty", "T", "M1", rotation, seat)
        for rotation in range(2)
        for seat in range(4)
    }
    keys = {deal_key(PRK, "eighty", "T", "M1", number) for number in range(20)}
    assert len(seeds) == 8
    assert not seeds & keys


def test_local_key_follows_from_the_seed_text():
    packed = b"\x00\x00\x00\x0242"
    label = hashlib.sha256(b"\x00\x00\x00\x0bdt/local/v1").digest()
    assert local_prk("42") == hmac.digest(label, packed, "sha256")


def test_a_key_longer_than_hmacs_block_is_refused():
    with pytest.raises(ValueError, match="at most 64 bytes"):
        Stream(bytes(65))
