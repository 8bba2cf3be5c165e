"""Vectors, the spaces they live in, and the queue of the vector index."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, select, update

from semantic_recall.records import IndexOperation, MessageVectors, Part, PendingMessage
from semantic_recall.stores import _scopes
from semantic_recall.stores._backend import NewVectors
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import among, one_per_message
from semantic_recall.stores._messages import MESSAGE, to_message
from semantic_recall.stores._schema import (
    chunk_rows,
    messages,
    outbox,
    pending,
    resources,
    spaces,
    threads,
    vectors,
)
from semantic_recall.stores._spaces import require_space, space_key
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.stores._text import unescape
from semantic_recall.stores._writing_vectors import Owned, check_shape, write_vectors
from semantic_recall.types import VectorSpace


class Vectors(UsesDatabase):
    """The part of the store that keeps vectors and what is still to do about them."""

    @retried
    def set_vectors(self, space: VectorSpace, vectors: Sequence[MessageVectors], /) -> int:
        """See `MessageStore.set_vectors`."""
        wanted = {item.key: item for item in vectors}
        for item in wanted.values():
            check_shape(item.vectors, space, f"message {item.key}")
        if not wanted:
            return 0
        with self._db.derive() as tx:
            return _set_vectors(tx, require_space(tx, space), wanted, outbox=self._outbox)

    @retried
    def find_vectors(
        self, space: VectorSpace, digests: Sequence[bytes], /
    ) -> dict[bytes, NDArray[np.float32]]:
        """See `MessageStore.find_vectors`."""
        with self._db.read() as tx:
            key = space_key(tx, space)
            if key is None:
                return {}
            return tx.backend.vector_rows.by_digests(tx, key, digests, space.dimensions)

    @retried
    def pending(
        self, space: VectorSpace, /, *, limit: int, due_only: bool = True
    ) -> list[PendingMessage]:
        """See `MessageStore.pending`."""
        due = time.time() if due_only else float("inf")
        with self._db.read() as tx:
            key = space_key(tx, space)
            rows = tx.all(_PENDING, space=key, due=due, n=limit)
        return [PendingMessage(row[-3], row[-2], to_message(row), row[-1]) for row in rows]

    @retried
    def postpone(self, space: VectorSpace, keys: Sequence[int], /, *, seconds: float) -> None:
        """See `MessageStore.postpone`."""
        with self._db.derive() as tx:
            tx.run(
                _POSTPONE,
                space=space_key(tx, space),
                keys=tx.listed(keys),
                due=time.time() + seconds,
            )

    @retried
    def operations(self, *, limit: int, durable: bool = False) -> list[IndexOperation]:
        """See `MessageStore.operations`."""
        with self._db.read() as tx:
            rows = tx.all(_OPERATIONS, n=limit)
            stored = _vectors_of(tx, rows)
        if durable and rows:
            with self._db.write() as tx:
                tx.run(_TOUCH)
        return [
            IndexOperation(
                id,
                kind,
                VectorSpace(unescape(name), dimensions),
                _scopes.scope_of(resource_id, thread_id),
                key,
                stored.get((space, key), np.zeros((0, dimensions), np.float32)),
                chunks,
            )
            for id, kind, key, chunks, resource_id, thread_id, space, name, dimensions in rows
        ]

    @retried
    def acknowledge(self, operations: Sequence[IndexOperation], /) -> None:
        """See `MessageStore.acknowledge`."""
        if not operations:
            return
        with self._db.derive() as tx:
            tx.run(_ACKNOWLEDGE, ids=tx.listed(operation.id for operation in operations))


def _vectors_of(
    tx: Transaction, operations: Sequence[Sequence[Any]]
) -> dict[tuple[int, int], NDArray[np.float32]]:
    """Return what the upserts among rows of `_OPERATIONS` write, by space and key."""
    wanted: dict[tuple[int, int], list[int]] = {}
    for row in operations:
        if row[1] == "upsert":
            wanted.setdefault((row[6], row[8]), []).append(row[2])
    found: dict[tuple[int, int], NDArray[np.float32]] = {}
    for (space, dimensions), keys in wanted.items():
        rows = tx.all(DATA, space=space, keys=tx.listed(keys))
        owners, data = tx.backend.vector_rows.decode(rows, dimensions)
        ends = np.flatnonzero(np.diff(owners, append=-1)) + 1
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            found[space, int(owners[start])] = data[start:end]
    return found


_TARGETS = Statement(
    _scopes.with_ids(
        select(
            messages.c.key,
            messages.c.digest,
            messages.c.resource_key,
            messages.c.thread_key,
            resources.c.resource_id,
            threads.c.thread_id,
        ).select_from(messages)
    )
    .where(among(messages.c.key, "keys"), messages.c.part == int(Part.SEARCHABLE))
    .order_by(messages.c.key)
)
_OLD_CHUNKS = Statement(
    select(vectors.c.key, vectors.c.chunks).where(
        vectors.c.space_key == bindparam("space"), among(vectors.c.key, "keys"), one_per_message()
    )
)
_DELETE_OLD = Statement(
    vectors.delete().where(vectors.c.space_key == bindparam("space"), among(vectors.c.key, "keys"))
)
_TOUCH = Statement(update(spaces).values(vectors=spaces.c.vectors))
"""Writes what is there: its commit carries every earlier one to the disk."""
_ACKNOWLEDGE = Statement(outbox.delete().where(among(outbox.c.id, "ids")))
_DONE = Statement(
    pending.delete().where(pending.c.space_key == bindparam("space"), among(pending.c.key, "keys"))
)
_STAMP = Statement(
    update(messages).where(messages.c.key == bindparam("at")).values(version=bindparam("stamp"))
)


def _set_vectors(
    tx: Transaction, space: int, wanted: dict[int, MessageVectors], *, outbox: bool
) -> int:
    # First, so that what is read below stays true until the end.
    versions = _scopes.bump_owners(tx, wanted)
    targets = [
        row for row in tx.all(_TARGETS, keys=tx.listed(wanted)) if wanted[row[0]].digest == row[1]
    ]
    if not targets:
        return 0
    keys = tx.listed(row[0] for row in targets)
    old: dict[int, int] = dict(tx.all(_OLD_CHUNKS, space=space, keys=keys))
    if old:
        tx.run(_DELETE_OLD, space=space, keys=keys)
    tx.run(_DONE, space=space, keys=keys)
    tx.many(_STAMP, [{"at": row[0], "stamp": versions[row[2]]} for row in targets])
    rows = [
        Owned(NewVectors(key, owner, thread, wanted[key].vectors), (resource_id, thread_id))
        for key, _, owner, thread, resource_id, thread_id in targets
    ]
    write_vectors(tx, space, rows, replaced=old, outbox=outbox)
    return len(targets)


DATA = Statement(
    select(vectors.c.key, vectors.c.chunks, vectors.c.data)
    .where(vectors.c.space_key == bindparam("space"), among(vectors.c.key, "keys"))
    .order_by(vectors.c.key),
    postgresql=select(chunk_rows.c.key, chunk_rows.c.chunks, chunk_rows.c.data)
    .where(chunk_rows.c.space_key == bindparam("space"), among(chunk_rows.c.key, "keys"))
    .order_by(chunk_rows.c.key, chunk_rows.c.chunk),
)
"""Rows for `VectorRows.decode`."""
_DUE = (
    select(pending.c.key, pending.c.attempts)
    .where(pending.c.space_key == bindparam("space"), pending.c.due_at <= bindparam("due"))
    .order_by(pending.c.key)
    .limit(bindparam("n"))
    .subquery("due")
)
_PENDING = Statement(
    _scopes.with_ids(
        select(*MESSAGE, messages.c.key, messages.c.digest, _DUE.c.attempts).join_from(
            _DUE, messages, messages.c.key == _DUE.c.key
        )
    ).order_by(_DUE.c.key)
)
_POSTPONE = Statement(
    update(pending)
    .where(pending.c.space_key == bindparam("space"), among(pending.c.key, "keys"))
    .values(attempts=pending.c.attempts + 1, due_at=bindparam("due"))
)
_OPERATIONS = Statement(
    select(
        outbox.c.id,
        outbox.c.kind,
        outbox.c.key,
        outbox.c.chunks,
        outbox.c.resource_id,
        outbox.c.thread_id,
        outbox.c.space_key,
        spaces.c.name,
        spaces.c.dimensions,
    )
    .select_from(outbox)
    .join(spaces, spaces.c.key == outbox.c.space_key)
    .order_by(outbox.c.id)
    .limit(bindparam("n"))
)
