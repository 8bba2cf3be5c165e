"""The values that stores, indexes and the core hand to each other.

A store works with *keys*: a whole number per message, unique in the store, growing in the order
of insertion and never used twice. Inside a thread the order of keys is the order of messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from semantic_recall.types import Message, Scope, VectorSpace


class Part(IntEnum):
    """What part a stored message can play in a recall."""

    HIDDEN = 0
    """Never recalled: tool messages, system messages, messages without text."""
    CONTEXT = 1
    """Comes only as a neighbour of a hit."""
    SEARCHABLE = 2
    """Embedded and searched; can be a hit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """A message with what the core has worked out about it."""

    message: Message
    part: Part
    terms: NDArray[np.uint32]
    """Hashed search terms with repetitions, in text order; empty unless SEARCHABLE."""
    digest: bytes
    """16 bytes that name the indexed text; equal texts have equal digests."""


class Stored(NamedTuple):
    """What became of one record of `add`."""

    key: int
    changed: bool
    """True when the message is new or its digest or part differs from what was stored."""
    embedded: bool = False
    """True when it changed and its vectors came with it."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of texts, to be stored together with the messages that have these texts."""

    space: VectorSpace
    vectors: Mapping[bytes, NDArray[np.float32]]
    """Digest to vectors, shape (chunks, dimensions), at least one chunk."""


@dataclass(frozen=True, slots=True)
class MessageVectors:
    """The vectors of one message: one per chunk of its text, at least one."""

    key: int
    digest: bytes
    vectors: NDArray[np.float32]
    """Shape (chunks, dimensions)."""


@dataclass(frozen=True, slots=True)
class PendingMessage:
    """A message that waits for its vectors."""

    key: int
    digest: bytes
    message: Message
    attempts: int


@dataclass(frozen=True, slots=True)
class IndexOperation:
    """One change that the vector index has not seen yet."""

    id: int
    """Grows in the order in which the operations must be applied."""
    kind: Literal["upsert", "delete"]
    space: VectorSpace
    scope: Scope
    """The message's thread."""
    key: int
    vectors: NDArray[np.float32]
    """Shape (chunks, dimensions); (0, dimensions) for a delete and for a message gone since."""
    chunks: int
    """How many vectors an earlier upsert may have written: all of them are replaced."""


class ScopeState(NamedTuple):
    """A cheap look at a scope, to know whether what is in memory still holds."""

    version: int
    """Grows with every committed change in the scope's resource, by any process."""
    messages: int
    """How many messages of the scope are not HIDDEN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRows:
    """The recallable (not HIDDEN) messages of a scope as arrays, ordered by key; n messages."""

    version: int
    """The state of the scope that these rows show."""
    keys: NDArray[np.int64]
    """(n,)"""
    threads: NDArray[np.int64]
    """(n,) a number per thread, stable for the life of the store."""
    created_at: NDArray[np.int64]
    """(n,) microseconds since 1970 in UTC."""
    searchable: NDArray[np.bool_]
    """(n,)"""
    roles: Sequence[str]
    """(n,)"""
    digests: NDArray[np.int64]
    """(n,) the first 8 bytes of each digest, little endian."""
    terms: NDArray[np.uint32]
    """The hashed terms of all messages, one after the other."""
    term_counts: NDArray[np.int64]
    """(n,) how many of `terms` belong to each message."""
    vector_keys: NDArray[np.int64]
    """(m,) the message of each vector, ascending; a message has 0 to many."""
    vectors: NDArray[np.float32]
    """(m, dimensions), as stored (not normalised); (0, 0) without a space."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What a deletion removed."""

    messages: int
    threads: int
    vectors: int
    keys: Sequence[int]
    """The keys of the messages, for `remains`."""


@dataclass(frozen=True, slots=True)
class SpaceInfo:
    """A vector space that the store knows."""

    space: VectorSpace
    active: bool
    """Recall uses the one active space; others are being built by a reindex."""
    vectors: int
    pending: int


_VECTOR_ID = re.compile(r"([0-9]{1,18})\.[0-9]{1,9}")


def vector_id(key: int, chunk: int) -> str:
    """Return the id under which a vector index knows one chunk of a message."""
    return f"{key}.{chunk}"


def vector_key(id: str) -> int:
    """Return the message key in a vector id.

    Raises:
        ValueError: The id was not made by `vector_id`.
    """
    made = _VECTOR_ID.fullmatch(id) if isinstance(id, str) else None
    if made is None:
        raise ValueError(f"{id!r} is not the id of a vector")
    return int(made[1])


Progress = Callable[[int, int], None]
"""Called as work goes on, with (done, total)."""
