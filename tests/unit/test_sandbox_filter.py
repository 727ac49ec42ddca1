"""The filter of system calls, by both tables of numbers, judged as the kernel does: by running its program."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import platform
import struct
import sys
import termios

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux filters system calls", allow_module_level=True)

from hypothesis import given
from hypothesis import strategies as st
from seccompy import syscalls

from engine.sandbox import policy

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
ARCHITECTURES = {
    "x86_64": (0xC000003E, syscalls.X86_64_SYSCALLS),
    "aarch64": (0xC00000B7, syscalls.AARCH64_SYSCALLS),
}
"""By the name of the machine what the kernel calls it (linux/audit.h) and its numbers, which seccompy
generates from the kernel's own headers."""
FOREIGN = (0x40000003, 0x40000028, 0xC0000016, 0x80000015, 0)
"""i386, 32-bit ARM, s390x, big-endian PowerPC, nothing."""
X32_BIT = 0x40000000
ANY = (1 << 64) - 1


def run_filter(program: bytes, *, number: int, arch: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel makes of one call: the classic BPF that filters may contain (linux/filter.h)."""
    six = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<iIQ6Q", number - (1 << 32 if number >> 31 else 0), arch, 0, *six)
    instructions = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, k = instructions[at]
        at += 1
        match code:
            case 0x20:  # A = data[k]
                accumulator = struct.unpack_from("<I", data, k)[0]
            case 0x54:  # A &= k
                accumulator &= k
            case 0x05:  # go on k further
                at += k
            case 0x15:  # A == k
                at += if_true if accumulator == k else if_false
            case 0x25:  # A > k
                at += if_true if accumulator > k else if_false
            case 0x35:  # A >= k
                at += if_true if accumulator >= k else if_false
            case 0x45:  # A & k
                at += if_true if accumulator & k else if_false
            case 0x06:  # the verdict is k
                return k
            case _:
                raise AssertionError(f"instruction {code:#x} is none of those that are expected")


def compile_for(machine: str) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "machine", lambda: machine)
        return policy.compile_filter.__wrapped__()


PROGRAMS = {machine: compile_for(machine) for machine in ARCHITECTURES}
LIMITED = {
    "open", "openat", "fcntl", "mmap", "madvise", "ioctl", "prlimit64", "futex",
    *policy.CLOCK_CALLS, *policy.SELF_CALLS,
}  # fmt: skip


@pytest.fixture(params=ARCHITECTURES)
def judge(request):
    """The verdict on a call by its name or number."""
    arch, numbers = ARCHITECTURES[request.param]

    def verdict(call: str | int, *arguments: int, arch: int = arch) -> int:
        number = numbers[call] if isinstance(call, str) else call
        return run_filter(PROGRAMS[request.param], number=number, arch=arch, arguments=arguments)

    verdict.numbers = numbers
    return verdict


def test_every_name_of_the_policy_is_a_system_call_somewhere():
    known = {*syscalls.X86_64_SYSCALLS, *syscalls.AARCH64_SYSCALLS}
    assert {*policy.ALLOWED, *policy.MISSING, *LIMITED} <= known


def test_every_number_gets_what_the_policy_says(judge):
    names: dict[int, set[str]] = {}
    for name, number in judge.numbers.items():
        names.setdefault(number, set()).add(name)  # some have two: fcntl and fcntl64
    for number in range(max(names) + 200):
        named = names.get(number, set())
        if named & LIMITED:
            continue
        expected = EPERM
        if named & set(policy.ALLOWED):
            expected = ALLOW
        elif named & set(policy.MISSING):
            expected = ENOSYS
        for arguments in ((0,) * 6, (ANY,) * 6):  # which make no difference
            assert judge(number, *arguments) == expected, (number, named)


def test_every_listed_call_that_the_machine_has_is_found(judge):
    for name in policy.ALLOWED:
        assert name not in judge.numbers or judge(name) == ALLOW
    for name in policy.MISSING:
        assert name not in judge.numbers or judge(name) == ENOSYS


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_call_of_another_architecture_kills(machine):
    own, numbers = ARCHITECTURES[machine]
    others = {arch for arch, _ in ARCHITECTURES.values()} - {own}
    for arch in (*FOREIGN, *others):
        for number in numbers.values():
            assert run_filter(PROGRAMS[machine], number=number, arch=arch) == KILL


def test_call_by_the_x32_numbers_is_refused(judge):
    for number in (*range(600), *judge.numbers.values()):
        assert judge(number | X32_BIT) == EPERM


@pytest.mark.parametrize("number", [1 << 31, (1 << 32) - 1, 1 << 30, 0x0F0002])
def test_number_that_no_call_has_is_refused(judge, number):
    assert judge(number) == EPERM


HARMFUL = (
    "fork", "vfork", "clone", "execve", "execveat", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "ptrace",
    "process_vm_readv", "process_vm_writev", "pidfd_send_signal", "pidfd_getfd", "setpgid", "setsid",
    "socket", "socketpair", "connect", "bind", "listen", "sendto", "sendmsg", "pipe", "pipe2", "memfd_create",
    "shmget", "shmat", "semget", "msgget", "mq_open", "eventfd2", "signalfd4", "timerfd_create", "epoll_create1",
    "inotify_init1", "fanotify_init", "flock", "userfaultfd", "io_uring_setup", "io_setup", "keyctl", "add_key",
    "bpf", "perf_event_open", "mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "fsopen", "open_tree",
    "creat", "mkdir", "mkdirat", "unlink", "unlinkat", "rename", "renameat2", "link", "linkat", "symlinkat", "mknodat",
    "truncate", "ftruncate", "fallocate", "chmod", "fchmod", "fchmodat", "fchownat", "utimensat", "setxattr", "sync",
    "prctl", "arch_prctl", "seccomp", "personality", "setuid", "setresuid", "capset", "setrlimit", "sched_setaffinity",
    "sched_setscheduler", "setpriority", "ioprio_set", "clock_settime", "settimeofday", "setitimer", "timer_create",
    "init_module", "kexec_load", "reboot", "swapon", "modify_ldt", "iopl", "mlock", "mlockall", "mincore", "fadvise64",
    "readahead", "preadv2", "cachestat", "process_madvise", "membarrier", "statfs", "fstatfs", "landlock_create_ruleset",
    "name_to_handle_at", "open_by_handle_at", "lookup_dcookie", "syslog", "acct", "quotactl", "vmsplice", "splice", "tee",
    "sendfile", "copy_file_range", "set_mempolicy", "move_pages", "kcmp", "pkey_alloc", "futex_wait", "mseal", "get_robust_list", "sched_getparam",
    "sched_getscheduler", "getpriority", "ioprio_get", "sched_rr_get_interval",
)  # fmt: skip
"""By no reading of the policy's lists, but of the manual: nothing that reaches beyond the process."""


def test_nothing_harmful_is_allowed(judge):
    everywhere = {*syscalls.X86_64_SYSCALLS, *syscalls.AARCH64_SYSCALLS}
    assert set(HARMFUL) <= everywhere
    for name in set(HARMFUL) & set(judge.numbers):
        for arguments in ((), (ANY,) * 6, (1, 0, 0, 0, 0, 0)):
            assert judge(name, *arguments) in {EPERM, ENOSYS}, name


WRITING = (
    os.O_WRONLY, os.O_RDWR, os.O_ACCMODE, os.O_CREAT, os.O_TRUNC, os.O_APPEND, os.O_CREAT | os.O_EXCL,
    os.O_RDWR | os.O_CLOEXEC, 0o20000000 | os.O_DIRECTORY | os.O_RDWR, 0o20000000,
)  # fmt: skip
READING = (
    os.O_RDONLY,
    os.O_CLOEXEC,
    os.O_NONBLOCK,
    os.O_NOFOLLOW | os.O_CLOEXEC,
    0o200000,
    0o40000,
)
"""The last two are O_DIRECTORY of one architecture or the other."""


@pytest.mark.parametrize(("name", "flags_at"), [("open", 1), ("openat", 2)])
def test_files_are_opened_for_reading_alone(judge, name, flags_at):
    if name not in judge.numbers:
        assert name == "open"  # aarch64 has openat alone
        return
    for flags, expected in (*((f, EPERM) for f in WRITING), *((f, ALLOW) for f in READING)):
        arguments = [ANY] * 6
        for beyond in (0, 0xFFFFFFFF << 32):  # the kernel looks at 32 bits
            arguments[flags_at] = flags | beyond
            assert judge(name, *arguments) == expected, oct(flags)


ARGUMENT_RULES = {
    "fcntl": (1, {fcntl.F_DUPFD, 1030, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL}),
    "madvise": (
        2,
        {mmap.MADV_DONTNEED, mmap.MADV_FREE, mmap.MADV_HUGEPAGE, mmap.MADV_NOHUGEPAGE},
    ),
    "ioctl": (1, {termios.TCGETS, termios.FIOCLEX, termios.FIONCLEX, termios.TIOCGWINSZ}),
}
"""By call which argument decides, and by which values it is allowed."""


@pytest.mark.parametrize("name", ARGUMENT_RULES)
def test_call_is_allowed_by_the_listed_values_of_one_argument(judge, name):
    at, allowed = ARGUMENT_RULES[name]
    near = {value + step for value in allowed for step in (-1, 1)} | {
        value | 1 << 32 for value in allowed
    }
    for value in {*allowed, *near, *range(300), ANY}:
        arguments = [ANY] * 6
        arguments[at] = value & ANY
        assert judge(name, *arguments) == (ALLOW if value in allowed else EPERM), value


def test_memory_can_be_mapped_for_oneself_alone(judge):
    types = {flags: ALLOW if flags & 0x0F == mmap.MAP_PRIVATE else EPERM for flags in range(0x200)}
    for flags, expected in types.items():
        for beyond in (0, 0x4000, 0xFFFFFFFF << 32):
            assert judge("mmap", ANY, ANY, ANY, flags | beyond, ANY, ANY) == expected, hex(flags)


def cpu_clock(pid: int, kind: int) -> int:
    """The number of a process's or thread's CPU clock (man 3 clock_getcpuclockid, include/linux/posix-timers.h)."""
    return (~pid << 3 | kind) & 0xFFFFFFFF


UPPER_HALVES = (0, 1 << 32, 0xFFFFFFFF << 32)
"""The kernel looks at the lower half of an int alone."""


@pytest.mark.parametrize("name", ["clock_gettime", "clock_getres", "clock_nanosleep"])
def test_clocks_are_the_machine_s_and_one_s_own(judge, name):
    """0 to 7: real, monotonic, the process's and the thread's CPU time, raw, coarse (twice), since boot (time.h)."""
    others = {cpu_clock(pid, kind) for pid in (0, 1, 2, 7, 4711, 1 << 22) for kind in range(8)}
    for upper in UPPER_HALVES:
        for clock in range(8):
            assert judge(name, upper | clock, ANY, ANY, ANY) == ALLOW
        for clock in {*others, *range(8, 40), 1 << 31, 0x7FFFFFF8}:
            assert judge(name, upper | clock, ANY, ANY, ANY) == EPERM, hex(clock)


@pytest.mark.parametrize("name", ["getpgid", "getsid", "sched_getaffinity"])
def test_process_can_ask_such_a_thing_of_itself_alone(judge, name):
    for upper in UPPER_HALVES:
        assert judge(name, upper, ANY, ANY) == ALLOW
        for pid in (1, 2, 4711, 1 << 22, 0xFFFFFFFF):
            assert judge(name, upper | pid, ANY, ANY) == EPERM, pid


def test_process_waits_for_nobody_else(judge):
    """Operations 0 to 13, with FUTEX_CLOCK_REALTIME (256) or not (linux/futex.h).

    6 to 8 and 11 to 13 are of locks that inherit priorities: each looks for the process whose number the lock holds.
    """
    of_one_thread = {0, 1, 9, 10}  # to wait and to wake, with a bitset or without
    for operation in range(14):
        verdict = ALLOW if operation in of_one_thread else EPERM
        for flags in (0, 256, 0xFFFFFFFF << 32):
            assert judge("futex", ANY, operation | flags, ANY) == EPERM
            assert judge("futex", ANY, operation | 128 | flags, ANY) == verdict, operation
        assert judge("futex", ANY, operation | 128 | 512, ANY) == EPERM


def test_own_limits_can_be_asked_for_and_not_be_set(judge):
    asked = 7
    assert judge("prlimit64", 0, asked, 0, 1234) == ALLOW
    assert judge("prlimit64", 1, asked, 0, 1234) == EPERM  # another process's
    assert judge("prlimit64", 0, asked, 1234, 0) == EPERM  # a new limit
    assert judge("prlimit64", 0, asked, 1 << 32, 0) == EPERM  # at an address whose low half is 0
    assert judge("prlimit64", 1 << 32, asked, 0, 1) == EPERM


@given(
    machine=st.sampled_from(sorted(ARCHITECTURES)),
    number=st.integers(0, (1 << 32) - 1) | st.integers(0, 600),
    arguments=st.tuples(*[st.integers(0, ANY)] * 6),
)
def test_every_call_gets_one_of_three_verdicts(machine, number, arguments):
    arch, _ = ARCHITECTURES[machine]
    verdict = run_filter(PROGRAMS[machine], number=number, arch=arch, arguments=arguments)
    assert verdict in {ALLOW, EPERM, ENOSYS}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_kernel_would_take_the_program(machine):
    """No longer than BPF_MAXINSNS, with whole instructions, and every jump lands inside."""
    program = PROGRAMS[machine]
    instructions = list(struct.iter_unpack("<HBBI", program))
    assert len(instructions) <= 4096
    for at, (code, if_true, if_false, k) in enumerate(instructions):
        if code & 7 == 5:
            furthest = k if code == 0x05 else max(if_true, if_false)
            assert at + 1 + furthest < len(instructions)
    assert instructions[-1][0] == 0x06


def test_this_machines_program_is_that_of_its_architecture():
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    if machine not in ARCHITECTURES:
        pytest.skip(f"{machine} has no table of numbers")
    assert policy.compile_filter() == PROGRAMS[machine]


def test_numbers_of_the_policy_are_those_of_this_system():
    assert policy._READ_ONLY == (
        os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_TMPFILE & ~os.O_DIRECTORY
    )
    assert set(policy.FCNTL_COMMANDS) == {
        fcntl.F_DUPFD,
        fcntl.F_DUPFD_CLOEXEC,
        fcntl.F_GETFD,
        fcntl.F_SETFD,
        fcntl.F_GETFL,
    }
    assert set(policy.MADVISE_ADVICE) == {
        mmap.MADV_DONTNEED,
        mmap.MADV_FREE,
        mmap.MADV_HUGEPAGE,
        mmap.MADV_NOHUGEPAGE,
    }
    assert set(policy.IOCTL_REQUESTS) == {
        termios.TCGETS,
        termios.FIOCLEX,
        termios.FIONCLEX,
        termios.TIOCGWINSZ,
    }
