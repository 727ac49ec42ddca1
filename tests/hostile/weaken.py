"""Walls switched off, one at a time: to see that each holds something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec

from engine.sandbox import launcher
from engine.sandbox.launcher import Launched, Launcher
from engine.sandbox.runtime import Runtime
from engine.sandbox.zygote_launcher import ZygoteLauncher, shared_launcher

ALLOW_ALL = b"\x06\0\0\0\0\0\xff\x7f"
"""A filter of one instruction that lets every system call through."""


class Weakened:
    """A launcher whose processes raise other walls than they should."""

    def __init__(self, launcher: Launcher, **changes: Any) -> None:
        self._launcher = launcher
        self._changes = changes

    def launch(self, folder: str) -> Launched:
        launched = self._launcher.launch(folder)
        launched.walls = msgspec.structs.replace(launched.walls, **self._changes)
        return launched


class Exposed(ZygoteLauncher):
    """A launcher whose processes see files of the machine beside those that they need; they may write none."""

    def launch(self, folder: str) -> Launched:
        whole = launcher._mounts

        def mounts(runtime: Runtime) -> Iterator[str]:
            yield from whole(runtime)
            yield from ("--ro-bind", "/etc", "/etc")

        with mock.patch.object(launcher, "_mounts", mounts):
            return super().launch(folder)


WHOLE = shared_launcher("bubblewrap")
WITHOUT: dict[str, Launcher] = {
    "namespaces": shared_launcher("landlock"),
    "the file system": Exposed("bubblewrap"),
    "Landlock": Weakened(WHOLE, landlock_abi=0),
    "seccomp": Weakened(WHOLE, seccomp=ALLOW_ALL),
    "limits": Weakened(WHOLE, rlimits={}),
}
"""By the wall that is missing. Never two at once: what then goes through would reach the machine."""
