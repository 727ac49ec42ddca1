"""The one bot that a wheel declares in its ``entry_points.txt``, read as text and never loaded."""

from __future__ import annotations

import configparser
import keyword
import re
from collections.abc import Iterator, Mapping

from engine.record import BOT_NAME
from engine.sdk import ENTRY_POINT_GROUP
from engine.wheels.reasons import BUILD_ADVICE, quote

MAX_LINE_LENGTH = 500
"""The parser's regular expressions take the square of a line's length."""
MAX_LINES = 1000
"""Each section takes the parser time and memory."""
_EXAMPLE = f'[project.entry-points."{ENTRY_POINT_GROUP}"] my-bot = "my_bot"'
_ENTRY_POINT = re.compile(
    r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)(:(?P<attribute>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*))?",
    re.ASCII,
)


def read_entry_point(
    name: str, text: str | None, files: Mapping[str, bytes]
) -> tuple[tuple[str, str] | None, list[str]]:
    """The bot's name and its entry point, and what is wrong with them.

    `text` is that of the file `name`, None if there is no such file.
    """
    if text is None:
        return None, [f"it declares no bot; write into pyproject.toml: {_EXAMPLE}"]
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        return None, [f"{name} has {len(lines)} lines; at most {MAX_LINES} are allowed"]
    odd = [number for number, line in enumerate(lines, start=1) if not _is_plain(line)]
    if odd:
        what = f"control characters, or more than {MAX_LINE_LENGTH} of any"
        return None, [f"{name}: line {odd[0]} has {what}; {BUILD_ADVICE}"]
    parser = configparser.ConfigParser(
        delimiters=("=",), comment_prefixes=("#", ";"), interpolation=None, default_section="\0"
    )
    parser.optionxform = str  # type: ignore[method-assign, assignment]  # names keep their case
    try:
        parser.read_string("\n".join(lines), source=name)
        entries = dict(parser[ENTRY_POINT_GROUP]) if ENTRY_POINT_GROUP in parser else {}
    except (configparser.DuplicateOptionError, configparser.DuplicateSectionError) as error:
        return None, [f"{name}: line {error.lineno} says a second time what is said above it"]
    except configparser.Error:
        return None, [f"{name} cannot be read; {BUILD_ADVICE}"]
    if len(entries) != 1:
        found = ", ".join(map(_shown, sorted(entries)[:10])) or "none"
        return None, [f"a wheel holds exactly one bot; this declares: {found}; write: {_EXAMPLE}"]
    ((bot, value),) = entries.items()
    return (bot, value), list(_reasons(bot, value, files))


def _is_plain(line: str) -> bool:
    return len(line) <= MAX_LINE_LENGTH and line.replace("\t", " ").isprintable()


def _shown(bot: str) -> str:
    return bot if BOT_NAME.fullmatch(bot) else quote(bot)


def _reasons(bot: str, value: str, files: Mapping[str, bytes]) -> Iterator[str]:
    if not BOT_NAME.fullmatch(bot):
        yield (
            f"the bot's name {quote(bot)} must be 2 to 32 of a-z, 0-9, _ and -, "
            "beginning with a letter"
        )
    match = _ENTRY_POINT.fullmatch(value)
    if match is None:
        yield f"the entry point {quote(value)} must be written module or module:attribute"
        return
    names = f"{match['module']}.{match['attribute'] or ''}".split(".")
    if any(map(keyword.iskeyword, names)):
        yield f"the entry point {quote(value)} has a keyword of Python for a name: rename it"
    path = match["module"].replace(".", "/")
    if f"{path}.py" not in files and f"{path}/__init__.py" not in files:
        yield f"the entry point names the module {match['module']}, which is not in the wheel"
