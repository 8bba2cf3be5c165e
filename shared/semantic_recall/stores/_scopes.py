"""Ids to keys: resources, threads, their versions and what is left of deleted ones."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, delete, insert, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from semantic_recall.records import Part
from semantic_recall.stores._lists import among, listed_pairs, paired, same
from semantic_recall.stores._schema import NO_RESOURCE, messages, resources, threads, tombstones
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.stores._text import escape, unescape
from semantic_recall.types import Scope

ThreadId = tuple[str, str]
"""Resource id ('' for none) and thread id, escaped."""


class Place(NamedTuple):
    """A scope as keys; `thread_key` is None for a whole resource."""

    resource_key: int
    thread_key: int | None
    version: int
    recallable: int
    deleted_version: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A thread that a transaction writes to."""

    resource_key: int
    thread_key: int
    version: int
    is_new: bool


def thread_ids(resource_id: str | None, thread_id: str) -> ThreadId:
    """Return a thread's ids as they are stored."""
    return stored_resource(resource_id), escape(thread_id)


def stored_resource(resource_id: str | None) -> str:
    """Return a resource's id as it is stored."""
    return NO_RESOURCE if resource_id is None else escape(resource_id)


def scope_of(resource_id: str, thread_id: str) -> Scope:
    """Return the scope of a thread from its stored ids."""
    return Scope(unescape(resource_id) or None, unescape(thread_id))


def with_ids(of_messages: Select[Any]) -> Select[Any]:
    """Join messages with the thread and the resource that they belong to."""
    return of_messages.join(threads, threads.c.key == messages.c.thread_key).join(
        resources, resources.c.key == messages.c.resource_key
    )


_RESOURCE = select(
    resources.c.key, resources.c.version, resources.c.recallable, resources.c.deleted_version
).where(same(resources.c.resource_id, "resource"))
_THREAD = (
    select(
        threads.c.resource_key,
        threads.c.key,
        resources.c.version,
        threads.c.recallable,
        threads.c.deleted_version,
    )
    .join_from(threads, resources, resources.c.key == threads.c.resource_key)
    .where(same(resources.c.resource_id, "resource"), same(threads.c.thread_id, "thread"))
)
_FIND = (Statement(_RESOURCE), Statement(_THREAD))
_FIND_LOCKED = (
    Statement(_RESOURCE.with_for_update()),
    Statement(_THREAD.with_for_update(of=resources)),
)


def find(tx: Transaction, scope: Scope) -> Place | None:
    """Return the place of a scope, or None when nothing is stored there."""
    return _find(tx, scope, _FIND)


def find_locked(tx: Transaction, scope: Scope) -> Place | None:
    """Return the place of a scope and let no other transaction write to its resource."""
    return _find(tx, scope, _FIND_LOCKED)


def find_resource(tx: Transaction, resource_id: str) -> Place | None:
    """Return the place of a resource from its stored id."""
    row = tx.first(_FIND[0], resource=resource_id)
    return None if row is None else Place(row[0], None, row[1], row[2], row[3])


def _find(tx: Transaction, scope: Scope, statements: tuple[Statement, Statement]) -> Place | None:
    of_resource, of_thread = statements
    resource = stored_resource(scope.resource_id)
    if scope.thread_id is None:
        row = tx.first(of_resource, resource=resource)
        return None if row is None else Place(row[0], None, row[1], row[2], row[3])
    row = tx.first(of_thread, resource=resource, thread=escape(scope.thread_id))
    return None if row is None else Place(*row)


def grave(*ids: str) -> bytes:
    """Return what a deleted resource or thread is remembered by: 16 bytes, no text."""
    sized = "".join(f"{len(id)}:{id}" for id in ids)
    return hashlib.blake2b(sized.encode(), digest_size=16).digest()


_ENDED = Statement(select(tombstones.c.version).where(tombstones.c.scope == bindparam("grave")))
_ENDED_AMONG = Statement(
    select(tombstones.c.scope, tombstones.c.version).where(among(tombstones.c.scope, "graves"))
)


def ended(tx: Transaction, *ids: str) -> int | None:
    """Return the version at which a resource or thread ended, or None when it never did."""
    version: int | None = tx.value(_ENDED, grave=grave(*ids))
    return version


def bury(tx: Transaction, ids: Collection[str], version: int) -> None:
    """Remember that the resource or thread ended at `version`."""
    scope = grave(*ids)
    tx.run(_UNBURY, grave=scope)
    tx.run(_BURY, scope=scope, version=version)


_UNBURY = Statement(delete(tombstones).where(tombstones.c.scope == bindparam("grave")))
_BURY = Statement(insert(tombstones), ("scope", "version"))
_EMPTY_THREADS = Statement(
    select(threads.c.key, threads.c.thread_id, resources.c.resource_id)
    .join_from(threads, resources, resources.c.key == threads.c.resource_key)
    .where(
        among(threads.c.key, "keys"),
        ~select(messages.c.key).where(messages.c.thread_key == threads.c.key).exists(),
    )
)
_DELETE_THREADS = Statement(threads.delete().where(among(threads.c.key, "keys")))
_DELETE_EMPTY_RESOURCE = Statement(
    resources.delete()
    .where(
        resources.c.key == bindparam("at"),
        ~select(threads.c.key).where(threads.c.resource_key == resources.c.key).exists(),
    )
    .returning(resources.c.resource_id)
)


