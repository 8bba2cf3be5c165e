"""One database: connections, transactions, errors."""

from __future__ import annotations

import functools
import os
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from sqlalchemy import exc
from sqlalchemy.pool import Pool, PoolProxiedConnection

from semantic_recall.errors import StoreClosedError, StoreError
from semantic_recall.stores._backend import Backend
from semantic_recall.stores._statements import Transaction

_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: list[Pool | deque[PoolProxiedConnection]] = []
"""In a forked child, the connections of the parent. They are kept, because the garbage collector
would close them: closing SQLite's last connection of a process may remove the write-ahead log,
and closing PostgreSQL's ends the parent's session."""

_SPARE = 8
"""How many idle connections are kept at hand: the pool's bookkeeping takes longer than a read."""
_ATTEMPTS = 10
_FIRST_PAUSE = 0.002

_Method = TypeVar("_Method", bound=Callable[..., Any])


class TryAgainError(StoreError):
    """A transaction failed in a way that may be over when it is repeated as a whole."""


def retried(method: _Method) -> _Method:
    """Repeat a method of the store, which is one transaction, while it meets `TryAgainError`."""

    @functools.wraps(method)
    def attempt(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the method takes
        attempts = 1
        while True:
            try:
                return method(*args, **kwargs)
            except TryAgainError:
                if attempts == _ATTEMPTS:
                    raise
            time.sleep(random.random() * _FIRST_PAUSE * 2**attempts)
            attempts += 1

    return attempt  # type: ignore[return-value] # it takes and gives what the method does


class UsesDatabase:
    """A part of the store."""

    def __init__(self, database: Database, *, outbox: bool = True) -> None:
        self._db = database
        self._outbox = outbox


class Database:
    """Transactions on one database, for any number of threads.

    Each read sees one snapshot. Where only one can write at a time, writes take a lock of this
    process first: threads then queue for it, where SQLite would have them poll the file.

    Args:
        backend: The kind of database.
    """

    def __init__(self, backend: Backend) -> None:
        self.name = backend.name
        self._backend = backend
        self._errors: tuple[type[Exception], ...] = (exc.SQLAlchemyError, *backend.errors)
        self._pool = backend.pool()
        # A pool with an upper limit must get its connections back, for somebody may wait for one.
        self._spare: deque[PoolProxiedConnection] = deque()
        self._keeps_spare = backend.in_process
        self._lock = threading.Lock()
        self._closed = False
        _OPEN.add(self)

    def glance(self) -> AbstractContextManager[Transaction]:
        """Open a connection for a single statement that reads; it is a snapshot by itself."""
        return self._transaction(reads=True)

    def read(self) -> AbstractContextManager[Transaction]:
        """Open a snapshot to read from."""
        return self._transaction(self._backend.begin_read, reads=True)

    @contextmanager
    def write(self, *, alone: bool = False) -> Iterator[Transaction]:
        """Open a write transaction; it is durable when the block ends without an exception.

        Args:
            alone: Let no other write at the same time, in any process.
        """
        begin = self._backend.begin_alone if alone else self._backend.begin_write
        with self._writer(), self._transaction(begin) as tx:
            yield tx

    @contextmanager
    def derive(self) -> Iterator[Transaction]:
        """Open one for what is made from what was written: a power loss may undo it as a whole.

        A process that dies loses nothing of it, and whatever `write` writes later makes it durable.
        """
        with self._writer(), self._transaction(self._backend.begin_derived) as tx:
            yield tx

    @contextmanager
    def migrate(self) -> Iterator[Transaction]:
        """Open a write transaction beside which no other migrates."""
        with self._writer(), self._transaction(self._backend.begin_migration, batch=False) as tx:
            yield tx

    @contextmanager
    def bare(self) -> Iterator[Transaction]:
        """Open a connection without a transaction, for VACUUM and checkpoints."""
        with self._writer(), self._transaction() as tx:
            yield tx

    def close(self) -> None:
        """Release every connection; closing twice is fine."""
        with self._lock:
            self._closed = True
        self._drop_spare()
        self._pool.dispose()

    def after_fork(self) -> None:
        """Forget the parent's connections without touching them: they do not survive a fork.

        The lock may have been held by a thread that does not exist in the child.
        """
        _INHERITED.extend((self._spare, self._pool))
        self._spare = deque()
        self._pool = self._pool.recreate()
        self._lock = threading.Lock()

    def _writer(self) -> threading.Lock | nullcontext[None]:
        return self._lock if self._backend.one_writer else nullcontext()

    @contextmanager
    def _transaction(
        self, begin: Sequence[str] = (), *, reads: bool = False, batch: bool = True
    ) -> Iterator[Transaction]:
        """Lend a connection; the one place where driver errors become ours."""
        if self._closed:
            raise StoreClosedError(f"the message store {self.name} is closed")
        ending = lost = clean = False
        connection = None
        pool = self._pool
        try:
            connection = self._borrowed(pool)
            with self._backend.batch(connection.dbapi_connection, batch and bool(begin)) as cursor:
                for statement in begin:
                    cursor.execute(statement)
                yield Transaction(cursor, self._backend)
                ending = True
                if begin:
                    cursor.execute("ROLLBACK" if reads else "COMMIT")
            clean = True
        except self._errors as error:
            if self._closed:
                raise StoreClosedError(f"the message store {self.name} is closed") from error
            again = self._backend.conflict(error)
            lost = connection is not None and self._backend.lost(connection.dbapi_connection)
            if lost:
                self._renew(pool)
                # A write may have been committed before the answer was lost.
                again = reads or (bool(begin) and not ending)
            kind = TryAgainError if again else StoreError
            raise kind(self._backend.explain(error)) from error
        finally:
            if connection is not None:
                if self._closed or lost:
                    connection.invalidate()
                elif clean and self._keeps_spare and pool is self._pool:  # not forked meanwhile
                    self._keep(connection)
                else:
                    connection.close()  # to the pool, which rolls back what was not committed

    def _borrowed(self, pool: Pool) -> PoolProxiedConnection:
        try:
            return self._spare.pop()
        except IndexError:
            return pool.connect()

    def _keep(self, connection: PoolProxiedConnection) -> None:
        if len(self._spare) >= _SPARE:
            connection.close()
            return
        self._spare.append(connection)
        if self._closed:  # meanwhile
            self._drop_spare()

    def _drop_spare(self) -> None:
        while self._spare:
            with suppress(IndexError):  # another thread does the same
                self._spare.pop().close()

    def _renew(self, pool: Pool) -> None:
        """Leave a pool behind whose idle connections are as dead as the one that was used."""
        with self._lock:
            if self._pool is pool:
                self._pool = pool.recreate()
                pool.dispose()


def _after_fork() -> None:
    for database in list(_OPEN):
        database.after_fork()


# Not on Windows, which has no fork.
if os.name == "posix":
    os.register_at_fork(after_in_child=_after_fork)
