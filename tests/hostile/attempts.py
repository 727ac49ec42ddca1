"""One attack a row: what a bot tries in its first turn. It goes on to play if that goes through.

Attacks that take more than a few lines are files of their own beside this one; `test_verdicts.py` has
what each of those must come to. `code` may use what `HEAD` imports, `libc` and `call` (a system call by its number on this
machine, an OSError if it fails).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.agents import BotSource
from engine.outcome import Termination

HEAD = """
import ctypes, errno, fcntl, mmap, os, random, select, signal, socket, struct, subprocess, sys, threading, time
from pathlib import Path
from engine import wire
from engine.sdk import Strategy, hookimpl

libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    result = libc.syscall(number, *map(memory, arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def memory(argument):
    if isinstance(argument, bytearray):
        return (ctypes.c_char * len(argument)).from_buffer(argument)
    return argument

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
    is_for_x86_64: bool = False
    fault: Termination = Termination.CRASH
    holds_at_landlock: bool = True
    """Whether it is held without namespaces too."""


MEMORY = Termination.MEMORY

ATTEMPTS = [
    # Processes
    Attempt("processes", "fork", "if os.fork() == 0: os._exit(0)"),
    Attempt(
        "processes",
        "double fork",
        "if os.fork() == 0:\n    os.setsid()\n    os.fork()\n    time.sleep(60)",
    ),
    Attempt("processes", "vfork", "subprocess.Popen([sys.executable])"),
    Attempt("processes", "clone3", "call(435, bytes(88), 88)"),
    Attempt("processes", "thread", "threading.Thread(target=int).start()"),
    Attempt("processes", "execve", "os.execv(sys.executable or '/bin/sh', ['x', '-c', ''])"),
    Attempt("processes", "kill everyone", "os.kill(-1, signal.SIGCONT)"),
    Attempt("processes", "kill the group", "os.killpg(0, signal.SIGCONT)"),
    Attempt("processes", "signal its parent", "os.kill(os.getppid() or 1, signal.SIGCONT)"),
    Attempt("processes", "signal a neighbour", "for pid in range(2, 200): os.kill(pid, 0)"),
    Attempt("processes", "ptrace its parent", "call(101, 16, os.getppid() or 1, 0, 0)", True),
    Attempt(
        "processes",
        "new limits for itself",
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    ),
    Attempt("processes", "another niceness", "os.nice(5)"),
    Attempt("processes", "all cores", "os.sched_setaffinity(0, range(64))"),
    # Memory
    Attempt("memory", "one big array", "bytearray(1 << 30)", fault=MEMORY),
    Attempt("memory", "many lists", "hoard = [[0] * 1000 for _ in range(100_000)]", fault=MEMORY),
    Attempt("memory", "memory of its own by mmap", "mmap.mmap(-1, 1 << 30)"),
    Attempt("memory", "a file in memory", "os.memfd_create('x')"),
    Attempt("memory", "a secret file in memory", "call(447, 0)"),
    Attempt("memory", "a file in /dev/shm", "open('/dev/shm/x', 'wb')"),
    Attempt("memory", "shared memory of System V", "call(29, 0, 1 << 20, 0o1600)", True),
    Attempt("memory", "buffers of pipes", "pipes = [os.pipe() for _ in range(10)]"),
    Attempt("memory", "locked memory", "call(149, bytearray(4096), 4096)", True),
    Attempt("memory", "huge power", "10 ** 10 ** 9", fault=Termination.TIME),
    Attempt("memory", "a hundred files open", "files = [os.open(__file__, 0) for _ in range(100)]"),
    Attempt("memory", "a big array of numpy", "import numpy; numpy.ones(1 << 30, numpy.uint8)", fault=MEMORY),
    Attempt(
        "memory",
        "many arrays of numpy",
        "import numpy; hoard = [numpy.ones(1 << 16) for _ in range(1000)]",
        fault=MEMORY,
    ),
    # Network and the machine's messages
    Attempt("network", "TCP", "socket.socket(socket.AF_INET, socket.SOCK_STREAM)"),
    Attempt("network", "UDP", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    Attempt("network", "IPv6", "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)"),
    Attempt("network", "local", "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)"),
    Attempt("network", "abstract", "socket.socket(socket.AF_UNIX).bind(chr(0) + 'arena')"),
    Attempt("network", "pair", "socket.socketpair()"),
    Attempt("network", "vsock", "socket.socket(40, socket.SOCK_STREAM)"),
    Attempt("network", "netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
    Attempt("network", "packet", "socket.socket(17, socket.SOCK_RAW)"),
    Attempt("network", "connect its own channel", "call(42, 3, bytes(16), 16)", True),
    Attempt("network", "files through its channel", "call(46, 3, bytes(56), 0)", True),
    Attempt("network", "lock a file of all", "fcntl.flock(os.open(os.__file__, 0), fcntl.LOCK_EX)"),
    Attempt("network", "watch a file of all", "call(254, 0); call(294, 0)", True),
    Attempt("network", "queue of messages", "call(68, 1, 0o1600)", True),
    Attempt("network", "POSIX queue", "call(240, b'arena', 0o102, 0o600, 0)", True),
    Attempt("network", "semaphore", "call(64, 1, 1, 0o1600)", True),
    Attempt("network", "wait for many", "select.epoll()"),
    Attempt("network", "event", "os.eventfd(0)"),
    # Reading
    Attempt("reading", "accounts", "open('/etc/passwd').read()"),
    Attempt("reading", "the machine's name", "open('/etc/hostname').read()"),
    Attempt("reading", "environment of the first process", "open('/proc/1/environ','rb').read()"),
    Attempt("reading", "whether a file exists", "os.stat('/etc/passwd')", holds_at_landlock=False),
    Attempt(
        "reading",
        "what the machine is called",
        "if os.uname().nodename == 'bot': raise PermissionError('it has another name')",
        holds_at_landlock=False,
    ),
    Attempt("reading", "its own map", "open('/proc/self/maps').read()"),
    Attempt("reading", "list of processes", "os.listdir('/proc')"),
    Attempt("reading", "devices", "os.listdir('/dev')"),
    Attempt("reading", "another bot", "os.listdir(os.path.dirname(os.path.dirname(__file__)))"),
    Attempt("reading", "up and down again", "open(os.path.dirname(__file__) + '/../../etc/passwd')"),
    Attempt("reading", "a link in its folder", "open(os.path.dirname(__file__) + '/link').read()"),
    Attempt("reading", "memory of its parent", "call(310, os.getppid() or 1, 0, 0, 0, 0, 0)", True),
    Attempt("reading", "the referee's module", "import engine.referee"),
    Attempt("reading", "the site's module", "import tournament.settings"),
    Attempt("reading", "where the machine is mounted", "call(303, 0, b'/', bytearray(256), bytearray(8), 0)", True),
    Attempt("reading", "accounts as an array", "import numpy; numpy.fromfile('/etc/passwd', numpy.uint8)"),
    Attempt("reading", "memory beyond an array", "from numpy.lib.stride_tricks import as_strided; import numpy; as_strided(numpy.zeros(1), (1 << 40,), (8,))[1 << 36]"),
    # Writing
    Attempt("writing", "its own folder", "open(os.path.dirname(__file__) + '/new', 'w')"),
    Attempt("writing", "its own file", "open(__file__, 'a')"),
    Attempt("writing", "a temporary file", "open('/tmp/arena-was-here', 'w')"),
    Attempt("writing", "a folder", "os.mkdir('/tmp/arena-was-here')"),
    Attempt("writing", "a pipe with a name", "os.mkfifo('/tmp/arena-was-here')"),
    Attempt("writing", "a link", "os.symlink('/etc/passwd', os.path.dirname(__file__) + '/out')"),
    Attempt("writing", "another mode", "os.chmod(__file__, 0o777)"),
    Attempt("writing", "another time", "os.utime(__file__, (0, 0))"),
    Attempt("writing", "an attribute", "os.setxattr(__file__, 'user.arena', b'x')"),
    Attempt("writing", "delete", "os.unlink(__file__)"),
    Attempt("writing", "device of its own", "os.mknod('/tmp/arena-was-here', 0o020600, 259)"),
    Attempt("writing", "more log than there is room", "os.ftruncate(2, 1 << 30)"),
    Attempt("writing", "an array to a file", "import numpy; numpy.zeros(9).tofile('/tmp/arena-was-here')"),
    Attempt("writing", "its own file as an array", "import numpy; numpy.memmap(__file__, mode='r+')"),
    Attempt(
        "writing",
        "a new file as an array",
        "import numpy; numpy.memmap('/tmp/arena-was-here', mode='w+', shape=9)",
    ),
    Attempt(
        "writing",
        "a pickle inside an array",
        """\
import io, numpy
class Folder:
    def __reduce__(self): return os.mkdir, ('/tmp/arena-was-here',)
file = io.BytesIO()
numpy.save(file, numpy.array([Folder()], dtype=object), allow_pickle=True)
numpy.load(io.BytesIO(file.getvalue()), allow_pickle=True)""",
    ),
    # Surface of the kernel
    Attempt("kernel", "io_uring", "call(425, 1, bytearray(120))"),
    Attempt("kernel", "keyring", "call(250, 0, -3, 1, 0, 0)", True),
    Attempt("kernel", "a new key", "call(248, b'user', b'arena', b'x', 1, -3)", True),
    Attempt("kernel", "userfaultfd", "call(323, 0)", True),
    Attempt("kernel", "modify_ldt", "call(154, 0, bytearray(8), 8)", True),
    Attempt("kernel", "new user namespace", "call(272, 0x10000000)", True),
    Attempt("kernel", "new mounts", "call(272, 0x00020000)", True),
    Attempt("kernel", "enter a namespace", "call(308, 0, 0)", True),
    Attempt("kernel", "mount", "call(165, b'none', b'/tmp', b'tmpfs', 0, 0)", True),
    Attempt("kernel", "chroot", "os.chroot('/')"),
    Attempt("kernel", "pivot_root", "call(155, b'/', b'/')", True),
    Attempt("kernel", "set the clock", "time.clock_settime(time.CLOCK_REALTIME, time.time())"),
    Attempt("kernel", "performance counters", "call(298, bytearray(120), 0, -1, -1, 0)", True),
    Attempt("kernel", "bpf", "call(321, 0, bytearray(72), 72)", True),
    Attempt("kernel", "a filter of its own", "call(317, 1, 0, bytes(16))", True),
    Attempt("kernel", "Landlock of its own", "call(444, 0, 0, 1)"),
    Attempt("kernel", "file handle", "call(304, -100, bytearray(16), 0)", True),
    Attempt("kernel", "its own name", "call(157, 15, b'python', 0, 0, 0)", True),
    Attempt("kernel", "restart the machine", "call(169, 0, 0, 0, 0)", True),
    Attempt("kernel", "load a module", "call(175, bytes(8), 0, b'')", True),
    Attempt("kernel", "another personality", "call(135, 0x0040000)", True),
    Attempt("kernel", "timer", "signal.setitimer(signal.ITIMER_REAL, 60)"),
]  # fmt: skip


def write_attempt(folder: Path, attempt: Attempt) -> BotSource:
    """The bot of a row, alone in a folder, as an unpacked wheel would be."""
    folder.mkdir(parents=True, exist_ok=True)
    other = folder.parent / ("f" * 64)  # as an unpacked wheel lies beside another
    other.mkdir(exist_ok=True)
    code = "\n".join(f"        {line}" for line in attempt.code.splitlines())
    (folder / "attacker.py").write_text(HEAD.replace("{code}", code))
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to("/etc/passwd")
    return BotSource(
        bot="attacker", version=None, wheel=None, folder=str(folder), entry_point="attacker"
    )
