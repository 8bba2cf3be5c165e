"""A ZIP archive or a folder, read file by file without unpacking."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from semantic_recall.errors import ImportFormatError

# Newer exports of ChatGPT come in parts: conversations-000.json, conversations-001.json, ...
_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")


class Archive(Protocol):
    """Files with names, in no particular order."""

    @property
    def sizes(self) -> dict[str, int]:
        """The files' names, with "/" between the parts, and their sizes in bytes."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file.

        Raises:
            ImportFormatError: It cannot be read.
        """
        ...


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.sizes = {
            one.relative_to(path).as_posix(): one.stat().st_size
            for one in path.rglob("*")
            if one.is_file()
        }

    def open(self, name: str) -> BinaryIO:
        try:
            return (self._path / name).open("rb")
        except OSError as error:
            raise ImportFormatError(
                f"{name} in {self._path} cannot be read: {error.strerror}"
            ) from error


class _Zip:
    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self._path = path
        self._file = file
        self.sizes = {one.filename: one.file_size for one in file.infolist() if not one.is_dir()}

    def open(self, name: str) -> BinaryIO:
        try:
            return cast("BinaryIO", self._file.open(name))
        except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
            raise ImportFormatError(f"{name} in {self._path} cannot be read: {error}") from error


@contextmanager
def archive_at(path: Path) -> Iterator[Archive]:
    """Open a folder or a ZIP archive.

    Raises:
        ImportFormatError: It is damaged, or cannot be read.
    """
    if path.is_dir():
        yield _Folder(path)
        return
    try:
        file = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ImportFormatError(f"{path} is a damaged ZIP archive: {error}") from error
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}") from error
    try:
        with file:
            yield _Zip(path, file)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:  # found only while it is read
        raise ImportFormatError(f"{path} is a damaged ZIP archive: {error}") from error


def is_archive(path: Path) -> bool:
    """Tell whether `path` is a folder or starts like a ZIP archive."""
    if path.is_dir():
        return True
    with path.open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


def conversation_files(archive: Archive) -> list[str]:
    """Return the names of conversations.json, or of its parts in order; the least nested ones."""
    found = sorted(name for name in archive.sizes if _CONVERSATIONS.fullmatch(name))
    least = min((name.count("/") for name in found), default=0)
    return [name for name in found if name.count("/") == least]
