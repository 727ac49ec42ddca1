"""`arena compare`: is one bot better than another? Mirrored sets until a sequential test knows.

What decides is how many sets it took, and that depends on the sets alone: with the same bots and seed the
command ends at the same set with the same numbers, on however many cores it plays.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import msgspec

from engine.agents import BotSource
from engine.cli.batches import cores_here, play_in_order
from engine.cli.contestants import find_bot
from engine.cli.exits import ExitCode
from engine.cli.files import try_folder
from engine.cli.output import Show, note, print_json, progress, say
from engine.cli.play import LocalMatch, check_seed, parse_rules, write_record
from engine.cli.results import describe_fault, fault_lines, fault_logs, printable
from engine.comparison import (
    BOARDS_A_MATCH,
    Findings,
    Question,
    Sets,
    Verdict,
    count_in_words,
    count_matches,
    name_entrants,
    nth_match,
    score_of_set,
    scores_by_set,
    scores_of_sets,
    spell_answer,
    spell_elo,
    spell_estimate,
    weigh,
)
from engine.errors import ContestError, SandboxUnavailableError
from engine.games import GAMES, get_game
from engine.outcome import Termination
from engine.record import EntrantRef, MatchSpec
from engine.referee import PlayedMatch
from engine.sdk.timecontrol import time_control as find_time_control
from engine.statistics import (
    Calibration,
    Comparison,
    Mirroring,
    SequentialTest,
    between_equals,
    count_sets,
    elo_interval,
    estimate_counts,
    likelihood_ratio,
    simulate,
)

MOST_SETS = 10_000
CALIBRATION_SETS = 500
ACCEPTED_RATE = 0.07
"""The better-hypothesis may be accepted so often between equals: 5 %, and what 400 runs spread."""


EXITS = {
    Verdict.BETTER: ExitCode.OK,
    Verdict.NOT_BETTER: ExitCode.NOT_GOOD,
    Verdict.FAULT: ExitCode.NOT_GOOD,
    Verdict.UNDECIDED: ExitCode.UNDECIDED,
}


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Who meets, and how."""

    sources: tuple[tuple[BotSource, ...], ...]
    entrants: tuple[EntrantRef, ...]
    bots: tuple[str, ...]
    """As they were named on the command line."""
    seed: str
    time_control: str
    rules: dict[str, object]
    trusted: bool
    jobs: int
    records: Path | None


class Report(Findings, frozen=True, kw_only=True):
    """What came out of one game."""

    game: str
    ruleset: dict[str, bool | int | str | None]
    fault: LocalMatch | None
    """The match that a fault ended."""
    records: tuple[Path, ...]
    seconds: float
    is_interrupted: bool


def run(
    bots: Sequence[str],
    *,
    game: str,
    elo0: float | None,
    elo1: float | None,
    max_sets: int | None,
    sets: int | None,
    calibrate: int | None,
    seed: str | None,
    jobs: int | None,
    rules: Sequence[str],
    time_control: str | None,
    records: Path | None,
    trusted: bool,
    as_json: bool,
) -> ExitCode:
    """Play and tell what is better; the exit code is the verdict. Raises ArenaError."""
    games = choose_games(game)
    _check_bots(bots, calibrate)
    question = make_question(elo0, elo1, max_sets, sets, calibrate)
    if records is not None:
        try_folder(records)
    seed = _usual_seed(calibrate) if seed is None else seed
    check_seed(seed)
    for name in games:
        get_game(name).make_ruleset(parse_rules(rules))
    with tempfile.TemporaryDirectory(prefix="arena-compare-") as folder:
        sources = tuple((find_bot(bot, Path(folder)),) for bot in _both(bots))
        table = Table(
            sources=sources,
            entrants=name_entrants(sources),
            bots=_both(bots),
            seed=seed,
            time_control=find_time_control(time_control or "standard").name,
            rules=parse_rules(rules),
            trusted=trusted,
            jobs=cores_here() if jobs is None else jobs,
            records=records,
        )
        if calibrate is not None:
            limit = MOST_SETS if max_sets is None else max_sets
            test = _test_of(elo0, elo1)
            return _calibrate(
                table, games, test, question, runs=calibrate, most_sets=limit, as_json=as_json
            )
        reports = []
        for name in games:
            report = play_game(table, name, question, quiet=as_json)
            reports.append(report)
            if not as_json:
                _print_report(table, question, report, is_first=len(reports) == 1)
            if report.is_interrupted:
                break
    if as_json:
        print_json(_describe(table, question, reports))
    return exit_code(reports)


