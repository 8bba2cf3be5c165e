"""Deleting messages with everything made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from semantic_recall.records import Part, Removal
from semantic_recall.stores import _queues, _scopes
from semantic_recall.stores._adding import count, forget_terms, mark_deleted
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import among
from semantic_recall.stores._schema import (
    messages,
    outbox,
    pending,
    terms,
    threads,
    vectors,
)
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.stores._text import escape
from semantic_recall.types import Scope


class Erasure(UsesDatabase):
    """The part of the store that forgets."""

    @retried
    def delete(self, scope: Scope, /, *, ids: Sequence[str] | None = None) -> Removal:
        """See `MessageStore.delete`."""
        with self._db.write() as tx:
            place = _scopes.find_locked(tx, scope)
            if place is None:
                return Removal(0, 0, 0, ())
            parameters: dict[str, Any] = {
                "resource": place.resource_key,
                "thread": place.thread_key,
            }
            if ids is not None:
                parameters["ids"] = tx.listed(escape(id) for id in ids)
            which = (place.thread_key is not None, ids is not None)
            rows = tx.all(_VICTIMS[which], **parameters)
            if not rows:
                return Removal(0, 0, 0, ())
            return _delete(tx, place.resource_key, rows, outbox=self._outbox)

    @retried
    def remains(self, keys: Sequence[int], /) -> Mapping[str, int]:
        """See `MessageStore.remains`."""
        with self._db.read() as tx:
            left: dict[str, int] = {
                name: tx.value(statement, keys=tx.listed(keys))
                for name, statement in _REMAINS.items()
            }
            left["full_text"] = tx.backend.full_text.left(tx, keys)
        return left

    def scrub(self) -> None:
        """See `MessageStore.scrub`."""
        with self._db.bare() as tx:
            tx.backend.scrub(tx)


def _delete(
    tx: Transaction, resource_key: int, rows: Sequence[Sequence[Any]], *, outbox: bool
) -> Removal:
    keys = [row[0] for row in rows]
    version = _scopes.bump(tx, resource_key)
    removed = _queues.drop_vectors(tx, keys, outbox=outbox)
    forget_terms(tx, keys)
    tx.run(_DELETE, keys=tx.listed(keys))
    gone = Counter(row[1] for row in rows if row[2] != Part.HIDDEN)
    count(
        tx,
        Counter({resource_key: -gone.total()}),
        Counter({thread: -n for thread, n in gone.items()}),
    )
    touched = dict.fromkeys(row[1] for row in rows)
    mark_deleted(
        tx,
        [_scopes.Entry(resource_key, thread_key, version, False) for thread_key in touched],
    )
    emptied = _scopes.bury_empty(tx, resource_key, list(touched), version)
    return Removal(len(keys), emptied, removed, keys)


def _victims(in_thread: bool, by_ids: bool) -> Select[Any]:
    wanted = select(messages.c.key, messages.c.thread_key, messages.c.part)
    if in_thread:
        wanted = wanted.where(messages.c.thread_key == bindparam("thread"))
    elif by_ids:
        # Through the threads, so that the unique index on thread and id serves.
        wanted = wanted.join_from(threads, messages, messages.c.thread_key == threads.c.key).where(
            threads.c.resource_key == bindparam("resource")
        )
    else:
        wanted = wanted.where(messages.c.resource_key == bindparam("resource"))
    if by_ids:
        wanted = wanted.where(among(messages.c.id, "ids"))
    return wanted.order_by(messages.c.key)


_VICTIMS = {
    (in_thread, by_ids): Statement(_victims(in_thread, by_ids))
    for in_thread in (False, True)
    for by_ids in (False, True)
}
_DELETE = Statement(messages.delete().where(among(messages.c.key, "keys")))
_REMAINS = {
    # Of messages, whose vectors can have several rows.
    name: Statement(select(func.count(column.distinct())).where(among(column, "keys")))
    for name, column in (
        ("messages", messages.c.key),
        ("terms", terms.c.key),
        ("vectors", vectors.c.key),
        ("pending", pending.c.key),
        ("outbox", outbox.c.key),
    )
}
