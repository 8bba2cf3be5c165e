"""LangChain's messages: `messages_to_dict` files and the tables of its SQL chat histories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from semantic_recall.importers._documents import items, mapped, text
from semantic_recall.importers._protocols import Database, Position
from semantic_recall.importers._records import (
    BadRecord,
    Defaults,
    RecordError,
    text_of,
    to_message,
)
from semantic_recall.importers._sql import messages_of, quoted
from semantic_recall.types import MAX_ID_LENGTH, Message

PAYLOAD_KEY = "langchain"
"""The key under which `langchain_semantic_recall` finds the whole message again."""

_START = re.compile(
    r'\s*\[\s*\{\s*"(?:type"\s*:\s*"\w+"\s*,\s*"data"\s*:\s*\{|data"\s*:\s*\{)',
)
_ROLES = {"human": "user", "ai": "assistant"}
_CHAT_ROLES = {"human": "user", "ai": "assistant", "bot": "assistant"}
_CHUNK = re.compile(r"(?:MessageChunk|Message)\Z")
_OF_CHUNKS = frozenset({"tool_call_chunks", "chunk_position"})


def langchain_record(dumped: object, moment: object = None) -> dict[str, Any]:
    """Return a message as `to_message` reads it.

    Args:
        dumped: `{"type": "human", "data": {"content": ..., ...}}`, as `messages_to_dict` makes
            it, JSON values only.
        moment: When it was written, if that is known.

    Raises:
        RecordError: It is something else.
    """
    if not isinstance(dumped, dict) or not isinstance(dumped.get("data"), dict):
        raise RecordError('expected {"type": ..., "data": {...}}')
    data, kind = dumped["data"], dumped.get("type")
    if not isinstance(kind, str) or not kind:
        raise RecordError('"type" is missing')
    base = _CHUNK.sub("", kind).lower()
    if base != kind:  # a chunk, whose type is the name of its class: kept as the message it is
        data = {key: one for key, one in data.items() if key not in _OF_CHUNKS} | {"type": base}
    role = _role(base, data)
    id_ = data.get("id")
    return {
        "role": role,
        "content": _text(role, data.get("content")),
        "id": id_ if text(id_) and len(id_) <= MAX_ID_LENGTH else None,
        "name": data.get("name"),
        "created_at": moment,
        "payload": {PAYLOAD_KEY: {"type": base, "data": data}},
    }


def _role(kind: str, data: dict[str, Any]) -> str:
    if kind == "chat":
        said = text(data.get("role")) or kind
        return _CHAT_ROLES.get(said, said)
    return _ROLES.get(kind, kind)


def _text(role: str, content: object) -> str:
    if not isinstance(content, list):
        return text_of(content)
    # Providers split an answer in mid-sentence, at citations.
    return ("" if role == "assistant" else "\n").join(part for part in map(_part, content) if part)


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    said = mapped(part).get("text")
    return said if mapped(part).get("type") == "text" and isinstance(said, str) else ""


class LangChainImporter:
    """Reads a JSON file of `messages_to_dict`, as `FileChatMessageHistory` writes it too.

    One file is one thread. The whole message is kept, so that `langchain_semantic_recall` gives it
    back as it was.
    """

    name = "langchain"
    description = 'LangChain messages, [{"type": "human", "data": {...}}, ...]'

    def recognises(self, head: str) -> bool:
        """Tell whether the file is a list of objects with type and data."""
        return _START.match(head) is not None

    def read(self, stream: BinaryIO, defaults: Defaults) -> Iterator[Message | BadRecord]:
        """Yield the messages; one of them is in memory at a time."""
        for position, item in enumerate(items(stream), 1):
            if isinstance(item, BadRecord):
                yield item
                continue
            try:
                yield to_message(langchain_record(item.value), defaults, position=position)
            except RecordError as error:
                yield BadRecord(item.line, str(error))


class LangChainTablesImporter:
    """Reads the tables of `SQLChatMessageHistory` and of `PostgresChatMessageHistory`.

    A session is a thread. The database is only read.
    """

    name = "langchain-sql"
    description = (
        "tables of LangChain's SQLChatMessageHistory or PostgresChatMessageHistory: an SQLite "
        "file, or postgresql://..."
    )

    def recognises_tables(self, database: Database) -> bool:
        """Tell whether there is a table with session_id and message."""
        return bool(_tables(database))

    def read_tables(
        self, database: Database, defaults: Defaults, position: Position
    ) -> Iterator[Message | BadRecord]:
        """Yield the messages in the order in which they were stored."""

        def select(table: str) -> str:
            dated = "created_at" in database.columns(table)
            # As text: a session can be a UUID, a message JSONB, and a time of any type.
            return (
                "SELECT id, CAST(session_id AS TEXT), CAST(message AS TEXT), "
                f"{'CAST(created_at AS TEXT)' if dated else 'NULL'} "
                f"FROM {quoted(table)} ORDER BY id"
            )

        tables = _tables(database)
        yield from messages_of(database, tables, select, langchain_record, defaults, position)


def _tables(database: Database) -> list[str]:
    return database.tables_with({"id", "session_id", "message"})
