"""The folder of a site: what lies where, and the lock that lets one supervisor in."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tournament.operations.errors import HomeBusyError, OperationsError


def default_home() -> Path:
    """Where a site lives if nobody says otherwise; the same place as in the settings."""
    named = os.environ.get("ARENA_HOME")
    return Path(named).absolute() if named else users_home()


def users_home() -> Path:
    """Where a site lives that no variable names: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data).absolute() / "domino-arena"


@dataclass(frozen=True, slots=True)
class Home:
    """A site's folder, readable for its owner alone."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Home:
        """The home at `path`, made if need be. Raises OperationsError if it cannot be used."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            home = cls(path.absolute())
            home.logs.mkdir(mode=0o700, exist_ok=True)
            home.broker_data.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise OperationsError(
                f"{path} cannot be the home of a site ({error.strerror}); choose another by --home"
            ) from error
        return home

    @property
    def logs(self) -> Path:
        """One file for each process."""
        return self.path / "logs"

    @property
    def broker_data(self) -> Path:
        """What the broker writes down; may be lost, since the database is the truth."""
        return self.path / "broker"

    @property
    def broker_address(self) -> Path:
        """Holds the path of the broker's socket while the site runs."""
        return self.path / "broker-socket"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the home for this process. Raises HomeBusyError while another one does."""
        with (self.path / "supervisor.lock").open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise HomeBusyError(
                    f"A site already runs in {self.path} ({holder}). "
                    "Stop it first, or give this one a home of its own by --home"
                ) from None
            file.truncate(0)
            file.write(f"process {os.getpid()}\n")
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)
