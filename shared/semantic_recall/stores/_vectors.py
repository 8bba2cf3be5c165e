"""Vectors, the spaces they live in, and the queue of the vector index."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, insert, select, update

from semantic_recall.errors import StoreError
from semantic_recall.protocols import (
    IndexOperation,
    MessageVectors,
    Part,
    PendingMessage,
)
from semantic_recall.stores import _queues, _scopes
from semantic_recall.stores._database import UsesDatabase
from semantic_recall.stores._messages import MESSAGE, to_message
from semantic_recall.stores._schema import (
    messages,
    outbox,
    pending,
    resources,
    spaces,
    threads,
    vectors,
)
from semantic_recall.stores._spaces import require_space, space_key
from semantic_recall.stores._sqlite import among, listed
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.stores._text import unescape
from semantic_recall.types import VectorSpace

FLOAT = np.dtype("<f4")


class Vectors(UsesDatabase):
    """The part of the store that keeps vectors and what is still to do about them."""

    def set_vectors(self, space: VectorSpace, vectors: Sequence[MessageVectors], /) -> int:
        """See `MessageStore.set_vectors`."""
        wanted = {item.key: item for item in vectors}
        for item in wanted.values():
            _check_shape(item, space)
        if not wanted:
            return 0
        with self._db.write() as tx:
            return _set_vectors(tx, require_space(tx, space), wanted)

    def find_vectors(
        self, space: VectorSpace, digests: Sequence[bytes], /
    ) -> dict[bytes, NDArray[np.float32]]:
        """See `MessageStore.find_vectors`."""
        found: dict[bytes, NDArray[np.float32]] = {}
        with self._db.read() as tx:
            key = space_key(tx, space)
            if key is None:
                return found
            for digest in dict.fromkeys(digests):
                data = tx.value(_BY_DIGEST, space=key, wanted=digest)
                if data is not None:
                    found[digest] = as_vectors(data, space.dimensions)
        return found

    def pending(
        self, space: VectorSpace, /, *, limit: int, due_only: bool = True
    ) -> list[PendingMessage]:
        """See `MessageStore.pending`."""
        due = time.time() if due_only else float("inf")
        with self._db.read() as tx:
            key = space_key(tx, space)
            rows = tx.all(_PENDING, space=key, due=due, n=limit)
        return [PendingMessage(row[-3], row[-2], to_message(row), row[-1]) for row in rows]

    def postpone(self, space: VectorSpace, keys: Sequence[int], /, *, seconds: float) -> None:
        """See `MessageStore.postpone`."""
        with self._db.write() as tx:
            tx.run(
                _POSTPONE,
                space=space_key(tx, space),
                keys=listed(keys),
                due=time.time() + seconds,
            )

    def operations(self, *, limit: int) -> list[IndexOperation]:
        """See `MessageStore.operations`."""
        with self._db.read() as tx:
            rows = tx.all(_OPERATIONS, n=limit)
        operations = []
        for id, kind, key, chunks, resource_id, thread_id, name, dimensions, data in rows:
            operations.append(
                IndexOperation(
                    id,
                    kind,
                    VectorSpace(unescape(name), dimensions),
                    _scopes.scope_of(resource_id, thread_id),
                    key,
                    as_vectors(data if kind == "upsert" and data else b"", dimensions),
                    chunks,
                )
            )
        return operations

    def acknowledge(self, operations: Sequence[IndexOperation], /) -> None:
        """See `MessageStore.acknowledge`."""
        if not operations:
            return
        with self._db.write() as tx:
            tx.run(_ACKNOWLEDGE, ids=listed(operation.id for operation in operations))


def as_vectors(data: bytes, dimensions: int) -> NDArray[np.float32]:
    """Return a stored blob as (chunks, dimensions)."""
    return np.frombuffer(data, dtype=FLOAT).reshape(-1, dimensions)


def _check_shape(item: MessageVectors, space: VectorSpace) -> None:
    shape = item.vectors.shape
    if len(shape) != 2 or shape[0] < 1 or shape[1] != space.dimensions:
        raise StoreError(
            f"the vectors of message {item.key} have shape {shape}; the space {space.name!r}"
            f" takes (chunks, {space.dimensions}) with at least one chunk"
        )


_TARGETS = Statement(
    select(
        messages.c.key,
        messages.c.digest,
        messages.c.resource_key,
        resources.c.resource_id,
        threads.c.thread_id,
    )
    .select_from(messages)
    .join(threads, threads.c.key == messages.c.thread_key)
    .join(resources, resources.c.key == messages.c.resource_key)
    .where(among(messages.c.key, "keys"), messages.c.part == int(Part.SEARCHABLE))
)
_OLD_CHUNKS = Statement(
    select(vectors.c.key, vectors.c.chunks).where(
        vectors.c.space_key == bindparam("space"), among(vectors.c.key, "keys")
    )
)
_DELETE_OLD = Statement(
    vectors.delete().where(vectors.c.space_key == bindparam("space"), among(vectors.c.key, "keys"))
)
_ACKNOWLEDGE = Statement(outbox.delete().where(among(outbox.c.id, "ids")))
_INSERT = Statement(insert(vectors), ("space_key", "key", "chunks", "data"))
_DONE = Statement(
    pending.delete().where(pending.c.space_key == bindparam("space"), among(pending.c.key, "keys"))
)
_STAMP = Statement(
    update(messages).where(messages.c.key == bindparam("at")).values(version=bindparam("stamp"))
)


def _set_vectors(tx: Transaction, space: int, wanted: dict[int, MessageVectors]) -> int:
    targets = [
        row for row in tx.all(_TARGETS, keys=listed(wanted)) if wanted[row[0]].digest == row[1]
    ]
    if not targets:
        return 0
    keys = listed(row[0] for row in targets)
    old: dict[int, int] = dict(tx.all(_OLD_CHUNKS, space=space, keys=keys))
    if old:
        tx.run(_DELETE_OLD, space=space, keys=keys)
    rows, changes = [], []
    for key, _, _, resource_id, thread_id in targets:
        data = wanted[key].vectors
        chunks = len(data)
        blob = data.astype(FLOAT, copy=False).tobytes()
        rows.append({"space_key": space, "key": key, "chunks": chunks, "data": blob})
        bound = max(chunks, old.get(key, 0))
        changes.append(_queues.Change(space, key, bound, resource_id, thread_id))
    tx.many(_INSERT, rows)
    tx.run(_DONE, space=space, keys=keys)
    versions = _scopes.bump(tx, (row[2] for row in targets))
    tx.many(_STAMP, [{"at": row[0], "stamp": versions[row[2]]} for row in targets])
    _queues.push(tx, "upsert", changes)
    written = sum(row["chunks"] for row in rows) - sum(old.values())
    _queues.count_vectors(tx, Counter({space: written}))
    return len(targets)


_BY_DIGEST = Statement(
    select(vectors.c.data)
    .join_from(messages, vectors, vectors.c.key == messages.c.key)
    .where(
        vectors.c.space_key == bindparam("space"),
        messages.c.digest == bindparam("wanted"),
    )
    .limit(1)
)
_PENDING = Statement(
    select(*MESSAGE, messages.c.key, messages.c.digest, pending.c.attempts)
    .select_from(pending)
    .join(messages, messages.c.key == pending.c.key)
    .join(threads, threads.c.key == messages.c.thread_key)
    .join(resources, resources.c.key == messages.c.resource_key)
    .where(pending.c.space_key == bindparam("space"), pending.c.due_at <= bindparam("due"))
    .order_by(pending.c.key)
    .limit(bindparam("n"))
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
        spaces.c.name,
        spaces.c.dimensions,
        vectors.c.data,
    )
    .select_from(outbox)
    .join(spaces, spaces.c.key == outbox.c.space_key)
    .outerjoin(
        vectors, (vectors.c.key == outbox.c.key) & (vectors.c.space_key == outbox.c.space_key)
    )
    .order_by(outbox.c.id)
    .limit(bindparam("n"))
)
