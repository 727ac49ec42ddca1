"""The errors of players and bots. Each message says what to change.

::

    UsageError                       (engine)
    ├── AccountError                 an account that cannot be made so (carries a message per field)
    ├── TokenError                   a token that does not let in
    └── SubmissionError              a bot or version that cannot be taken or changed so
        ├── NameTakenError           the bot's name belongs to someone else, or is reserved
        ├── VersionExistsError       this version exists with other contents
        └── QuotaError               more uploads than a player may have
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.errors import UsageError


class AccountError(UsageError):
    """An account that cannot be made so; `fields` has the messages by field."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        super().__init__("; ".join(message for messages in fields.values() for message in messages))
        self.fields = {name: tuple(messages) for name, messages in fields.items()}


class TokenError(UsageError):
    """A token that does not let in; which part of it is wrong is not said."""


class SubmissionError(UsageError):
    """A bot or version that cannot be taken, or changed, so."""


class QuotaError(SubmissionError):
    """More uploads than a player may have waiting, or within a day; the message says which."""


class NameTakenError(SubmissionError):
    """The bot's name belongs to someone else, or is reserved."""

    def __init__(self, bot: str, why: str) -> None:
        super().__init__(
            f"the bot name {bot!r} {why}: choose another name for the entry point "
            "in the group domino_arena.bots of your pyproject.toml"
        )
        self.bot = bot


class VersionExistsError(SubmissionError):
    """This version exists with other contents."""

    def __init__(self, bot: str, version: str) -> None:
        super().__init__(
            f"{bot} {version} was submitted before with other contents: raise the version number"
        )
        self.bot = bot
        self.version = version
