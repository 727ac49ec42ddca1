"""States and the moves between them: one table a state field, guarded updates, nothing else writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet, TextChoices

StateT = TypeVar("StateT", bound=TextChoices)


class Transitions(Generic[StateT]):
    """The moves that a state field allows; `move` is the only thing that writes the field."""

    def __init__(self, table: Mapping[StateT, tuple[StateT, ...]], *, field: str = "state") -> None:
        self._table = dict(table)
        self._field = field

    def allows(self, source: StateT, target: StateT) -> bool:
        """Whether a row may go from `source` to `target`."""
        return target in self._table.get(source, ())

    def sources(self, target: StateT) -> tuple[StateT, ...]:
        """The states from which a row may come to `target`."""
        return tuple(state for state, targets in self._table.items() if target in targets)

    def targets(self, source: StateT) -> tuple[StateT, ...]:
        """The states to which a row in `source` may go."""
        return self._table.get(source, ())

    def move(
        self, rows: QuerySet[Any], target: StateT, *, only_from: StateT | None = None, **fields: Any
    ) -> int:
        """Bring those of `rows` to `target` that the table allows; how many those were.

        One UPDATE, so that of several who try at once only one succeeds. `only_from` narrows the
        states that count; `fields` are set along with the state. Raises ValueError for `rows` that
        join another table: the guard would move into a subquery, which PostgreSQL does not look at
        again after waiting for another's update, and two would succeed.
        """
        sources = self.sources(target)
        if only_from is not None:
            sources = tuple(state for state in sources if state == only_from)
        guarded = rows.filter(**{f"{self._field}__in": sources})
        if sum(map(bool, guarded.query.alias_refcount.values())) > 1:
            raise ValueError("a guarded update names columns of its own table only")
        return guarded.update(**{self._field: target}, **fields)

    def move_row(self, row: Model, target: StateT, **fields: Any) -> bool:
        """Bring one row to `target`, if it still is where this copy of it says; refreshes the copy."""
        current = getattr(row, self._field)
        manager = type(row)._default_manager  # noqa: SLF001 Django's name of it
        moved = self.move(manager.filter(pk=row.pk), target, only_from=current, **fields)
        row.refresh_from_db()
        return bool(moved)
