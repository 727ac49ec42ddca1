"""The API of what bots get on this site."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema

from tournament.workers import selectors
from tournament.workers.models import WorkerReport


class TimeControlOut(Schema):
    """CPU milliseconds: for starting, for each game, gained with each question; and real ones, what a process may idle in all."""

    name: str
    start_cpu_ms: int
    game_cpu_ms: int
    action_cpu_ms: int
    action_wall_ms: int


class WorkerOut(Schema):
    """A worker that was heard of lately.

    `budget_percent` is what it grants of the time controls' CPU time: 200 on a machine half as fast as the
    reference. `level` is that of its walls; null where it plays bots without.
    """

    level: Literal["bubblewrap", "landlock"] | None
    python: str
    budget_percent: int


class LimitsOut(Schema):
    """What bots get here. Sizes are in bytes; `memory_bytes` is address space, the interpreter included.

    `numpy_bytes` is what a process that has numpy may have more. `packages` are those that a wheel may
    require, with versions. `arena doctor --server` compares all this with an author's machine.
    """

    python: str
    packages: dict[str, str]
    memory_bytes: int
    numpy_bytes: int
    stack_bytes: int
    open_files: int
    log_bytes: int
    traceback_bytes: int
    wheel_bytes: int
    unpacked_bytes: int
    unpacked_ratio: int
    wheel_files: int
    wheel_folders: int
    wheel_path_characters: int
    time_controls: list[TimeControlOut]
    workers: list[WorkerOut]


router = Router(tags=["limits"])


@router.get("/limits", response=LimitsOut, auth=None)
def get_limits(request: HttpRequest) -> LimitsOut:  # noqa: ARG001 ninja's signature
    """Python, packages, memory, wheels, time controls, and how fast the workers are."""
    limits = selectors.site_limits()
    return LimitsOut.model_validate(
        {
            **{name: getattr(limits, name) for name in limits.__struct_fields__},
            "time_controls": [
                TimeControlOut.model_validate(control, from_attributes=True)
                for control in limits.time_controls
            ],
            "workers": [_worker_out(worker) for worker in selectors.living_workers()],
        }
    )


def _worker_out(worker: WorkerReport) -> WorkerOut:
    return WorkerOut.model_validate(
        {
            "level": None if worker.trusts_bots else worker.level or None,
            "python": worker.python,
            "budget_percent": worker.budget_percent,
        }
    )
