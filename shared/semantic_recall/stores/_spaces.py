"""Vector spaces: which exist, which is active, and rebuilding the index of one."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, bindparam, func, insert, literal, select, update

from semantic_recall.errors import StoreError
from semantic_recall.protocols import Part, SpaceInfo, vector_id
from semantic_recall.stores import _scopes
from semantic_recall.stores._database import UsesDatabase
from semantic_recall.stores._schema import (
    messages,
    outbox,
    pending,
    resources,
    spaces,
    threads,
    vectors,
)
from semantic_recall.types import Scope, VectorSpace

_PAGE = 1000

_KEY = select(spaces.c.key).where(
    spaces.c.name == bindparam("name"), spaces.c.dimensions == bindparam("dimensions")
)


def space_key(connection: Connection, space: VectorSpace) -> int | None:
    """Return the key of a space, or None when the store does not know it."""
    named = {"name": space.name, "dimensions": space.dimensions}
    key: int | None = connection.execute(_KEY, named).scalar()
    return key


def require_space(connection: Connection, space: VectorSpace) -> int:
    """Return the key of a space.

    Raises:
        StoreError: The store does not know the space.
    """
    key = space_key(connection, space)
    if key is None:
        raise StoreError(
            f"the store has no vector space {space.name!r} with {space.dimensions} dimensions;"
            " add it with add_space first"
        )
    return key


class Spaces(UsesDatabase):
    """The part of the store that knows the vector spaces."""

    def spaces(self) -> list[SpaceInfo]:
        """See `MessageStore.spaces`."""
        with self._db.read() as connection:
            waiting = {
                key: n
                for key, n in connection.execute(
                    select(pending.c.space_key, func.count()).group_by(pending.c.space_key)
                )
            }
            rows = connection.execute(select(spaces).order_by(spaces.c.key)).all()
        return [
            SpaceInfo(
                VectorSpace(row.name, row.dimensions),
                bool(row.active),
                row.vectors,
                waiting.get(row.key, 0),
            )
            for row in rows
        ]

    def add_space(self, space: VectorSpace, /, *, active: bool) -> None:
        """See `MessageStore.add_space`."""
        with self._db.write() as connection:
            key = space_key(connection, space)
            if key is None:
                row = {
                    "name": space.name,
                    "dimensions": space.dimensions,
                    "active": False,
                    "vectors": 0,
                }
                made = connection.execute(insert(spaces), row).inserted_primary_key
                key = int(made[0])
                everything = select(literal(key), messages.c.key, literal(0), literal(0.0)).where(
                    messages.c.part == int(Part.SEARCHABLE)
                )
                connection.execute(
                    insert(pending).from_select(
                        ["space_key", "key", "attempts", "due_at"], everything
                    )
                )
            if active:
                connection.execute(update(spaces).values(active=spaces.c.key == key))

    def drop_space(self, space: VectorSpace, /) -> None:
        """See `MessageStore.drop_space`."""
        with self._db.write() as connection:
            key = space_key(connection, space)
            for table in (vectors, pending, outbox):
                connection.execute(table.delete().where(table.c.space_key == key))
            connection.execute(spaces.delete().where(spaces.c.key == key))

    def vector_ids(self, space: VectorSpace, /) -> Iterator[tuple[str, Scope]]:
        """See `MessageStore.vector_ids`."""
        last = 0
        while True:
            with self._db.read() as connection:
                parameters = {"space": space_key(connection, space), "last": last}
                rows = connection.execute(_PLACES, parameters).all()
            for key, chunks, resource_id, thread_id in rows:
                scope = _scopes.scope_of(resource_id, thread_id)
                for chunk in range(chunks):
                    yield vector_id(key, chunk), scope
            if len(rows) < _PAGE:
                return
            last = rows[-1][0]

    def queue_all(self, space: VectorSpace, /) -> int:
        """See `MessageStore.queue_all`."""
        with self._db.write() as connection:
            key = require_space(connection, space)
            stored = select(vectors.c.key).where(vectors.c.space_key == key)
            waiting = connection.execute(
                select(outbox.c.key, outbox.c.chunks).where(
                    outbox.c.space_key == key, outbox.c.key.in_(stored)
                )
            ).all()
            # Deleted and inserted, not updated: the new operation needs a new id, or the
            # acknowledgement of the one in flight would take it off the queue.
            connection.execute(
                outbox.delete().where(outbox.c.space_key == key, outbox.c.key.in_(stored))
            )
            columns = ["kind", "space_key", "key", "chunks", "resource_id", "thread_id"]
            queued = connection.execute(
                insert(outbox).from_select(columns, _UPSERTS), {"space": key}
            ).rowcount
            if waiting:
                connection.execute(
                    _WIDEN, [{"space": key, "at": at, "n": chunks} for at, chunks in waiting]
                )
            return queued


_PLACES = (
    select(vectors.c.key, vectors.c.chunks, resources.c.resource_id, threads.c.thread_id)
    .select_from(vectors)
    .join(messages, messages.c.key == vectors.c.key)
    .join(threads, threads.c.key == messages.c.thread_key)
    .join(resources, resources.c.key == messages.c.resource_key)
    .where(vectors.c.space_key == bindparam("space"), vectors.c.key > bindparam("last"))
    .order_by(vectors.c.key)
    .limit(_PAGE)
)
_UPSERTS = (
    select(
        literal("upsert"),
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
    .where(vectors.c.space_key == bindparam("space"))
    .order_by(vectors.c.key)
)
_WIDEN = (
    update(outbox)
    .where(
        outbox.c.space_key == bindparam("space"),
        outbox.c.key == bindparam("at"),
        outbox.c.chunks < bindparam("n"),
    )
    .values(chunks=bindparam("n"))
)
