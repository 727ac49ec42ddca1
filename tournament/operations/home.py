"""The folder of a site: what lies where, who may look in, and the lock that lets one supervisor in.

It is used before Django is loaded, by the settings too, and must not know Django.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tournament.operations.errors import HomeBusyError, OperationsError


def default_home() -> Path:
    """Where a site lives if nobody says otherwise."""
    named = os.environ.get("ARENA_HOME")
    return Path(named).absolute() if named else users_home()


def users_home() -> Path:
    """Where a site lives that no variable names: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data).absolute() / "domino-arena"


PRIVATE_UMASK = 0o077
_MARKS = ("arena.sqlite3", "secret_key", "supervisor.lock")
"""A folder with one of these is a site's."""


def private_folder(path: Path) -> Path:
    """The folder `path` as a site's home, closed to other users; made if there is none.

    What older versions left open to others in it is closed too. Raises OperationsError for a folder that
    is another user's, or one that others can read and that holds what is no site's: closing that could
    lock somebody out.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path)
        if path.stat().st_mode & PRIVATE_UMASK:
            path.chmod(0o700)
        _close_files(path)
        _close_files(path / "logs")
    except OSError as error:
        raise OperationsError(
            f"{path} cannot be the home of a site ({error.strerror}); choose another by --home"
        ) from error
    return path


def check_folder(path: Path) -> None:
    """Raises OperationsError for a folder that is another user's, or that cannot be closed to others, and OSError."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise OperationsError(
            f"{path} belongs to another user (number {found.st_uid}), who could read the site's "
            "secrets; choose another home, or change its owner"
        )
    if found.st_mode & PRIVATE_UMASK and (
        found.st_mode & stat.S_ISVTX or not _is_home_or_empty(path)
    ):
        raise OperationsError(
            f"{path} is open to other users and holds what is no site's; choose an empty "
            f"folder or a new one as the home, or close it yourself: chmod 700 {path}"
        )


def _is_home_or_empty(path: Path) -> bool:
    names = {entry.name for entry in path.iterdir()}
    return not names or not names.isdisjoint(_MARKS)


def _close_files(folder: Path) -> None:
    """Take from others and from the group what they may do with the folder's own files."""
    if not folder.is_dir():
        return
    for entry in os.scandir(folder):
        try:
            found = entry.stat(follow_symlinks=False)
            if (
                stat.S_ISREG(found.st_mode)
                and found.st_uid == os.geteuid()
                and found.st_mode & PRIVATE_UMASK
            ):
                Path(entry.path).chmod(stat.S_IMODE(found.st_mode) & ~PRIVATE_UMASK)
        except FileNotFoundError:
            continue  # a running site's passing file, e.g. the database's journal


@contextmanager
def private_files() -> Iterator[None]:
    """Let what this process and its children make be for this user alone, until the block ends."""
    before = os.umask(PRIVATE_UMASK)
    try:
        yield
    finally:
        os.umask(before)


@dataclass(frozen=True, slots=True)
class Home:
    """A site's folder, readable for its owner alone."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Home:
        """The home at `path`, made if need be. Raises OperationsError if it cannot be used."""
        home = cls(private_folder(path.absolute()))
        try:
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

    def serve(self) -> IO[str]:
        """Show that a web server works here for as long as the file that is given stays open.

        Any number may. Raises HomeBusyError while somebody has the home stopped.
        """
        file = self._serving.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise HomeBusyError(
                f"the site in {self.path} is being moved to another database: start its web servers when that has "
                "ended, with the new ARENA_DATABASE"
            ) from None
        return file

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Keep supervisor and web servers away. Raises HomeBusyError if there is one."""
        with self.lock(), self._serving.open("a", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HomeBusyError(
                    f"a web server still works in {self.path}: stop it first"
                ) from None
            yield

    @property
    def _serving(self) -> Path:
        return self.path / "serving.lock"

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
