"""The options of a format: described for a form, read from what an organiser gave, and checked."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.errors import FormatError
from engine.standings import DEFAULT_ORDER, TieBreak


class FormatOption(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a format, described well enough to build a form or an error message from."""

    name: str
    default: object
    choices: tuple[object, ...] = ()
    """The values it takes; empty where any integer from `minimum` to `maximum` will do."""
    is_list: bool = False
    """Whether it takes several of the choices, each once, and their order matters."""
    minimum: int | None = None
    maximum: int | None = None
    doc: str = ""


def tie_breaks_option(table: str = "the table") -> FormatOption:
    """The option `tie_breaks`; `table` says in a sentence what it orders."""
    return FormatOption(
        name="tie_breaks",
        default=DEFAULT_ORDER,
        choices=tuple(TieBreak),
        is_list=True,
        doc=f"What {table} is ordered by; the score comes first.",
    )


def check_options(
    name: str, options: tuple[FormatOption, ...], given: Mapping[str, object] | None
) -> dict[str, object]:
    """Every option with its given or default value, each checked by itself.

    Texts are read as the option's own kind of value, a list as its choices between commas. Raises
    FormatError for an unknown option or a value that it does not take, naming what is allowed.
    """
    known = {option.name: option for option in options}
    for unknown in sorted(set(given or {}) - set(known)):
        raise FormatError(
            f"{name} has no option {unknown!r}; it has: {', '.join(sorted(known)) or 'none'}"
        )
    return {
        option.name: _check_value(name, option, given[option.name])
        if given and option.name in given
        else option.default
        for option in options
    }


def _check_value(name: str, option: FormatOption, value: object) -> object:
    if option.is_list:
        return _check_list(name, option, value)
    read = _read_text(option, value) if isinstance(value, str) else value
    if option.choices:
        for choice in option.choices:
            if type(choice) is type(read) and choice == read:
                return choice
        raise _refuse(name, option, value, ", ".join(map(_spell, option.choices)))
    low, high = option.minimum, option.maximum
    if type(read) is int and (low is None or read >= low) and (high is None or read <= high):
        return read
    if read is None and option.default is None:
        return None
    allowed = f"a whole number from {low}" + ("" if high is None else f" to {high}")
    raise _refuse(name, option, value, allowed)


def _check_list(name: str, option: FormatOption, value: object) -> tuple[object, ...]:
    items = value.split(",") if isinstance(value, str) else value
    allowed = "each at most once, of " + ", ".join(map(_spell, option.choices))
    if not isinstance(items, list | tuple):
        raise _refuse(name, option, value, allowed)
    read = [_read_text(option, item) if isinstance(item, str) else item for item in items]
    if any(item not in option.choices for item in read) or len(set(read)) < len(read):
        raise _refuse(name, option, value, allowed)
    return tuple(choice for item in read for choice in option.choices if choice == item)


def _refuse(name: str, option: FormatOption, value: object, allowed: str) -> FormatError:
    return FormatError(
        f"{option.name}={_spell(value)} is not allowed in {name}; allowed: {allowed}"
    )


_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "none": None}


def _read_text(option: FormatOption, raw: str) -> object:
    text = raw.strip().lower()
    for choice in option.choices:
        if isinstance(choice, str) and choice.lower() == text:
            return choice
    if text in _WORDS:
        return _WORDS[text]
    if text.isascii() and text.removeprefix("-").isdecimal() and len(text) < 19:
        return int(text)
    return raw


def _spell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(_spell, value))
    return "null" if value is None else str(value)
