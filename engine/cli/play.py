"""`arena play`: one match on this machine."""

from __future__ import annotations

import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from engine.cli.contestants import find_bot, seat_entrants
from engine.cli.exits import ExitCode
from engine.cli.files import try_folder, write_file
from engine.cli.known_deals import (
    Changes,
    KnownDeals,
    check_bots,
    find_changes,
    limits_of,
    print_changes,
    read_deals,
)
from engine.cli.output import note, print_json, progress
from engine.cli.results import debug_hint, describe_match, print_match
from engine.comparison import name_entrants
from engine.errors import ContestError, SandboxUnavailableError, UsageError
from engine.games import GAMES, get_game
from engine.games.base import Game
from engine.outcome import Termination
from engine.record import (
    BoardsContest,
    Contest,
    DealSource,
    GamesContest,
    MatchRecord,
    encode_record,
    make_spec,
)
from engine.referee import PlayedMatch
from engine.runner import repeat_if_void, run_match
from engine.sdk.timecontrol import TimeControl
from engine.sdk.timecontrol import time_control as find_time_control
from engine.shuffle import local_prk

DEFAULT_BOARDS = 20


class LocalMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that was played here."""

    played: PlayedMatch
    seed: str
    bots: tuple[tuple[str, ...], ...]
    """By entrant its bots, as they were named on the command line."""
    seconds: float
    is_sandboxed: bool
    changes: Changes | None = None
    """Against the match whose deals were played, if they were known ones."""
    records: tuple[Path, ...] = ()
    """Where its record was written."""
    logs: tuple[Path, ...] = ()
    """Where the logs of its bots were written."""


def run(
    bots: Sequence[str],
    *,
    game: str | None,
    boards: int | None,
    best_of: int | None,
    deals_from: Path | None,
    seed: str | None,
    rules: Sequence[str],
    time_control: str | None,
    records: Path | None,
    logs: Path | None,
    trusted: bool,
    as_json: bool,
) -> ExitCode:
    """Play and tell the result; NOT_GOOD if a bot's fault ended the match. Raises ArenaError."""
    known = None if deals_from is None else read_deals(deals_from)
    if known is not None:
        _refuse_beside_deals(known, game, boards, best_of, rules)
        for line in limits_of(known):
            note(line)
    game = _choose_game(game, known)
    contest = choose_contest(boards, best_of) if known is None else known.contest
    for folder in filter(None, (records, logs)):
        try_folder(folder)
    seed = secrets.token_hex(8) if seed is None else seed
    with progress(" - ".join(bots), most_games(game, contest, len(bots)), quiet=as_json) as show:
        match = play_locally(
            bots,
            game=game,
            contest=contest,
            seed=seed,
            options=parse_rules(rules),
            time_control=time_control,
            trusted=trusted,
            known=known,
            show=show,
        )
    unwritten: UsageError | None = None
    try:
        if records is not None:
            match = msgspec.structs.replace(match, records=(write_record(match, records),))
        if logs is not None:
            match = msgspec.structs.replace(match, logs=tuple(write_logs(match, logs)))
    except UsageError as error:
        unwritten = error  # raised below: the result of a long match is not lost with its files
    if as_json:
        print_json({**describe_match(match), "changes": match.changes})
    else:
        print_match(match)
        if known is not None and match.changes is not None:
            print_changes(known, match.played.record, match.changes)
    if unwritten is not None:
        raise unwritten
    is_completed = match.played.record.outcome.termination is Termination.COMPLETED
    return ExitCode.OK if is_completed else ExitCode.NOT_GOOD


def play_locally(
    bots: Sequence[str],
    *,
    game: str,
    contest: Contest,
    seed: str,
    options: Mapping[str, object] | None = None,
    time_control: str | None = None,
    trusted: bool = False,
    known: KnownDeals | None = None,
    show: Callable[[int], None] = lambda _done: None,
) -> LocalMatch:
    """Play one match of `bots`, each named as on the command line; the seed text decides the deals.

    `trusted` bots play in this process, all others in the sandbox. `known` deals are played by the rules
    and, unless another is named, under the time control of their record; then the seed decides only the
    bots' own random seeds. `show` is told how many games are finished. Raises UsageError,
    SandboxUnavailableError or InfrastructureError.
    """
    check_seed(seed)
    rules = get_game(game)
    if known is not None:
        check_bots(known, len(bots))
        options = known.record.ruleset
    _check_count(rules, len(bots))
    rules.make_ruleset(options)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="arena-play-") as folder:
        found = [find_bot(bot, Path(folder)) for bot in bots]
        sources = seat_entrants(rules, found)
        spec = make_spec(
            game=game,
            entrants=name_entrants(sources),
            contest=contest,
            time_control=_choose_time_control(time_control, known),
            deals=DealSource(prk=local_prk(seed), tournament_id="local", reveal=True),
            options=options,
            match_key="M1" if known is None else known.record.match_key,
            given=() if known is None else known.given,
        )
        try:
            played = repeat_if_void(
                lambda: run_match(spec, sources, trusted=trusted, progress=show), note
            )
        except SandboxUnavailableError as error:
            hint = "bots that you trust can play without one: add --trusted"
            raise SandboxUnavailableError((*error.reasons, hint)) from error
    return LocalMatch(
        played=played,
        seed=seed,
        bots=tuple(seat_entrants(rules, bots)),
        seconds=time.monotonic() - began,
        is_sandboxed=not trusted,
        changes=None if known is None else find_changes(known, played.record),
    )


