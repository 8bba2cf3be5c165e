"""What callers hand over, as messages; and what part each can play in a recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeAlias

from semantic_recall.errors import ConfigurationError, InvalidScopeError
from semantic_recall.indexed_text import digest, indexed_text
from semantic_recall.records import MessageRecord, Part
from semantic_recall.terms import hash_terms, message_terms
from semantic_recall.types import Message

Incoming: TypeAlias = "Message | Mapping[str, Any]"
"""A `Message`, or a mapping with role and content as chat APIs use them."""

NEVER_RECALLED = frozenset({"tool", "function", "system", "developer"})
"""Roles that windows step over: the application's own words and the tools' raw output."""

_OWN_KEYS = frozenset({
    "role", "content", "text", "id", "name", "created_at", "metadata", "payload", "thread_id",
    "resource_id",
})  # fmt: skip


def as_messages(
    messages: Incoming | Iterable[Incoming],
    *,
    thread_id: str | None = None,
    resource_id: str | None = None,
) -> list[Message]:
    """Return `messages` as a list of `Message`.

    A mapping has "role" (default "user") and "content" (a string, None, or a list of parts of
    which the text counts), and may have "id", "name", "created_at" (datetime, ISO 8601 text or
    seconds since 1970), "metadata", "thread_id" and "resource_id". Other keys are kept in
    `payload`. What cannot be read as text becomes its `str`; nothing is lost for it.

    Args:
        messages: One or many.
        thread_id: The thread of mappings that name none.
        resource_id: The resource of mappings that name none.

    Raises:
        InvalidScopeError: A mapping has no thread id and none was given.
        InvalidIdError: An id is empty, too long or not a string.
        ConfigurationError: Something is neither a `Message` nor a mapping.
    """
    if isinstance(messages, (Message, Mapping)):
        messages = [messages]
    return [_as_message(item, thread_id, resource_id) for item in messages]


def _as_message(item: Incoming, thread_id: str | None, resource_id: str | None) -> Message:
    if isinstance(item, Message):
        return item
    if not isinstance(item, Mapping):
        raise ConfigurationError(f"a message is a Message or a mapping, not {type(item).__name__}")
    thread_id = item.get("thread_id", thread_id)
    if thread_id is None:
        raise InvalidScopeError("a message needs a thread_id; pass thread_id= or put it in")
    optional: dict[str, Any] = {}
    if item.get("id") is not None:
        optional["id"] = item["id"]
    created_at = _as_moment(item.get("created_at"))
    if created_at is not None:
        optional["created_at"] = created_at
    rest = {str(key): value for key, value in item.items() if key not in _OWN_KEYS}
    content = item.get("content", item.get("text"))
    if isinstance(content, Sequence) and not isinstance(content, str):
        rest["content"] = list(content)
    payload = item.get("payload")
    if payload is None and rest:
        payload = {"message": rest}
    name = item.get("name")
    return Message(
        role=str(item.get("role") or "user"),
        text=text_of(content),
        thread_id=thread_id,
        resource_id=item.get("resource_id", resource_id),
        name=None if name is None else str(name),
        metadata=dict(item.get("metadata") or {}),
        payload=payload,
        **optional,
    )


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, None, or a list of content parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return text_of(content.get("text"))
    if isinstance(content, Iterable) and not isinstance(content, (bytes, bytearray)):
        return "\n".join(text for text in map(text_of, content) if text)
    return str(content)


def part_of(message: Message, embed_roles: frozenset[str]) -> Part:
    """Return what part a message can play: searched, only a neighbour, or never recalled."""
    if not message.text.strip():
        return Part.HIDDEN
    if message.role in embed_roles:
        return Part.SEARCHABLE
    return Part.HIDDEN if message.role in NEVER_RECALLED else Part.CONTEXT


def as_record(message: Message, embed_roles: frozenset[str]) -> MessageRecord:
    """Return a message with its part, terms and digest."""
    part = part_of(message, embed_roles)
    text = indexed_text(message)
    terms = message_terms(text) if part is Part.SEARCHABLE else hash_terms([])
    return MessageRecord(message=message, part=part, terms=terms, digest=digest(text))


def _as_moment(value: object) -> datetime | None:
    """Return a time from what exports hold, None when there is none or it cannot be read."""
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.replace("Z", "+00:00"))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return None
