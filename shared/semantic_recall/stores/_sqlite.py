"""What only SQLite needs: pragmas, its errors in plain words, its care."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Insert,
    Table,
    and_,
    bindparam,
    exc,
    func,
    select,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import ConnectionPoolEntry

from semantic_recall.errors import StoreError
from semantic_recall.stores._statements import Transaction

BUSY_SECONDS = 30
ERRORS = (sqlite3.Error,)

BEGIN_READ = "BEGIN"
# The driver begins no transaction by itself (see `prepare`). IMMEDIATE takes the write lock at
# once: a transaction that reads first and writes later fails when another process wrote in
# between, and no busy timeout helps.
BEGIN_WRITE = "BEGIN IMMEDIATE"

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


def prepare(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    """Set up a fresh connection.

    FULL makes a commit survive a power loss. secure_delete overwrites what is deleted where that
    costs no extra page. Temporary tables stay in memory, so no text reaches other files.
    """
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=OFF",
        "secure_delete=FAST",
        "temp_store=MEMORY",
        "cache_size=-8192",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def explain(error: Exception, name: str) -> str:
    """Return one sentence with what failed and the remedy."""
    cause = str(error.orig) if isinstance(error, exc.DBAPIError) else str(error)
    for part, remedy in _REMEDIES:
        if part in cause.lower():
            return f"the message store {name} failed ({cause}): {remedy}"
    return f"the message store {name} failed: {cause}"


def scrub(tx: Transaction) -> None:
    """Rewrite the file without freed pages and empty the write-ahead log."""
    tx.sql("VACUUM")
    if tx.sql("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
        raise StoreError(
            "the write-ahead log could not be emptied while another connection reads; the"
            " deleted text may still be in it: scrub again later"
        )


def faults(tx: Transaction) -> list[str]:
    """Return what SQLite finds wrong with its own file."""
    lines = tx.sql("PRAGMA quick_check(20)")
    return [f"SQLite: {line}" for (line,) in lines if line != "ok"]


def has_table(tx: Transaction, name: str) -> bool:
    """Tell whether a table exists."""
    return bool(tx.sql("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name))


def size(tx: Transaction) -> int:
    """Return the bytes of the database file."""
    pages: int = tx.sql("PRAGMA page_count")[0][0]
    page: int = tx.sql("PRAGMA page_size")[0][0]
    return pages * page


def among(column: ColumnElement[int] | ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Return `column IN` the list bound as `name` (see `listed`).

    One parameter for any number of values: no limit on variables, and one statement to compile.
    """
    return column.in_(select(func.json_each(bindparam(name)).table_valued("value").c.value))


def paired(
    first: ColumnElement[int], second: ColumnElement[str], name: str
) -> tuple[FromClause, ColumnElement[bool]]:
    """Return a table of the pairs bound as `name` and the condition that joins them."""
    pairs = func.json_each(bindparam(name)).table_valued("value", name="pairs")
    return pairs, and_(
        first == func.json_extract(pairs.c.value, "$[0]"),
        second == func.json_extract(pairs.c.value, "$[1]"),
    )


def listed(values: Iterable[object]) -> str:
    """Return the parameter for `among` or `paired`."""
    return json.dumps(list(values))


def insert_missing(table: Table) -> Insert:
    """Return an insert that leaves rows alone whose key is there already."""
    return insert(table).on_conflict_do_nothing()
