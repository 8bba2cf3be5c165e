"""LangChain's messages: `messages_to_dict` files and the tables of its SQL chat histories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from semantic_recall.importers._documents import items, mapped, text
from semantic_recall.importers._protocols import Position
from semantic_recall.importers._records import (
    BadRecord,
    Defaults,
    RecordError,
    text_of,
    to_message,
)
from semantic_recall.importers._sqlite import (
    Database,
    database_at,
    is_sqlite,
    quoted,
    whole_text,
)
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
    """Reads the tables of `SQLChatMessageHistory`, in an SQLite file.

    Those of `PostgresChatMessageHistory` have the same columns, and can be read from a copy in
    SQLite. A session is a thread. The file is only read.
    """

    name = "langchain-sqlite"
    description = "an SQLite file of LangChain's SQLChatMessageHistory"

    def recognises_file(self, path: Path) -> bool:
        """Tell whether there is a table with session_id and message."""
        if not is_sqlite(path):
            return False
        with database_at(path) as database:
            return bool(_tables(database))

    def read_file(
        self, path: Path, defaults: Defaults, position: Position
    ) -> Iterator[Message | BadRecord]:
        """Yield the messages in the order in which they were stored."""
        with database_at(path) as database:
            tables = _tables(database)
            position.total = sum(map(database.count, tables))
            for table in tables:
                moment = "created_at" if "created_at" in database.columns(table) else "NULL"
                for row in database.rows(
                    f"SELECT id, session_id, message, {moment} FROM {quoted(table)} ORDER BY id"
                ):
                    position.done += 1
                    yield _read_row(table, row, defaults)


def _tables(database: Database) -> list[str]:
    return database.tables_with({"id", "session_id", "message"})


def _read_row(table: str, row: Sequence[object], own: Defaults) -> Message | BadRecord:
    number, session, message, moment = row
    line = number if isinstance(number, int) else 0
    try:
        try:
            dumped = json.loads(whole_text(message, "message"))
        except (ValueError, RecursionError) as error:
            raise RecordError(f'"message" is not JSON: {error}') from error
        if session is None:
            raise RecordError('"session_id" is missing')
        thread = str(session) if isinstance(session, int) else whole_text(session, "session_id")
        record = langchain_record(dumped, moment)
        record["id"] = record["id"] or f"{table}-{number}"
        return to_message(record, replace(own, thread_id=thread), position=line)
    except RecordError as error:
        return BadRecord(line, str(error), f"row {number} of table {table}")
