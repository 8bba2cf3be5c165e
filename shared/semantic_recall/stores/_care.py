"""Settings, sizes and the store's own consistency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, func, literal, select

from semantic_recall.records import Part
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import insert_missing, one_per_message
from semantic_recall.stores._schema import (
    messages,
    outbox,
    pending,
    resources,
    settings,
    spaces,
    terms,
    threads,
    vectors,
)
from semantic_recall.stores._statements import Statement
from semantic_recall.stores._text import escape, unescape


class Care(UsesDatabase):
    """The part of the store that looks after itself."""

    @retried
    def check(self) -> list[str]:
        """See `MessageStore.check`."""
        with self._db.read() as tx:
            problems = tx.backend.faults(tx)
            if tx.backend.full_text.total(tx) != tx.value(_INDEXED):
                problems.append("the full text does not hold the messages that have terms")
            for what, statement in _CHECKS.items():
                n = tx.value(statement)
                if n:
                    problems.append(f"{n} {what}")
        return problems

    @retried
    def setting(self, name: str, default: str, /) -> str:
        """See `MessageStore.setting`."""
        with self._db.read() as tx:
            value: str | None = tx.value(_SETTING, called=escape(name))
        if value is None:
            with self._db.write() as tx:
                tx.run(_SET, name=escape(name), value=escape(default))
                value = tx.value(_SETTING, called=escape(name))
        return unescape(str(value))

    @retried
    def size(self) -> Mapping[str, int]:
        """See `MessageStore.size`."""
        with self._db.read() as tx:
            counts = {name: int(tx.value(count)) for name, count in _SIZES.items()}
            counts["bytes"] = tx.backend.size(tx)
        return counts


def _orphans(table: Table, of: ColumnElement[int], owners: Table) -> Select[Any]:
    missing = ~select(owners.c.key).where(owners.c.key == of).exists()
    return select(func.count()).select_from(table).where(missing)


_SETTING = Statement(select(settings.c.value).where(settings.c.name == bindparam("called")))
_SET = insert_missing(settings, ("name", "value"))
_INDEXED = Statement(select(func.count()).select_from(terms))
_SIZES = {
    "messages": Statement(select(func.count()).select_from(messages)),
    "threads": Statement(select(func.count()).select_from(threads)),
    "resources": Statement(select(func.count()).select_from(resources)),
    "vectors": Statement(select(func.coalesce(func.sum(spaces.c.vectors), 0))),
    "pending": Statement(select(func.count()).select_from(pending)),
    "outbox": Statement(select(func.count()).select_from(outbox)),
}


_RECALLABLE = messages.c.part > int(Part.HIDDEN)
_FAULTS: dict[str, Select[Any]] = {
    "rows of vectors without their message": _orphans(vectors, vectors.c.key, messages),
    "rows of terms without their message": _orphans(terms, terms.c.key, messages),
    "pending rows without their message": _orphans(pending, pending.c.key, messages),
    "messages with neither vectors nor pending work in a space": select(func.count())
    .select_from(messages.join(spaces, literal(True)))
    .where(
        messages.c.part == int(Part.SEARCHABLE),
        ~select(vectors.c.key)
        .where(vectors.c.key == messages.c.key, vectors.c.space_key == spaces.c.key)
        .exists(),
        ~select(pending.c.key)
        .where(pending.c.key == messages.c.key, pending.c.space_key == spaces.c.key)
        .exists(),
    ),
    "messages without their thread": _orphans(messages, messages.c.thread_key, threads),
    "threads whose number of messages is wrong": select(func.count())
    .select_from(threads)
    .where(
        threads.c.recallable
        != select(func.count())
        .where(and_(messages.c.thread_key == threads.c.key, _RECALLABLE))
        .scalar_subquery()
    ),
    "resources whose number of messages is wrong": select(func.count())
    .select_from(resources)
    .where(
        resources.c.recallable
        != select(func.count())
        .where(and_(messages.c.resource_key == resources.c.key, _RECALLABLE))
        .scalar_subquery()
    ),
    "spaces whose number of vectors is wrong": select(func.count())
    .select_from(spaces)
    .where(
        spaces.c.vectors
        != select(func.coalesce(func.sum(vectors.c.chunks), 0))
        .where(vectors.c.space_key == spaces.c.key, one_per_message())
        .scalar_subquery()
    ),
}
_CHECKS = {what: Statement(statement) for what, statement in _FAULTS.items()}
