"""The steps that bring a database to the form this version knows, in order.

A step is applied once, in one transaction together with its record. The whole walk runs under
the write lock, so of two processes that open a new file one does the work and the other finds
it done.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, insert, inspect, select

from semantic_recall.errors import StoreError
from semantic_recall.stores import _fulltext
from semantic_recall.stores._database import Database
from semantic_recall.stores._schema import counters, metadata, migrations


def _m001_initial(connection: Connection) -> None:
    metadata.create_all(connection)
    connection.execute(insert(counters).values(name="message", value=0))
    connection.exec_driver_sql(_fulltext.CREATE)


MIGRATIONS: tuple[tuple[str, Callable[[Connection], None]], ...] = (
    ("m001_initial", _m001_initial),
)


def migrate(database: Database) -> None:
    """Apply what is missing.

    Raises:
        StoreError: The database has steps of a newer version of this library, or cannot be
            written.
    """
    with database.read() as connection:
        if _applied(connection, database.name) == len(MIGRATIONS):
            return
    for number in range(1, len(MIGRATIONS) + 1):
        with database.write() as connection:
            if _applied(connection, database.name) < number:
                name, step = MIGRATIONS[number - 1]
                step(connection)
                connection.execute(insert(migrations).values(name=name))


def _applied(connection: Connection, where: str) -> int:
    if not inspect(connection).has_table(migrations.name):
        return 0
    found = (
        connection.execute(select(migrations.c.name).order_by(migrations.c.name)).scalars().all()
    )
    known = [name for name, _ in MIGRATIONS]
    newer = [name for name in found if name not in known]
    if newer:
        raise StoreError(
            f"the message store {where} was written by a newer version of chat-semantic-recall"
            f" (it has {', '.join(newer)}); upgrade the package to open it"
        )
    return len(found)
