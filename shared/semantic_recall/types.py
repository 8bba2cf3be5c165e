"""The values that travel through the library: frozen, without I/O."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import InvalidIdError, InvalidOptionError, InvalidScopeError

Vector: TypeAlias = NDArray[np.float32]
"""One embedding, shape (dimensions,), float32."""

ScopeKind: TypeAlias = Literal["resource", "thread"]
Ranking: TypeAlias = Literal["hybrid", "dense"]

MAX_ID_LENGTH = 1024


def check_id(value: object, what: str) -> str:
    """Return `value` if it can be an id.

    Raises:
        InvalidIdError: It is not a string, empty, or longer than 1,024 characters.
    """
    if not isinstance(value, str):
        raise InvalidIdError(f"{what} must be a string, not {type(value).__name__}: {value!r}")
    if 0 < len(value) <= MAX_ID_LENGTH:
        return value
    if not value:
        raise InvalidIdError(f"{what} is empty; give a non-empty id or leave it out")
    raise InvalidIdError(f"{what} has {len(value)} characters; at most {MAX_ID_LENGTH} fit")


def as_utc(moment: datetime) -> datetime:
    """Return `moment` in UTC; a naive one is taken as UTC."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat message.

    Raises:
        InvalidIdError: An id is empty, too long or not a string.
    """

    role: str
    """"user", "assistant", "system", "tool" or any other non-empty word."""
    text: str
    """What is embedded, searched and shown; may be empty (an image, a bare tool call)."""
    thread_id: str
    resource_id: str | None = None
    """Owner of the thread (user, tenant); the thread's key is (resource_id, thread_id)."""
    id: str = field(default_factory=_new_id)
    """Unique inside its thread; storing the same id again replaces the message in place."""
    name: str | None = None
    """The speaker, when the role alone does not say it."""
    created_at: datetime = field(default_factory=_now)
    """Aware, UTC; a naive value is taken as UTC. Never used for order inside a thread."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for `filter=`."""
    payload: Mapping[str, Any] | None = None
    """The framework's own form of the message, JSON values, given back unread."""

    def __post_init__(self) -> None:
        check_id(self.thread_id, "thread_id")
        check_id(self.id, "message id")
        check_id(self.role, "role")
        if self.resource_id is not None:
            check_id(self.resource_id, "resource_id")
        if self.created_at.tzinfo is not timezone.utc:
            object.__setattr__(self, "created_at", as_utc(self.created_at))


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search may see: all threads of one resource, or one thread.

    `Scope(resource_id="u1")` is a resource; `Scope("u1", "t1")` is one thread of it;
    `Scope(None, "t1")` is the thread t1 that belongs to no resource. Ids are compared exactly.

    Raises:
        InvalidScopeError: Neither id was given.
        InvalidIdError: An id is empty, too long or not a string.
    """

    resource_id: str | None
    thread_id: str | None = None

    def __post_init__(self) -> None:
        if self.resource_id is None and self.thread_id is None:
            raise InvalidScopeError("a scope needs a resource_id, a thread_id or both")
        if self.resource_id is not None:
            check_id(self.resource_id, "resource_id")
        if self.thread_id is not None:
            check_id(self.thread_id, "thread_id")

    @classmethod
    def of(cls, kind: ScopeKind, *, resource_id: str | None, thread_id: str | None) -> Scope:
        """Return the scope that `kind` names.

        Raises:
            InvalidScopeError: The id that `kind` needs is missing, or `kind` is unknown.
        """
        if kind == "resource":
            if resource_id is None:
                raise InvalidScopeError(
                    'scope="resource" needs a resource_id; pass one, or use scope="thread"'
                )
            return cls(resource_id)
        if kind == "thread":
            if thread_id is None:
                raise InvalidScopeError('scope="thread" needs a thread_id')
            return cls(resource_id, thread_id)
        raise InvalidScopeError(f'scope must be "resource" or "thread", not {kind!r}')


@dataclass(frozen=True, slots=True)
class MessageRange:
    """How many neighbours each hit brings from its own thread."""

    before: int = 1
    after: int = 1

    def __post_init__(self) -> None:
        for side in (self.before, self.after):
            if not isinstance(side, int) or isinstance(side, bool) or side < 0:
                raise InvalidOptionError(f"message_range takes whole numbers >= 0, not {side!r}")

    @classmethod
    def of(cls, value: int | tuple[int, int] | MessageRange) -> MessageRange:
        """Return the range that a number (both sides) or a pair (before, after) means."""
        if isinstance(value, MessageRange):
            return value
        if isinstance(value, tuple):
            if len(value) != 2:
                raise InvalidOptionError(f"message_range takes (before, after), not {value!r}")
            return cls(*value)
        return cls(value, value)


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The space that an embedder's vectors live in; vectors of two spaces never mix."""

    name: str
    """The embedder's fingerprint: model, version and whatever changes the vectors."""
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRecord:
    """One vector for a vector index."""

    id: str
    scope: Scope
    """Always a thread: resource (or None) and thread."""
    vector: Vector


@dataclass(frozen=True, slots=True)
class Hit:
    """One vector that an index found."""

    id: str
    score: float
    """Cosine similarity, -1 to 1, higher is nearer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMessage:
    """One message that recall brings back."""

    message: Message
    is_hit: bool
    """False for a neighbour that came with a hit."""
    score: float | None = None
    """What it was ranked by; None for a neighbour that could not be searched. With a reranker, what
    the reranker said of a hit; None for neighbours."""
    dense: float | None = None
    """Cosine similarity to the query, -1 to 1; None without a vector."""
    lexical: float | None = None
    """BM25 score, >= 0; None where it was not searched."""
    source: Literal["memory"] = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadInfo:
    """One thread in a listing."""

    thread_id: str
    resource_id: str | None
    messages: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceInfo:
    """One resource in a listing; `resource_id` None holds the threads without one."""

    resource_id: str | None
    threads: int
    messages: int
