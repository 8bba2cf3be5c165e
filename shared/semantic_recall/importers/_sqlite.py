"""SQLite files that other programs wrote: opened to read, never changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from semantic_recall.errors import ImportFormatError

MAGIC = b"SQLite format 3\x00"

_WAL_VERSION = 18
"""The byte of the header that is 2 in a database with a write-ahead log."""


def is_sqlite(path: Path) -> bool:
    """Tell whether `path` is a file that starts like an SQLite database."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


class Database:
    """A database of somebody else, open for reading."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def tables_with(self, columns: Collection[str]) -> list[str]:
        """Return the tables that have all of these columns."""
        tables = [
            str(row[0])
            for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        ]
        return [table for table in tables if set(columns) <= self.columns(table)]

    def columns(self, table: str) -> set[str]:
        """Return the names of a table's columns."""
        return {str(row[0]) for row in self.rows("SELECT name FROM pragma_table_info(?)", table)}

    def rows(self, statement: str, *values: str) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query; one at a time is in memory.

        Raises:
            ImportFormatError: The database is damaged or locked.
        """
        try:
            yield from self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise ImportFormatError(
                f"{self._path} is an SQLite database that cannot be read: {error}"
            ) from error


@contextmanager
def database_at(path: Path) -> Iterator[Database]:
    """Open a database so that neither it nor its folder changes.

    Raises:
        ImportFormatError: It cannot be opened.
    """
    with path.open("rb") as stream:
        header = stream.read(_WAL_VERSION + 1)
    # Even a reader makes files beside a database with a write-ahead log, and nobody has this one
    # open when there is no log.
    alone = header[_WAL_VERSION:] == b"\x02" and not Path(f"{path}-wal").exists()
    options = "mode=ro&immutable=1" if alone else "mode=ro"
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?{options}", uri=True)
    except sqlite3.Error as error:
        raise ImportFormatError(f"{path} cannot be opened: {error}") from error
    connection.text_factory = _decode
    with closing(connection):
        yield Database(path, connection)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