def bury_empty(tx: Transaction, resource_key: int, thread_keys: Iterable[int], version: int) -> int:
    """Replace threads without messages, and a resource without threads, by tombstones.

    Returns the number of threads that ended.
    """
    empty = tx.all(_EMPTY_THREADS, keys=tx.listed(thread_keys))
    for _, thread_id, resource_id in empty:
        bury(tx, (resource_id, thread_id), version)
    tx.run(_DELETE_THREADS, keys=tx.listed(row[0] for row in empty))
    ended = tx.value(_DELETE_EMPTY_RESOURCE, at=resource_key)
    if ended is not None:
        bury(tx, (ended,), version)
    return len(empty)


def _unbury(tx: Transaction, graves: Sequence[bytes]) -> dict[bytes, int]:
    """Forget that resources or threads ended; returns the versions of those that had."""
    if not graves:
        return {}
    if tx.backend.in_process:
        versions = ((scope, tx.value(_ENDED, grave=scope)) for scope in graves)
        found = {scope: version for scope, version in versions if version is not None}
    else:
        found = dict(tx.all(_ENDED_AMONG, graves=tx.listed(graves)))
    for scope in found:
        tx.run(_UNBURY, grave=scope)
    return found


def _bump(which: ColumnElement[bool]) -> ReturningUpdate[Any]:
    # PostgreSQL locks the rows in the order of their keys, or two transactions that write to
    # several resources could wait for each other. Whoever writes to a resource begins with
    # this: until it ends, nobody else does.
    locked = select(resources.c.key).where(which).order_by(resources.c.key).with_for_update()
    return (
        update(resources)
        .where(resources.c.key.in_(select(locked.cte("locked").c.key)))
        .values(version=resources.c.version + 1)
        .returning(resources.c.resource_id, resources.c.key, resources.c.version)
    )


_BUMP_BY_ID = Statement(_bump(among(resources.c.resource_id, "ids")))
_BUMP_BY_KEY = Statement(_bump(among(resources.c.key, "keys")))
_BUMP_BY_MESSAGE = Statement(
    _bump(
        resources.c.key.in_(
            select(messages.c.resource_key).where(
                among(messages.c.key, "keys"), messages.c.part == int(Part.SEARCHABLE)
            )
        )
    )
)


def bump(tx: Transaction, resource_key: int) -> int:
    """Start a new version of a resource; returns it."""
    version: int = tx.first(_BUMP_BY_KEY, keys=tx.listed([resource_key]))[2]
    return version


def bump_owners(tx: Transaction, keys: Iterable[int]) -> dict[int, int]:
    """Start a new version of the resources of searchable messages; returns key to version."""
    return {row[1]: row[2] for row in tx.all(_BUMP_BY_MESSAGE, keys=tx.listed(keys))}


_NEW_RESOURCE = Statement(
    insert(resources).returning(resources.c.resource_id, resources.c.key, resources.c.version),
    ("resource_id", "version", "recallable", "deleted_version"),
)
_NEW_THREAD = Statement(
    insert(threads).returning(threads.c.resource_key, threads.c.thread_id, threads.c.key),
    ("resource_key", "thread_id", "recallable", "deleted_version"),
)


def enter(tx: Transaction, ids: Collection[ThreadId]) -> dict[ThreadId, Entry]:
    """Start a new version of the threads' resources and make those that are missing."""
    owners = _enter_resources(tx, dict.fromkeys(resource for resource, _ in ids))
    entries = _known_threads(tx, ids, owners)
    new = [id for id in dict.fromkeys(ids) if id not in entries]
    ended = _unbury(tx, [grave(*id) for id in new])
    rows = [
        {
            "resource_key": owners[resource][0],
            "thread_id": thread,
            "recallable": 0,
            "deleted_version": ended.get(grave(resource, thread), 0),
        }
        for resource, thread in new
    ]
    names = {key: (resource, version) for resource, (key, version) in owners.items()}
    for resource_key, thread, thread_key in tx.insert(_NEW_THREAD, rows):
        resource, version = names[resource_key]
        entries[resource, thread] = Entry(resource_key, thread_key, version, True)
    return entries


def _enter_resources(tx: Transaction, ids: Collection[str]) -> dict[str, tuple[int, int]]:
    rows = tx.all(_BUMP_BY_ID, ids=tx.listed(ids))
    owners = {id: (key, version) for id, key, version in rows}
    # In one order, or two transactions that make the same ones could wait for each other.
    new = sorted(id for id in ids if id not in owners)
    ended = _unbury(tx, [grave(id) for id in new])
    made = [
        {"resource_id": id, "version": last + 1, "recallable": 0, "deleted_version": last}
        for id, last in ((id, ended.get(grave(id), 0)) for id in new)
    ]
    owners.update({id: (key, version) for id, key, version in tx.insert(_NEW_RESOURCE, made)})
    return owners


_PAIRS, _JOINED = paired(threads.c.resource_key, threads.c.thread_id, "pairs")
_KNOWN_THREADS = Statement(
    select(threads.c.resource_key, threads.c.key, threads.c.thread_id).select_from(
        _PAIRS.join(threads, _JOINED)
    )
)


def _known_threads(
    tx: Transaction, ids: Collection[ThreadId], owners: dict[str, tuple[int, int]]
) -> dict[ThreadId, Entry]:
    names = {key: id for id, (key, _) in owners.items()}
    pairs = listed_pairs((owners[resource][0], thread) for resource, thread in ids)
    return {
        (names[resource_key], thread): Entry(
            resource_key, key, owners[names[resource_key]][1], False
        )
        for resource_key, key, thread in tx.all(_KNOWN_THREADS, pairs=pairs)
    }
