"""What the sandbox says where it cannot find what a bot would run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import SandboxUnavailableError
from engine.sandbox.runtime import find_runtime


def test_an_interpreter_that_this_user_cannot_read_is_named_with_what_helps(monkeypatch):
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    find_runtime.cache_clear()
    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(
        SandboxUnavailableError, match=r"cannot be read by this user: /.*chmod o\+rX"
    ):
        find_runtime()
