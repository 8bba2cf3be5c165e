"""Work that is still to do: messages without vectors, and changes for the vector index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, insert, select, update

from semantic_recall.stores._lists import among, insert_missing, one_per_message
from semantic_recall.stores._schema import (
    messages,
    outbox,
    pending,
    resources,
    spaces,
    threads,
    vectors,
)
from semantic_recall.stores._scopes import with_ids
from semantic_recall.stores._statements import Statement, Transaction


class Change(NamedTuple):
    """One message's vectors in one space, written or removed."""

    space_key: int
    key: int
    chunks: int
    resource_id: str
    thread_id: str


def stored(*columns: ColumnElement[Any]) -> Select[Any]:
    """Return a select of messages with vectors and their owners, one row per message and space."""
    owned = select(*columns).join_from(vectors, messages, messages.c.key == vectors.c.key)
    return with_ids(owned).where(one_per_message()).order_by(vectors.c.key)


CHANGE = (
    vectors.c.space_key,
    vectors.c.key,
    vectors.c.chunks,
    resources.c.resource_id,
    threads.c.thread_id,
)
"""The columns of a `Change`."""
QUEUED = ("kind", "space_key", "key", "chunks", "resource_id", "thread_id")
"""The columns of the queue."""
_STORED = Statement(
    stored(*CHANGE).where(among(vectors.c.key, "keys")).order_by(vectors.c.space_key)
)
_DELETE_VECTORS = Statement(vectors.delete().where(among(vectors.c.key, "keys")))
_DELETE_PENDING = Statement(
    pending.delete().where(
        pending.c.space_key.in_(select(spaces.c.key)), among(pending.c.key, "keys")
    )
)
_COUNT = Statement(
    update(spaces)
    .where(spaces.c.key == bindparam("at"))
    .values(vectors=spaces.c.vectors + bindparam("n"))
)


def drop_vectors(tx: Transaction, keys: Sequence[int], *, outbox: bool) -> int:
    """Remove the vectors and pending work of messages and, with `outbox`, queue that.

    The messages must still be there. Returns the number of vectors.
    """
    if not keys:
        return 0
    wanted = tx.listed(keys)
    changes = [Change(*row) for row in tx.all(_STORED, keys=wanted)]
    tx.run(_DELETE_PENDING, keys=wanted)
    if not changes:
        return 0
    tx.run(_DELETE_VECTORS, keys=wanted)
    if outbox:
        push(tx, "delete", changes)
    removed: Counter[int] = Counter()
    for change in changes:
        removed[change.space_key] -= change.chunks
    count_vectors(tx, removed)
    return sum(change.chunks for change in changes)


def count_vectors(tx: Transaction, differences: Counter[int]) -> None:
    """Change the numbers of vectors per space by these differences."""
    tx.many(_COUNT, [{"at": key, "n": n} for key, n in differences.items() if n])


_SPACE_KEYS = Statement(select(spaces.c.key))
_REQUIRE = insert_missing(pending, ("space_key", "key", "attempts", "due_at"))


def require(tx: Transaction, keys: Sequence[int], *, done: Collection[tuple[int, int]]) -> None:
    """Make messages pending in every known space but where (message, space) is done."""
    if not keys:
        return
    rows = [
        {"space_key": space_key, "key": key, "attempts": 0, "due_at": 0.0}
        for (space_key,) in tx.all(_SPACE_KEYS)
        for key in keys
        if (key, space_key) not in done
    ]
    tx.many(_REQUIRE, rows)


_QUEUED = Statement(
    select(outbox.c.key, outbox.c.space_key, outbox.c.chunks).where(among(outbox.c.key, "keys"))
)
_UNQUEUE = Statement(
    outbox.delete().where(
        outbox.c.key == bindparam("a_key"), outbox.c.space_key == bindparam("a_space")
    )
)
_QUEUE = Statement(insert(outbox), QUEUED)


def push(
    tx: Transaction,
    kind: Literal["upsert", "delete"],
    changes: Sequence[Change],
    *,
    new: Collection[int] = (),
) -> None:
    """Queue operations for the vector index, each in place of an older one of its message.

    `chunks` only grows while an operation waits: it bounds what any earlier one may have written.
    None waits for `new` messages, which need no look.
    """
    older = [change.key for change in changes if change.key not in new]
    found = tx.all(_QUEUED, keys=tx.listed(older)) if older else ()
    waiting = {(key, space_key): chunks for key, space_key, chunks in found}
    replaced = [
        {"a_key": change.key, "a_space": change.space_key}
        for change in changes
        if (change.key, change.space_key) in waiting
    ]
    tx.many(_UNQUEUE, replaced)
    tx.many(
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
