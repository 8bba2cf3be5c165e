"""Work that is still to do: messages without vectors, and changes for the vector index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, bindparam, insert, select, update

from semantic_recall.stores._schema import (
    messages,
    outbox,
    pending,
    resources,
    spaces,
    threads,
    vectors,
)
from semantic_recall.stores._sqlite import among, insert_missing, listed


@dataclass(frozen=True, slots=True)
class Change:
    """One message's vectors in one space, written or removed."""

    space_key: int
    key: int
    chunks: int
    resource_id: str
    thread_id: str


_STORED = (
    select(
        vectors.c.space_key,
        vectors.c.key,
        vectors.c.chunks,
        resources.c.resource_id,
        threads.c.thread_id,
    )
    .select_from(vectors)
    .join(messages, messages.c.key == vectors.c.key)
    .join(threads, threads.c.key == messages.c.thread_key)
    .join(resources, resources.c.key == messages.c.resource_key)
    .where(among(vectors.c.key, "keys"))
)
_DELETE_VECTORS = vectors.delete().where(among(vectors.c.key, "keys"))
_DELETE_PENDING = pending.delete().where(
    pending.c.space_key.in_(select(spaces.c.key)), among(pending.c.key, "keys")
)
_COUNT = (
    update(spaces)
    .where(spaces.c.key == bindparam("at"))
    .values(vectors=spaces.c.vectors + bindparam("n"))
)


def drop_vectors(connection: Connection, keys: Sequence[int]) -> int:
    """Remove the vectors and pending work of messages and queue that for the index.

    The messages must still be there. Returns the number of vectors.
    """
    if not keys:
        return 0
    wanted = {"keys": listed(keys)}
    changes = [Change(*row) for row in connection.execute(_STORED, wanted)]
    connection.execute(_DELETE_PENDING, wanted)
    if not changes:
        return 0
    connection.execute(_DELETE_VECTORS, wanted)
    push(connection, "delete", changes)
    removed: Counter[int] = Counter()
    for change in changes:
        removed[change.space_key] -= change.chunks
    count_vectors(connection, removed)
    return sum(change.chunks for change in changes)


def count_vectors(connection: Connection, differences: Counter[int]) -> None:
    """Change the numbers of vectors per space by these differences."""
    rows = [{"at": key, "n": n} for key, n in differences.items() if n]
    if rows:
        connection.execute(_COUNT, rows)


_SPACE_KEYS = select(spaces.c.key)


def require(connection: Connection, keys: Sequence[int]) -> None:
    """Make messages pending in every known space."""
    if not keys:
        return
    rows = [
        {"space_key": space_key, "key": key, "attempts": 0, "due_at": 0.0}
        for space_key in connection.execute(_SPACE_KEYS).scalars().all()
        for key in keys
    ]
    if rows:
        connection.execute(insert_missing(pending), rows)


_QUEUED = select(outbox.c.key, outbox.c.space_key, outbox.c.chunks).where(
    among(outbox.c.key, "keys")
)
_UNQUEUE = outbox.delete().where(
    outbox.c.key == bindparam("a_key"), outbox.c.space_key == bindparam("a_space")
)
_QUEUE = insert(outbox)


def push(
    connection: Connection, kind: Literal["upsert", "delete"], changes: Sequence[Change]
) -> None:
    """Queue operations for the vector index, each in place of an older one of its message.

    `chunks` only grows while an operation waits: it bounds what any earlier one may have written.
    """
    found = connection.execute(_QUEUED, {"keys": listed(change.key for change in changes)})
    waiting = {(key, space_key): chunks for key, space_key, chunks in found}
    replaced = [
        {"a_key": change.key, "a_space": change.space_key}
        for change in changes
        if (change.key, change.space_key) in waiting
    ]
    if replaced:
        connection.execute(_UNQUEUE, replaced)
    connection.execute(
        _QUEUE,
        [
            {
                "kind": kind,
                "space_key": change.space_key,
                "key": change.key,
                "chunks": max(change.chunks, waiting.get((change.key, change.space_key), 0)),
                "resource_id": change.resource_id,
                "thread_id": change.thread_id,
            }
            for change in changes
        ],
    )
