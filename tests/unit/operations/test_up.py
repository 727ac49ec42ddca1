"""``manage.py up``, as far as it needs no site."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tournament.operations import up
from tournament.operations.errors import OperationsError
from tournament.operations.stack import Address, cores


@pytest.mark.parametrize(
    ("said", "slots"),
    [
        (None, cores()),  # nothing is said: one a core
        ("1", 1),  # a core is left for other things
        ("64", 64),  # more than there are
    ],
)
def test_site_plays_as_many_matches_at_once_as_its_operator_says(
    said, slots, monkeypatch, tmp_path
):
    started: list[int] = []

    @contextmanager
    def note(*_args, slots, **_kwargs):
        started.append(slots)
        raise OperationsError("enough is known")
        yield

    monkeypatch.setattr(up, "running_stack", note)
    monkeypatch.setattr(up, "require_sandbox", lambda: None)
    monkeypatch.delenv("ARENA_WORKER_SLOTS", raising=False)
    if said is not None:
        monkeypatch.setenv("ARENA_WORKER_SLOTS", said)
    with pytest.raises(OperationsError, match="enough is known"):
        up.run(tmp_path, Address("127.0.0.1", 0), up.Console(), up.Interruptions())
    assert started == [slots]
