"""What a bot's process can see: the interpreter, the standard library, the SDK, and nothing else.

Package folders are shown one by one, never a site-packages folder or a checkout: what lies beside them
(settings, other bots, the rest of the engine) does not exist for a bot.
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import stat
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from engine.errors import SandboxUnavailableError
from engine.sandbox import numeric
from engine.sandbox.libraries import libraries_in_use, mapped_here
from engine.wheels import PROVIDED_PACKAGES

CODE_FOLDER = "/arena"
"""Where the packages that a bot may use appear to it."""
ENGINE_ARCHIVE = f"{CODE_FOLDER}/engine.zip"
"""Where the SDK and the rest of the engine that it needs appear to it."""
BOT_FOLDER = "/bot"
"""Where its own folder appears to a bot that has a room for itself."""
WHEELS_FOLDER = "/wheels"
"""Where the folder of all unpacked wheels appears, of which a bot may read its own alone."""

ENGINE_PARTS = (
    "__init__.py", "errors.py", "tiles.py", "shuffle.py", "outcome.py", "games", "sdk", "wire.py",
    "sandbox/__init__.py", "sandbox/bot_host.py", "sandbox/landlock.py", "sandbox/numeric.py", "sandbox/zygote.py",
)  # fmt: skip
"""The parts of the engine that a bot's process imports; none of them knows a secret."""

NOT_FOR_BOTS = ("_test", "_ctypes_test", "_tkinter", "_curses", "readline", "nis", "ossaudiodev", "xx")  # fmt: skip
"""What the names of extension modules begin with that are for developers or a screen."""
_LIBRARY_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")


@dataclass(frozen=True, slots=True)
class Runtime:
    """How the interpreter looks from inside."""

    interpreter: str
    """Path of the real interpreter, the same inside and outside."""
    shown: tuple[tuple[str, str], ...]
    """Read-only (outside, inside) pairs of files and folders, parents first."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links to make inside: (target, link)."""
    hidden: tuple[str, ...]
    """Folders inside a shown one whose content is hidden."""
    import_path: tuple[str, ...]
    """``sys.path`` of the child, before the bot's own folder."""
    package_folders: tuple[str, ...]
    """Outside: where the provided packages lie, among others."""
    library_path: str = ""
    """Where the loader has to be told to look. Empty if the interpreter says it; but where it says ``$ORIGIN``, the
    place of the program, the loader would ask for that in ``/proc``, which is not there."""


@cache
def find_runtime() -> Runtime:
    """The runtime of the interpreter that runs now. Raises SandboxUnavailableError if its parts cannot be found."""
    try:
        return _look_for_runtime()
    except PermissionError as error:
        reason = (
            f"the interpreter's parts cannot be read by this user: {error.filename}; "
            "let others read its folder (chmod o+rX) or use a Python that they can read"
        )
        raise SandboxUnavailableError([reason]) from error


def _look_for_runtime() -> Runtime:
    # A virtual environment's own interpreter is only a link.
    interpreter = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    stdlib, platstdlib = _folder("stdlib"), _folder("platstdlib")
    if not interpreter.is_file() or not (stdlib / "os.py").is_file():
        raise SandboxUnavailableError(
            [f"the interpreter's parts cannot be found at {interpreter} and {stdlib}"]
        )
    links, folders = _library_folders()
    outside = [*folders, stdlib, platstdlib, interpreter, *_interpreter_library(interpreter)]
    shown = list(dict.fromkeys((str(path), str(path)) for path in outside))
    runtime = Runtime(
        interpreter=str(interpreter),
        shown=(*_without_nested(shown), *_packages()),
        links=links,
        hidden=tuple(
            str(folder / name)
            for folder in dict.fromkeys((stdlib, platstdlib, Path("/usr/lib/python3")))
            for name in ("site-packages", "dist-packages")
            if (folder / name).is_dir()
        ),
        import_path=(
            ENGINE_ARCHIVE,
            CODE_FOLDER,
            str(stdlib),
            str(platstdlib / "lib-dynload"),
        ),
        package_folders=tuple(
            dict.fromkeys(str(Path(outside).parent) for outside, _ in _packages())
        ),
        library_path=_library_path(interpreter),
    )
    return _with_own_libraries(runtime) if _has_own_libraries(runtime) else runtime


def _has_own_libraries(runtime: Runtime) -> bool:
    """Whether some of what it needs lies elsewhere than with the system or it: as with Conda and Nix."""
    beside = Path(runtime.interpreter).parent.parent / "lib"
    candidates = (*mapped_here(), *(beside.glob("*.so.*") if beside.is_dir() else ()))
    packages = tuple(map(Path, runtime.package_folders))
    return any(
        ".so" in path.name
        and not path.name.startswith("libpython")
        and not any(path.is_relative_to(folder) for folder in packages)
        and not _shows(runtime, path)
        for path in candidates
    )


