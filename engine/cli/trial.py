"""Starts one installed bot in this process, which does nothing else: ``python -m engine.cli.trial``.

Reads a BotSource as JSON from stdin and writes a Trial as JSON to stdout.
"""

from __future__ import annotations

import os
import sys

import msgspec

from engine.agents import BotSource, in_process_factory
from engine.cli.installed import try_bot


def main() -> None:
    """Try the bot; what it prints cannot get between the answer."""
    answer = os.dup(1)
    os.dup2(2, 1)
    source = msgspec.json.decode(sys.stdin.buffer.read(), type=BotSource)
    trial = msgspec.json.encode(try_bot(source, in_process_factory))
    with os.fdopen(answer, "wb") as pipe:
        pipe.write(trial)


if __name__ == "__main__":
    main()
