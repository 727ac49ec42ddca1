"""The bot that tries the walls: attempts what is forbidden and prints what came of it, a line of JSON each.

Then it declines to play. `engine.sandbox.probe` starts it and reads its log.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.sdk import Ruleset, Strategy, hookimpl

OTHER_FOLDER, OTHER_FILE = "f" * 64, "other_bot.py"
"""What the probe laid beside this bot's folder, as one unpacked wheel lies beside another."""
BESIDE = "beside"
"""A file in this bot's folder with the other's name as it is here, which a bot cannot know."""


def _other_folder() -> Path:
    here = Path(__file__).parent
    return here.parent / (here / BESIDE).read_text()


def _connect() -> None:
    socket.create_connection(("127.0.0.1", 1), timeout=1)


def _local_socket() -> None:
    socket.socketpair()


def _write_file() -> None:
    (Path(__file__).parent / "left-behind").write_text("x")


def _write_root() -> None:
    Path("/left-behind").write_text("x")


def _read_passwords() -> None:
    Path("/etc/passwd").read_text()


def _read_other_bot() -> None:
    (_other_folder() / OTHER_FILE).read_text()


def _list_other_bots() -> None:
    if _other_folder().name in os.listdir(_other_folder().parent):  # noqa: PTH208  # what a bot would do
        return
    raise FileNotFoundError("it is not in the list")


def _list_processes() -> None:
    list(Path("/proc").iterdir())


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _start_thread() -> None:
    threading.Thread(target=int).start()


def _execute() -> None:
    os.execv("/proc/self/exe", ["python"])


def _signal_others() -> None:
    os.kill(-1, signal.SIGCONT)


def _take_memory() -> None:
    bytearray(1 << 30)


ATTEMPTS: dict[str, Callable[[], Any]] = {
    "connect to the network": _connect,
    "make a socket": _local_socket,
    "write into its own folder": _write_file,
    "write into the root folder": _write_root,
    "read /etc/passwd": _read_passwords,
    "read another bot's file": _read_other_bot,
    "list other bots": _list_other_bots,
    "list processes": _list_processes,
    "fork": _fork,
    "start a thread": _start_thread,
    "send signals": _signal_others,
    "take 1 GiB of memory": _take_memory,
    "execute a program": _execute,
}


def attempt(call: Callable[[], Any]) -> dict[str, object]:
    """Whether the wall held, and what it said."""
    try:
        call()
    except (OSError, RuntimeError, MemoryError) as error:
        return {"held": True, "said": f"{type(error).__name__}: {error}"}
    return {"held": False, "said": "it went through"}


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:  # noqa: ARG001  # pluggy passes what is named
    """Try the walls; play nothing."""
    for name, call in ATTEMPTS.items():
        print(json.dumps({"tried": name, **attempt(call)}))
    return None
