"""JSON documents that are lists of objects, such as the conversations of an export."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple

from semantic_recall.importers._json_stream import JsonStream, JsonSyntaxError
from semantic_recall.importers._records import BadRecord, Defaults, RecordError, to_time
from semantic_recall.types import Message


class Item(NamedTuple):
    """One value of a document."""

    line: int
    value: object


def items(stream: BinaryIO) -> Iterator[Item | BadRecord]:
    """Yield the elements of a JSON list, or the values that stand one after the other.

    One value is in memory at a time. Where the file stops being JSON, one last `BadRecord` says
    so.
    """
    source = JsonStream(stream)
    try:
        if source.peek() == "[":
            yield from elements(source)
            return
        while source.peek():
            yield value(source)
    except JsonSyntaxError as error:
        yield BadRecord(source.line, f"{error}; the file was not read any further")


def read_each(
    stream: BinaryIO, read: Callable[[Item], Iterator[Message | BadRecord]]
) -> Iterator[Message | BadRecord]:
    """Yield what `read` makes of each element of a document, and what is none."""
    for item in items(stream):
        if isinstance(item, BadRecord):
            yield item
        else:
            yield from read(item)


def conversation_defaults(defaults: Defaults, thread_id: str, moment: object) -> Defaults:
    """Return the defaults of a conversation that has an id, and a time if it can be read."""
    try:
        return replace(defaults, thread_id=thread_id, created_at=to_time(moment))
    except RecordError:
        return replace(defaults, thread_id=thread_id)


def elements(source: JsonStream) -> Iterator[Item | BadRecord]:
    """Yield the elements of the list that comes next.

    Raises:
        JsonSyntaxError: The document is broken from here on.
    """
    source.take("[")
    while source.peek() != "]":
        yield value(source)
        if source.peek() != "]":
            source.take(",")
    source.take("]")


def value(source: JsonStream) -> Item | BadRecord:
    """Return the next value, or what is wrong with it.

    Raises:
        JsonSyntaxError: The document is broken from here on.
    """
    source.peek()
    line = source.line
    try:
        return Item(line, source.value())
    except JsonSyntaxError:
        raise
    except RecordError as error:
        return BadRecord(line, str(error))


def has_key(head: str, key: str) -> bool:
    """Tell whether a document starts with objects that have a key, and are no messages.

    Args:
        head: The start of the document.
        key: A key whose value is an object or a list.
    """
    start = re.match(r"\s*(?:\[\s*)?\{", head)
    found = re.search(rf'(?<!\\)"{key}"\s*:\s*[\[{{]', head)
    return bool(start and found) and not re.search(
        r'(?<!\\)"role"\s*:', head[: found.start() if found else 0]
    )


def text(value: object) -> str | None:
    """Return a text that says something, None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def listed(value: object) -> list[Any]:
    """Return a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def mapped(value: object) -> dict[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}
