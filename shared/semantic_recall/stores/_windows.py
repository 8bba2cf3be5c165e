"""The neighbours of messages in their threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, literal, select

from semantic_recall.records import Part
from semantic_recall.stores import _scopes
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import among
from semantic_recall.stores._schema import messages
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.types import Scope


class Windows(UsesDatabase):
    """The part of the store that finds neighbours."""

    @retried
    def window(
        self, scope: Scope, keys: Sequence[int], /, *, before: int, after: int
    ) -> dict[int, list[int]]:
        """See `MessageStore.window`."""
        with self._db.read() as tx:
            place = _scopes.find(tx, scope)
            if place is None:
                return {}
            inside = {
                key: thread_key
                for key, resource_key, thread_key in tx.all(_PLACES, keys=tx.listed(keys))
                if resource_key == place.resource_key and place.thread_key in (None, thread_key)
            }
            return _windows(tx, inside, before, after)


def _windows(
    tx: Transaction, threads: Mapping[int, int], before: int, after: int
) -> dict[int, list[int]]:
    """Return the neighbours of messages, given by key with their threads, and themselves."""
    if tx.backend.in_process:
        pairs = [
            (key, row[0])
            for key, thread in threads.items()
            for side, n in ((_BEFORE, before), (_AFTER, after))
            for row in tx.all(side, thread=thread, at=key, n=n)
        ]
    else:
        wanted = tx.listed(threads)
        pairs = [*tx.all(_ALL_BEFORE, keys=wanted, n=before)]
        pairs += tx.all(_ALL_AFTER, keys=wanted, n=after)
    windows = {key: [key] for key in threads}
    for key, neighbour in pairs:
        windows[key].append(neighbour)
    return {key: sorted(window) for key, window in windows.items()}


_PLACES = Statement(
    select(messages.c.key, messages.c.resource_key, messages.c.thread_key).where(
        among(messages.c.key, "keys")
    )
)
_NEIGHBOURS = select(messages.c.key).where(
    messages.c.thread_key == bindparam("thread"), messages.c.part > int(Part.HIDDEN)
)
_BEFORE = Statement(
    _NEIGHBOURS.where(messages.c.key < bindparam("at"))
    .order_by(messages.c.key.desc())
    .limit(bindparam("n"))
)
_AFTER = Statement(
    _NEIGHBOURS.where(messages.c.key > bindparam("at"))
    .order_by(messages.c.key)
    .limit(bindparam("n"))
)
_NEAR = messages.alias("near")
_NEIGHBOURS_OF_ALL = select(_NEAR.c.key).where(
    _NEAR.c.thread_key == messages.c.thread_key, _NEAR.c.part > int(Part.HIDDEN)
)


def _of_all(neighbours: Select[Any]) -> Statement:
    each = neighbours.limit(bindparam("n")).lateral("each_near")
    return Statement(
        select(messages.c.key, each.c.key)
        .select_from(messages.join(each, literal(True)))
        .where(among(messages.c.key, "keys"))
    )


_ALL_BEFORE = _of_all(
    _NEIGHBOURS_OF_ALL.where(_NEAR.c.key < messages.c.key).order_by(_NEAR.c.key.desc())
)
_ALL_AFTER = _of_all(_NEIGHBOURS_OF_ALL.where(_NEAR.c.key > messages.c.key).order_by(_NEAR.c.key))
