#!/usr/bin/env python3
"""Everything that needs processes or the database starts here.

All it needs is Python 3.11 or newer: it makes its own environment in ``.venv`` on the first run, says
so on stderr, and goes on. Set ``ARENA_BOOTSTRAP=0`` where the packages are already installed.
"""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

OLDEST = (3, 11)
if sys.version_info < OLDEST:  # before anything that an older Python could not read
    FOUND = next((n for n in ("python3.13", "python3.12", "python3.11") if shutil.which(n)), None)
    HINT = (
        f"run: {' '.join([FOUND, *sys.argv])}"
        if FOUND
        else "install one, e.g. apt install python3.11"
    )
    sys.exit(
        f"Domino Arena needs Python {OLDEST[0]}.{OLDEST[1]} or newer; this is "
        f"{sys.version_info[0]}.{sys.version_info[1]} ({sys.executable}). {HINT}"
    )

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
MADE_HERE = VENV / ".arena-made"
"""The mark of an environment that this program made, and may delete."""
GUARD = "ARENA_BOOTSTRAPPED"
STEERS_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
PROOF = {"server": "celery", "dev": "pytest_django"}
"""A module of each extra that no other part of the project installs."""

ARENA_COMMANDS = {
    "demo": "tournament.operations.demo",
    "up": "tournament.operations.up",
    "doctor": "tournament.operations.doctor",
    "web": "tournament.operations.roles:web",
    "control": "tournament.operations.roles:control",
    "worker": "tournament.operations.roles:worker",
    "beat": "tournament.operations.roles:beat",
    "healthy": "tournament.operations.roles:healthy",
    "bench-queue": "tournament.operations.bench_queue",
}
"""By command the module, and its function if that is not called `main`."""
USAGE = """\
usage: python3 manage.py COMMAND …

  demo      play a small cup on a real, temporary site and print the tables
  up        keep a site running here, with its broker and workers
  test      run the tests (further arguments go to pytest)
  doctor    say what this machine can do, and what is missing
  web, control, worker, beat
            be one process of a site, where systemd or containers keep it going
  healthy   tell by the exit code whether such a process is well
  ratings   verify the stored ratings against their logs, or rebuild them
  revalidate
            tell which bots an upgrade of Python or the SDK would break, before it
  bench-queue
            measure what the queue costs, on a temporary site with ten thousand matches waiting
  backup, restore
            write the whole site into one file while it goes on, and put it back
  export-tournament
            write a finished tournament as one document that anyone can verify
  move-database
            take a site from SQLite to PostgreSQL, and prove that it is the same
  erase-player
            remove a person from the site for good; what their bots played stays
  help      list the commands of Django

Each of them has --help. Bots are written and tried with .venv/bin/arena, which any of them installs.
"""


def main(arguments: list[str]) -> int:
    """Run the command in `arguments`, after setting up the environment that it needs."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stderr if not arguments else sys.stdout)
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    enter_environment("dev" if command == "test" else "server")
    if command == "test":
        run_tests(rest)
    try:
        return run_command(command, rest)
    except Exception as error:
        told = "" if "--traceback" in rest else explain(error)
        if not told:
            raise
        say(told)
        return 1


def run_command(command: str, rest: list[str]) -> int:
    """Run a command of ours or of Django's in this environment; its exit code."""
    if command in ARENA_COMMANDS:
        module, _, function = ARENA_COMMANDS[command].partition(":")
        status: int = getattr(importlib.import_module(module), function or "main")(rest)
        return status
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tournament.settings")
    from django.core.management import execute_from_command_line

    if not command.startswith("-"):
        command = command.replace("-", "_")  # as Django names its commands, after their modules
    execute_from_command_line([sys.argv[0], command, *rest])
    return 0


