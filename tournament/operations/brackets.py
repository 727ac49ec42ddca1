"""A knock-out stage as text, for terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.formats.base import Pairing, StageView

THIRD_PLACE = "/P3/"
BESIDE = ("L/", "GF/")
"""How the keys of a double elimination begin outside the winners' bracket."""


def draw_bracket(view: StageView, names: Mapping[int, str]) -> str:
    """The rounds of a bracket from left to right; each entrant with its points, the winners going on.

    `names` are the entrants' by id. The match for the third place is left out. Of a double elimination it is
    the winners' bracket; the losers' bracket and the grand finals follow, a line a round.
    """
    trees = [tree for round_ in view.rounds if (tree := _tree(round_.pairings))]
    if not trees:
        return ""
    others = [_line(round_.pairings, names) for round_ in view.rounds]
    return "\n".join([_draw_tree(trees, names), *(line for line in others if line)])


def _draw_tree(trees: Sequence[Sequence[Pairing]], names: Mapping[int, str]) -> str:
    columns = [[_cells(pairing, names) for pairing in tree] for tree in trees]
    height = 4 * len(columns[0]) - 1
    lines = [""] * height
    for index, column in enumerate(columns):
        rows = _rows(index, len(column))
        width = max(len(cell) for cells in column for cell in cells)
        cells = {
            row: cell
            for pair, cells in zip(rows, column, strict=True)
            for row, cell in zip(pair, cells, strict=True)
        }
        for row in range(height):
            cell = cells.get(row)
            lines[row] += (f"{cell:<{width}}" if cell is not None else " " * width) + _joint(
                row, rows
            )
    winner = _winner(trees[-1], names)
    middle = (sum(_rows(len(columns) - 1, 1)[0])) // 2
    if winner:
        lines[middle] = f"{lines[middle].rstrip()} {winner}"
    return "\n".join(line.rstrip() for line in lines)


def _tree(pairings: Sequence[Pairing]) -> list[Pairing]:
    """Those of a round that halve from round to round."""
    return sorted(
        (
            pairing
            for pairing in pairings
            if THIRD_PLACE not in pairing.key and not pairing.key.startswith(BESIDE)
        ),
        key=lambda pairing: pairing.slot,
    )


def _line(pairings: Sequence[Pairing], names: Mapping[int, str]) -> str:
    """Those of a round that stand beside the winners' bracket, named by their round's key."""
    beside = [pairing for pairing in pairings if pairing.key.startswith(BESIDE)]
    if not beside:
        return ""
    matches = ", ".join(
        " - ".join(cell.strip() for cell in _cells(pairing, names)) for pairing in beside
    )
    return f"{beside[0].key.rsplit('/M', 1)[0]}: {matches}"


def _cells(pairing: Pairing, names: Mapping[int, str]) -> tuple[str, str]:
    """The two entrants of a pairing, or one and its bye."""
    points: Sequence[int | str] = pairing.result.points if pairing.result else ("", "")
    if pairing.is_bye:
        return f"{names[pairing.entrants[0]]} ", "(bye) "
    first, second = (
        f"{names[entrant]} {point} ".replace("  ", " ")
        for entrant, point in zip(pairing.entrants, points, strict=True)
    )
    return first, second


def _rows(column: int, pairings: int) -> list[tuple[int, int]]:
    """The lines of a round's entrants: each stands at the middle of the match that it came from."""
    gap = 2 ** (column + 1)
    offset = gap // 2 - 1
    return [(offset + 2 * gap * i, offset + 2 * gap * i + gap) for i in range(pairings)]


def _joint(row: int, rows: Sequence[tuple[int, int]]) -> str:
    """What joins the two entrants of a match to the place of its winner, in one line."""
    for top, bottom in rows:
        if row == top:
            return "─┐ "
        if row == bottom:
            return "─┘ "
        if row == (top + bottom) // 2:
            return " ├─"
        if top < row < bottom:
            return " │ "
    return "   "


def _winner(pairings: Sequence[Pairing], names: Mapping[int, str]) -> str | None:
    if len(pairings) != 1 or pairings[0].result is None:
        return None
    going_on = zip(pairings[0].entrants, pairings[0].result.advances, strict=True)
    return next((names[entrant] for entrant, advances in going_on if advances), None)
