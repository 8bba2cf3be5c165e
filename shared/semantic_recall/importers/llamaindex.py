"""LlamaIndex's chat stores: the JSON file of SimpleChatStore, the table of SQLAlchemyChatStore."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, BinaryIO

from semantic_recall.importers._documents import elements, listed, mapped, text, value
from semantic_recall.importers._json_stream import JsonStream, JsonSyntaxError
from semantic_recall.importers._protocols import Database, Position
from semantic_recall.importers._records import BadRecord, Defaults, RecordError, to_message
from semantic_recall.importers._sql import messages_of, quoted
from semantic_recall.types import Message

PAYLOAD_KEY = "llamaindex"
"""The key under which `llamaindex_semantic_recall` finds the whole message again."""

_START = re.compile(
    r'\s*\{\s*(?:"store"\s*:\s*\{|"class_name"\s*:\s*"SimpleChatStore")',
)
# As the plugin for LlamaIndex stores them.
_ROLES = {
    "chatbot": "assistant",
    "model": "assistant",
    "function": "tool",
    "developer": "system",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EARLIEST_NANOSECONDS = 10**17


def _record(chat: object) -> dict[str, Any]:
    """Return a chat message as `to_message` reads it.

    Raises:
        RecordError: It is something else.
    """
    if not isinstance(chat, dict):
        raise RecordError("the message is not an object")
    role = chat.get("role")
    stored = _ROLES.get(role, role) if isinstance(role, str) else role
    name = mapped(chat.get("additional_kwargs")).get("name")
    return {
        "role": stored,
        "content": _spoken(_text(chat)) if stored == "assistant" else _text(chat),
        "name": text(name) if stored in ("user", "assistant") else None,
        "payload": {PAYLOAD_KEY: _without_nulls(chat)},
    }


def _text(chat: Mapping[str, Any]) -> str:
    """Return the text of the blocks, or the content of messages from before there were blocks."""
    if "blocks" not in chat:
        content = chat.get("content")
        if content is not None and not isinstance(content, str):
            raise RecordError('"content" is not a text')
        return content or ""
    return "\n".join(part for block in listed(chat["blocks"]) for part in _parts(mapped(block)))


def _parts(block: Mapping[str, Any]) -> list[str]:
    kind = block.get("block_type")
    if kind == "text":
        inner: list[Any] = [block]
    elif kind == "citable":
        inner = listed(block.get("content"))
    elif kind == "citation":
        inner = [block.get("cited_content")]
    else:
        return []
    found = [mapped(one).get("text") for one in inner if mapped(one).get("block_type") == "text"]
    return [one for one in found if isinstance(one, str)]


def _spoken(said: str) -> str:
    """Return what the user saw of an answer: as the plugin does it, so that it knows it again."""
    if said.strip() == "Empty Response":
        return ""
    if said.lstrip().startswith("Thought:") and "Answer:" in said:
        return said.rpartition("Answer:")[2].strip()
    return said


def _without_nulls(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message without null fields in blocks, which LlamaIndex 0.13 refuses to read."""
    if "blocks" not in chat:
        return {"content": "", **chat}
    blocks = [
        {key: one for key, one in block.items() if one is not None}
        for block in listed(chat["blocks"])
        if isinstance(block, dict)
    ]
    return {**chat, "blocks": blocks}


class LlamaIndexImporter:
    """Reads the file that `SimpleChatStore.persist` writes; a key is a thread.

    The whole message is kept, so that `llamaindex_semantic_recall` gives it back as it was.
    """

    name = "llamaindex"
    description = 'LlamaIndex\'s SimpleChatStore, {"store": {"key": [...]}}'

    def recognises(self, head: str) -> bool:
        """Tell whether the file starts as a SimpleChatStore does."""
        return _START.match(head) is not None

    def read(self, stream: BinaryIO, defaults: Defaults) -> Iterator[Message | BadRecord]:
        """Yield the messages, key by key; one message is in memory at a time."""
        source = JsonStream(stream)
        try:
            for name in _members(source):
                if name != "store" or source.peek() != "{":
                    value(source)
                    continue
                for key in _members(source):
                    yield from _messages(source, str(key), defaults)
        except JsonSyntaxError as error:
            yield BadRecord(source.line, f"{error}; the file was not read any further")


def _members(source: JsonStream) -> Iterator[object]:
    """Yield the keys of the object that comes next; the caller takes each one's value."""
    source.take("{")
    while source.peek() != "}":
        key = value(source)
        source.take(":")
        yield "" if isinstance(key, BadRecord) else key.value
        if source.peek() != "}":
            source.take(",")
    source.take("}")


def _messages(source: JsonStream, key: str, defaults: Defaults) -> Iterator[Message | BadRecord]:
    if source.peek() != "[":
        item = value(source)
        yield BadRecord(item.line, f"the messages of key {key!r} are not a list")
        return
    own = replace(defaults, thread_id=key)
    for position, item in enumerate(elements(source), 1):
        if isinstance(item, BadRecord):
            yield item
            continue
        try:
            yield to_message(_record(item.value), own, position=position)
        except RecordError as error:
            yield BadRecord(
                item.line, str(error), f"message {position} of key {key!r}, line {item.line}"
            )


class LlamaIndexTablesImporter:
    """Reads the tables of `SQLAlchemyChatStore`; a key is a thread.

    Archived messages too: they are what a memory is for. The database is only read.
    """

    name = "llamaindex-sql"
    description = "tables of LlamaIndex's SQLAlchemyChatStore: an SQLite file, or postgresql://..."

    def recognises_tables(self, database: Database) -> bool:
        """Tell whether there is a table with key, timestamp, role, status and data."""
        return bool(_tables(database))

    def read_tables(
        self, database: Database, defaults: Defaults, position: Position
    ) -> Iterator[Message | BadRecord]:
        """Yield the messages in the order of their times."""

        def select(table: str) -> str:
            return (
                'SELECT id, CAST("key" AS TEXT), CAST(data AS TEXT), "timestamp" '
                f'FROM {quoted(table)} ORDER BY "timestamp", id'
            )

        def record(chat: object, moment: object) -> dict[str, Any]:
            return {**_record(chat), "created_at": _time(moment)}

        tables = _tables(database)
        yield from messages_of(database, tables, select, record, defaults, position)


def _tables(database: Database) -> list[str]:
    return database.tables_with({"id", "key", "timestamp", "role", "status", "data"})


def _time(moment: object) -> object:
    """Return nanoseconds since 1970 as ISO 8601; anything else as it is."""
    if not isinstance(moment, int) or not _EARLIEST_NANOSECONDS <= moment < 2**63:
        return moment
    return (_EPOCH + timedelta(microseconds=moment // 1000)).isoformat()