def explain(error: Exception) -> str:
    """In a sentence what an operator can mend; empty for an error of the code, whose traceback is wanted."""
    from django.core.exceptions import ImproperlyConfigured

    if isinstance(error, ImproperlyConfigured):
        return str(error)
    from tournament.store.outages import outage_of

    outage = outage_of(error)
    if outage is None:
        return ""
    detail = next(iter(str(error).splitlines()), "")
    return f"the site cannot be used, {outage.value} ({detail}): {outage.advice}"


def run_tests(arguments: list[str]) -> None:
    """Become pytest, in the project's folder; paths among the arguments stay what they were."""
    arguments = [resolve_test(argument) for argument in arguments]
    os.chdir(ROOT)
    # Tests start hundreds of processes, and each would compile everything again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "--ds=tests.settings"]
    if all(argument.startswith("-") for argument in arguments) and not steers_workers(arguments):
        command += ["-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadgroup"]
        if os.environ.get("ARENA_EXHAUSTIVE") == "1":
            say("the long tests that break sites are left out; make faults runs them one by one")
            command += ["-m", "not (exhaustive and faults)"]
        else:
            say("the exhaustive tests are left out; ARENA_EXHAUSTIVE=1 runs them too")
            command += ["-m", "not exhaustive"]
    os.execv(sys.executable, [*command, *arguments])


def resolve_test(argument: str) -> str:
    """A test's path made absolute; anything that is no path as it is."""
    path, separator, name = argument.partition("::")
    if path.startswith("-") or not Path(path).exists():
        return argument
    return f"{Path(path).resolve()}{separator}{name}"


def steers_workers(arguments: list[str]) -> bool:
    """Whether the caller says how many processes test, or wants a debugger, which needs just one."""
    return any(
        argument.startswith(("-n", "--numprocesses", "--pdb", "--trace", "-pno:xdist"))
        for argument in arguments
    )


# Setting up


def enter_environment(extra: str) -> None:
    """Go on in the project's own environment, made or mended first if need be.

    Returns when this process already runs where `extra` is installed; else the process is replaced.
    """
    entered = os.environ.pop(GUARD, None)
    if os.environ.get("ARENA_BOOTSTRAP") == "0" or in_prepared_environment(extra):
        return
    if sys.platform == "win32":
        sys.exit(
            "The server needs Linux or macOS (WSL will do). Bots can be written anywhere: arena."
        )
    if not is_ready(extra):
        set_up(extra)
    if in_own_environment():
        return
    if entered:
        sys.exit(f"{VENV} does not work as an environment (Python says {sys.prefix}); delete it.")
    environ = {**clean_environ(), GUARD: "1"}
    os.execve(VENV_PYTHON, [str(VENV_PYTHON), __file__, *sys.argv[1:]], environ)


def in_own_environment() -> bool:
    """Whether this Python is that of ``.venv``: by its prefix, as the program is a link."""
    return Path(sys.prefix).resolve() == VENV.resolve()


def in_prepared_environment(extra: str) -> bool:
    """Whether this is another environment in which somebody installed the project with `extra`."""
    if sys.prefix == sys.base_prefix or in_own_environment():
        return False
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution("domino-arena")
    except PackageNotFoundError:
        return False
    return importlib.util.find_spec(PROOF[extra]) is not None


def stamp(extra: str) -> Path:
    """The file that says what was installed for `extra`; written last, so it is there only if all is."""
    return VENV / f".arena-{extra}"


def fingerprint() -> str:
    """What an installation depends on: the project file, the constraints, the kind of Python."""
    inputs = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    digest = sha256(b"".join(sha256(content).digest() for content in inputs)).hexdigest()
    return f"{sys.implementation.cache_tag} {digest}\n"


def is_ready(extra: str) -> bool:
    """Whether ``.venv`` holds `extra` as the project now asks for it. The dev extra holds the server."""
    holders = [stamp(extra), stamp("dev")]
    return VENV_PYTHON.exists() and any(
        holder.exists() and holder.read_text() == fingerprint() for holder in holders
    )


