"""What goes between a process and the one that runs its index, and how it is written to a pipe.

Each message is its length, as 8 bytes, and a pickle. Both ends are this library, in one version.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Request:
    """A call of a method of the index."""

    number: int
    method: str
    arguments: Sequence[object]
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """An error that a call ended with."""

    kind: str
    """The name of its class in `semantic_recall.errors`."""
    text: str
    trace: str


@dataclass(frozen=True)
class Answer:
    """What a call returned, or how it failed."""

    number: int
    value: object


@dataclass(frozen=True)
class LogLine:
    """What was logged in the other process."""

    logger: str
    level: int
    text: str


def packed(message: Request | Answer | LogLine) -> bytes:
    """Return a message as it is written."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


def write(pipe: IO[bytes], message: bytes) -> None:
    """Write a packed message to an unbuffered pipe.

    Raises:
        OSError: Nobody reads any more.
    """
    rest = memoryview(message)
    while rest:
        rest = rest[pipe.write(rest) :]


def read(pipe: IO[bytes]) -> object:
    """Return the next message from an unbuffered pipe; None at its end, also within a message."""
    length = _exactly(pipe, _LENGTH.size)
    body = None if length is None else _exactly(pipe, _LENGTH.unpack(length)[0])
    return None if body is None else pickle.loads(body)


def _exactly(pipe: IO[bytes], size: int) -> bytearray | None:
    data = bytearray()
    while len(data) < size:
        part = pipe.read(min(size - len(data), 2**20))
        if not part:
            return None
        data += part
    return data
