"""Readers for the chats that people have; each format has its own file.

`read(path)` finds the format by the content and yields `Message` objects, and a `BadRecord` with
place and reason for everything that is no message. Nothing is stored, nothing is changed, and no
file is in memory whole.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from semantic_recall.errors import ImportFormatError
from semantic_recall.importers._archive import archive_at, conversation_files, is_archive
from semantic_recall.importers._postgres import is_url, without_password
from semantic_recall.importers._protocols import (
    Database,
    FileImporter,
    Importer,
    Position,
    TablesImporter,
)
from semantic_recall.importers._records import BadRecord, Defaults
from semantic_recall.importers._sql import Source, database_at, is_database
from semantic_recall.importers.chatgpt import ChatGPTImporter
from semantic_recall.importers.claude import ClaudeImporter
from semantic_recall.importers.jsonl import JsonLinesImporter
from semantic_recall.importers.langchain import LangChainImporter, LangChainTablesImporter
from semantic_recall.importers.langgraph import LangGraphImporter
from semantic_recall.importers.llamaindex import LlamaIndexImporter, LlamaIndexTablesImporter
from semantic_recall.importers.openai_messages import OpenAIMessagesImporter
from semantic_recall.importers.slack import SlackImporter
from semantic_recall.types import Message

__all__ = [
    "FORMATS",
    "AnyImporter",
    "BadRecord",
    "ChatGPTImporter",
    "ClaudeImporter",
    "Database",
    "Defaults",
    "FileImporter",
    "Importer",
    "JsonLinesImporter",
    "LangChainImporter",
    "LangChainTablesImporter",
    "LangGraphImporter",
    "LlamaIndexImporter",
    "LlamaIndexTablesImporter",
    "OpenAIMessagesImporter",
    "Position",
    "SlackImporter",
    "Source",
    "TablesImporter",
    "defaults_of",
    "detect",
    "is_url",
    "named",
    "read",
    "read_with",
    "without_password",
]

AnyImporter: TypeAlias = "Importer | FileImporter | TablesImporter"

_HEAD_BYTES = 2**16
# The most particular first: a message of any format has a role somewhere.
_OF_TEXT: tuple[Importer, ...] = (
    ChatGPTImporter(),
    ClaudeImporter(),
    LangChainImporter(),
    LlamaIndexImporter(),
    JsonLinesImporter(),
    OpenAIMessagesImporter(),
)
_OF_FILES: tuple[FileImporter, ...] = (
    SlackImporter(),
    SlackImporter(replies_apart=True),
    LangGraphImporter(),
)
_OF_TABLES: tuple[TablesImporter, ...] = (LangChainTablesImporter(), LlamaIndexTablesImporter())

_ALL: tuple[AnyImporter, ...] = (*_OF_TEXT, *_OF_FILES, *_OF_TABLES)

FORMATS: Mapping[str, AnyImporter] = MappingProxyType({one.name: one for one in _ALL})
"""The known formats by name."""

# What a file starts with that is text in another encoding, or no text at all. Four bytes first:
# the mark of UTF-32 starts with that of UTF-16.
_FOREIGN = (
    (codecs.BOM_UTF32_LE, "UTF-32 text; save it as UTF-8"),
    (codecs.BOM_UTF32_BE, "UTF-32 text; save it as UTF-8"),
    (codecs.BOM_UTF16_LE, "UTF-16 text; save it as UTF-8"),
    (codecs.BOM_UTF16_BE, "UTF-16 text; save it as UTF-8"),
    (b"\x1f\x8b", "compressed with gzip; unpack it first"),
)


def detect(source: Source) -> AnyImporter:
    """Return the importer for a file, folder or database, by its content.

    Of a text the first 64 KiB decide, of an archive or folder the files in it, of a database its
    tables.

    Raises:
        ImportFormatError: It is in no known format, empty, damaged, or cannot be opened.
        MissingDependencyError: psycopg is not installed, which postgresql:// needs.
    """
    source = _as_source(source)
    try:
        if is_database(source):
            return _in_database(source)
        path = Path(source)
        if is_archive(path):
            return _in_archive(path)
        with path.open("rb") as stream:
            return _in_text(stream.read(_HEAD_BYTES), str(path))
    except OSError as error:
        raise ImportFormatError(f"{source} cannot be read: {error.strerror}") from error


def _as_source(source: Source) -> Source:
    return source if isinstance(source, str) and is_url(source) else Path(source)


def _in_database(source: Source) -> AnyImporter:
    with database_at(source) as database:
        for importer in _OF_TABLES:
            if importer.recognises_tables(database):
                return importer
    if isinstance(source, Path):
        return _in_files(source, "an SQLite database without tables of a known chat history")
    raise ImportFormatError(
        f"{without_password(source)} has no tables of a known chat history in its search path "
        f"(another: ?options=-csearch_path%3DNAME). Known formats: {_known()}"
    )


def _in_archive(path: Path) -> AnyImporter:
    with archive_at(path) as archive:
        for name in conversation_files(archive):
            with archive.open(name) as stream:
                return _in_text(stream.read(_HEAD_BYTES), f"{name} in {path}")
    kind = "a folder" if path.is_dir() else "a ZIP archive"
    return _in_files(
        path, f"{kind} without conversations.json (ChatGPT, Claude) or days of channels (Slack)"
    )


def _in_files(path: Path, otherwise: str) -> FileImporter:
    for importer in _OF_FILES:
        if importer.recognises_file(path):
            return importer
    raise ImportFormatError(f"{path} is {otherwise}. Known formats: {_known()}")


def _in_text(data: bytes, what: str) -> Importer:
    for start, found in _FOREIGN:
        if data.startswith(start):
            raise ImportFormatError(f"{what} is {found}")
    # Wrong bytes are the importers' business: they can name the line.
    head = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")
    if not head.strip():
        raise ImportFormatError(f"{what} is empty")
    for importer in _OF_TEXT:
        if importer.recognises(head):
            return importer
    raise ImportFormatError(f"{what} is in no known format. Known formats: {_known()}")


def named(name: str) -> AnyImporter:
    """Return the importer of a format.

    Raises:
        ImportFormatError: There is no format with this name.
    """
    if name not in FORMATS:
        raise ImportFormatError(f"there is no format {name!r}. Known formats: {_known()}")
    return FORMATS[name]


def read(
    source: Source,
    *,
    thread_id: str | None = None,
    resource_id: str | None = None,
    importer: AnyImporter | None = None,
) -> Iterator[Message | BadRecord]:
    """Yield the messages of a file, and a `BadRecord` for each that cannot be read.

    Args:
        source: The file: a text, a ZIP archive or an SQLite database; a folder; or the URL of a
            PostgreSQL database.
        thread_id: The thread of messages that name none; the file's name without its ending
            when not given.
        resource_id: The resource of messages that name none.
        importer: The format; found by the content when not given.

    Raises:
        ImportFormatError: It is in no known format or cannot be opened.
        MissingDependencyError: The format needs a package that is not installed.
    """
    source = _as_source(source)
    importer = importer or detect(source)
    defaults = defaults_of(source, thread_id=thread_id, resource_id=resource_id)
    yield from read_with(importer, source, defaults, Position())


def defaults_of(
    source: Source, *, thread_id: str | None = None, resource_id: str | None = None
) -> Defaults:
    """Return what messages get that do not say it themselves, see `Defaults`.

    Raises:
        OSError: The file cannot be looked at.
    """
    if isinstance(source, str) and is_url(source):
        return Defaults.of_database(thread_id=thread_id, resource_id=resource_id)
    return Defaults.of_file(Path(source), thread_id=thread_id, resource_id=resource_id)


def read_with(
    importer: AnyImporter, source: Source, defaults: Defaults, position: Position
) -> Iterator[Message | BadRecord]:
    """Yield what an importer finds in a file, folder or database.

    Args:
        importer: The format.
        source: The file, folder or URL; for a format of text also an archive or folder that holds
            it as conversations.json.
        defaults: What messages get that do not say it themselves.
        position: Kept up to date while the file is read.

    Raises:
        ImportFormatError: It cannot be read, or holds nothing in this format.
        MissingDependencyError: The format needs a package that is not installed.
    """
    position.undated = defaults.created_at
    source = _as_source(source)
    if isinstance(importer, TablesImporter):
        if not is_database(source):
            raise ImportFormatError(f"{source} is no SQLite database and no postgresql:// URL")
        with database_at(source) as database:
            yield from importer.read_tables(database, defaults, position)
        return
    if isinstance(source, str):
        raise ImportFormatError(
            f"{importer.name} is a format of files; {without_password(source)} is a database"
        )
    yield from _read_file(importer, source, defaults, position)


def _read_file(
    importer: Importer | FileImporter, path: Path, defaults: Defaults, position: Position
) -> Iterator[Message | BadRecord]:
    if isinstance(importer, FileImporter):
        yield from importer.read_file(path, defaults, position)
        return
    if is_archive(path):
        yield from _read_archive(importer, path, defaults, position)
        return
    position.total = path.stat().st_size
    with path.open("rb") as stream:
        for item in importer.read(stream, defaults):
            position.done = stream.tell()
            yield item
    position.done = position.total


def _read_archive(
    importer: Importer, path: Path, defaults: Defaults, position: Position
) -> Iterator[Message | BadRecord]:
    with archive_at(path) as archive:
        names = conversation_files(archive)
        if not names:
            raise ImportFormatError(f"{path} has no conversations.json")
        position.total = sum(archive.sizes[name] for name in names)
        for name in names:
            start = position.done
            with archive.open(name) as stream:
                for item in importer.read(stream, defaults):
                    position.done = start + stream.tell()
                    if isinstance(item, BadRecord):
                        item = BadRecord(item.line, item.reason, f"{name}, {item.where}")
                    yield item
            position.done = start + archive.sizes[name]


def _known() -> str:
    return "; ".join(f"{one.name} ({one.description})" for one in FORMATS.values())