def choose_games(game: str) -> list[str]:
    """The games to play. Raises UsageError for one that there is not."""
    return sorted(GAMES) if game == "both" else [get_game(game).name]


def exit_code(reports: Sequence[Report]) -> ExitCode:
    """Better in all games is good; not better in one is not; else it is undecided."""
    if any(report.is_interrupted for report in reports):
        return ExitCode.INTERRUPTED
    codes = {EXITS[report.verdict] for report in reports}
    for code in (ExitCode.NOT_GOOD, ExitCode.UNDECIDED):
        if code in codes:
            return code
    return ExitCode.OK


def make_question(
    elo0: float | None,
    elo1: float | None,
    max_sets: int | None,
    sets: int | None,
    calibrate: int | None = None,
) -> Question:
    """A sequential test, or a fixed number of sets. Raises ContestError if it is said to be both."""
    test = _test_of(elo0, elo1)
    if calibrate is not None:
        return Question(test=None, most_sets=CALIBRATION_SETS if sets is None else sets)
    if sets is None:
        return Question(test=test, most_sets=MOST_SETS if max_sets is None else max_sets)
    for option, value in (("--elo0", elo0), ("--elo1", elo1), ("--max-sets", max_sets)):
        if value is not None:
            raise ContestError(f"give --sets or {option}, not both: a fixed number is not tested")
    return Question(test=None, most_sets=sets)


def _test_of(elo0: float | None, elo1: float | None) -> SequentialTest:
    usual = SequentialTest()
    elo0 = usual.elo0 if elo0 is None else elo0
    elo1 = usual.elo1 if elo1 is None else elo1
    if not -1000 <= elo0 < elo1 <= 1000:
        raise ContestError(
            f"--elo0 must be less than --elo1, both from -1000 to 1000; got {elo0:g} and {elo1:g}"
        )
    return SequentialTest(elo0=elo0, elo1=elo1)


def _check_bots(bots: Sequence[str], calibrate: int | None) -> None:
    if calibrate is None and len(bots) != 2:
        raise ContestError(
            f"compare two bots, the new one first; {len(bots)} {'was' if len(bots) == 1 else 'were'} given"
        )
    if calibrate is not None and len(set(bots)) != 1:
        raise ContestError("--calibrate is for one bot, which meets its own copy; name one")


def _usual_seed(calibrate: int | None) -> str:
    return secrets.token_hex(8) if calibrate is None else "calibrate"


def _both(bots: Sequence[str]) -> tuple[str, ...]:
    return (bots[0], bots[-1])


# Playing


class _Session:
    """One game's matches being played, and what came of them so far."""

    def __init__(self, table: Table, played: Iterator[PlayedMatch], teller: _Teller) -> None:
        self.table = table
        self.played = played
        self.teller = teller
        self.sets: list[list[tuple[int, ...]]] = []
        self.records: list[Path] = []
        self.fault: LocalMatch | None = None

    def scores(self) -> Iterator[float]:
        """The scores of the sets in their order, each played only when it is asked for; a fault ends them.

        The match that a fault ended counts nothing, since who knows how the rest would have gone.
        """
        for played in self.played:
            match = self._keep(played)
            if played.record.outcome.termination is not Termination.COMPLETED:
                self.fault = match
                return
            for mirrored in scores_of_sets(played.record):
                self.sets.append(mirrored)
                yield score_of_set(mirrored)
            self.teller.tell(self.sets)

    def _keep(self, played: PlayedMatch) -> LocalMatch:
        table = self.table
        match = LocalMatch(
            played=played,
            seed=table.seed,
            bots=tuple((bot,) for bot in table.bots),
            seconds=played.record.timing.wall_ms / 1000,
            is_sandboxed=not table.trusted,
        )
        if table.records is None:
            return match
        self.records.append(write_record(match, table.records))
        return msgspec.structs.replace(match, records=(self.records[-1],))


class _Teller:
    """Tells how a game is going: in the bar of a terminal, else by a line whenever the sets have doubled."""

    def __init__(self, game: str, question: Question, show: Show, *, quiet: bool) -> None:
        self.game = game
        self.question = question
        self.show = show
        self.is_silent = quiet or sys.stderr.isatty()
        self.next = 2 * BOARDS_A_MATCH

    def tell(self, sets: Sets) -> None:
        """Tell what the sets so far say."""
        if self.is_silent and not sys.stderr.isatty():
            return
        state = self._spell(sets)
        self.show(len(sets), None, f"{self.game} {state}")
        if not self.is_silent and len(sets) >= self.next:
            self.next *= 2
            note(f"{self.game}: {len(sets)} sets, {state}")

    def _spell(self, sets: Sets) -> str:
        counts, test = count_sets(scores_by_set(sets)), self.question.test
        spelled = f"Elo {spell_elo(elo_interval(estimate_counts(counts)))}"
        if test is None:
            return spelled
        ratio = likelihood_ratio(counts, test.elo0, test.elo1)
        return f"{spelled}, LLR {ratio:+.2f} of ±{test.bound:.2f}"