def _choose_time_control(name: str | None, known: KnownDeals | None) -> TimeControl:
    if name is None and known is not None:
        return known.record.time_control
    return find_time_control(name or "standard")


def _choose_game(game: str | None, known: KnownDeals | None) -> str:
    if known is not None:
        return known.record.game
    if game is None:
        raise UsageError(f"say which game: --game {' or --game '.join(sorted(GAMES))}")
    return game


def _refuse_beside_deals(
    known: KnownDeals,
    game: str | None,
    boards: int | None,
    best_of: int | None,
    rules: Sequence[str],
) -> None:
    """Raise UsageError for an option that says what the record says already."""
    if game is not None and game != known.record.game:
        raise UsageError(f"{known.file} is a match of {known.record.game}; leave --game out")
    given = {"--boards": boards is not None, "--best-of": best_of is not None, "--rule": rules}
    for option in (name for name, is_given in given.items() if is_given):
        raise UsageError(
            f"{option} cannot be given with --deals-from: the record says it; leave it out"
        )


def check_seed(seed: str) -> None:
    """Raise UsageError for a seed that is no text: its bytes were not UTF-8."""
    try:
        seed.encode()
    except UnicodeEncodeError:
        raise UsageError(f"--seed {seed!a} is no UTF-8 text; use any text") from None


def choose_contest(boards: int | None, best_of: int | None) -> Contest:
    """Boards unless whole games are asked for. Raises ContestError if both are."""
    if best_of is None:
        return BoardsContest(boards=DEFAULT_BOARDS if boards is None else boards)
    if boards is not None:
        raise ContestError("give --boards or --best-of, not both")
    return GamesContest(best_of=best_of)


def parse_rules(rules: Sequence[str]) -> dict[str, object]:
    """The options of ``option=value`` texts. Raises UsageError for any other text, or one given twice."""
    options: dict[str, object] = {}
    for rule in rules:
        name, equals, value = rule.partition("=")
        if not (name and equals and value):
            raise UsageError(f"--rule {rule!r} should be OPTION=VALUE, such as min_bid=60")
        if name in options:
            raise UsageError(f"the option {name!r} is given twice; give each --rule once")
        options[name] = value
    return options


def most_games(game: str, contest: Contest, bots: int) -> int:
    """How many games a match of so many bots has at most."""
    if isinstance(contest, GamesContest):
        return contest.best_of
    return contest.boards * min(bots, get_game(game).entrant_counts[-1])


def write_record(match: LocalMatch, folder: Path) -> Path:
    """Write the match's record below `folder`; its name tells game, seed and digest. Raises UsageError."""
    record = match.played.record
    path = folder / f"{record.game}-{_slug(match.seed)}-{_short_digest(record)}.json"
    write_file(path, encode_record(record))
    return path


def write_logs(match: LocalMatch, folder: Path) -> Iterator[Path]:
    """Write below `folder` what each bot printed, a file for each seat of each set of processes.

    Bots that printed nothing leave no file. Raises UsageError.
    """
    record = match.played.record
    for seat in match.played.logs:
        parts = (seat.log.text, seat.log.traceback, seat.fault, debug_hint(match, seat))
        text = "\n".join(filter(None, parts))
        if text:
            entrant = _slug(record.entrants[seat.entrant].name)
            name = f"{_short_digest(record)}-{seat.sitting}-seat-{seat.seat}-{entrant}.log"
            write_file(folder / name, text.encode())
            yield folder / name


def _check_count(game: Game, bots: int) -> None:
    """Refuse a wrong number of bots in the words of the command line, where pairs are a bot a seat."""
    allowed = sorted({*game.entrant_counts, game.seats(game.entrant_counts[0])})
    if bots not in allowed:
        *most, last = map(str, allowed)
        raise ContestError(
            f"{game.name} needs {', '.join(most)} or {last} bots, and {bots} "
            f"{'was' if bots == 1 else 'were'} given"
        )


def _slug(seed: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", seed.lower()).strip("-")[:40] or "seed"


def _short_digest(record: MatchRecord) -> str:
    return record.digest.removeprefix("sha256:")[:8]
