"""The steps that bring a database to the form this version knows, in order.

A step is applied once, in one transaction together with its record. Whether it is still to do is
looked up inside that transaction, so of two processes that open a new file one does the work and
the other finds it done.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import insert, select

from semantic_recall.errors import StoreError
from semantic_recall.stores._database import Database, retried
from semantic_recall.stores._schema import migrations
from semantic_recall.stores._statements import Statement, Transaction


def _m001_initial(tx: Transaction) -> None:
    tx.backend.create(tx)


MIGRATIONS: tuple[tuple[str, Callable[[Transaction], None]], ...] = (
    ("m001_initial", _m001_initial),
)

_APPLIED = Statement(select(migrations.c.name).order_by(migrations.c.name))
_RECORD = Statement(insert(migrations), ("name",))


@retried
def migrate(database: Database) -> None:
    """Apply what is missing.

    Raises:
        StoreError: The database has steps of a newer version of this library, or cannot be
            written.
    """
    with database.read() as tx:
        done = _applied(tx, database.name)
    for number, (name, step) in enumerate(MIGRATIONS[done:], done):
        with database.migrate() as tx:
            if _applied(tx, database.name) == number:
                step(tx)
                tx.run(_RECORD, name=name)
    with database.read() as tx:
        tx.backend.ready(tx)


def _applied(tx: Transaction, where: str) -> int:
    if not tx.backend.has_table(tx, migrations.name):
        return 0
    found = [row[0] for row in tx.all(_APPLIED)]
    known = [name for name, _ in MIGRATIONS]
    newer = [name for name in found if name not in known]
    if newer:
        raise StoreError(
            f"the message store {where} was written by a newer version of chat-semantic-recall"
            f" (it has {', '.join(newer)}); upgrade the package to open it"
        )
    return len(found)
