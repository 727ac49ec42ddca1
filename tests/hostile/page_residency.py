"""Asks which pages of its own file lie in memory, to read what another process has left there."""

import ctypes
import mmap
import os

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        file = os.open(__file__, os.O_RDONLY)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        place = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_PRIVATE, file, 0)
        if libc.mincore(place, mmap.PAGESIZE, ctypes.create_string_buffer(1)) != 0:
            raise OSError(ctypes.get_errno(), "not told")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
