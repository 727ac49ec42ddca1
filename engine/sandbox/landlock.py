"""Landlock: a process gives up, for itself and for good, every file but those it names.

Called by the bot's process itself, before the bot is near. By plain system calls, since the libraries that
wrap them look for a compiler and a temporary folder, and a bot's process has neither. The numbers are the
same on all architectures (``man 7 landlock``).
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from functools import cache

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_FOR_VERSION = 1
_PATH_BENEATH = 1
_KEEP_OUT_OF_THE_AUDIT_LOG = 1
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""Rights over files that a version brought: all up to ``MAKE_SYM``, ``REFER``, ``TRUNCATE``, ``IOCTL_DEV``."""
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_NETWORK = 3
"""To bind and to connect TCP sockets, from version 4 on."""
_SCOPES = 3
"""Abstract sockets and signals stay within, from version 6 on."""


@cache
def system_calls() -> ctypes.CDLL:
    """The C library, with its errors kept for `ctypes.get_errno`."""
    return ctypes.CDLL(None, use_errno=True)


def landlock_abi() -> int:
    """The version of Landlock that this kernel has in use; 0 if none."""
    if sys.platform != "linux":
        return 0
    version: int = system_calls().syscall(_CREATE_RULESET, None, 0, _ASK_FOR_VERSION)
    return max(0, version)


def restrict_to(readable: Iterable[str], abi: int) -> None:
    """From now on this process may read these files and folders, and nothing else of any file system.

    It must not be able to gain privileges (``no_new_privs``). Raises OSError if the kernel refuses or one
    of them does not exist.
    """
    libc = system_calls()
    rights = sum(bits for since, bits in _RIGHTS_BY_ABI.items() if since <= abi)
    attributes = struct.pack("=Q", rights)
    if abi >= 4:
        attributes += struct.pack("=Q", _NETWORK)
    if abi >= 6:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = _checked(libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    for path in readable:
        _allow_reading(libc, ruleset, path)
    flags = _KEEP_OUT_OF_THE_AUDIT_LOG if abi >= 7 else 0
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, flags))
    os.close(ruleset)


def _allow_reading(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
    allowed = _READ_FILE | _READ_FOLDER if is_folder else _READ_FILE
    rule = struct.pack("=Qi", allowed, place)
    _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    os.close(place)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result
