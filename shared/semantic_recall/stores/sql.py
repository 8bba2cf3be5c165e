"""The message store in SQL: SQLite in one file, or PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from semantic_recall.errors import MissingDependencyError
from semantic_recall.stores._adding import Adding
from semantic_recall.stores._backend import Backend
from semantic_recall.stores._care import Care
from semantic_recall.stores._database import Database
from semantic_recall.stores._erasure import Erasure
from semantic_recall.stores._messages import Messages
from semantic_recall.stores._migrations import migrate
from semantic_recall.stores._nearest import Nearest
from semantic_recall.stores._search import Search
from semantic_recall.stores._spaces import Spaces
from semantic_recall.stores._sqlite import SQLite
from semantic_recall.stores._vectors import Vectors
from semantic_recall.stores._windows import Windows


class SQLMessageStore(Adding, Messages, Windows, Search, Nearest, Vectors, Spaces, Erasure, Care):
    """A `MessageStore` in one SQL database, safe for many threads and many processes.

    Each base class is one idea of the store, in a file of its own; `MessageStore` in
    `semantic_recall.protocols` says what every method promises.
    """

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open or create the SQLite database in the file `path`; its folder must exist.

        Raises:
            StoreError: The file is not a database, was written by a newer version, or cannot
                be opened.
        """
        return cls._open(SQLite(Path(path)), outbox=True)

    @classmethod
    def connect(cls, url: str, *, outbox: bool = True) -> Self:
        """Open or create the store in a PostgreSQL database with pgvector.

        The tables are in the schema `semantic_recall`, or in the first of the URL's own search
        path (`?options=-csearch_path%3DNAME`). The database must exist.

        Args:
            url: postgresql://user:password@host:5432/database with any parameters of libpq, and
                `pool_size` (default 10), the most connections that this store opens.
            outbox: Queue every change for a vector index beside the database. The nearest
                vectors can be had from the database itself (`nearest`), which needs no queue.

        Raises:
            StoreError: The database cannot be reached, lacks pgvector, or was written by a newer
                version.
            MissingDependencyError: psycopg is not installed.
        """
        try:
            # An optional driver, and SQLite does without.
            from semantic_recall.stores._postgres import Postgres  # noqa: PLC0415
        except ImportError as error:
            raise MissingDependencyError(
                'a memory in PostgreSQL needs psycopg; pip install "chat-semantic-recall[postgres]"'
            ) from error
        return cls._open(Postgres(url), outbox=outbox)

    @classmethod
    def _open(cls, backend: Backend, *, outbox: bool) -> Self:
        database = Database(backend)
        try:
            migrate(database)
        except BaseException:
            database.close()
            raise
        return cls(database, outbox=outbox)

    def close(self) -> None:
        """See `MessageStore.close`."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
