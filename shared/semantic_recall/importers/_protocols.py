"""What a reader of a format has to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

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


@runtime_checkable
class FileImporter(Protocol):
    """Reads one format that is no single text: a database, or a folder or archive of files."""

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
