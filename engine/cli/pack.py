"""`arena pack`: the wheel of a project, ready to be uploaded."""

from __future__ import annotations

from pathlib import Path

from engine.cli.exits import ExitCode
from engine.cli.files import write_file
from engine.cli.output import say
from engine.errors import UsageError
from engine.wheels import WheelInfo, pack_project, read_wheel


def run(project: Path, *, folder: Path | None) -> ExitCode:
    """Write the wheel and say where. Raises UsageError (WheelError with every reason) if there is none."""
    if not project.is_dir():
        raise UsageError(f"{project} is no folder; give the folder of a bot's project")
    data = pack_project(project)
    path = (project / "dist" if folder is None else folder) / wheel_name(read_wheel(data))
    write_file(path, data)
    say(str(path))
    return ExitCode.OK


def wheel_name(info: WheelInfo) -> str:
    """The file name that the wheel format asks for: ``my_bot-1.0-py3-none-any.whl``."""
    stem = info.distribution.replace("-", "_").replace(".", "_").lower()
    return f"{stem}-{info.version}-py3-none-any.whl"
