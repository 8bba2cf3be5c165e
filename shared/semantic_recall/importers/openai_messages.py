"""Message lists in the chat format of OpenAI: `[{"role", "content"}]` or `{"messages": [...]}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from semantic_recall.importers._json_stream import JsonStream, JsonSyntaxError
from semantic_recall.importers._records import BadRecord, Defaults, RecordError, to_message
from semantic_recall.types import Message

_LIST = re.compile(r"\s*\[\s*(?:\]|\{)")
_MESSAGES = re.compile(r'\s*\{.*?(?<!\\)"messages"\s*:\s*\[', re.DOTALL)


class OpenAIMessagesImporter:
    """Reads a JSON file with one conversation, or several one after the other.

    A message's text is its content, or the text parts of it; content parts and tool calls are
    kept in the payload. The thread is the default one; of several conversations in a file (one
    per line, as for fine-tuning) the second and later get "-2", "-3", ... after it. Ids are made
    from the thread, the position and the content where a message has none.
    """

    name = "openai"
    description = 'OpenAI messages, [{"role", "content"}, ...] or {"messages": [...]}'

    def recognises(self, head: str) -> bool:
        """Tell whether the file is a list of objects with roles, or an object with messages."""
        if _LIST.match(head):
            return '"role"' in head or head.strip().endswith("]")
        return _MESSAGES.match(head) is not None and not _is_one_message(head)

    def read(self, stream: BinaryIO, defaults: Defaults) -> Iterator[Message | BadRecord]:
        """Yield the messages in order, and a `BadRecord` for each that cannot be read.

        Where the file stops being JSON, one last `BadRecord` says so.
        """
        source = JsonStream(stream)
        number = 0
        try:
            while source.peek():
                number += 1
                suffix = f"-{number}" if number > 1 else ""
                own = replace(defaults, thread_id=defaults.thread_id + suffix)
                yield from _conversation(source, own)
        except JsonSyntaxError as error:
            yield BadRecord(source.line, f"{error}; the file was not read any further")


def _is_one_message(head: str) -> bool:
    """Tell whether the first line is a message whose own fields happen to hold "messages"."""
    try:
        first = json.loads(head.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "role" in first


def _conversation(source: JsonStream, defaults: Defaults) -> Iterator[Message | BadRecord]:
    if source.peek() == "[":
        yield from _messages(source, defaults)
        return
    start = source.line
    source.take("{")
    found = False
    while source.peek() != "}":
        key = source.value()
        source.take(":")
        if key == "messages" and source.peek() == "[":
            found = True
            yield from _messages(source, defaults)
        else:
            _skip(source)
        if source.peek() != "}":
            source.take(",")
    source.take("}")
    if not found:
        yield BadRecord(start, 'an object without a "messages" list')


def _messages(source: JsonStream, defaults: Defaults) -> Iterator[Message | BadRecord]:
    source.take("[")
    position = 0
    while source.peek() != "]":
        position += 1
        line = source.line
        try:
            yield to_message(source.value(), defaults, position=position)
        except JsonSyntaxError:
            raise
        except RecordError as error:
            yield BadRecord(line, str(error))
        if source.peek() != "]":
            source.take(",")
    source.take("]")


def _skip(source: JsonStream) -> None:
    """Pass over a value that is no message, whatever bytes are in it."""
    try:
        source.value()
    except JsonSyntaxError:
        raise
    except RecordError:
        return
