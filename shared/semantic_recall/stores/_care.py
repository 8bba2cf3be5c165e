"""Settings, sizes and the store's own consistency."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select

from semantic_recall.protocols import Part
from semantic_recall.stores import _sqlite
from semantic_recall.stores._database import UsesDatabase
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
from semantic_recall.stores._text import escape, unescape


class Care(UsesDatabase):
    """The part of the store that looks after itself."""

    def check(self) -> list[str]:
        """See `MessageStore.check`."""
        with self._db.read() as connection:
            problems = _sqlite.faults(connection)
            for what, statement in _FAULTS.items():
                n = connection.execute(statement).scalar_one()
                if n:
                    problems.append(f"{n} {what}")
        return problems

    def setting(self, name: str, default: str, /) -> str:
        """See `MessageStore.setting`."""
        wanted = select(settings.c.value).where(settings.c.name == escape(name))
        with self._db.read() as connection:
            value: str | None = connection.execute(wanted).scalar()
        if value is None:
            row = {"name": escape(name), "value": escape(default)}
            with self._db.write() as connection:
                connection.execute(_sqlite.insert_missing(settings), row)
                value = connection.execute(wanted).scalar_one()
        return unescape(value)

    def size(self) -> Mapping[str, int]:
        """See `MessageStore.size`."""
        with self._db.read() as connection:
            return {
                "messages": _number(connection, select(func.count()).select_from(messages)),
                "threads": _number(connection, select(func.count()).select_from(threads)),
                "resources": _number(connection, select(func.count()).select_from(resources)),
                "vectors": _number(
                    connection, select(func.coalesce(func.sum(spaces.c.vectors), 0))
                ),
                "pending": _number(connection, select(func.count()).select_from(pending)),
                "outbox": _number(connection, select(func.count()).select_from(outbox)),
                "bytes": _sqlite.size(connection),
            }


def _number(connection: Connection, statement: Select[tuple[int]]) -> int:
    return connection.execute(statement).scalar_one()


def _orphans(of: ColumnElement[int]) -> Select[tuple[int]]:
    return select(func.count()).where(of.not_in(select(messages.c.key)))


_RECALLABLE = messages.c.part > int(Part.HIDDEN)
_FAULTS: dict[str, Select[tuple[int]]] = {
    "rows of vectors without their message": _orphans(vectors.c.key),
    "rows of terms without their message": _orphans(terms.c.key),
    "pending rows without their message": _orphans(pending.c.key),
    "messages without their thread": select(func.count()).where(
        messages.c.thread_key.not_in(select(threads.c.key))
    ),
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
        .where(vectors.c.space_key == spaces.c.key)
        .scalar_subquery()
    ),
}
