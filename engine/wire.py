"""The messages that cross the wall between the referee and a bot's process. Protocol ``arena-bot/1``.

A message is one packet of an ``AF_UNIX SOCK_SEQPACKET`` socket, so half a message cannot exist. Its
bytes are MessagePack of one of the structs below. The referee's side trusts nothing that it reads:
unknown fields, other types and numbers out of range are refused by `decode_reply`. What it does with
the messages is `engine.sandbox.agent`'s affair; this module must not know processes.

The conversation::

    referee  Walls                       child raises the walls around itself
    child    Hello                       the last word of trusted code: now the bot may be imported
    referee  Start
    child    Ready | Declined | Crashed
    referee  BeginGame                   no answer; the bot sees it with its next turn
    referee  Turn
    child    Answer | Illegal | Nonsense | Crashed

Where children are forks of a zygote, a second socket leads there, which no child keeps::

    zygote   Hello                       it is ready to fork
    referee  Fork                        with the child's three files
    referee  Kill
    zygote   Ended                       the child is dead, and its pid is free
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from engine.sdk.timecontrol import TimeControl

REQUEST_BYTES = 64 * 1024
"""No message to a bot is longer."""
ANSWER_BYTES = 4096
"""No message to the referee may be longer."""

ObservationT = TypeVar("ObservationT")
Counter = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
ShortText = Annotated[str, msgspec.Meta(max_length=200)]


class _Message(
    msgspec.Struct,
    frozen=True,
    array_like=True,
    gc=False,
    forbid_unknown_fields=True,
    tag=str.lower,
):
    """One packet: an array of the struct's name in lower case and its fields in order."""


class Walls(_Message, frozen=True):
    """What the child does to itself before any code of a bot is near."""

    seccomp: bytes
    """The compiled filter: packed ``struct sock_filter``."""
    rlimits: dict[str, int]
    """Names of the `resource` module to values, soft and hard alike."""
    landlock_abi: int
    """The version of Landlock to use; 0 where the kernel has none."""
    readable: tuple[str, ...]
    """All files and folders that Landlock leaves to be read."""


class Start(_Message, frozen=True):
    """Import the bot and make its strategy."""

    game: str
    ruleset: msgspec.Raw
    players: int
    time_control: TimeControl
    folder: str
    entry_point: str


class BeginGame(_Message, frozen=True):
    """A game begins. `turn` is the number of the next turn: a crash in here echoes it."""

    turn: int
    seat: int
    players: tuple[str, ...]
    random_seed: bytes
    """32 bytes, big-endian: MessagePack has no integers of 256 bits."""
    number: int


class Turn(_Message, Generic[ObservationT], frozen=True):
    """Choose one of the observation's legal actions. `turn` counts the questions of one process from 1."""

    turn: int
    deal: int
    action: int
    """The number of the action in its deal: a mark for the log."""
    move: int
    """Counts the seat's own actions in its game from 1, forced ones too: a mark for the log."""
    observation: ObservationT


class Fork(_Message, frozen=True):
    """Make a child, which gets the files that come with this: channel, log, traceback.

    Nothing else: what a child must know it reads from its own channel, so that no fork remembers another's.
    """

    number: int
    """What the child is called from now on."""


class Kill(_Message, frozen=True):
    """End that child, if it has not ended."""

    number: int


class Ended(_Message, frozen=True):
    """That child is dead."""

    number: int
    status: int
    """Its exit status; 128 + signal if one killed it."""


class Hello(_Message, frozen=True):
    """The walls stand. With it come the sender's credentials."""


class Ready(_Message, frozen=True):
    """The strategy is made."""


class Declined(_Message, frozen=True):
    """The bot does not play this game, ruleset or number of players."""


class Answer(_Message, frozen=True):
    """The index of the chosen action among the legal ones."""

    turn: Counter
    index: Counter


class Illegal(_Message, frozen=True):
    """The bot chose an action of the game that is not legal here."""

    turn: Counter
    action: ShortText


class Nonsense(_Message, frozen=True):
    """The bot chose something that is no action of the game."""

    turn: Counter
    kind: ShortText
    """The name of its type."""


class Crashed(_Message, frozen=True):
    """The bot raised; the traceback lies in its own part of the log."""

    turn: Counter
    error: ShortText
    """The name of the exception's type."""
    out_of_memory: bool


Request = Walls | Start | BeginGame | Turn[Any]
Order = Fork | Kill
News = Hello | Ended
Reply = Hello | Ready | Declined | Answer | Illegal | Nonsense | Crashed

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Walls | Start] = msgspec.msgpack.Decoder(Walls | Start)
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
_news: msgspec.msgpack.Decoder[News] = msgspec.msgpack.Decoder(News)
_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


pack_into = _encoder.encode_into
"""As `encode`, but into a bytearray, which then holds that message alone: no new memory for each one."""


class UnreadableMessageError(ValueError):
    """A packet that is no message of this protocol."""


def encode(message: Request | Reply | Order | News) -> bytes:
    """The packet of a message; an observation in it need not be encoded before."""
    return _encoder.encode(message)


def encode_value(value: object) -> msgspec.Raw:
    """A ruleset, to put into a message."""
    return msgspec.Raw(_encoder.encode(value))


def decode_request(packet: bytes) -> Walls | Start:
    """Read what the referee sends before the first game."""
    return _requests.decode(packet)


@cache
def turns_of(observation_type: type[Any]) -> msgspec.msgpack.Decoder[BeginGame | Turn[Any]]:
    """Reads what the referee sends from the first game on, where that is what a seat sees."""
    return msgspec.msgpack.Decoder(BeginGame | Turn[observation_type])  # type: ignore[valid-type]


def decode_order(packet: bytes) -> Order:
    """Read what a zygote is told."""
    return _orders.decode(packet)


def decode_news(packet: bytes) -> News:
    """Read what a zygote tells."""
    return _news.decode(packet)


def decode_reply(packet: bytes | memoryview) -> Reply:
    """Read what a bot's process sent. Raises UnreadableMessageError for all that is no reply, whatever it is."""
    if len(packet) > ANSWER_BYTES:
        raise UnreadableMessageError(f"a message longer than {ANSWER_BYTES} bytes")
    try:
        return _replies.decode(packet)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableMessageError("a message that is none of the protocol") from error
