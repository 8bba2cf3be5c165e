"""LangGraph's checkpoints in an SQLite file, as `SqliteSaver` and `AsyncSqliteSaver` write them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from semantic_recall.errors import MissingDependencyError
from semantic_recall.importers._documents import conversation_defaults, mapped
from semantic_recall.importers._protocols import Position
from semantic_recall.importers._records import BadRecord, Defaults, RecordError, to_message
from semantic_recall.importers._sql import whole_text
from semantic_recall.importers._sqlite import database_at, is_sqlite
from semantic_recall.importers.langchain import langchain_record
from semantic_recall.types import Message

_COLUMNS = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint"})
# Checkpoint ids sort by time. Other name spaces are subgraphs. The newest ids are looked up in the
# index first: each checkpoint holds the whole conversation, and only one of a thread is needed.
_NEWEST = """
    WITH newest AS (
        SELECT thread_id, max(checkpoint_id) AS checkpoint_id FROM checkpoints
        WHERE checkpoint_ns = '' GROUP BY thread_id
    )
    SELECT thread_id, type, checkpoint FROM newest
    JOIN checkpoints USING (thread_id, checkpoint_id)
    WHERE checkpoint_ns = '' ORDER BY thread_id
"""
_MISSING = (
    "reading LangGraph's checkpoints needs langgraph-checkpoint 4 or newer; install it with "
    "`pip install -U langgraph-checkpoint`"
)


class LangGraphImporter:
    """Reads the messages of each thread's newest checkpoint; subgraphs are passed over.

    Checkpoints are decoded by LangGraph itself, restricted to its own list of harmless types:
    a file that somebody gave you cannot run code. Messages have the time of the checkpoint,
    because LangGraph notes no other. The file is only read.
    """

    name = "langgraph"
    description = "an SQLite file of LangGraph's checkpoints (SqliteSaver)"

    def recognises_file(self, path: Path) -> bool:
        """Tell whether there is a table of checkpoints."""
        if not is_sqlite(path):
            return False
        with database_at(path) as database:
            return "checkpoints" in database.tables_with(_COLUMNS)

    def read_file(
        self, path: Path, defaults: Defaults, position: Position
    ) -> Iterator[Message | BadRecord]:
        """Yield the messages, thread by thread; one thread is in memory at a time.

        Raises:
            MissingDependencyError: LangGraph's serializer is not installed, or too old.
        """
        decoder = _Decoder()
        with database_at(path) as database:
            ((position.total,),) = database.rows(
                "SELECT count(DISTINCT thread_id) FROM checkpoints WHERE checkpoint_ns = ''"
            )
            for thread, kind, data in database.rows(_NEWEST):
                position.done += 1
                place = f"newest checkpoint of thread {thread!r}"
                try:
                    found = decoder.messages(kind, data)
                    own = conversation_defaults(
                        defaults, whole_text(thread, "thread_id"), found.moment
                    )
                    position.undated = own.created_at
                except RecordError as error:
                    yield BadRecord(position.done, str(error), place)
                    continue
                yield from _messages(found.messages, own, position.done, place)


def _messages(
    dumped: list[object], own: Defaults, line: int, place: str
) -> Iterator[Message | BadRecord]:
    for number, one in enumerate(dumped, 1):
        yield _message(one, own, number, BadRecord(line, "", f"message {number} in the {place}"))


def _message(dumped: object, own: Defaults, number: int, bad: BadRecord) -> Message | BadRecord:
    try:
        return to_message(langchain_record(dumped), own, position=number)
    except RecordError as error:
        return replace(bad, reason=str(error))


class _Found:
    def __init__(self, moment: object, messages: list[object]) -> None:
        self.moment = moment
        self.messages = messages


class _Decoder:
    """LangGraph's own reader, loaded when a file of it is read: the core knows no framework."""

    def __init__(self) -> None:
        try:
            serde = importlib.import_module("langgraph.checkpoint.serde.jsonplus")
            messages = importlib.import_module("langchain_core.messages")
            self._serde = serde.JsonPlusSerializer(allowed_msgpack_modules=None)
        except (ImportError, TypeError) as error:  # TypeError: it does not know the restriction
            raise MissingDependencyError(_MISSING) from error
        self._base: type = messages.BaseMessage
        self._to_dict: Any = messages.message_to_dict

    def messages(self, kind: object, data: object) -> _Found:
        """Return the messages of a checkpoint, as `messages_to_dict` makes them.

        Raises:
            RecordError: The checkpoint cannot be decoded, or holds no messages.
        """
        try:
            checkpoint = self._serde.loads_typed((kind, data))
        except Exception as error:  # the file may hold anything
            raise RecordError(f"cannot be decoded: {type(error).__name__}: {error}") from error
        values = mapped(mapped(checkpoint).get("channel_values"))
        # "messages" is the usual name; a graph may use any other.
        names = sorted(values, key=lambda name: (name != "messages", str(name)))
        found = next((values[name] for name in names if self._are_messages(values[name])), None)
        if found is None:
            raise RecordError("no list of messages in it")
        return _Found(mapped(checkpoint).get("ts"), [self._dumped(one) for one in found])

    def _are_messages(self, value: object) -> bool:
        return (
            isinstance(value, list)
            and bool(value)
            and all(isinstance(one, self._base) for one in value)
        )

    def _dumped(self, message: object) -> object:
        # What JSON cannot say (a tool's artifact, say) becomes its text.
        return json.loads(json.dumps(self._to_dict(message), default=str))
