"""The format that the docs add as an example, made from the page as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

from engine.formats import Format

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
MODULE = "documented_format"


def documented_format() -> Format:
    """An instance of the example's class. It is a module of its own, as it would be in the engine."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "(Format):" in block]
    module = ModuleType(MODULE)
    sys.modules[MODULE] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    (made,) = [
        value()
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Format) and value.__module__ == MODULE
    ]
    return made
