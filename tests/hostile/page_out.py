"""Tells another process a bit through the page cache, by the advice that a mapped file is not needed."""

import ctypes
import mmap
import os

from engine.sdk import Strategy, hookimpl

PAGEOUT = 21


class Attacker(Strategy):
    def act(self, observation):
        file = os.open(__file__, os.O_RDONLY)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        place = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_PRIVATE, file, 0)
        if libc.madvise(place, mmap.PAGESIZE, PAGEOUT) != 0:
            raise OSError(ctypes.get_errno(), "no such advice")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