def is_reusable() -> bool:
    """Whether ``.venv`` is a whole environment of this kind of Python that only needs an update."""
    kind = f"{sys.implementation.cache_tag} "
    stamps = [path for path in (stamp("server"), stamp("dev")) if path.exists()]
    return VENV_PYTHON.exists() and any(path.read_text().startswith(kind) for path in stamps)


def set_up(extra: str) -> None:
    """Install `extra` into ``.venv``, which is made anew unless it is known to be whole."""
    with only_one_at_a_time():
        if is_ready(extra):
            return
        began = time.monotonic()
        update = in_own_environment() or is_reusable()
        version = ".".join(map(str, sys.version_info[:3]))
        say(
            f"{'updating' if update else 'setting up'} .venv with Python {version} and the packages"
            f" of [{extra}]; only needed once, less than a minute …"
        )
        try:
            if not update:
                make_environment()
            pip("install", "--constraint", "constraints.txt", "--editable", f".[{extra}]")
            stamp(extra).write_text(fingerprint())
        except OSError as error:
            sys.exit(f"Setting up {VENV} failed: {error}")
        say(f"ready after {time.monotonic() - began:.0f} s")


def make_environment() -> None:
    """A fresh ``.venv`` with pip in it, by whatever this Python has. Ends if there is one of somebody else's."""
    clear_away()
    if importlib.util.find_spec("ensurepip"):
        made = try_run(sys.executable, "-m", "venv", str(VENV))
        if made.returncode == 0:
            return
    if not importlib.util.find_spec("pip"):
        sys.exit(
            "This Python has neither ensurepip nor pip, so nothing can be installed. "
            "Mend it by: apt install python3-venv"
        )
    clear_away()  # what the failed try left
    run(sys.executable, "-m", "venv", "--without-pip", str(VENV))
    run(sys.executable, "-m", "pip", "--python", str(VENV_PYTHON), "install", "--quiet", "pip")


def clear_away() -> None:
    """An empty ``.venv``, marked as made here; what nobody made here is never deleted, but told, and the end."""
    if VENV.is_symlink() or VENV.exists():
        if not is_made_here():
            sys.exit(
                f"{VENV} was not made by this program, so it is left as it is. Either move it away "
                f"(mv {VENV} {VENV}.mine) and start again, or, if it is a Python environment that you "
                f"want to use, start with its Python: {VENV_PYTHON} manage.py …; that installs what is "
                "missing into it and deletes nothing."
            )
        if VENV.is_symlink():
            VENV.unlink()
        else:
            shutil.rmtree(VENV)
    VENV.mkdir()
    MADE_HERE.touch()


def is_made_here() -> bool:
    """Whether ``.venv`` is of this program's making (then it bears its mark, or a stamp), or empty."""
    if any(path.exists() for path in (MADE_HERE, stamp("server"), stamp("dev"))):
        return True
    return not VENV.is_symlink() and VENV.is_dir() and not any(VENV.iterdir())


def pip(*arguments: str) -> None:
    """Run the environment's own pip in the project's folder."""
    run(str(VENV_PYTHON), "-m", "pip", arguments[0], "--quiet", *arguments[1:])


def run(*command: str) -> None:
    """Run `command`; end with its output if it fails."""
    done = try_run(*command)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nSetting up failed at: {' '.join(command)}")


def try_run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` away from the caller's Python settings, its output kept."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env=clean_environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def clean_environ() -> dict[str, str]:
    """The environment without what would lead Python or pip away from ``.venv``."""
    kept = {name: value for name, value in os.environ.items() if name not in STEERS_PYTHON}
    return {**kept, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


@contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Hold the lock of setting up; wait, and say so, while another process holds it."""
    import fcntl

    with (ROOT / "pyproject.toml").open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is setting up .venv; waiting for it …")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """Tell the newcomer what happens, away from the output."""
    print(f"Domino Arena: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("interrupted")
