"""Claude's data export: conversations.json, or the ZIP archive or folder that holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from semantic_recall.importers._documents import (
    conversation_defaults,
    has_key,
    listed,
    mapped,
    read_each,
    text,
)
from semantic_recall.importers._records import (
    BadRecord,
    Defaults,
    RecordError,
    to_message,
)
from semantic_recall.types import Message

PAYLOAD_KEY = "claude"

_ROLES = {"human": "user", "assistant": "assistant"}


class ClaudeImporter:
    """Reads conversations with their `chat_messages`.

    A conversation is a thread; its title is in the metadata. Where messages were edited, so that
    one has several answers, only the branch that ends in the current (else the last) message
    counts. The text is that of the text blocks; thoughts, uses of tools, attachments and files
    are kept in the payload.
    """

    name = "claude"
    description = "Claude's export: its ZIP archive, or conversations.json out of it"

    def recognises(self, head: str) -> bool:
        """Tell whether the file starts with a conversation that has chat_messages."""
        return has_key(head, "chat_messages")

    def read(self, stream: BinaryIO, defaults: Defaults) -> Iterator[Message | BadRecord]:
        """Yield the messages, conversation by conversation; one of them is in memory at a time."""
        yield from read_each(stream, lambda item: _conversation(item.value, item.line, defaults))


def _conversation(value: object, line: int, defaults: Defaults) -> Iterator[Message | BadRecord]:
    if not isinstance(value, dict) or not isinstance(value.get("chat_messages"), list):
        yield BadRecord(line, 'a conversation without a "chat_messages" list')
        return
    title = text(value.get("name")) or text(value.get("title"))
    own = _own(value, line, defaults)
    metadata = {"title": title} if title else {}
    for position, message in enumerate(_branch(value)):
        which = f"message {position + 1} of conversation {title or own.thread_id!r}, line {line}"
        yield _message(message, metadata, own, position, BadRecord(line, "", which))


def _message(
    message: object, metadata: Mapping[str, str], own: Defaults, position: int, bad: BadRecord
) -> Message | BadRecord:
    try:
        return to_message(_record(message, metadata), own, position=position)
    except RecordError as error:
        return replace(bad, reason=str(error))


def _own(value: Mapping[str, Any], line: int, defaults: Defaults) -> Defaults:
    """Return the thread and the time of messages that have none."""
    thread_id = text(value.get("uuid")) or f"{defaults.thread_id}-{line}"
    return conversation_defaults(defaults, thread_id, value.get("created_at"))


def _branch(value: Mapping[str, Any]) -> Sequence[object]:
    """Return the messages that are shown: all of them where nothing was edited."""
    messages = listed(value["chat_messages"])
    by_id = {str(mapped(one).get("uuid")): one for one in messages}
    parents = [parent for one in messages if (parent := mapped(one).get("parent_message_uuid"))]
    if len(set(map(str, parents))) == len(parents):  # nobody has two answers
        return messages
    leaf = str(value.get("current_leaf_message_uuid") or mapped(messages[-1]).get("uuid"))
    shown: list[object] = []
    while leaf in by_id:
        message = by_id.pop(leaf)  # so that a circle ends
        shown.append(message)
        leaf = str(mapped(message).get("parent_message_uuid"))
    return shown[::-1]


def _record(message: object, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return a message as `to_message` reads it."""
    if not isinstance(message, dict):
        raise RecordError("the message is not an object")
    sender = message.get("sender")
    if not isinstance(sender, str) or not sender:
        raise RecordError('"sender" is missing')
    blocks = listed(message.get("content"))
    parts = [
        part
        for block in blocks
        if mapped(block).get("type") == "text" and (part := text(mapped(block).get("text")))
    ]
    # The field "text" has placeholders for blocks that are no text, hence the blocks first.
    said = "\n".join(parts) if blocks else message.get("text")
    return {
        "role": _ROLES.get(sender, sender),
        "content": said,
        "id": message.get("uuid"),
        "created_at": message.get("created_at"),
        "metadata": dict(metadata),
        "payload": _payload(message, blocks),
    }


def _payload(message: Mapping[str, Any], blocks: Sequence[Any]) -> dict[str, Any] | None:
    """Return what the text alone would lose; None when that is nothing."""
    kept = {key: message[key] for key in ("attachments", "files") if message.get(key)}
    if any(mapped(block).get("type") != "text" or block.get("citations") for block in blocks):
        kept["content"] = blocks
    return {PAYLOAD_KEY: kept} if kept else None
