"""What the commands say while they run: lines that stay, and on a terminal one that changes.

Everything goes to stderr; stdout is for results. Nothing here starts a thread, which the supervisor
could not bear.
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

CLEAR_LINE = "\r\x1b[2K"


class Console:
    """Lines for people. `status` shows nothing where there is no terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.is_terminal = self.stream.isatty()
        self.began = time.monotonic()
        self._shown = ""

    def say(self, text: str = "") -> None:
        """Print a line that stays."""
        self._write(f"{CLEAR_LINE if self._shown else ''}{text}\n")
        self._shown = ""

    def status(self, text: str) -> None:
        """Show `text` in the last line of a terminal in place of what was there."""
        if not self.is_terminal or text == self._shown:
            return
        width = shutil.get_terminal_size().columns - 1
        self._write(f"{CLEAR_LINE}{text[:width]}")
        self._shown = text

    @property
    def seconds(self) -> float:
        """Since the console was made."""
        return time.monotonic() - self.began

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def bar(done: int, total: int, width: int = 20) -> str:
    """A bar of `width` characters, filled as far as `done` is of `total`."""
    filled = width * done // total if total else 0
    return "━" * filled + "┈" * (width - filled)
