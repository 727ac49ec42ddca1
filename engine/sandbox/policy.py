"""What a bot's process may do, as data: resource limits and the allowlist of system calls.

Everything that is not listed fails with EPERM; a call of a foreign architecture kills the process.
The filter is compiled here, outside, and loaded by the child itself once its own imports are done: so
not even ``execve`` is on the list.
"""

from __future__ import annotations

import errno
from functools import cache
from typing import Literal

from engine.sandbox.landlock import landlock_abi
from engine.wire import Walls

Level = Literal["bubblewrap", "landlock"]
"""What walls hold: namespaces and all others, or all others."""

MEMORY_BYTES = 256 * 1024 * 1024
"""Address space of a bot's process, the interpreter (about 28 MiB) included."""
NUMPY_BYTES = 120 * 1024 * 1024
"""What a process that has numpy loaded may have more: its libraries and the room that they calculate in."""
STACK_BYTES = 8 * 1024 * 1024
"""Stack of a bot's process, whatever the machine's default is."""
OPEN_FILES = 32
"""Open files of a bot's process."""
LOG_BYTES = 64 * 1024
"""What a bot can write to its log; the rest is dropped."""
CPU_BACKSTOP_SECONDS = 3600
"""CPU time of a process, a backstop: the referee's clocks are far below."""
LAUNCH_SECONDS = 60
"""How long the interpreter may take to stand behind its walls; longer is the machine's failure."""

RLIMITS = {
    "RLIMIT_AS": MEMORY_BYTES,
    "RLIMIT_STACK": STACK_BYTES,
    "RLIMIT_NPROC": 1,
    "RLIMIT_NOFILE": OPEN_FILES,
    "RLIMIT_FSIZE": LOG_BYTES,
    "RLIMIT_CPU": CPU_BACKSTOP_SECONDS,
    "RLIMIT_CORE": 0,
    "RLIMIT_MEMLOCK": 0,
    "RLIMIT_MSGQUEUE": 0,
}

ALLOWED = (
    # Files and the channel, already open or read-only (`open` and `openat` are limited below).
    "read", "write", "pread64", "pwrite64", "readv", "writev", "lseek", "close",
    "fstat", "stat", "lstat", "newfstatat",
    "access", "faccessat", "readlink", "readlinkat", "getdents64", "getcwd", "chdir",
    "dup", "dup2", "dup3", "poll", "ppoll", "select", "pselect6",
    # Memory: RLIMIT_AS is the limit. What tells or changes which pages of a file lie in the cache that all
    # processes share is not here (mincore, fadvise64, readahead, preadv2; `mmap` and `madvise` are limited below).
    "brk", "munmap", "mremap", "mprotect", "msync",
    # Time and rest (clocks are limited below).
    "gettimeofday", "time", "times", "nanosleep", "getrusage", "sched_yield", "getcpu", "restart_syscall",
    # Itself.
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid",
    "getgroups", "getpgrp", "uname", "getrandom", "getrlimit", "umask",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "sigaltstack",
    "set_robust_list", "rseq", "exit", "exit_group",
    # glibc's qsort returns garbage where this fails.
    "sysinfo",
)  # fmt: skip

MISSING = (
    "clone3", "faccessat2", "openat2", "statx", "close_range", "pidfd_open", "memfd_secret",
    "epoll_pwait2", "futex_waitv", "fchmodat2",
)  # fmt: skip
"""These fail with ENOSYS, so that libc falls back to an older call, which is judged by itself."""

