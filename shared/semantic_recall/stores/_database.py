"""One database behind SQLAlchemy: connections, transactions, errors."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, event, exc
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.pool import Pool, PoolProxiedConnection, QueuePool

from semantic_recall.errors import StoreClosedError, StoreError
from semantic_recall.stores import _sqlite
from semantic_recall.stores._statements import Transaction

_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: list[Pool] = []
"""In a forked child, the connections of the parent. They are kept, because the garbage collector
would close them, and closing the last connection of a process may remove the write-ahead log."""


class UsesDatabase:
    """A part of the store."""

    def __init__(self, database: Database) -> None:
        self._db = database


class Database:
    """Transactions on one database, for any number of threads.

    Reads run in a deferred transaction, so that each sees one snapshot. Writes take a lock of
    this process first: threads then queue for it, where SQLite would have them poll the file.

    Args:
        path: The SQLite file; made when missing, its folder is not.

    Raises:
        StoreError: The file cannot be opened or is not a database.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._engine = _engine(path)
        self._lock = threading.Lock()
        self._closed = False
        _OPEN.add(self)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a snapshot to read from."""
        with self._errors(), self._cursor() as (cursor, _):
            cursor.execute(_sqlite.BEGIN_READ)
            yield Transaction(cursor, self._engine.dialect)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a write transaction; it is durable when the block ends without an exception."""
        with self._errors(), self._lock, self._cursor() as (cursor, connection):
            cursor.execute(_sqlite.BEGIN_WRITE)
            yield Transaction(cursor, self._engine.dialect)
            connection.commit()

    @contextmanager
    def bare(self) -> Iterator[Transaction]:
        """Open a connection without a transaction, for VACUUM and checkpoints."""
        with self._errors(), self._lock, self._cursor() as (cursor, _):
            yield Transaction(cursor, self._engine.dialect)

    def close(self) -> None:
        """Release every connection; closing twice is fine."""
        with self._lock:
            self._closed = True
        self._engine.dispose()

    def after_fork(self) -> None:
        """Forget the parent's connections without touching them: SQLite's do not survive a fork.

        The lock may have been held by a thread that does not exist in the child.
        """
        _INHERITED.append(self._engine.pool)
        self._engine.dispose(close=False)
        self._lock = threading.Lock()

    @contextmanager
    def _cursor(self) -> Iterator[tuple[DBAPICursor, PoolProxiedConnection]]:
        if self._closed:
            raise StoreClosedError(f"the message store {self.name} is closed")
        connection = self._engine.raw_connection()
        try:
            yield connection.cursor(), connection
        finally:
            if self._closed:
                connection.invalidate()
            else:
                connection.close()  # to the pool, which rolls back what was not committed

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The one place where driver errors become ours."""
        try:
            yield
        except (exc.SQLAlchemyError, *_sqlite.ERRORS) as error:
            if self._closed:
                raise StoreClosedError(f"the message store {self.name} is closed") from error
            raise StoreError(_sqlite.explain(error, self.name)) from error


def _engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=8,
        max_overflow=-1,
        connect_args={"check_same_thread": False, "timeout": _sqlite.BUSY_SECONDS},
    )
    event.listen(engine, "connect", _sqlite.prepare)
    return engine


def _after_fork() -> None:
    for database in list(_OPEN):
        database.after_fork()


# Not on Windows, which has no fork.
if os.name == "posix":
    os.register_at_fork(after_in_child=_after_fork)
