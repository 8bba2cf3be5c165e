"""PostgreSQL databases that other programs wrote: read in one transaction that can only read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from semantic_recall.errors import ImportFormatError, MissingDependencyError

if TYPE_CHECKING:
    import psycopg

_URL = re.compile(r"(postgres(?:ql)?)(?:\+\w+)?://")
_PASSWORD = re.compile(r"(?<=://)([^/@?]*?):[^/@]*@|(?<=[?&]password=)[^&]*")
_CURSOR = "semantic_recall_import"
_ROWS_AHEAD = 200
# Of the tables that the search path names; public if the URL does not say another.
_COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    JOIN information_schema.tables USING (table_catalog, table_schema, table_name)
    WHERE table_schema = ANY (current_schemas(false)) AND table_type = 'BASE TABLE'
    ORDER BY table_name
"""


def is_url(source: str) -> bool:
    """Tell whether this is the URL of a PostgreSQL database; SQLAlchemy's way to write it too."""
    return _URL.match(source) is not None


def without_password(url: str) -> str:
    """Return a URL that may be shown."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] is not None else "***", url)


class Database:
    """A database of somebody else, open for reading."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._tables: dict[str, set[str]] = {}
        for table, column in connection.execute(_COLUMNS):
            self._tables.setdefault(str(table), set()).add(str(column))

    def tables_with(self, columns: Collection[str]) -> list[str]:
        """Return the tables that have all of these columns."""
        return [name for name, found in self._tables.items() if set(columns) <= found]

    def columns(self, table: str) -> set[str]:
        """Return the names of a table's columns."""
        return self._tables.get(table, set())

    def rows(self, statement: str) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query, fetched a few at a time."""
        with self._connection.cursor(_CURSOR) as cursor:
            cursor.itersize = _ROWS_AHEAD
            # A statement with the names of tables in it, which a query cannot take as values.
            cursor.execute(statement.encode())
            yield from cursor


@contextmanager
def database_at(url: str) -> Iterator[Database]:
    """Open a database and look at it as it is now, whatever others write meanwhile.

    Raises:
        ImportFormatError: It cannot be reached or read.
        MissingDependencyError: psycopg is not installed.
    """
    # Loaded here, because it needs the extra and no other format does.
    try:
        import psycopg  # noqa: PLC0415 - see above
    except ImportError as error:
        raise MissingDependencyError(
            'importing from PostgreSQL needs psycopg; run: pip install "chat-semantic-recall'
            '[postgres]"'
        ) from error
    try:
        with closing(psycopg.connect(_URL.sub(r"\1://", url), connect_timeout=10)) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            # Times come as text, and must not depend on the server's taste.
            for setting in ("datestyle = 'ISO'", "timezone = 'UTC'", "client_encoding = 'UTF8'"):
                connection.execute(f"SET {setting}".encode())
            yield Database(connection)
    except psycopg.Error as error:
        raise ImportFormatError(
            f"{without_password(url)} cannot be read: {' '.join(str(error).split())}"
        ) from error