def play_game(table: Table, game: str, question: Question, *, quiet: bool = False) -> Report:
    """Play sets of one game until the question is answered, a bot is at fault, or somebody interrupts."""
    began = time.monotonic()
    specs = _matches(table, game, question.most_sets)
    is_interrupted = False
    with (
        progress(game, question.most_sets, quiet=quiet) as show,
        contextlib.closing(_play(table, specs)) as played,
    ):
        session = _Session(table, played, _Teller(game, question, show, quiet=quiet))
        try:
            if question.test is None:
                deque(session.scores(), maxlen=0)
            else:
                question.test.run(session.scores(), question.most_sets)
        except KeyboardInterrupt:
            is_interrupted = True
    return make_report(
        game,
        session.sets,
        question,
        ruleset=msgspec.to_builtins(specs[0].ruleset),
        fault=session.fault,
        records=tuple(session.records),
        seconds=time.monotonic() - began,
        is_interrupted=is_interrupted,
    )


def _matches(table: Table, game: str, most_sets: int) -> list[MatchSpec]:
    return [
        nth_match(
            number,
            game=game,
            entrants=table.entrants,
            rules=table.rules,
            time_control=table.time_control,
            seed=table.seed,
            most_sets=most_sets,
        )
        for number in range(1, count_matches(most_sets) + 1)
    ]


def _play(table: Table, specs: Sequence[MatchSpec]) -> Generator[PlayedMatch]:
    try:
        yield from play_in_order(specs, table.sources, jobs=table.jobs, trusted=table.trusted)
    except SandboxUnavailableError as error:
        hint = "bots that you trust can play without one: add --trusted"
        raise SandboxUnavailableError((*error.reasons, hint)) from error


def make_report(
    game: str,
    sets: Sets,
    question: Question,
    *,
    ruleset: dict[str, bool | int | str | None],
    fault: LocalMatch | None = None,
    records: tuple[Path, ...] = (),
    seconds: float = 0.0,
    is_interrupted: bool = False,
) -> Report:
    """What `sets`, all of them finished, say."""
    findings = weigh(sets, question, is_faulty=fault is not None)
    return Report(
        **msgspec.structs.asdict(findings),
        game=game,
        ruleset=ruleset,
        fault=fault,
        records=records,
        seconds=seconds,
        is_interrupted=is_interrupted,
    )


# Telling


def _print_report(table: Table, question: Question, report: Report, *, is_first: bool) -> None:
    if not is_first:
        say()
    first, other = (entrant.name for entrant in table.entrants)
    cores = f"{table.jobs} at a time" if table.jobs > 1 else "one at a time"
    say(
        f"{get_game(report.game).title}, {count_in_words(report.sets)}, seed {printable(table.seed)}, "
        f"time control {table.time_control}, {cores}, {report.seconds:.1f} s"
        + ("" if not table.trusted else ", not sandboxed")
    )
    if report.compared is not None:
        for name, value in _rows(first, other, question, report, report.compared):
            say(f"  {name:<22}{value}")
    say(spell_verdict(first, other, question, report))
    if report.fault is not None:
        for line in fault_lines(report.fault):
            say(line)
    if report.records:
        say(f"records: {len(report.records)} in {table.records}")


def _rows(
    first: str, other: str, question: Question, report: Report, compared: Comparison
) -> Iterator[tuple[str, str]]:
    summary, elo, los = compared.entrants[0], compared.elo, compared.superiority
    assert elo is not None
    assert los is not None
    counts = "  ".join(
        f"{kind}: {count}" for kind, count in zip("0¼½¾1", report.counts, strict=True)
    )
    yield f"sets of {first}", counts
    yield "score", spell_estimate(summary.score, ".3f")
    yield "points a board", spell_estimate(summary.points, "+.2f")
    yield f"Elo over {other}", spell_elo(elo)
    yield "better by chance of", f"{los:.3f} (LOS)"
    if question.test is not None and report.ratio is not None:
        test = question.test
        against = f"Elo {test.elo1:+g} against {test.elo0:g}"
        yield "LLR", f"{report.ratio:+.3f} for {against}; decided at ±{test.bound:.3f}"
    yield "mirroring, by points", spell_mirroring(report.points_mirroring)
    yield "mirroring, by wins", spell_mirroring(report.score_mirroring)