def _with_own_libraries(runtime: Runtime) -> Runtime:
    """It shows those that are in use too, one by one. Raises SandboxUnavailableError if it does not run."""
    try:
        found = runtime_libraries(runtime)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SandboxUnavailableError(
            [f"the interpreter {runtime.interpreter} does not run without its environment: {error}"]
        ) from error
    own = [str(path) for path in found if ".so" in path.name and not _shows(runtime, path)]
    return replace(runtime, shown=(*((path, path) for path in own), *runtime.shown))


def runtime_libraries(runtime: Runtime) -> tuple[Path, ...]:
    """The shared libraries that the interpreter and all that bots may import have in use, and links to them."""
    dynload = Path(runtime.import_path[-1])
    names = {path.name.partition(".")[0] for path in dynload.iterdir()}
    modules = sorted(name for name in names if not name.startswith(NOT_FOR_BOTS))
    return libraries_in_use(
        runtime.interpreter,
        (*runtime.import_path[2:], *runtime.package_folders),
        (*modules, "msgspec", *numeric.MODULES),
        tuple(environment_of(runtime).items()),
    )


def environment_of(runtime: Runtime) -> dict[str, str]:
    """All that a bot's process finds in its environment, beside what its shell and its C library add."""
    path = {"LD_LIBRARY_PATH": runtime.library_path} if runtime.library_path else {}
    return {"PYTHONHASHSEED": "0", **numeric.ENVIRONMENT, **path}


def _shows(runtime: Runtime, path: Path) -> bool:
    """Also if it is reached through a link to a shown folder: ``/lib64`` is one to ``/usr/lib64`` on many systems."""
    real = path.parent.resolve() / path.name
    return any(
        path.is_relative_to(outside) or real.is_relative_to(outside) for outside, _ in runtime.shown
    )


def _library_path(interpreter: Path) -> str:
    folder = interpreter.parent.parent / "lib"
    return str(folder) if b"$ORIGIN" in interpreter.read_bytes() and folder.is_dir() else ""


def _library_folders() -> tuple[tuple[tuple[str, str], ...], list[Path]]:
    """The system's shared libraries; ``/lib`` is a link to ``/usr/lib`` on many systems."""
    links = []
    folders = []
    for path in map(Path, _LIBRARY_FOLDERS):
        if path.is_symlink():
            links.append((str(path.readlink()), str(path)))
        elif path.exists():
            folders.append(path)
    return tuple(links), folders


def closed_to_others(path: Path) -> Path | None:
    """What keeps other users of the machine from reading `path`: it or a folder above; None if nothing does."""
    for place in (*reversed(path.parents), path):
        mode = place.stat().st_mode
        wanted = stat.S_IROTH if place == path else stat.S_IXOTH
        if not mode & wanted:
            return place
    return None


def _folder(name: str) -> Path:
    """A folder of the interpreter itself, not of a virtual environment, with all links resolved as it sees it."""
    base = {"base": sys.base_prefix, "installed_base": sys.base_prefix}
    plat = {"platbase": sys.base_exec_prefix, "installed_platbase": sys.base_exec_prefix}
    return Path(sysconfig.get_path(name, vars=base | plat)).resolve()


def _interpreter_library(interpreter: Path) -> list[Path]:
    """``libpython3.x.so``, for an interpreter that is built so."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    if ".so" not in name:
        return []
    built_for = sysconfig.get_config_var("LIBDIR") or ""
    folders = (Path(built_for), interpreter.parent.parent / "lib")
    return [folder / name for folder in folders if (folder / name).is_file()]


def _without_nested(shown: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Leave out what a shown folder contains anyway."""
    roots = [inside for _, inside in shown]
    return [
        (outside, inside)
        for outside, inside in shown
        if not any(inside != root and Path(inside).is_relative_to(root) for root in roots)
    ]


@cache
def engine_archive() -> bytes:
    """The parts of the engine that a bot's process imports, compiled, as one zip file.

    Compiled here once rather than in each child, which may find no cached files and can write none.
    """
    engine = Path(__file__).resolve().parent.parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for part in ENGINE_PARTS:
            for path in sorted((engine / part).glob("*.py")) or [engine / part]:
                name = f"engine/{path.relative_to(engine).as_posix()}"
                archive.writestr(f"{name}c", _compile(path, f"{CODE_FOLDER}/{name}"))
    return buffer.getvalue()


def _compile(path: Path, name: str) -> bytes:
    """A ``.pyc`` that is taken as it is; `name` is what tracebacks show."""
    code = compile(path.read_bytes(), name, "exec", dont_inherit=True)
    is_not_checked = (1).to_bytes(4, "little") + bytes(8)
    return importlib.util.MAGIC_NUMBER + is_not_checked + marshal.dumps(code)


def _packages() -> list[tuple[str, str]]:
    """The provided packages, each with the shared libraries that its wheel lays beside it."""
    shown = []
    for name in PROVIDED_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SandboxUnavailableError([f"the package {name} cannot be found"])
        folder = Path(spec.submodule_search_locations[0])
        libraries = folder.with_name(f"{name}.libs")
        shown += [
            (str(path), f"{CODE_FOLDER}/{path.name}")
            for path in (folder, libraries)
            if path.is_dir()
        ]
    return shown
