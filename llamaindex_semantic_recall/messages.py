"""The only place where a LlamaIndex `ChatMessage` becomes a stored `Message`, and back.

What is stored keeps the whole chat message (every block, tool calls, `additional_kwargs`) as JSON
values under `payload["llamaindex"]`. What JSON cannot hold (a provider's object) becomes its
`str`, that one value only. Both directions copy: nothing here is shared with the caller.
"""

from __future__ import annotations

import base64
import json
import logging
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from typing import Any, TypeAlias

from llama_index.core.base.llms.types import (
    ChatMessage,
    CitableBlock,
    CitationBlock,
    ContentBlock,
    MessageRole,
    TextBlock,
)
from pydantic import BaseModel

from semantic_recall.types import Message

PAYLOAD_KEY = "llamaindex"

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_logger = logging.getLogger("semantic_recall")

_TOOL_ROLES = frozenset({MessageRole.TOOL, MessageRole.FUNCTION})
_ROLES = {role.value: role for role in MessageRole} | {
    "human": MessageRole.USER,
    "ai": MessageRole.ASSISTANT,
}
# What is stored under one name, so that memories of two frameworks are searched alike.
_STORED_ROLES = {
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.FUNCTION: "tool",
    MessageRole.DEVELOPER: "system",
}
# The answer of a chat engine whose retriever found nothing; no model was asked.
_NO_ANSWER = "Empty Response"
_REACT_START = "Thought:"
_REACT_ANSWER = "Answer:"


def text_of(chat: ChatMessage) -> str:
    """Return what is worth finding in a chat message.

    That is the text of its blocks; of a ReAct trace only what follows the last "Answer:"; nothing
    of the placeholder "Empty Response" that engines store when no model was asked.
    """
    text = "\n".join(part for block in chat.blocks for part in block_texts(block))
    if chat.role not in (MessageRole.ASSISTANT, MessageRole.CHATBOT, MessageRole.MODEL):
        return text
    if text.strip() == _NO_ANSWER:
        return ""
    if text.lstrip().startswith(_REACT_START) and _REACT_ANSWER in text:
        return text.rpartition(_REACT_ANSWER)[2].strip()
    return text


def block_texts(block: object) -> list[str]:
    """Return the texts that a content block shows."""
    if isinstance(block, TextBlock):
        return [block.text]
    if isinstance(block, CitableBlock):
        return [part.text for part in block.content if isinstance(part, TextBlock)]
    if isinstance(block, CitationBlock) and isinstance(block.cited_content, TextBlock):
        return [block.cited_content.text]
    return []


def to_message(
    chat: ChatMessage, *, thread_id: str, resource_id: str | None = None, id: str | None = None
) -> Message:
    """Return the message to store for a chat message.

    Args:
        chat: Any chat message; it is not changed and not kept.
        thread_id: The thread to store it in.
        resource_id: The owner of the thread.
        id: The message's id; one is made when it is None.
    """
    role = _STORED_ROLES.get(chat.role, chat.role.value)
    name = chat.additional_kwargs.get("name")
    fields: dict[str, Any] = {
        "role": role,
        "text": text_of(chat),
        "thread_id": thread_id,
        "resource_id": resource_id,
        "name": name if role in ("user", "assistant") and isinstance(name, str) and name else None,
        "payload": {PAYLOAD_KEY: dump(chat)},
    }
    if id is not None:
        fields["id"] = id
    return Message(**fields)


def to_chat_message(message: Message) -> ChatMessage:
    """Return the chat message that was stored, as a new object.

    A message of another framework, and one whose text was changed after it was stored (by a
    `before_store` hook, say), comes back as its role and its stored text.
    """
    stored = (message.payload or {}).get(PAYLOAD_KEY)
    if isinstance(stored, Mapping):
        chat = load(stored)
        if chat is not None and text_of(chat) == message.text:
            return chat
    return text_message(message)


def text_message(message: Message) -> ChatMessage:
    """Return a message's role and text only: no blocks of other kinds, no tool calls."""
    return ChatMessage(role=_ROLES.get(message.role, MessageRole.USER), content=message.text)


def same_message(message: Message, chat: ChatMessage) -> bool:
    """Tell whether `chat` is what was stored as `message`."""
    stored = (message.payload or {}).get(PAYLOAD_KEY)
    if isinstance(stored, Mapping):
        return _canonical(stored) == _canonical(dump(chat))
    role = _STORED_ROLES.get(chat.role, chat.role.value)
    return role == _STORED_ROLES.get(_ROLES.get(message.role, MessageRole.USER), message.role) and (
        text_of(chat) == message.text
    )


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)


def dump(chat: ChatMessage) -> dict[str, Json]:
    """Return a chat message as JSON values; `load` gives it back."""
    return {
        "role": chat.role.value,
        "blocks": [
            # Without None, which is every field's default: the first releases of 0.13 write it and
            # refuse to read it.
            {key: value for key, value in block.items() if value is not None}
            for block in map(_json, chat.blocks)
            if isinstance(block, dict)
        ],
        # "images" is a constructor's shorthand: its images are in the blocks already, and would
        # be added once more on loading.
        "additional_kwargs": {
            str(key): _json(value)
            for key, value in chat.additional_kwargs.items()
            if key != "images"
        },
    }


def load(stored: Mapping[str, Any]) -> ChatMessage | None:
    """Return the chat message that `dump` wrote down.

    A block that cannot be loaded any more (an image whose file is gone) is left out.

    Returns:
        A new chat message, or None when it cannot be read at all.
    """
    stored = {key: _copy(value) for key, value in stored.items()}  # pydantic keeps dicts and lists
    try:
        return ChatMessage.model_validate(stored)
    except (ValueError, TypeError):
        blocks = [block for part in stored.get("blocks") or () for block in _load_block(part)]
    try:
        return ChatMessage(
            role=stored.get("role", "user"),
            blocks=blocks,
            additional_kwargs=stored.get("additional_kwargs") or {},
        )
    except (ValueError, TypeError) as error:
        _logger.warning("a stored chat message cannot be read; its text is used: %s", error)
        return None


def _copy(value: Json) -> Json:
    # Many times faster than `copy.deepcopy`, which has to expect anything.
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _load_block(stored: object) -> list[ContentBlock]:
    try:
        return ChatMessage.model_validate({"blocks": [stored]}).blocks
    except (ValueError, TypeError) as error:
        _logger.warning("left out a block of a stored message that cannot be read: %s", error)
        return []


_MAX_DEPTH = 64


def _json(value: object, depth: int = 0) -> Json:
    """Return `value` as JSON values; whatever JSON cannot hold becomes its `str`."""
    if isinstance(value, Enum):
        return _json(value.value, depth)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return _text_of_bytes(bytes(value))
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if depth > _MAX_DEPTH:  # a cycle
        return _as_text(value)
    if isinstance(value, BaseModel):
        return _json_model(value, depth)
    if isinstance(value, Mapping):
        return {str(key): _json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_json(item, depth + 1) for item in value]
    return _as_text(value)


def _json_model(value: BaseModel, depth: int) -> Json:
    try:
        # Python mode: JSON mode fails on the first foreign object inside.
        return _json(value.model_dump(), depth + 1)
    except Exception as error:  # noqa: BLE001 - a provider's model may raise anything
        _logger.warning("stored a %s as text: %s", type(value).__name__, error)
        return _as_text(value)


def _text_of_bytes(value: bytes) -> str:
    # LlamaIndex holds media as base64 already, and takes base64 for what it is when it loads.
    try:
        return value.decode("ascii")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def _as_text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a foreign object may raise anything; the message matters
        return f"<{type(value).__name__}>"
