"""What was asked (`MatchSpec`) and what happened (`MatchRecord`, format ``arena-match/1``).

The record stands alone: `replay` judges it with nothing but the rules of its game. The package knows
games and the SDK's values; it must not know who plays, where, or how long it took.

`values` holds the document, `checks` what can be played at all, `contest` the order of the games and
their result, `codec` bytes and digest, `dealing` the tiles, `judge` the verdict, `rating` what is rated.
"""

from __future__ import annotations

from engine.record.checks import BOT_NAME, check_spec, make_spec
from engine.record.codec import (
    canonical_json,
    check_contest_is_whole,
    compute_digest,
    decode_record,
    decode_strictly,
    encode_record,
    record_schema,
)
from engine.record.contest import FinishedGame, Slot, next_slot, outcome_of_faults, outcome_of_games
from engine.record.dealing import deal_board, parse_board, show_keys, with_keys, write_board
from engine.record.judge import Replay, ReplayedDeal, judge_terms, replay
from engine.record.rating import MIN_RATED_BOARDS, has_acted, is_ratable, is_rated_contest
from engine.record.values import (
    FORMAT,
    BoardsContest,
    BotRef,
    Contest,
    DealRecord,
    DealSource,
    EntrantRef,
    GameRecord,
    GamesContest,
    GivenDeal,
    MatchRecord,
    MatchSpec,
    Timing,
    sha256_hex,
)

__all__ = [
    "BOT_NAME",
    "FORMAT",
    "MIN_RATED_BOARDS",
    "BoardsContest",
    "BotRef",
    "Contest",
    "DealRecord",
    "DealSource",
    "EntrantRef",
    "FinishedGame",
    "GameRecord",
    "GamesContest",
    "GivenDeal",
    "MatchRecord",
    "MatchSpec",
    "Replay",
    "ReplayedDeal",
    "Slot",
    "Timing",
    "canonical_json",
    "check_contest_is_whole",
    "check_spec",
    "compute_digest",
    "deal_board",
    "decode_record",
    "decode_strictly",
    "encode_record",
    "has_acted",
    "is_ratable",
    "is_rated_contest",
    "judge_terms",
    "make_spec",
    "next_slot",
    "outcome_of_faults",
    "outcome_of_games",
    "parse_board",
    "record_schema",
    "replay",
    "sha256_hex",
    "show_keys",
    "with_keys",
    "write_board",
]