def spell_mirroring(found: Mirroring | None) -> str:
    """``plays of a board correlate -0.13; one is worth 1.15 unmirrored``."""
    if found is None or found.correlation is None:
        return "cannot be told yet"
    worth = (
        ""
        if found.variance_ratio is None
        else f"; one is worth {found.variance_ratio:.2f} unmirrored"
    )
    return f"the plays of a set correlate {found.correlation:+.2f}{worth}"


def spell_verdict(first: str, other: str, question: Question, report: Report) -> str:
    """The answer in a sentence."""
    return spell_answer(first, other, question, report, is_interrupted=report.is_interrupted)


def _describe(table: Table, question: Question, reports: Sequence[Report]) -> dict[str, object]:
    """The JSON object of the command; its keys are those of the page "The command line"."""
    return {
        "entrants": table.entrants,
        "seed": table.seed,
        "time_control": table.time_control,
        "sandboxed": not table.trusted,
        "jobs": table.jobs,
        "test": question.test,
        "games": [_describe_game(table, question, report) for report in reports],
        "interrupted": any(report.is_interrupted for report in reports),
    }


def _describe_game(table: Table, question: Question, report: Report) -> dict[str, object]:
    first, other = (entrant.name for entrant in table.entrants)
    compared, fault = report.compared, report.fault
    return {
        "game": report.game,
        "ruleset": report.ruleset,
        "sets": report.sets,
        "counts": report.counts,
        "score": compared and compared.entrants[0].score,
        "points": compared and compared.entrants[0].points,
        "elo": compared and compared.elo,
        "superiority": compared and compared.superiority,
        "likelihood_ratio": report.ratio,
        "decision": report.decision,
        "mirroring": {"points": report.points_mirroring, "score": report.score_mirroring},
        "verdict": report.verdict,
        "answer": spell_verdict(first, other, question, report),
        "faults": [describe_fault(fault, log) for log in fault_logs(fault)] if fault else [],
        "records": [str(path) for path in report.records],
        "seconds": round(report.seconds, 3),
    }


# Between equals


def _calibrate(
    table: Table,
    games: Sequence[str],
    test: SequentialTest,
    question: Question,
    *,
    runs: int,
    most_sets: int,
    as_json: bool,
) -> ExitCode:
    """Let the test judge a bot against its own copy, again and again, by sets that the two really played."""
    found: list[dict[str, object]] = []
    is_good = True
    for name in games:
        report = play_game(table, name, question, quiet=as_json)
        if report.fault is not None or report.is_interrupted:
            _print_report(table, question, report, is_first=True)
            return ExitCode.INTERRUPTED if report.is_interrupted else ExitCode.NOT_GOOD
        chances = between_equals(report.counts)
        generator = random.Random(f"{table.seed} {name}")  # noqa: S311 a simulation, no secret
        calibration = simulate(test, chances, runs=runs, most_sets=most_sets, generator=generator)
        is_good = is_good and calibration.rate <= ACCEPTED_RATE
        found.append({"game": name, "counts": report.counts, **_describe_runs(calibration)})
        if not as_json:
            say(_spell_calibration(table, name, report, test, calibration))
    if as_json:
        print_json({"bot": table.bots[0], "seed": table.seed, "test": test, "games": found})
    return ExitCode.OK if is_good else ExitCode.NOT_GOOD


def _describe_runs(found: Calibration) -> dict[str, object]:
    return {
        "runs": found.runs,
        "accepted_h1": found.accepted_h1,
        "accepted_h0": found.accepted_h0,
        "mean_sets": round(found.mean_sets, 1),
        "rate": found.rate,
        "good": found.rate <= ACCEPTED_RATE,
    }


def _spell_calibration(
    table: Table, game: str, report: Report, test: SequentialTest, found: Calibration
) -> str:
    judged = "well" if found.rate <= ACCEPTED_RATE else f"TOO OFTEN: at most {ACCEPTED_RATE:.0%}"
    return (
        f"{get_game(game).title}: {table.entrants[0].name} against its own copy, "
        f"{count_in_words(report.sets)} {list(report.counts)}; of {found.runs} simulated runs "
        f"(Elo {test.elo1:+g} against {test.elo0:g}) {found.accepted_h1} called the copy better, "
        f"{found.rate:.1%}: {judged}; {found.mean_sets:.0f} sets a run"
    )
