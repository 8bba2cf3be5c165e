"""SQLite: pragmas, its errors in plain words, its care."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import bindparam, exc, insert, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import Pool, QueuePool
from sqlalchemy.schema import CreateIndex, CreateTable

from semantic_recall.errors import StoreError
from semantic_recall.stores import _sqlite_fulltext, _sqlite_vectors
from semantic_recall.stores._backend import Compiled, Cursor, FullText, NearestVectors, VectorRows
from semantic_recall.stores._schema import counters, metadata
from semantic_recall.stores._statements import Statement, Transaction

BUSY_SECONDS = 30
_DIALECT = sqlite.dialect()

_REMEDIES = (
    ("locked", "another process kept it locked for 30 s; try again, or look for a stuck process"),
    ("disk is full", "the disk is full; free space and try again, nothing was half written"),
    ("readonly", "it is read-only; check the permissions of the file and its folder"),
    ("unable to open", "it cannot be opened; check that the folder exists and can be written"),
    ("not a database", "it is not a database; give another path, or move that file away"),
    ("malformed", "it is damaged; restore a backup, or rescue it with `sqlite3 FILE .recover`"),
    ("disk i/o error", "the disk reported an error; check the disk and the free space"),
    ("no such module: fts5", "this Python's SQLite has no FTS5; install one that has it"),
)


_RESERVE = Statement(
    update(counters)
    .where(counters.c.name == "message")
    .values(value=counters.c.value + bindparam("n"))
    .returning(counters.c.value)
)
_COUNTER = Statement(insert(counters), ("name", "value"))


class SQLite:
    """A `Backend` in one file; see there for what the methods do.

    Args:
        path: The file; made when missing, its folder is not.
    """

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    one_writer = in_process = True
    # The driver begins no transaction by itself (see `_connect`). IMMEDIATE takes the write lock
    # at once: a transaction that reads first and writes later fails when another process wrote
    # in between, and no busy timeout helps.
    begin_read = ("BEGIN",)
    # FULL waits for the disk at every commit, which takes longer than all the rest of a turn;
    # NORMAL leaves that to the next commit with FULL. Either way no commit is ever half there.
    begin_write = begin_alone = begin_migration = ("PRAGMA synchronous=FULL", "BEGIN IMMEDIATE")
    begin_derived = ("PRAGMA synchronous=NORMAL", "BEGIN IMMEDIATE")
    full_text: FullText = _sqlite_fulltext
    vector_rows: VectorRows = _sqlite_vectors
    nearest_vectors: NearestVectors | None = None

    def __init__(self, path: Path) -> None:
        self.name = str(path)

    def pool(self) -> Pool:
        return QueuePool(self._connect, pool_size=8, max_overflow=-1)

    def _connect(self) -> Any:  # noqa: ANN401 - SQLAlchemy's name for it is not public
        return _connect(self.name)

    def batch(
        self, connection: sqlite3.Connection, delayed: bool
    ) -> AbstractContextManager[Cursor]:
        return nullcontext(connection.cursor())

    def compiled(self, statement: Statement) -> Compiled:
        return statement.compiled(_DIALECT)

    def explain(self, error: Exception) -> str:
        cause = str(error.orig) if isinstance(error, exc.DBAPIError) else str(error)
        for part, remedy in _REMEDIES:
            if part in cause.lower():
                return f"the message store {self.name} failed ({cause}): {remedy}"
        return f"the message store {self.name} failed: {cause}"

    def conflict(self, error: Exception) -> bool:
        return False  # one writer at a time

    def lost(self, connection: object) -> bool:
        return False

    def listed(self, values: Iterable[object]) -> str:
        given = list(values)
        # Numbers stand in JSON as in Python, where they are written several times faster.
        return repr(given) if {int}.issuperset(map(type, given)) else json.dumps(given)

    def new_keys(self, tx: Transaction, n: int) -> Sequence[int]:
        last: int = tx.value(_RESERVE, n=n)
        return range(last - n + 1, last + 1)

    def create(self, tx: Transaction) -> None:
        for table in metadata.sorted_tables:
            tx.sql(str(CreateTable(table).compile(dialect=_DIALECT)))
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                tx.sql(str(CreateIndex(index).compile(dialect=_DIALECT)))
        tx.run(_COUNTER, name="message", value=0)
        tx.sql(_sqlite_fulltext.CREATE)

    def ready(self, tx: Transaction) -> None:
        pass

    def has_table(self, tx: Transaction, name: str) -> bool:
        return bool(tx.sql("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name))

    def size(self, tx: Transaction) -> int:
        pages: int = tx.sql("PRAGMA page_count")[0][0]
        page: int = tx.sql("PRAGMA page_size")[0][0]
        return pages * page

    def faults(self, tx: Transaction) -> list[str]:
        lines = tx.sql("PRAGMA quick_check(20)")
        return [f"SQLite: {line}" for (line,) in lines if line != "ok"]

    def scrub(self, tx: Transaction) -> None:
        _sqlite_fulltext.optimize(tx)
        tx.sql("VACUUM")
        if tx.sql("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise StoreError(
                "the write-ahead log could not be emptied while another connection reads; the"
                " deleted text may still be in it: scrub again later"
            )


def _connect(path: str) -> sqlite3.Connection:
    """Return a fresh connection.

    FULL makes a commit survive a power loss. secure_delete overwrites what is deleted where that
    costs no extra page. Temporary tables stay in memory, so no text reaches other files.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    cursor = connection.cursor()
    _use_wal(cursor)
    for pragma in (
        "synchronous=FULL",
        "foreign_keys=OFF",
        "secure_delete=FAST",
        "temp_store=MEMORY",
        "cache_size=-8192",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Turn the write-ahead log on, which for a new file means to write to it.

    Where another process does the same just then, SQLite gives up without waiting for it.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(random.random() * 0.02)  # at random, or they meet again
