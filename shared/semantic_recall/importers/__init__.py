"""Readers for files of messages; each format has its own file.

`read(path)` finds the format by the file's content and yields `Message` objects, and a
`BadRecord` with line and reason for everything that is no message. Nothing is stored and the
file is never in memory whole.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from semantic_recall.errors import ImportFormatError
from semantic_recall.importers._records import BadRecord, Defaults, Importer
from semantic_recall.importers.jsonl import JsonLinesImporter
from semantic_recall.importers.openai_messages import OpenAIMessagesImporter
from semantic_recall.types import Message

__all__ = [
    "FORMATS",
    "BadRecord",
    "Defaults",
    "Importer",
    "JsonLinesImporter",
    "OpenAIMessagesImporter",
    "detect",
    "named",
    "read",
]

_HEAD_BYTES = 2**16
_IMPORTERS: tuple[Importer, ...] = (JsonLinesImporter(), OpenAIMessagesImporter())

FORMATS: Mapping[str, Importer] = MappingProxyType({one.name: one for one in _IMPORTERS})
"""The known formats by name."""

# What a file starts with that is text in another encoding, or no text at all. Four bytes first:
# the mark of UTF-32 starts with that of UTF-16.
_FOREIGN = (
    (codecs.BOM_UTF32_LE, "UTF-32 text; save it as UTF-8"),
    (codecs.BOM_UTF32_BE, "UTF-32 text; save it as UTF-8"),
    (codecs.BOM_UTF16_LE, "UTF-16 text; save it as UTF-8"),
    (codecs.BOM_UTF16_BE, "UTF-16 text; save it as UTF-8"),
    (b"\x1f\x8b", "compressed with gzip; unpack it first"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"SQLite format 3\x00", "an SQLite database, not an export"),
)


def detect(path: str | Path) -> Importer:
    """Return the importer for a file, by its first 64 KiB.

    Raises:
        ImportFormatError: The file is in no known format, empty, or cannot be opened.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}") from error
    for start, what in _FOREIGN:
        if head.startswith(start):
            raise ImportFormatError(f"{path} is {what}")
    # Wrong bytes are the importers' business: they can name the line.
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")
    if not text.strip():
        raise ImportFormatError(f"{path} is empty")
    for importer in FORMATS.values():
        if importer.recognises(text):
            return importer
    raise ImportFormatError(f"{path} is in no known format. Known formats: {_known()}")


def named(name: str) -> Importer:
    """Return the importer of a format.

    Raises:
        ImportFormatError: There is no format with this name.
    """
    if name not in FORMATS:
        raise ImportFormatError(f"there is no format {name!r}. Known formats: {_known()}")
    return FORMATS[name]


def read(
    path: str | Path,
    *,
    thread_id: str | None = None,
    resource_id: str | None = None,
    importer: Importer | None = None,
) -> Iterator[Message | BadRecord]:
    """Yield the messages of a file, and a `BadRecord` for each that cannot be read.

    Args:
        path: The file.
        thread_id: The thread of messages that name none; the file's name without its ending
            when not given.
        resource_id: The resource of messages that name none.
        importer: The format; found by the content when not given.

    Raises:
        ImportFormatError: The file is in no known format or cannot be opened.
    """
    path = Path(path)
    importer = importer or detect(path)
    defaults = Defaults.of_file(path, thread_id=thread_id, resource_id=resource_id)
    with path.open("rb") as stream:
        yield from importer.read(stream, defaults)


def _known() -> str:
    return "; ".join(f"{one.name} ({one.description})" for one in FORMATS.values())
