"""What `arena` writes: answers on stdout, everything else on stderr, plain where it is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Protocol

import typer


def print_json(answer: Mapping[str, object]) -> None:
    """Write the command's one JSON object to stdout; infinite numbers are null there."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))


def say(text: str = "") -> None:
    """Write a line of the command's answer to stdout."""
    typer.echo(text)


def note(text: str) -> None:
    """Write a line that is no part of the answer to stderr."""
    typer.echo(text, err=True)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to stdout: columns of numbers to the right, aligned by spaces alone when piped."""
    cells = [[str(cell) for cell in row] for row in rows]
    numeric = [
        bool(rows) and all(isinstance(row[column], int | float | Signed) for row in rows)
        for column in range(len(header))
    ]
    if sys.stdout.isatty():
        _print_rich_table(header, cells, numeric)
    else:
        for line in _plain_table([list(header), *cells], numeric):
            say(line)


class Signed(str):
    """A number already written as text, such as ``+1.25 ± 0.50``; tables put it to the right."""

    __slots__ = ()


class Show(Protocol):
    """What progress is told to."""

    def __call__(self, done: int, total: int | None = None, title: str | None = None, /) -> None:
        """Show that so many steps are done, and of how many and under which title if that has changed."""


@contextmanager
def progress(title: str, total: int | None, *, quiet: bool = False) -> Iterator[Show]:
    """A bar with the time left on stderr, if that is a terminal; yields what to tell the progress."""
    if quiet or not sys.stderr.isatty():
        yield _ignore
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, total=None, title=None: bar.update(
            task, completed=done, total=total, description=title
        )


def error_line(message: str, stream: IO[str] | None = None) -> None:
    """Write an error as one clear line to stderr."""
    typer.echo("error: " + " ".join(message.split()), err=True, file=stream)


def _ignore(_done: int, _total: int | None = None, _title: str | None = None) -> None:
    """Progress that nobody sees."""


def _plain_table(rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(numeric))]
    for row in rows:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _print_rich_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title, right in zip(header, numeric, strict=True):
        table.add_column(title, justify="right" if right else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
