"""ChatGPT's data export: conversations.json, or the ZIP archive or folder that holds it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
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

PAYLOAD_KEY = "chatgpt"

# Citations stand in the text as private characters: U+E200 cite U+E202 turn0search1 U+E201.
_CITATION = re.compile("[ \t]?\ue200[^\ue200\ue201]*\ue201")
# What the model did or thought on the way: kept, but nobody said it.
_UNSPOKEN = frozenset({"thoughts", "reasoning_recap"})
# The user's standing instructions, written by the application in the user's name.
_INSTRUCTIONS = frozenset({"user_editable_context", "model_editable_context"})


class ChatGPTImporter:
    """Reads the conversations that the user sees: of each only the branch that is open.

    A conversation is a thread; its title is in the metadata. Edited questions and answers that
    were generated again leave other branches, which are passed over. Calls of tools and thoughts
    have no text, and are kept in the payload, as are images and files.
    """

    name = "chatgpt"
    description = "ChatGPT's export: its ZIP archive, or conversations.json out of it"

    def recognises(self, head: str) -> bool:
        """Tell whether the file starts with conversations that have a mapping and a title."""
        return has_key(head, "mapping") and any(
            f'"{key}"' in head for key in ("title", "create_time", "current_node")
        )

    def read(self, stream: BinaryIO, defaults: Defaults) -> Iterator[Message | BadRecord]:
        """Yield the messages, conversation by conversation; one of them is in memory at a time."""
        yield from read_each(stream, lambda item: _conversation(item.value, item.line, defaults))


def _conversation(value: object, line: int, defaults: Defaults) -> Iterator[Message | BadRecord]:
    if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
        yield BadRecord(line, 'a conversation without a "mapping" of messages')
        return
    title = text(value.get("title"))
    own, metadata = _own(value, defaults), {"title": title} if title else {}
    for key, node in _branch(value["mapping"], value.get("current_node")):
        item = _message(key, node, metadata, own)
        if isinstance(item, str):
            place = f"message {key!r} of conversation {title or own.thread_id!r}, line {line}"
            yield BadRecord(line, item, place)
        elif item is not None:
            yield item


def _message(
    key: str, node: object, metadata: Mapping[str, str], own: Defaults
) -> Message | str | None:
    """Return a node's message, None where there is none, or why it cannot be read."""
    try:
        record = _record(key, node, metadata)
        return None if record is None else to_message(record, own, position=0)
    except RecordError as error:
        return str(error)


def _own(value: Mapping[str, Any], defaults: Defaults) -> Defaults:
    """Return the thread and the time of messages that have none."""
    made = hashlib.sha256(
        json.dumps([value.get("create_time"), sorted(value["mapping"])]).encode()
    ).hexdigest()[:32]
    thread_id = text(value.get("conversation_id")) or text(value.get("id")) or made
    # Old exports have conversations without a date.
    return conversation_defaults(defaults, thread_id, value.get("create_time"))


def _branch(mapping: Mapping[str, Any], current: object) -> list[tuple[str, object]]:
    """Return the nodes from the root to the open end, with their keys."""
    key = current if isinstance(current, str) and current in mapping else _newest(mapping)
    branch: list[tuple[str, object]] = []
    seen: set[str] = set()
    while isinstance(key, str) and key in mapping and key not in seen:
        seen.add(key)
        branch.append((key, mapping[key]))
        key = mapped(mapping[key]).get("parent")
    return branch[::-1]


def _newest(mapping: Mapping[str, Any]) -> str | None:
    """Return the end that was written last; the last one in the file among equals."""

    def written(entry: tuple[int, str]) -> tuple[float, int]:
        moment = mapped(mapped(mapping[entry[1]]).get("message")).get("create_time")
        return (float(moment) if isinstance(moment, (int, float)) else 0.0, entry[0])

    ends = [
        (position, key)
        for position, (key, node) in enumerate(mapping.items())
        if not mapped(node).get("children")
    ]
    return max(ends, key=written, default=(0, None))[1]


def _record(key: str, node: object, metadata: Mapping[str, str]) -> dict[str, Any] | None:
    """Return a node's message as `to_message` reads it; None for one that holds nothing."""
    message = node.get("message") if isinstance(node, dict) else node
    if message is None:  # the root
        return None
    if not isinstance(message, dict):
        raise RecordError("the message is not an object")
    author, content = mapped(message.get("author")), mapped(message.get("content"))
    kind = content.get("content_type")
    said = _said(content)
    role = "system" if kind in _INSTRUCTIONS else author.get("role")
    if role == "system" and not said.strip():
        return None
    is_call = message.get("recipient") not in (None, "all")
    unspoken = is_call or (role == "assistant" and kind in _UNSPOKEN)
    shown = "" if unspoken else _CITATION.sub("", said)
    return {
        "role": role,
        "content": shown,
        "id": message.get("id") or key,
        "name": author.get("name"),
        "created_at": message.get("create_time"),
        "metadata": dict(metadata),
        "payload": _payload(message, content, shown),
    }


def _said(content: Mapping[str, Any]) -> str:
    """Return the text of a message's content, whatever its type."""
    if "parts" in content:
        return "\n".join(part for part in map(_part, listed(content["parts"])) if part)
    keys = ("text", "result", "content", "user_profile", "user_instructions", "model_set_context")
    return "\n".join(found for key in keys if (found := text(content.get(key))))


def _part(part: object) -> str:
    """Return the text of a part: a string, or the words of a voice message."""
    if isinstance(part, str):
        return part
    return text(mapped(part).get("text")) or ""


def _payload(
    message: Mapping[str, Any], content: Mapping[str, Any], shown: str
) -> dict[str, Any] | None:
    """Return what the text alone would lose; None when that is nothing."""
    kept: dict[str, Any] = {}
    if content and (content.get("content_type") != "text" or content.get("parts") != [shown]):
        kept["content"] = dict(content)
    if message.get("recipient") not in (None, "all"):
        kept["recipient"] = message["recipient"]
    attachments = mapped(message.get("metadata")).get("attachments")
    if attachments:
        kept["attachments"] = attachments
    return {PAYLOAD_KEY: kept} if kept else None
