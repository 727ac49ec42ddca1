"""One attack a row: what a bot tries in its first turn. It goes on to play if that goes through.

Attacks that take more than a few lines are files of their own beside this one; `test_verdicts.py` has
what each of those must come to. `code` may use what `HEAD` imports, `libc`, `PARENT` and `call`: a system call by
its name (or number) on this machine, an OSError if it fails. What would stay behind is called `MARK`. `BESIDE`: the
name of another bot's folder, by its hash, and in memory, where none could guess it.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path

import seccompy

from engine.agents import BotSource
from engine.outcome import Termination
from engine.sandbox.memory import wheel_in_memory

MARK = "arena-was-here"
"""What files, queues and keys are called that an attack tries to leave."""
MARK_KEY = 0x0A7E4A
"""The key of the System V objects that an attack tries to leave."""

HEAD = """
import ctypes, errno, fcntl, mmap, os, random, resource, select, signal, socket, struct, subprocess, sys, threading, time
from pathlib import Path
from engine import wire
from engine.sdk import Strategy, hookimpl

NUMBERS = {numbers}
MARK, MARK_KEY, BESIDE = {mark}
PARENT = os.getppid() or 1
GOOD = wire.encode(wire.Answer(1, 0))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def call(name, *arguments):
    result = libc.syscall(ctypes.c_long(NUMBERS.get(name, name)), *map(memory, arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def memory(argument):
    if isinstance(argument, bytearray):
        return (ctypes.c_char * len(argument)).from_buffer(argument)
    return ctypes.c_long(argument) if isinstance(argument, int) else argument

class Attacker(Strategy):
    has_tried = False

    def act(self, observation):
        if not self.has_tried:
            self.has_tried = True
            self.attack()
            print("it went through")
        return observation.legal[0]

    def attack(self):
{code}

@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
"""


@dataclass(frozen=True)
class Attempt:
    """An attack in a few lines. It holds if an exception comes of it, or an end of the process."""

    kind: str
    """The row of the table in docs/sandbox.md."""
    name: str
    code: str
    fault: Termination = Termination.CRASH
    holds_at_landlock: bool = True
    """Whether it is held without namespaces too."""
    machine: str = ""
    """The only processor on which it makes sense; empty: all."""

    @property
    def system_calls(self) -> set[str]:
        """The system calls that it names."""
        return set(re.findall(r'call\("(\w+)"', self.code))


CRASH, MEMORY, PROTOCOL, TIME = (
    Termination.CRASH,
    Termination.MEMORY,
    Termination.PROTOCOL,
    Termination.TIME,
)

PROCESSES = [
    Attempt("processes", "fork", "if os.fork() == 0: os._exit(0)"),
    Attempt("processes", "double fork", "if os.fork() == 0:\n    os.setsid()\n    os.fork()\n    time.sleep(60)"),
    Attempt("processes", "vfork", "subprocess.Popen([sys.executable])"),
    Attempt("processes", "clone", 'if call("clone", 17, 0, 0, 0, 0) == 0: os._exit(0)'),
    Attempt("processes", "clone3", 'call("clone3", bytes(88), 88)'),
    Attempt("processes", "clone into a user namespace", 'if call("clone", 0x10000011, 0, 0, 0, 0) == 0: os._exit(0)'),
    Attempt("processes", "a shell", "if os.system('true'): raise OSError('no shell')"),
    Attempt("processes", "a terminal's fork", "import pty\nif pty.fork()[0] == 0: os._exit(0)"),
    Attempt("processes", "multiprocessing", "import multiprocessing; multiprocessing.Process(target=int).start()"),
    Attempt("processes", "thread", "threading.Thread(target=int).start()"),
    Attempt("processes", "a pool of threads", "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor(1).submit(int)"),
    Attempt("processes", "execve", "os.execv(sys.executable or '/bin/sh', ['x', '-c', ''])"),
    Attempt("processes", "execveat", "os.execve(os.open(sys.executable or '/bin/sh', 0), ['x', '-c', ''], {})"),
    Attempt("processes", "the loader of programs", 'call("uselib", b"/lib64/ld-linux-x86-64.so.2")', machine="x86_64"),
    Attempt("processes", "kill everyone", "os.kill(-1, signal.SIGCONT)"),
    Attempt("processes", "kill the group", "os.killpg(0, signal.SIGCONT)"),
    Attempt("processes", "signal its parent", "os.kill(PARENT, signal.SIGCONT)"),
    Attempt("processes", "signal a thread of its parent", 'call("tgkill", PARENT, PARENT, signal.SIGCONT)'),
    Attempt("processes", "signal itself", "signal.raise_signal(signal.SIGCONT)"),
    Attempt("processes", "queue a signal", 'call("rt_sigqueueinfo", PARENT, signal.SIGCONT, bytearray(128))'),
    Attempt("processes", "signal a neighbour", "for pid in range(2, 200): os.kill(pid, 0)"),
    Attempt("processes", "a handle of its parent", "os.pidfd_open(PARENT)"),
    Attempt("processes", "a file of its parent", 'call("pidfd_getfd", 3, 0, 0)'),
    Attempt("processes", "signal through a handle", "signal.pidfd_send_signal(3, signal.SIGCONT)"),
    Attempt("processes", "ptrace its parent", 'call("ptrace", 16, PARENT, 0, 0)'),
    Attempt("processes", "ptrace itself by its parent", 'call("ptrace", 0, 0, 0, 0)'),
    Attempt("processes", "compare with its parent", 'call("kcmp", PARENT, os.getpid(), 1, 0, 0)'),
    Attempt("processes", "advice for its parent's memory", 'call("process_madvise", 3, bytearray(16), 1, 4, 0)'),
    Attempt("processes", "reap its parent's memory", 'call("process_mrelease", 3, 0)'),
    Attempt("processes", "new limits for itself", "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"),
    Attempt("processes", "higher limits", 'call("prlimit64", 0, 9, struct.pack("QQ", 1 << 40, 1 << 40), 0)'),
    Attempt("processes", "limits of its parent", "resource.prlimit(PARENT, resource.RLIMIT_CPU)"),
    Attempt("processes", "another niceness", "os.nice(5)"),
    Attempt("processes", "another scheduler", "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"),
    Attempt("processes", "a scheduler of real time", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"),
    Attempt("processes", "another class of input and output", 'call("ioprio_set", 1, 0, 0x6000)'),
    Attempt("processes", "all cores", "os.sched_setaffinity(0, range(64))"),
    Attempt("processes", "a session of its own", "os.setsid()"),
    Attempt("processes", "a group of its own", "os.setpgid(0, 0)"),
    Attempt("processes", "another user", "os.setuid(os.getuid())"),
    Attempt("processes", "no groups", "os.setgroups([])"),
    Attempt("processes", "capabilities", 'call("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))'),
    Attempt("processes", "the end that its parent's end brings", 'call("prctl", 1, 0, 0, 0, 0)'),
    Attempt("processes", "not to be looked into", 'call("prctl", 4, 0, 0, 0, 0)'),
    Attempt("processes", "its own name", 'call("prctl", 15, b"python", 0, 0, 0)'),
    Attempt("processes", "to adopt orphans", 'call("prctl", 36, 1, 0, 0, 0)'),
    Attempt("processes", "to be traced by anyone", 'call("prctl", 0x59616D61, -1, 0, 0, 0)'),
    Attempt("processes", "its own memory's map", 'call("prctl", 35, 1, 0, 0, 0)'),
    Attempt("processes", "timer", "signal.setitimer(signal.ITIMER_REAL, 60)"),
    Attempt("processes", "alarm", 'call("alarm", 60)', machine="x86_64"),
    Attempt("processes", "timer of POSIX", 'call("timer_create", 0, 0, bytearray(8))'),
    Attempt("processes", "timer in a file", 'call("timerfd_create", 1, 0)'),
    Attempt("processes", "signals in a file", 'call("signalfd4", -1, bytes(8), 8, 0)'),
    Attempt("processes", "its parent's CPU time", "time.clock_gettime((~PARENT << 3) | 2)"),
    Attempt("processes", "its parent's CPU clock's grain", "time.clock_getres((~PARENT << 3) | 2)"),
    Attempt("processes", "sleep by its parent's CPU time", 'call("clock_nanosleep", (~PARENT << 3) | 2, 0, struct.pack("QQ", 0, 1), 0)'),
    Attempt("processes", "its parent's session", "os.getsid(PARENT)"),
    Attempt("processes", "its parent's group", "os.getpgid(PARENT)"),
    Attempt("processes", "its parent's cores", "os.sched_getaffinity(PARENT)"),
    Attempt("processes", "its parent's scheduler", "os.sched_getscheduler(PARENT)"),
    Attempt("processes", "its parent's locks", 'call("get_robust_list", PARENT, bytearray(8), bytearray(8))'),
    Attempt("processes", "wake who waits at a file of all", 'page = mmap.mmap(os.open(os.__file__, 0), 4096, flags=mmap.MAP_PRIVATE, prot=3)\nplace = (ctypes.c_char * 4).from_buffer(page)\ncall("futex", ctypes.byref(place), 1, 1, 0, 0, 0)'),
    Attempt("processes", "a lock that inherits priorities", 'call("futex", bytearray(4), 6 | 128, 0, 0, 0, 0)'),
    Attempt("processes", "wait for a signal", "signal.sigtimedwait([signal.SIGCONT], 0)"),
]  # fmt: skip

MEMORY_ROWS = [
    Attempt("memory", "one big array", "bytearray(1 << 30)", MEMORY),
    Attempt("memory", "many lists", "hoard = [[0] * 1000 for _ in range(100_000)]", MEMORY),
    Attempt("memory", "one long text", "'x' * (1 << 29) * 2", MEMORY),
    Attempt("memory", "a number of a thousand million bits", "1 << 10**10", MEMORY),
    Attempt("memory", "memory of its own by mmap", "mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"),
    Attempt("memory", "many small maps", "maps = [mmap.mmap(-1, 1 << 23, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(64)]"),
    Attempt("memory", "a file mapped often", "file = os.open(os.__file__, 0)\nmaps = [mmap.mmap(file, 4096, flags=mmap.MAP_PRIVATE, prot=1) for _ in range(10**6)]"),
    Attempt("memory", "a number of the counter of files in memory", "mmap.mmap(-1, 4096)"),
    Attempt("memory", "a file in memory", "os.memfd_create(MARK)"),
    Attempt("memory", "a secret file in memory", 'call("memfd_secret", 0)'),
    Attempt("memory", "a file in /dev/shm", "open(f'/dev/shm/{MARK}', 'wb')"),
    Attempt("memory", "shared memory of Python", "from multiprocessing.shared_memory import SharedMemory\nSharedMemory(MARK, True, 4096)"),
    Attempt("memory", "shared memory of System V", 'call("shmget", MARK_KEY, 1 << 20, 0o1600)'),
    Attempt("memory", "buffers of pipes", "pipes = [os.pipe() for _ in range(10)]"),
    Attempt("memory", "pages in a pipe", 'call("vmsplice", 3, bytes(16), 1, 0)'),
    Attempt("memory", "a pipe into a pipe", 'call("tee", 3, 3, 1, 0)'),
    Attempt("memory", "locked memory", 'call("mlock", bytearray(4096), 4096)'),
    Attempt("memory", "all memory locked", 'call("mlockall", 1)'),
    Attempt("memory", "locked memory, the newer way", 'call("mlock2", bytearray(4096), 4096, 0)'),
    Attempt("memory", "memory of another node", 'call("set_mempolicy", 0, 0, 0)'),
    Attempt("memory", "pages moved", 'call("move_pages", 0, 0, 0, 0, 0, 0)'),
    Attempt("memory", "keys of memory", 'call("pkey_alloc", 0, 0)'),
    Attempt("memory", "barriers in all processes", 'call("membarrier", 0, 0, 0)'),
    Attempt("memory", "huge power", "10 ** 10 ** 9", TIME),
    Attempt("memory", "a number of a million digits as text", "sys.set_int_max_str_digits(0); str(1 << 30_000_000)", TIME),
    Attempt("memory", "a hundred files open", "files = [os.open(__file__, 0) for _ in range(100)]"),
    Attempt("memory", "its channel a hundred times", "files = [os.dup(3) for _ in range(100)]"),
]  # fmt: skip

CHANNEL = [
    Attempt("protocol", "half a message", "os.write(3, GOOD[:4])", PROTOCOL),
    Attempt("protocol", "a message in two", "os.write(3, GOOD[:4]); os.write(3, GOOD[4:])", PROTOCOL),
    Attempt("protocol", "a message and more", "os.write(3, GOOD + bytes(1))", PROTOCOL),
    Attempt("protocol", "nothing", "os.write(3, b'')", PROTOCOL),
    Attempt("protocol", "two answers", "os.write(3, GOOD)", PROTOCOL),
    Attempt("protocol", "the longest message that fits", "os.write(3, bytes(100_000))", PROTOCOL),
    Attempt("protocol", "a message of 1 MB", "os.write(3, bytes(1 << 20))"),
    Attempt("protocol", "a message of 1 GB", "os.write(3, bytes(1 << 30))", MEMORY),
    Attempt("protocol", "another turn", "os.write(3, wire.encode(wire.Answer(2, 0)))", PROTOCOL),
    Attempt("protocol", "turn 0", "os.write(3, wire.encode(wire.Answer(0, 0)))", PROTOCOL),
    Attempt("protocol", "an index below zero", "os.write(3, wire.encode(wire.Answer(1, -1)))", PROTOCOL),
    Attempt("protocol", "an index that is true", "os.write(3, wire.encode(wire.Answer(1, True)))", PROTOCOL),
    Attempt("protocol", "an index that is a float", "os.write(3, wire.encode(wire.Answer(1, 0.0)))", PROTOCOL),
    Attempt("protocol", "an index that is NaN", "os.write(3, wire.encode(wire.Answer(1, float('nan'))))", PROTOCOL),
    Attempt("protocol", "an index that is infinite", "os.write(3, wire.encode(wire.Answer(1, 1e999)))", PROTOCOL),
    Attempt("protocol", "an index that is a text", "os.write(3, wire.encode(wire.Answer(1, '0')))", PROTOCOL),
    Attempt("protocol", "the largest index", "os.write(3, wire.encode(wire.Answer(1, 2**31 - 1)))", Termination.ILLEGAL_ACTION),
    Attempt("protocol", "an index of 64 bits", "os.write(3, wire.encode(wire.Answer(1, 2**64 - 1)))", PROTOCOL),
    Attempt("protocol", "a greeting", "os.write(3, wire.encode(wire.Hello()))", PROTOCOL),
    Attempt("protocol", "ready again", "os.write(3, wire.encode(wire.Ready()))", PROTOCOL),
    Attempt("protocol", "no more interest", "os.write(3, wire.encode(wire.Declined()))", PROTOCOL),
    Attempt("protocol", "the referee's own words", "os.write(3, wire.encode(wire.Kill(1)))", PROTOCOL),
    Attempt("protocol", "nonsense of a turn to come", "os.write(3, wire.encode(wire.Nonsense(9, 'x')))", PROTOCOL),
    Attempt("protocol", "a name of 3000 letters", "os.write(3, wire.encode(wire.Illegal(1, 'x' * 3000)))", PROTOCOL),
    Attempt("protocol", "nested 4000 deep", "os.write(3, bytes([0x91]) * 4000)", PROTOCOL),
    Attempt("protocol", "a list that claims four thousand million", "os.write(3, bytes([0xDD, 255, 255, 255, 255]))", PROTOCOL),
    Attempt("protocol", "bytes of every value", "os.write(3, bytes(range(256)))", PROTOCOL),
    Attempt("protocol", "JSON", "os.write(3, b'[\"answer\",1,0]')", PROTOCOL),
    Attempt("protocol", "JSON with NaN", "os.write(3, b'[\"answer\",1,NaN]')", PROTOCOL),
    Attempt("protocol", "JSON with 1e999", "os.write(3, b'[\"answer\",1,1e999]')", PROTOCOL),
    Attempt("protocol", "a number of 4000 digits", "os.write(3, b'[\"answer\",1,' + b'9' * 4000 + b']')", PROTOCOL),
    Attempt("protocol", "a byte order mark", "os.write(3, bytes([0xEF, 0xBB, 0xBF]) + GOOD)", PROTOCOL),
    Attempt("protocol", "NUL", "os.write(3, bytes(1) + GOOD)", PROTOCOL),
    Attempt("protocol", "control bytes", "os.write(3, bytes(range(32)))", PROTOCOL),
    Attempt("protocol", "a pickle", "import pickle; os.write(3, pickle.dumps(Path))", PROTOCOL),
    Attempt("protocol", "a key that stands twice", "os.write(3, bytes([0x82, 0xA1, 97, 1, 0xA1, 97, 1]))", PROTOCOL),
    Attempt("protocol", "an answer and the end", "os.write(3, GOOD); os._exit(0)"),
    Attempt("protocol", "an answer from its end", "import atexit; atexit.register(os.write, 3, GOOD); sys.exit(0)"),
    Attempt("protocol", "our own words, sent twice", "from engine.sandbox import bot_host\nsend = bot_host._send\nbot_host._send = lambda answer: (send(answer), send(answer))", PROTOCOL),
    Attempt("protocol", "our own words, for the turn to come", "from engine.sandbox import bot_host\nbot_host._send = lambda answer: os.write(3, wire.encode(wire.Answer(answer.turn + 1, 0)))", PROTOCOL),
    Attempt("protocol", "another file for its channel", "os.dup2(2, 3)"),
    Attempt("protocol", "no channel", "os.close(3)"),
    Attempt("protocol", "no file at all", "os.closerange(0, 32)"),
    Attempt("protocol", "an end in the middle of a turn", "os._exit(0)"),
    Attempt("protocol", "abort", "os.abort()"),
]  # fmt: skip

CHANNEL_OBJECT = "channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, 3)\n"

NETWORK = [
    Attempt("network", "TCP", "socket.socket(socket.AF_INET, socket.SOCK_STREAM)"),
    Attempt("network", "UDP", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    Attempt("network", "IPv6", "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)"),
    Attempt("network", "a name", "socket.getaddrinfo('example.org', 80)"),
    Attempt("network", "local", "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)"),
    Attempt("network", "abstract", "socket.socket(socket.AF_UNIX).bind(chr(0) + MARK)"),
    Attempt("network", "pair", "socket.socketpair()"),
    Attempt("network", "vsock", "socket.socket(40, socket.SOCK_STREAM)"),
    Attempt("network", "netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
    Attempt("network", "packet", "socket.socket(17, socket.SOCK_RAW)"),
    Attempt("network", "the kernel's ciphers", "socket.socket(38, socket.SOCK_SEQPACKET)"),
    Attempt("network", "cluster", "socket.socket(30, socket.SOCK_SEQPACKET)"),
    Attempt("network", "asyncio", "import asyncio; asyncio.run(asyncio.sleep(0))"),
    Attempt("network", "connect its own channel", 'call("connect", 3, bytes(16), 16)'),
    Attempt("network", "files through its channel", CHANNEL_OBJECT + "socket.send_fds(channel, [b'x'], [0])"),
    Attempt("network", "many messages at once", 'call("sendmmsg", 3, bytes(64), 1, 0)'),
    Attempt("network", "a message to an address", CHANNEL_OBJECT + "channel.sendto(GOOD, chr(0) + MARK)"),
    Attempt("network", "files from its channel", CHANNEL_OBJECT + "channel.recvmsg(1, 100, socket.MSG_DONTWAIT)"),
    Attempt("network", "who sits at the other end", CHANNEL_OBJECT + "channel.getsockopt(socket.SOL_SOCKET, 17, 12)"),
    Attempt("network", "the name of the other end", CHANNEL_OBJECT + "channel.getpeername()"),
    Attempt("network", "more room in its channel", CHANNEL_OBJECT + "channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)"),
    Attempt("network", "its channel shut half", CHANNEL_OBJECT + "channel.shutdown(socket.SHUT_RD)"),
    Attempt("network", "its channel not waiting", CHANNEL_OBJECT + "channel.setblocking(False)"),
    Attempt("network", "signals from its channel", "fcntl.fcntl(3, fcntl.F_SETOWN, PARENT)"),
    Attempt("network", "a file into its channel", "os.sendfile(3, os.open(os.__file__, 0), 0, 100)"),
    Attempt("network", "a splice into its channel", 'call("splice", 2, 0, 3, 0, 1, 0)'),
    Attempt("network", "lock a file of all", "fcntl.flock(os.open(os.__file__, 0), fcntl.LOCK_EX)"),
    Attempt("network", "lock a part of a file of all", "fcntl.lockf(os.open(os.__file__, 0), fcntl.LOCK_SH)"),
    Attempt("network", "lock by an open file", "fcntl.fcntl(os.open(os.__file__, 0), 37, struct.pack('hhqqi4x', 0, 0, 0, 1, 0))"),
    Attempt("network", "lease a file of all", "fcntl.fcntl(os.open(os.__file__, 0), fcntl.F_SETLEASE, fcntl.F_RDLCK)"),
    Attempt("network", "notice a folder of all", "fcntl.fcntl(os.open('/', 0), fcntl.F_NOTIFY, fcntl.DN_ACCESS)"),
    Attempt("network", "watch files", 'call("inotify_init1", 0)'),
    Attempt("network", "watch all files", 'call("fanotify_init", 0, 0)'),
    Attempt("network", "queue of messages", 'call("msgget", MARK_KEY, 0o1600)'),
    Attempt("network", "POSIX queue", 'call("mq_open", MARK.encode(), 0o102, 0o600, 0)'),
    Attempt("network", "semaphore", 'call("semget", MARK_KEY, 1, 0o1600)'),
    Attempt("network", "wait for many", "select.epoll()"),
    Attempt("network", "event", "os.eventfd(0)"),
]  # fmt: skip

READING = [
    Attempt("reading", "accounts", "open('/etc/passwd').read()"),
    Attempt("reading", "passwords", "open('/etc/shadow').read()"),
    Attempt("reading", "the machine's name", "open('/etc/hostname').read()"),
    Attempt("reading", "root's home", "os.listdir('/root')"),
    Attempt("reading", "list of the root", "os.listdir('/')"),
    Attempt("reading", "environment of the first process", "open('/proc/1/environ','rb').read()"),
    Attempt("reading", "memory of the first process", "open('/proc/1/mem','rb').read(1)"),
    Attempt("reading", "its own memory as a file", "open('/proc/self/mem','rb')"),
    Attempt("reading", "its own map", "open('/proc/self/maps').read()"),
    Attempt("reading", "files of the first process", "os.listdir('/proc/1/fd')"),
    Attempt("reading", "root of the first process", "os.listdir('/proc/1/root')"),
    Attempt("reading", "list of processes", "os.listdir('/proc')"),
    Attempt("reading", "the kernel's symbols", "open('/proc/kallsyms').read(1)"),
    Attempt("reading", "the kernel's objects", "os.listdir('/sys')"),
    Attempt("reading", "the kernel's log", 'call("syslog", 3, bytearray(4096), 4096)'),
    Attempt("reading", "devices", "os.listdir('/dev')"),
    Attempt("reading", "memory as a device", "open('/dev/mem', 'rb')"),
    Attempt("reading", "whether a file exists", "os.stat('/etc/passwd')", holds_at_landlock=False),
    Attempt("reading", "a file without rights", "os.open('/etc/passwd', os.O_PATH)", holds_at_landlock=False),
    Attempt("reading", "what the machine is called", "if os.uname().nodename == 'bot': raise PermissionError('it has another name')", holds_at_landlock=False),
    Attempt("reading", "how many files another process has open", "os.lstat(f'/proc/{PARENT}/fd/3')", holds_at_landlock=False),
    Attempt("reading", "how full the disk is", "os.statvfs('/')"),
    Attempt("reading", "another bot", "os.listdir(os.path.dirname(os.path.dirname(__file__)))"),
    Attempt("reading", "another bot's file", "places = [Path(__file__).parent.parent / name / 'plan.txt' for name in BESIDE]\nnext(filter(Path.exists, places), places[0]).read_text()"),
    Attempt("reading", "whether another bot is here", "os.stat(f'{Path(__file__).parent.parent}/{BESIDE[0]}')", holds_at_landlock=False),
    Attempt("reading", "how long another bot's file is", "os.stat(f'{Path(__file__).parent.parent}/{BESIDE[0]}/plan.txt')", holds_at_landlock=False),
    Attempt("reading", "up and down again", "open(os.path.dirname(__file__) + '/../../etc/passwd')"),
    Attempt("reading", "a link in its folder", "open(os.path.dirname(__file__) + '/link').read()"),
    Attempt("reading", "by the newer call", 'call("openat2", -100, b"/etc/passwd", bytes(24), 24)'),
    Attempt("reading", "memory of its parent", 'call("process_vm_readv", PARENT, 0, 0, 0, 0, 0)'),
    Attempt("reading", "into its parent's memory", 'call("process_vm_writev", PARENT, 0, 0, 0, 0, 0)'),
    Attempt("reading", "the referee's module", "import engine.referee"),
    Attempt("reading", "the module that draws seeds", "import engine.record"),
    Attempt("reading", "the site's module", "import tournament.settings"),
    Attempt("reading", "its bot's neighbours by import", "import plan_of_another"),
    Attempt("reading", "the referee's environment", "os.environ['ARENA_SECRET']"),
    Attempt("reading", "a file's handle", 'call("name_to_handle_at", -100, b"/", bytearray(256), bytearray(8), 0)'),
    Attempt("reading", "a file by its handle", 'call("open_by_handle_at", -100, bytearray(16), 0)'),
    Attempt("reading", "attributes", "os.listxattr(__file__)"),
    Attempt("reading", "mounts", 'call("listmount", bytes(24), bytearray(64), 8, 0)'),
    Attempt("reading", "a mount", 'call("statmount", bytes(24), bytearray(4096), 4096, 0)'),
    Attempt("reading", "modules of security", 'call("lsm_list_modules", bytearray(64), bytearray(struct.pack("I", 64)), 0)'),
    Attempt("reading", "names of file systems", 'call("sysfs", 3)', machine="x86_64"),
    Attempt("reading", "pages in the cache", 'call("mincore", 0x1000, 0, bytearray(8))'),
    Attempt("reading", "how much of a file is in the cache", 'call("cachestat", 3, bytes(16), bytearray(40), 0)'),
    Attempt("reading", "a page if it is in the cache", "os.preadv(os.open(__file__, 0), [bytearray(1)], 0, os.RWF_NOWAIT)"),
    Attempt("reading", "a page ahead", 'call("readahead", os.open(__file__, 0), 0, 4096)'),
    Attempt("reading", "a page dropped", "os.posix_fadvise(os.open(__file__, 0), 0, 0, os.POSIX_FADV_DONTNEED)"),
]  # fmt: skip

WRITING = [
    Attempt("writing", "its own folder", "open(os.path.dirname(__file__) + '/' + MARK, 'w')"),
    Attempt("writing", "its own file", "open(__file__, 'a')"),
    Attempt("writing", "the standard library", "open(os.__file__, 'a')"),
    Attempt("writing", "compiled code", "import py_compile; py_compile.compile(__file__, doraise=True)"),
    Attempt("writing", "a temporary file", "open(f'/tmp/{MARK}', 'w')"),
    Attempt("writing", "a file without a name", "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)"),
    Attempt("writing", "a file by the oldest call", 'call("creat", f"/tmp/{MARK}".encode(), 0o600)', machine="x86_64"),
    Attempt("writing", "a folder", "os.mkdir(f'/tmp/{MARK}')"),
    Attempt("writing", "a pipe with a name", "os.mkfifo(f'/tmp/{MARK}')"),
    Attempt("writing", "a link", "os.symlink('/etc/passwd', os.path.dirname(__file__) + '/' + MARK)"),
    Attempt("writing", "a second name", "os.link(__file__, os.path.dirname(__file__) + '/' + MARK)"),
    Attempt("writing", "another name", "os.rename(__file__, os.path.dirname(__file__) + '/' + MARK)"),
    Attempt("writing", "another mode", "os.chmod(__file__, 0o777)"),
    Attempt("writing", "another owner", "os.chown(__file__, os.getuid(), -1)"),
    Attempt("writing", "another time", "os.utime(__file__, (0, 0))"),
    Attempt("writing", "an attribute", "os.setxattr(__file__, 'user.arena', b'x')"),
    Attempt("writing", "an attribute of its log", "os.setxattr(2, 'user.arena', b'x')"),
    Attempt("writing", "delete", "os.unlink(__file__)"),
    Attempt("writing", "device of its own", "os.mknod(f'/tmp/{MARK}', 0o020600, 259)"),
    Attempt("writing", "more log than there is room", "os.ftruncate(2, 1 << 30)"),
    Attempt("writing", "room for its log", "os.posix_fallocate(2, 0, 1 << 30)"),
    Attempt("writing", "less log than there was", "os.ftruncate(2, 0)"),
    Attempt("writing", "over its log", "fcntl.fcntl(2, fcntl.F_SETFL, 0)"),
    Attempt("writing", "a sealed log", "fcntl.fcntl(2, 1033, 4)"),
    Attempt("writing", "all disks synchronised", 'call("sync")'),
    Attempt("writing", "a file synchronised", "os.fsync(2)"),
    Attempt("writing", "a copy within the kernel", "os.copy_file_range(os.open(__file__, 0), 2, 100)"),
    Attempt("writing", "input for a terminal", "fcntl.ioctl(0, 0x5412, b'x')"),
]  # fmt: skip

INT_80 = """
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
page.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # getpid, as i386 asks for it
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""

KERNEL = [
    Attempt("kernel", "io_uring", 'call("io_uring_setup", 1, bytearray(120))'),
    Attempt("kernel", "io_uring's buffers", 'call("io_uring_register", 3, 0, 0, 0)'),
    Attempt("kernel", "asynchronous files", 'call("io_setup", 8, bytearray(8))'),
    Attempt("kernel", "an asynchronous file", 'call("io_submit", 0, 0, 0)'),
    Attempt("kernel", "keyring", 'call("keyctl", 0, -3, 1, 0, 0)'),
    Attempt("kernel", "a new key", 'call("add_key", b"user", MARK.encode(), b"x", 1, -3)'),
    Attempt("kernel", "ask for a key", 'call("request_key", b"user", MARK.encode(), 0, -3)'),
    Attempt("kernel", "userfaultfd", 'call("userfaultfd", 1)'),
    Attempt("kernel", "modify_ldt", 'call("modify_ldt", 0, bytearray(8), 8)', machine="x86_64"),
    Attempt("kernel", "calls as i386 makes them", INT_80.strip(), machine="x86_64"),
    Attempt("kernel", "calls as x32 makes them", "call(0x40000000 | 39)", machine="x86_64"),
    Attempt("kernel", "a call that does not exist", "call(5000)"),
    Attempt("kernel", "a call below zero", "call(-1)"),
    Attempt("kernel", "registers of segments", 'call("arch_prctl", 0x1003, bytearray(8))', machine="x86_64"),
    Attempt("kernel", "segments of threads", 'call("set_thread_area", bytearray(16))', machine="x86_64"),
    Attempt("kernel", "ports of the machine", 'call("iopl", 0)', machine="x86_64"),
    Attempt("kernel", "a port of the machine", 'call("ioperm", 0, 1, 0)', machine="x86_64"),
    Attempt("kernel", "a shadow stack", 'call("map_shadow_stack", 0, 4096, 0)', machine="x86_64"),
    Attempt("kernel", "new user namespace", 'call("unshare", 0x10000000)'),
    Attempt("kernel", "new mounts", 'call("unshare", 0x00020000)'),
    Attempt("kernel", "new processes", 'call("unshare", 0x20000000)'),
    Attempt("kernel", "new network", 'call("unshare", 0x40000000)'),
    Attempt("kernel", "new time", 'call("unshare", 0x80)'),
    Attempt("kernel", "files of its own", 'call("unshare", 0x400)'),
    Attempt("kernel", "enter a namespace", 'call("setns", 0, 0)'),
    Attempt("kernel", "mount", 'call("mount", b"none", b"/tmp", b"tmpfs", 0, 0)'),
    Attempt("kernel", "mount again, writable", 'call("mount", b"none", b"/", b"none", 32 | 4096, 0)'),
    Attempt("kernel", "unmount", 'call("umount2", b"/", 2)'),
    Attempt("kernel", "copy a tree of mounts", 'call("open_tree", -100, b"/", 1)'),
    Attempt("kernel", "move a mount", 'call("move_mount", 3, b"", -100, b"/tmp", 4)'),
    Attempt("kernel", "a new file system", 'call("fsopen", b"tmpfs", 0)'),
    Attempt("kernel", "settings of a file system", 'call("fsconfig", 3, 6, 0, 0, 0)'),
    Attempt("kernel", "a new mount", 'call("fsmount", 3, 0, 0)'),
    Attempt("kernel", "pick a mount", 'call("fspick", -100, b"/", 0)'),
    Attempt("kernel", "rights of a mount", 'call("mount_setattr", -100, b"/", 0, bytes(32), 32)'),
    Attempt("kernel", "chroot", "os.chroot('/')"),
    Attempt("kernel", "pivot_root", 'call("pivot_root", b"/", b"/")'),
    Attempt("kernel", "set the clock", "time.clock_settime(time.CLOCK_REALTIME, time.time())"),
    Attempt("kernel", "set the clock, the older way", 'call("settimeofday", 0, bytes(8))'),
    Attempt("kernel", "tune the clock", 'call("adjtimex", bytearray(208))'),
    Attempt("kernel", "tune a clock", 'call("clock_adjtime", 0, bytearray(208))'),
    Attempt("kernel", "performance counters", 'call("perf_event_open", bytearray(120), 0, -1, -1, 0)'),
    Attempt("kernel", "bpf", 'call("bpf", 0, bytearray(72), 72)'),
    Attempt("kernel", "a filter of its own", 'call("seccomp", 1, 0, bytes(16))'),
    Attempt("kernel", "a filter that asks it", 'call("seccomp", 1, 8, bytes(16))'),
    Attempt("kernel", "a filter by the older call", 'call("prctl", 22, 2, bytes(16), 0, 0)'),
    Attempt("kernel", "what a filter can do", 'call("seccomp", 2, 0, struct.pack("I", 0x7FFF0000))'),
    Attempt("kernel", "Landlock of its own", 'call("landlock_create_ruleset", 0, 0, 1)'),
    Attempt("kernel", "a rule of Landlock", 'call("landlock_add_rule", 3, 1, bytes(12), 0)'),
    Attempt("kernel", "swap", 'call("swapon", b"/tmp", 0)'),
    Attempt("kernel", "no swap", 'call("swapoff", b"/tmp")'),
    Attempt("kernel", "accounts of processes", 'call("acct", b"/tmp")'),
    Attempt("kernel", "quotas", 'call("quotactl", 0, b"/", 0, 0)'),
    Attempt("kernel", "the machine's name", 'call("sethostname", b"bot", 3)'),
    Attempt("kernel", "the machine's domain", 'call("setdomainname", b"bot", 3)'),
    Attempt("kernel", "hang up the terminal", 'call("vhangup")'),
    Attempt("kernel", "restart the machine", 'call("reboot", 0, 0, 0, 0)'),
    Attempt("kernel", "load a module", 'call("init_module", bytes(8), 0, b"")'),
    Attempt("kernel", "load a module from a file", 'call("finit_module", 3, b"", 0)'),
    Attempt("kernel", "unload a module", 'call("delete_module", b"arena", 0)'),
    Attempt("kernel", "load a kernel", 'call("kexec_load", 0, 0, 0, 0)'),
    Attempt("kernel", "another personality", 'call("personality", 0x0040000)'),
]  # fmt: skip

BY_NUMPY = [
    Attempt("memory", "a big array of numpy", "import numpy; numpy.ones(1 << 30, numpy.uint8)", MEMORY),
    Attempt("memory", "many arrays of numpy", "import numpy; hoard = [numpy.ones(1 << 16) for _ in range(1000)]", MEMORY),
    Attempt("reading", "accounts as an array", "import numpy; numpy.fromfile('/etc/passwd', numpy.uint8)"),
    Attempt("reading", "memory beyond an array", "import numpy; numpy.lib.stride_tricks.as_strided(numpy.zeros(1), (1 << 40,), (8,))[1 << 36]"),
    Attempt("network", "an array from afar", "from numpy.lib import _datasource; _datasource.open('http://127.0.0.1:1/x')"),
    Attempt("writing", "an array to a file", "import numpy; numpy.zeros(9).tofile(f'/tmp/{MARK}')"),
    Attempt("writing", "an array saved", "import numpy; numpy.save(f'/tmp/{MARK}', numpy.zeros(9))"),
    Attempt("writing", "its own file as an array", "import numpy; numpy.memmap(__file__, mode='r+')"),
    Attempt("writing", "a new file as an array", "import numpy; numpy.memmap(f'/tmp/{MARK}', mode='w+', shape=9)"),
    Attempt(
        "writing",
        "a pickle inside an array",
        """\
import io, numpy
class Folder:
    def __reduce__(self): return os.mkdir, (f'/tmp/{MARK}',)
file = io.BytesIO()
numpy.save(file, numpy.array([Folder()], dtype=object), allow_pickle=True)
numpy.load(io.BytesIO(file.getvalue()), allow_pickle=True)""",
    ),
]  # fmt: skip

ATTEMPTS = [*PROCESSES, *MEMORY_ROWS, *CHANNEL, *NETWORK, *READING, *WRITING, *KERNEL, *BY_NUMPY]


def attempts_here() -> list[Attempt]:
    """The rows that make sense on this machine."""
    return [row for row in ATTEMPTS if row.machine in ("", platform.machine())]


def _numbers_of(attempt: Attempt) -> dict[str, int]:
    return {name: seccompy.syscall_nr(name) for name in sorted(attempt.system_calls)}


def write_attempt(folder: Path, attempt: Attempt) -> BotSource:
    """The bot of a row, alone in a folder, as an unpacked wheel would be."""
    folder.mkdir(parents=True, exist_ok=True)
    other = folder.parent / ("f" * 64)  # as an unpacked wheel lies beside another
    other.mkdir(exist_ok=True)
    (other / "plan.txt").write_text("lead the doubles")
    code = "\n".join(f"        {line}" for line in attempt.code.splitlines())
    text = HEAD.replace("{numbers}", repr(_numbers_of(attempt)))
    beside = (other.name, wheel_in_memory(other).name)
    text = text.replace("{mark}", repr((MARK, MARK_KEY, beside))).replace("{code}", code)
    (folder / "attacker.py").write_text(text)
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to("/etc/passwd")
    return BotSource(
        bot="attacker", version=None, wheel=None, folder=str(folder), entry_point="attacker"
    )
