"""Vectors, the spaces they live in, and the queue of the vector index."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, insert, select, update

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
from semantic_recall.types import VectorSpace

FLOAT = np.dtype("<f4")
_DIGESTS_AT_ONCE = 500


class Vectors(UsesDatabase):
    """The part of the store that keeps vectors and what is still to do about them."""

    def set_vectors(self, space: VectorSpace, vectors: Sequence[MessageVectors], /) -> int:
        """See `MessageStore.set_vectors`."""
        wanted = {item.key: item for item in vectors}
        for item in wanted.values():
            _check_shape(item, space)
        if not wanted:
            return 0
        with self._db.write() as connection:
            return _set_vectors(connection, require_space(connection, space), wanted)

    def find_vectors(
        self, space: VectorSpace, digests: Sequence[bytes], /
    ) -> dict[bytes, NDArray[np.float32]]:
        """See `MessageStore.find_vectors`."""
        found: dict[bytes, NDArray[np.float32]] = {}
        distinct = list(dict.fromkeys(digests))
        with self._db.read() as connection:
            key = space_key(connection, space)
            if key is None:
                return found
            for start in range(0, len(distinct), _DIGESTS_AT_ONCE):
                some = distinct[start : start + _DIGESTS_AT_ONCE]
                for digest, data in connection.execute(_BY_DIGEST, {"space": key, "some": some}):
                    found.setdefault(digest, as_vectors(data, space.dimensions))
        return found

    def pending(
        self, space: VectorSpace, /, *, limit: int, due_only: bool = True
    ) -> list[PendingMessage]:
        """See `MessageStore.pending`."""
        due = time.time() if due_only else float("inf")
        with self._db.read() as connection:
            key = space_key(connection, space)
            rows = connection.execute(_PENDING, {"space": key, "due": due, "limit": limit}).all()
        return [PendingMessage(row[-3], row[-2], to_message(row), row[-1]) for row in rows]

    def postpone(self, space: VectorSpace, keys: Sequence[int], /, *, seconds: float) -> None:
        """See `MessageStore.postpone`."""
        with self._db.write() as connection:
            parameters = {"space": space_key(connection, space), "keys": listed(keys)}
            connection.execute(_POSTPONE, {**parameters, "due": time.time() + seconds})

    def operations(self, *, limit: int) -> list[IndexOperation]:
        """See `MessageStore.operations`."""
        with self._db.read() as connection:
            rows = connection.execute(_OPERATIONS, {"limit": limit}).all()
        operations = []
        for id, kind, key, chunks, resource_id, thread_id, name, dimensions, data in rows:
            operations.append(
                IndexOperation(
                    id,
                    kind,
                    VectorSpace(name, dimensions),
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
        with self._db.write() as connection:
            connection.execute(
                outbox.delete().where(among(outbox.c.id, "ids")),
                {"ids": listed(operation.id for operation in operations)},
            )


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


_TARGETS = (
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
_OLD_CHUNKS = select(vectors.c.key, vectors.c.chunks).where(
    vectors.c.space_key == bindparam("space"), among(vectors.c.key, "keys")
)
_DELETE_OLD = vectors.delete().where(
    vectors.c.space_key == bindparam("space"), among(vectors.c.key, "keys")
)
_INSERT = insert(vectors)
_DONE = pending.delete().where(
    pending.c.space_key == bindparam("space"), among(pending.c.key, "keys")
)
_STAMP = (
    update(messages).where(messages.c.key == bindparam("at")).values(version=bindparam("stamp"))
)


def _set_vectors(connection: Connection, space: int, wanted: dict[int, MessageVectors]) -> int:
    targets = [
        row
        for row in connection.execute(_TARGETS, {"keys": listed(wanted)})
        if wanted[row[0]].digest == row[1]
    ]
    if not targets:
        return 0
    parameters = {"space": space, "keys": listed(row[0] for row in targets)}
    old: dict[int, int] = {
        key: chunks for key, chunks in connection.execute(_OLD_CHUNKS, parameters)
    }
    if old:
        connection.execute(_DELETE_OLD, parameters)
    rows, changes = [], []
    for key, _, _, resource_id, thread_id in targets:
        data = wanted[key].vectors
        chunks = len(data)
        blob = data.astype(FLOAT, copy=False).tobytes()
        rows.append({"space_key": space, "key": key, "chunks": chunks, "data": blob})
        bound = max(chunks, old.get(key, 0))
        changes.append(_queues.Change(space, key, bound, resource_id, thread_id))
    connection.execute(_INSERT, rows)
    connection.execute(_DONE, parameters)
    versions = _scopes.bump(connection, (row[2] for row in targets))
    connection.execute(_STAMP, [{"at": row[0], "stamp": versions[row[2]]} for row in targets])
    _queues.push(connection, "upsert", changes)
    written = sum(row["chunks"] for row in rows) - sum(old.values())
    _queues.count_vectors(connection, Counter({space: written}))
    return len(targets)


_BY_DIGEST = (
    select(messages.c.digest, vectors.c.data)
    .join_from(messages, vectors, vectors.c.key == messages.c.key)
    .where(
        vectors.c.space_key == bindparam("space"),
        messages.c.digest.in_(bindparam("some", expanding=True)),
    )
)
_PENDING = (
    select(*MESSAGE, messages.c.key, messages.c.digest, pending.c.attempts)
    .select_from(pending)
    .join(messages, messages.c.key == pending.c.key)
    .join(threads, threads.c.key == messages.c.thread_key)
    .join(resources, resources.c.key == messages.c.resource_key)
    .where(pending.c.space_key == bindparam("space"), pending.c.due_at <= bindparam("due"))
    .order_by(pending.c.key)
    .limit(bindparam("limit"))
)
_POSTPONE = (
    update(pending)
    .where(pending.c.space_key == bindparam("space"), among(pending.c.key, "keys"))
    .values(attempts=pending.c.attempts + 1, due_at=bindparam("due"))
)
_OPERATIONS = (
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
    .limit(bindparam("limit"))
)