# Linux's own numbers, equal on x86-64 and aarch64: on other systems Python does not know all of them, and
# this module is read there too, to tell the limits.
_ACCMODE, _CREAT, _TRUNC, _APPEND, _TMPFILE = 0o3, 0o100, 0o1000, 0o2000, 0o20000000
_READ_ONLY = _ACCMODE | _CREAT | _TRUNC | _APPEND | _TMPFILE
_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_DUPFD_CLOEXEC = 0, 1, 2, 3, 1030
FCNTL_COMMANDS = (_F_DUPFD, _F_DUPFD_CLOEXEC, _F_GETFD, _F_SETFD, _F_GETFL)
_MAP_TYPE, _MAP_PRIVATE = 0x0F, 0x02
"""A shared map takes a number from the counter of all files in memory, which later processes could read."""
_MADV_DONTNEED, _MADV_FREE, _MADV_HUGEPAGE, _MADV_NOHUGEPAGE = 4, 8, 14, 15
MADVISE_ADVICE = (_MADV_DONTNEED, _MADV_FREE, _MADV_HUGEPAGE, _MADV_NOHUGEPAGE)
"""What allocators say of their own memory; none of it touches a file's cached pages, as PAGEOUT and COLD do."""
_TCGETS, _FIOCLEX, _FIONCLEX, _TIOCGWINSZ = 0x5401, 0x5451, 0x5450, 0x5413
CLOCK_CALLS = ("clock_gettime", "clock_getres", "clock_nanosleep")
_OF_CLOCKS = 0xFFFFFFF8
"""Clocks 0 to 7 are the machine's and one's own; the CPU clock of another process has a number below zero."""
SELF_CALLS = ("getpgid", "getsid", "sched_getaffinity")
"""Asked of any other process, they would tell whether it exists."""
_INT = 0xFFFFFFFF
"""Of an argument that is an ``int`` the kernel looks at the lower half, and a caller may leave anything in the upper."""
_FUTEX_PRIVATE, _FUTEX_CLOCK_REALTIME = 128, 256
"""Without the first, one waits for whoever has the same file mapped, in whatever process."""
_FUTEX_WAIT, _FUTEX_WAKE, _FUTEX_WAIT_BITSET, _FUTEX_WAKE_BITSET = 0, 1, 9, 10
FUTEX_OPERATIONS = (_FUTEX_WAIT, _FUTEX_WAKE, _FUTEX_WAIT_BITSET, _FUTEX_WAKE_BITSET)
"""What locks of one thread need. Those that inherit priorities look up the process whose number lies in the lock."""
IOCTL_REQUESTS = (_TCGETS, _FIOCLEX, _FIONCLEX, _TIOCGWINSZ)


def walls(readable: tuple[str, ...], *, has_numpy: bool = False) -> Walls:
    """What a child gets that may read these files and folders; and whether numpy is loaded in it.

    Raises OSError where seccompy does not know this processor.
    """
    memory = {"RLIMIT_AS": MEMORY_BYTES + NUMPY_BYTES} if has_numpy else {}
    return Walls(
        seccomp=compile_filter(),
        rlimits=RLIMITS | memory,
        landlock_abi=landlock_abi(),
        readable=readable,
    )


@cache
def compile_filter() -> bytes:
    """The seccomp filter for this machine's architecture, as packed ``struct sock_filter``.

    The numbers are seccompy's, which generates them from the kernel's headers: ``asm/unistd_64.h`` for x86-64,
    ``asm-generic/unistd.h`` for aarch64. Each architecture gets the calls of the lists that it has.
    """
    import seccompy

    rules = seccompy.Filter(default=seccompy.Action.ERRNO | errno.EPERM)
    for name in filter(_exists_here, ALLOWED):
        rules.allow(name)
    for name in filter(_exists_here, MISSING):
        rules.errno(name, errno.ENOSYS)
    for name, flags_at in (("open", 1), ("openat", 2)):
        if _exists_here(name):
            read_only = seccompy.ArgCmp(flags_at, seccompy.CmpOp.MASKED_EQ, 0, mask=_READ_ONLY)
            rules.allow(name, args=[read_only])
    rules.allow(
        "mmap", args=[seccompy.ArgCmp(3, seccompy.CmpOp.MASKED_EQ, _MAP_PRIVATE, mask=_MAP_TYPE)]
    )
    for name in CLOCK_CALLS:
        rules.allow(name, args=[seccompy.ArgCmp(0, seccompy.CmpOp.MASKED_EQ, 0, mask=_OF_CLOCKS)])
    for name in SELF_CALLS:
        rules.allow(name, args=[seccompy.ArgCmp(0, seccompy.CmpOp.MASKED_EQ, 0, mask=_INT)])
    for operation in FUTEX_OPERATIONS:
        wanted = operation | _FUTEX_PRIVATE
        same = seccompy.ArgCmp(
            1, seccompy.CmpOp.MASKED_EQ, wanted, mask=_INT & ~_FUTEX_CLOCK_REALTIME
        )
        rules.allow("futex", args=[same])
    for command in FCNTL_COMMANDS:
        rules.allow("fcntl", args={1: command})
    for advice in MADVISE_ADVICE:
        rules.allow("madvise", args={2: advice})
    for request in IOCTL_REQUESTS:
        rules.allow("ioctl", args={1: request})
    # Asking for one's own limits is harmless, and Python does; setting them is not allowed.
    rules.allow("prlimit64", args={0: 0, 2: 0})
    return bytes(rules.program)


def _exists_here(name: str) -> bool:
    """Whether this architecture has that system call (aarch64 has no ``open``, ``stat`` …)."""
    import seccompy

    try:
        seccompy.syscall_nr(name)
    except (KeyError, ValueError, seccompy.SeccompError):
        return False
    return True
