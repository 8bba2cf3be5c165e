"""What a reader of a format has to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

from semantic_recall.importers._records import BadRecord, Defaults
from semantic_recall.types import Message


class Importer(Protocol):
    """Reads one format of text. Pure parsing: it stores nothing, holds one record at a time."""

    @property
    def name(self) -> str:
        """A short name, for `--format`."""
        ...

    @property
    def description(self) -> str:
        """What the format looks like, in one line."""
        ...

    def recognises(self, head: str) -> bool:
        """Tell whether a file that starts with `head` (up to 64 KiB) is in this format."""
        ...

    def read(self, stream: BinaryIO, defaults: Defaults) -> Iterator[Message | BadRecord]:
        """Yield the messages of the file, in order, and what could not be read as `BadRecord`."""
        ...


@dataclass(slots=True)
class Position:
    """How far a reader is, for a progress bar; the unit is the reader's own."""

    done: int = 0
    total: int = 0
    undated: datetime | None = None
    """The time that a message without one is given just now, such as that of its file. It may be
    another the next time; a message that was stored keeps its first one."""


@runtime_checkable
class FileImporter(Protocol):
    """Reads one format that is no single text: a folder or archive of files, or one database."""

    @property
    def name(self) -> str:
        """A short name, for `--format`."""
        ...

    @property
    def description(self) -> str:
        """What the format looks like, in one line."""
        ...

    def recognises_file(self, path: Path) -> bool:
        """Tell whether the file or folder is in this format."""
        ...

    def read_file(
        self, path: Path, defaults: Defaults, position: Position
    ) -> Iterator[Message | BadRecord]:
        """Yield the messages, in order, and what could not be read as `BadRecord`.

        Raises:
            ImportFormatError: The file cannot be opened, or holds nothing in this format.
            MissingDependencyError: The package that the format needs is not installed.
        """
        ...


class Database(Protocol):
    """A database of somebody else, open for reading."""

    def tables_with(self, columns: Collection[str]) -> list[str]:
        """Return the tables that have all of these columns."""
        ...

    def columns(self, table: str) -> set[str]:
        """Return the names of a table's columns."""
        ...

    def rows(self, statement: str) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query; a few at a time are in memory.

        Raises:
            ImportFormatError: The database cannot be read.
        """
        ...


@runtime_checkable
class TablesImporter(Protocol):
    """Reads one format of tables, in an SQLite file or in a PostgreSQL database."""

    @property
    def name(self) -> str:
        """A short name, for `--format`."""
        ...

    @property
    def description(self) -> str:
        """What the format looks like, in one line."""
        ...

    def recognises_tables(self, database: Database) -> bool:
        """Tell whether the database has tables in this format."""
        ...

    def read_tables(
        self, database: Database, defaults: Defaults, position: Position
    ) -> Iterator[Message | BadRecord]:
        """Yield the messages, in order, and what could not be read as `BadRecord`.

        Raises:
            ImportFormatError: The database cannot be read.
        """
        ...
