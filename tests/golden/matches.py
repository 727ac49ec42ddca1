"""The golden records: matches whose every byte is known. ``python -m tests.golden.matches`` writes them.

Their digests must be the same on every machine and in every version: a changed one is a changed game.
"""

from pathlib import Path

from engine.agents import Failure
from engine.outcome import Termination
from engine.record import BoardsContest, GamesContest, MatchRecord, Timing, encode_record
from tests.match_fakes import (
    at_random,
    entrant,
    fails_at,
    fails_on_seat,
    first_legal,
    last_legal,
    play,
    spec_of,
)

FOLDER = Path(__file__).parent / "records"

CRASH = Failure(Termination.CRASH, "raised ValueError while choosing an action")
ILLEGAL = Failure(Termination.ILLEGAL_ACTION, "chose bid 10, which is not legal here")
IMPORT = Failure(Termination.CRASH, "raised SyntaxError while starting")


def make_matches() -> dict[str, MatchRecord]:
    """Each record by its name."""
    pair = entrant("alpha", "beta", name="Pair")
    mono = entrant("gamma", name="Mono")
    played = {
        "eighty-boards": play(spec_of("eighty", BoardsContest(2))),
        "eighty-games": play(spec_of("eighty", GamesContest(3), options={"target": 100})),
        "eighty-marks-pair": play(
            spec_of(
                "eighty",
                GamesContest(2),
                entrants=[pair, mono],
                options={"scoring": "marks", "target": 2, "nello_doubles": "own_suit"},
            ),
            at_random,
            first_legal,
            last_legal,
        ),
        "eighty-extra-boards": play(
            spec_of("eighty", BoardsContest(1, 1), options={"min_bid": 60}), last_legal
        ),
        "eighty-fault-at-turn": play(
            spec_of("eighty", BoardsContest(2)), at_random, fails_at(5, ILLEGAL)
        ),
        "eighty-fault-in-rotation-1": play(
            spec_of("eighty", BoardsContest(3)), fails_on_seat(3, 1, CRASH), at_random
        ),
        "eighty-fault-at-start": play(
            spec_of("eighty", BoardsContest(2)), at_random, ready={"beta": IMPORT}
        ),
        "podkidnoe-2-games": play(spec_of("podkidnoe", GamesContest(3))),
        "podkidnoe-3-boards": play(spec_of("podkidnoe", BoardsContest(2), entrants=3)),
        "podkidnoe-4-boards": play(
            spec_of(
                "podkidnoe",
                BoardsContest(1, 3),
                entrants=4,
                options={"max_draws": None, "empty_hand": "top_up"},
            )
        ),
        "podkidnoe-4-fault": play(
            spec_of("podkidnoe", BoardsContest(2), entrants=4),
            at_random,
            at_random,
            fails_at(9, CRASH),
            at_random,
        ),
    }
    records = {name: match.record for name, (match, _) in played.items()}
    for record in records.values():
        record.timing = Timing(cpu_us=[[0 for _ in row] for row in record.timing.cpu_us], wall_ms=0)
    return records


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, record in make_matches().items():
        (FOLDER / f"{name}.json").write_bytes(encode_record(record))
