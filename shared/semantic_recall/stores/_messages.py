"""Reading messages: by key, by id, as history, as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import bindparam, func, select

from semantic_recall.stores import _scopes
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import among, same
from semantic_recall.stores._schema import NO_RESOURCE, messages, resources, threads
from semantic_recall.stores._statements import Statement
from semantic_recall.stores._text import escape, from_json, from_microseconds, unescape
from semantic_recall.types import Message, ResourceInfo, Scope, ThreadInfo

_PAGE = 500
_NO_LIMIT = 2**62

MESSAGE = (
    messages.c.role,
    messages.c.text,
    threads.c.thread_id,
    resources.c.resource_id,
    messages.c.id,
    messages.c.name,
    messages.c.created_at,
    messages.c.metadata,
    messages.c.payload,
)
"""The columns that `to_message` reads, first in the row."""


(
    _set_role, _set_text, _set_thread_id, _set_resource_id, _set_id, _set_name, _set_created_at,
    _set_metadata, _set_payload,
) = (getattr(Message, field.name).__set__ for field in fields(Message))  # fmt: skip


def to_message(row: Sequence[Any]) -> Message:
    """Return the message in a row that begins with the columns `MESSAGE`.

    Its fields are set one by one: what is stored was checked before, and the checks of the
    constructor take longer than all the rest.
    """
    role, text, thread_id, resource_id, id, name, created_at, metadata, payload = row[:9]
    message = object.__new__(Message)
    _set_role(message, unescape(role))
    _set_text(message, unescape(text))
    _set_thread_id(message, unescape(thread_id))
    _set_resource_id(message, unescape(resource_id) or None)
    _set_id(message, unescape(id))
    _set_name(message, None if name is None else unescape(name))
    _set_created_at(message, from_microseconds(created_at))
    _set_metadata(message, {} if metadata is None else from_json(metadata))
    _set_payload(message, None if payload is None else from_json(payload))
    return message


_MESSAGES = _scopes.with_ids(select(*MESSAGE, messages.c.key).select_from(messages))
_WANTED = func.json_each(bindparam("keys")).table_valued("value", name="wanted")
_BY_KEYS = Statement(
    # A condition that looks each key up in the list would take a quarter longer.
    _scopes.with_ids(
        select(*MESSAGE, messages.c.key).join_from(
            _WANTED, messages, messages.c.key == _WANTED.c.value
        )
    ),
    postgresql=_MESSAGES.where(among(messages.c.key, "keys")),
)
_BY_KEYS_IN_ORDER = Statement(
    _MESSAGES.where(among(messages.c.key, "keys")).order_by(messages.c.key)
)
_PAGE_OF_THREAD = Statement(
    _MESSAGES.where(
        messages.c.thread_key == bindparam("thread"), messages.c.key > bindparam("last")
    )
    .order_by(messages.c.key)
    .limit(_PAGE)
)


class Messages(UsesDatabase):
    """The part of the store that reads messages."""

    @retried
    def fetch(self, scope: Scope, keys: Sequence[int], /) -> dict[int, Message]:
        """See `MessageStore.fetch`."""
        with self._db.glance() as tx:
            rows = tx.all(_BY_KEYS, keys=tx.listed(keys))
        resource = _scopes.stored_resource(scope.resource_id)
        thread = None if scope.thread_id is None else escape(scope.thread_id)
        return {
            row[-1]: to_message(row)
            for row in rows
            if row[3] == resource and thread in (None, row[2])
        }

    @retried
    def keys(self, scope: Scope, ids: Sequence[str], /) -> dict[str, list[int]]:
        """See `MessageStore.keys`."""
        with self._db.read() as tx:
            place = _scopes.find(tx, scope)
            found: dict[str, list[int]] = {}
            if place is None:
                return found
            for key, id in tx.all(
                _BY_IDS if place.thread_key is None else _BY_IDS_OF_THREAD,
                ids=tx.listed(escape(id) for id in ids),
                resource=place.resource_key,
                thread=place.thread_key,
            ):
                found.setdefault(unescape(id), []).append(key)
        return found

    @retried
    def history(self, scope: Scope, /, *, last: int | None = None) -> list[Message]:
        """See `MessageStore.history`."""
        with self._db.read() as tx:
            place = _scopes.find(tx, scope)
            if place is None:
                return []
            by_resource = place.thread_key is None
            keys = tx.all(
                _LAST_OF_RESOURCE if by_resource else _LAST_OF_THREAD,
                at=place.resource_key if by_resource else place.thread_key,
                n=_NO_LIMIT if last is None else max(last, 0),
            )
            rows = tx.all(_BY_KEYS_IN_ORDER, keys=tx.listed(row[0] for row in keys))
        return [to_message(row) for row in rows]

    def export(self, scope: Scope | None, /) -> Iterator[Message]:
        """See `MessageStore.export`."""
        for thread_key in self._threads_of(scope):
            last = 0
            while True:
                rows = self._page(thread_key, last)
                for row in rows:
                    yield to_message(row)
                if len(rows) < _PAGE:
                    break
                last = rows[-1][-1]

    @retried
    def _page(self, thread_key: int, last: int) -> Sequence[Sequence[Any]]:
        with self._db.glance() as tx:
            return tx.all(_PAGE_OF_THREAD, thread=thread_key, last=last)

    @retried
    def _threads_of(self, scope: Scope | None) -> list[int]:
        with self._db.read() as tx:
            if scope is None:
                return [row[0] for row in tx.all(_ALL_THREADS)]
            place = _scopes.find(tx, scope)
            if place is None:
                return []
            if place.thread_key is not None:
                return [place.thread_key]
            return [row[0] for row in tx.all(_THREADS_OF, resource=place.resource_key)]

    @retried
    def threads(self, resource_id: str | None = None, /) -> list[ThreadInfo]:
        """See `MessageStore.threads`."""
        with self._db.glance() as tx:
            if resource_id is None:
                rows = tx.all(_LIST_ALL)
            else:
                rows = tx.all(_LIST_OF, resource=escape(resource_id))
        return [
            ThreadInfo(
                thread_id=unescape(thread),
                resource_id=unescape(resource) or None,
                messages=n,
                first_at=from_microseconds(first),
                last_at=from_microseconds(last),
            )
            for thread, resource, n, first, last in rows
        ]

    @retried
    def resources(self) -> list[ResourceInfo]:
        """See `MessageStore.resources`."""
        with self._db.glance() as tx:
            rows = tx.all(_RESOURCES)
        found = [
            ResourceInfo(resource_id=unescape(id) or None, threads=n, messages=total)
            for id, n, total in rows
        ]
        return sorted(found, key=lambda info: info.resource_id or NO_RESOURCE)


_BY_IDS = Statement(
    select(messages.c.key, messages.c.id)
    .join_from(threads, messages, messages.c.thread_key == threads.c.key)
    .where(threads.c.resource_key == bindparam("resource"), among(messages.c.id, "ids"))
    .order_by(messages.c.key)
)
_BY_IDS_OF_THREAD = Statement(
    select(messages.c.key, messages.c.id)
    .where(messages.c.thread_key == bindparam("thread"), among(messages.c.id, "ids"))
    .order_by(messages.c.key)
)
_LAST_OF_THREAD = Statement(
    select(messages.c.key)
    .where(messages.c.thread_key == bindparam("at"))
    .order_by(messages.c.key.desc())
    .limit(bindparam("n"))
)
_LAST_OF_RESOURCE = Statement(
    select(messages.c.key)
    .where(messages.c.resource_key == bindparam("at"))
    .order_by(messages.c.key.desc())
    .limit(bindparam("n"))
)
_THREADS = (
    select(
        threads.c.thread_id,
        resources.c.resource_id,
        func.count(),
        func.min(messages.c.created_at),
        func.max(messages.c.created_at),
    )
    .select_from(messages)
    .join(threads, threads.c.key == messages.c.thread_key)
    .join(resources, resources.c.key == threads.c.resource_key)
    .group_by(threads.c.key, resources.c.key)
    .order_by(func.max(messages.c.created_at).desc(), threads.c.key.desc())
)
_LIST_ALL = Statement(_THREADS)
_LIST_OF = Statement(_THREADS.where(same(resources.c.resource_id, "resource")))
_ALL_THREADS = Statement(select(threads.c.key).order_by(threads.c.key))
_THREADS_OF = Statement(
    select(threads.c.key)
    .where(threads.c.resource_key == bindparam("resource"))
    .order_by(threads.c.key)
)
_RESOURCES = Statement(
    select(
        resources.c.resource_id,
        func.count(messages.c.thread_key.distinct()),
        func.count(),
    )
    .select_from(messages)
    .join(resources, resources.c.key == messages.c.resource_key)
    .group_by(resources.c.key)
)
