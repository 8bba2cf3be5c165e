"""Vector spaces: which exist, which is active, and rebuilding the index of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import bindparam, func, insert, literal, select, update

from semantic_recall.errors import StoreError
from semantic_recall.records import Part, SpaceInfo, vector_id
from semantic_recall.stores import _scopes
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import one_per_message
from semantic_recall.stores._queues import CHANGE, QUEUED, stored
from semantic_recall.stores._schema import (
    messages,
    outbox,
    pending,
    resources,
    spaces,
    threads,
    vectors,
)
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.stores._text import escape, unescape
from semantic_recall.types import Scope, VectorSpace

_PAGE = 1000

_KEY = Statement(
    select(spaces.c.key).where(
        spaces.c.name == bindparam("name"), spaces.c.dimensions == bindparam("dimensions")
    )
)


def space_key(tx: Transaction, space: VectorSpace) -> int | None:
    """Return the key of a space, or None when the store does not know it."""
    key: int | None = tx.value(_KEY, name=escape(space.name), dimensions=space.dimensions)
    return key


def require_space(tx: Transaction, space: VectorSpace) -> int:
    """Return the key of a space.

    Raises:
        StoreError: The store does not know the space.
    """
    key = space_key(tx, space)
    if key is None:
        raise StoreError(
            f"the store has no vector space {space.name!r} with {space.dimensions} dimensions;"
            " add it with add_space first"
        )
    return key


class Spaces(UsesDatabase):
    """The part of the store that knows the vector spaces."""

    @retried
    def spaces(self) -> list[SpaceInfo]:
        """See `MessageStore.spaces`."""
        with self._db.read() as tx:
            waiting = dict(tx.all(_WAITING))
            rows = tx.all(_SPACES)
        return [
            SpaceInfo(VectorSpace(unescape(name), dimensions), bool(active), n, waiting.get(key, 0))
            for key, name, dimensions, active, n in rows
        ]

    @retried
    def add_space(self, space: VectorSpace, /, *, active: bool) -> None:
        """See `MessageStore.add_space`."""
        # Alone: a message stored meanwhile would not become pending in the new space.
        with self._db.write(alone=True) as tx:
            key = space_key(tx, space)
            if key is None:
                key = tx.value(
                    _NEW,
                    name=escape(space.name),
                    dimensions=space.dimensions,
                    active=False,
                    vectors=0,
                )
                tx.run(_ALL_PENDING, space=key)
            if active:
                tx.run(_ACTIVATE, at=key)

    @retried
    def drop_space(self, space: VectorSpace, /) -> None:
        """See `MessageStore.drop_space`."""
        with self._db.write(alone=True) as tx:
            key = space_key(tx, space)
            for statement in _DROP:
                tx.run(statement, space=key)

    def vector_ids(self, space: VectorSpace, /) -> Iterator[tuple[str, Scope]]:
        """See `MessageStore.vector_ids`."""
        last = 0
        while True:
            rows = self._page_of_vectors(space, last)
            for key, chunks, resource_id, thread_id in rows:
                scope = _scopes.scope_of(resource_id, thread_id)
                for chunk in range(chunks):
                    yield vector_id(key, chunk), scope
            if len(rows) < _PAGE:
                return
            last = rows[-1][0]

    @retried
    def _page_of_vectors(self, space: VectorSpace, last: int) -> Sequence[Sequence[Any]]:
        with self._db.read() as tx:
            return tx.all(_PLACES, space=space_key(tx, space), last=last)

    @retried
    def queue_all(self, space: VectorSpace, /) -> int:
        """See `MessageStore.queue_all`."""
        with self._db.write() as tx:
            key = require_space(tx, space)
            if not self._outbox:
                return 0
            waiting = tx.all(_QUEUED, space=key)
            # Deleted and inserted, not updated: the new operation needs a new id, or the
            # acknowledgement of the one in flight would take it off the queue.
            tx.run(_UNQUEUE, space=key)
            tx.run(_QUEUE_ALL, space=key)
            tx.many(_WIDEN, [{"space": key, "at": at, "n": chunks} for at, chunks in waiting])
            queued: int = tx.value(_COUNT_STORED, space=key)
            return queued


_WAITING = Statement(select(pending.c.space_key, func.count()).group_by(pending.c.space_key))
_SPACES = Statement(
    select(
        spaces.c.key, spaces.c.name, spaces.c.dimensions, spaces.c.active, spaces.c.vectors
    ).order_by(spaces.c.key)
)
_NEW = Statement(
    insert(spaces).returning(spaces.c.key), ("name", "dimensions", "active", "vectors")
)
_ALL_PENDING = Statement(
    insert(pending).from_select(
        ["space_key", "key", "attempts", "due_at"],
        select(
            bindparam("space", type_=messages.c.key.type), messages.c.key, literal(0), literal(0.0)
        ).where(messages.c.part == int(Part.SEARCHABLE)),
    )
)
_ACTIVATE = Statement(update(spaces).values(active=spaces.c.key == bindparam("at")))
_DROP = (
    *(
        Statement(table.delete().where(table.c.space_key == bindparam("space")))
        for table in (vectors, pending, outbox)
    ),
    Statement(spaces.delete().where(spaces.c.key == bindparam("space"))),
)
_STORED = outbox.c.key.in_(select(vectors.c.key).where(vectors.c.space_key == bindparam("space")))
_QUEUED = Statement(
    select(outbox.c.key, outbox.c.chunks).where(outbox.c.space_key == bindparam("space"), _STORED)
)
_UNQUEUE = Statement(outbox.delete().where(outbox.c.space_key == bindparam("space"), _STORED))
_PLACES = Statement(
    stored(vectors.c.key, vectors.c.chunks, resources.c.resource_id, threads.c.thread_id)
    .where(vectors.c.space_key == bindparam("space"), vectors.c.key > bindparam("last"))
    .limit(_PAGE)
)
_UPSERTS = stored(literal("upsert"), *CHANGE).where(vectors.c.space_key == bindparam("space"))
_COUNT_STORED = Statement(
    select(func.count()).where(vectors.c.space_key == bindparam("space"), one_per_message())
)
_QUEUE_ALL = Statement(insert(outbox).from_select(list(QUEUED), _UPSERTS))
_WIDEN = Statement(
    update(outbox)
    .where(
        outbox.c.space_key == bindparam("space"),
        outbox.c.key == bindparam("at"),
        outbox.c.chunks < bindparam("n"),
    )
    .values(chunks=bindparam("n"))
)
