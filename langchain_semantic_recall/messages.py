"""The only converter between LangChain messages and stored messages."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
    messages_from_dict,
)

from langchain_semantic_recall.json_values import decode, encode
from semantic_recall.types import MAX_ID_LENGTH, Message

logger = logging.getLogger("semantic_recall.langchain")

PAYLOAD_KEY = "langchain"
# LangChain before 1.2 does not mark its summaries.
_SUMMARY = "Here is a summary of the conversation to date:\n\n"

RECALLED_KEY = "semantic_recall"
"""In `additional_kwargs` of every message that recall put into a prompt."""

_ROLES: Mapping[str, str] = {"human": "user", "ai": "assistant"}
_CHAT_ROLES: Mapping[str, str] = {"human": "user", "ai": "assistant", "bot": "assistant"}


def from_langchain(
    message: BaseMessage,
    *,
    thread_id: str,
    resource_id: str | None = None,
    text: str | None = None,
    created_at: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Message:
    """Return the message to store; never raises for what the message holds.

    The whole message is kept in the payload; a chunk is kept as the whole message it stands for.

    Args:
        message: Any LangChain message.
        thread_id: The thread that it belongs to.
        resource_id: The owner of the thread.
        text: What is embedded and shown; the message's text when not given.
        created_at: When it was written; now when not given. A naive time is taken as UTC.
        metadata: JSON values for `filter=`.
    """
    whole = _whole(message)
    dumped: dict[str, Any] = {"type": whole.type, "data": encode(_data(whole))}
    if text is not None:
        dumped["text"] = text  # so that `to_langchain` knows it from a text that was changed
    return Message(
        role=role_of(whole),
        text=text_of(whole) if text is None else text,
        thread_id=thread_id,
        resource_id=resource_id,
        name=whole.name,
        metadata=dict(metadata or {}),
        payload={PAYLOAD_KEY: dumped},
        **_given(id=stored_id(whole), created_at=created_at),
    )


def to_langchain(message: Message) -> BaseMessage:
    """Return the LangChain message that was stored.

    A message that another framework stored comes back as its role and text. So does one whose text
    was changed after it was stored (a `before_store` hook removed a card number, say), and one of a
    type that this version of LangChain does not know, with its other fields as extra fields.
    """
    dumped = (message.payload or {}).get(PAYLOAD_KEY)
    if not isinstance(dumped, Mapping):
        return plain(message)
    kind = str(dumped.get("type"))
    try:
        data = dict(decode(dict(dumped["data"])))
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        logger.warning("message %s has a damaged payload (%s); its text is kept", message.id, error)
        return plain(message)
    try:
        whole = messages_from_dict([{"type": kind, "data": data}])[0]
    except (KeyError, TypeError, ValueError):
        whole = _of_unknown_type(message, kind, data)
    if _words(str(dumped.get("text", text_of(whole)))) == _words(message.text):
        return whole
    if isinstance(whole, ToolMessage):
        return ToolMessage(message.text, tool_call_id=whole.tool_call_id, name=whole.name,
                           id=whole.id, status=whole.status)  # fmt: skip
    return plain(message)


def plain(message: Message) -> BaseMessage:
    """Return a message with nothing but role, text, name and id."""
    given: dict[str, Any] = {"content": message.text, "id": message.id, "name": message.name}
    if message.role == "user":
        return HumanMessage(**given)
    if message.role == "assistant":
        return AIMessage(**given)
    if message.role == "system":
        return SystemMessage(**given)
    if message.role == "tool":
        return ToolMessage(**given, tool_call_id=message.id)
    return ChatMessage(**given, role=message.role)


def text_of(message: BaseMessage) -> str:
    """Return the text that is embedded and shown; "" for an image or a bare tool call.

    Several text blocks are joined by a line break, except an answer's: providers split those in
    mid-sentence, at citations.
    """
    if isinstance(message.content, str):
        return message.content
    parts = [text for block in message.content if (text := _block_text(block))]
    return ("" if isinstance(message, AIMessage) else "\n").join(parts)


def role_of(message: BaseMessage) -> str:
    """Return the stored role: "user", "assistant", "tool", "system", "function" or another word."""
    if isinstance(message, ChatMessage):
        role = _CHAT_ROLES.get(message.role, message.role)
    else:
        role = _ROLES.get(message.type, message.type)
    return role[:MAX_ID_LENGTH] or "chat"


def stored_id(message: BaseMessage) -> str | None:
    """Return the id that the message is stored under, or None when it has none.

    An id that is too long to be one is replaced by its SHA-256.
    """
    if not message.id:
        return None
    if len(message.id) > MAX_ID_LENGTH:
        return hashlib.sha256(message.id.encode("utf-8", "surrogatepass")).hexdigest()
    return message.id


def is_recalled(message: BaseMessage) -> bool:
    """Tell whether recall put the message into the prompt: it is never stored again."""
    return RECALLED_KEY in message.additional_kwargs


def is_conversation(message: BaseMessage) -> bool:
    """Tell whether a person, the model or a tool said this.

    False for what was recalled, for an instruction to remove a message, and for what another
    middleware wrote (a summary carries `lc_source`).
    """
    if isinstance(message, RemoveMessage) or is_recalled(message):
        return False
    if "lc_source" in message.additional_kwargs:
        return False
    return not (isinstance(message, HumanMessage) and text_of(message).startswith(_SUMMARY))


def has_content(message: BaseMessage) -> bool:
    """Tell whether there is anything in the message: words, an image, not only white space."""
    if isinstance(message.content, str):
        return bool(message.content.strip())
    return any(not _is_text(block) or _block_text(block).strip() for block in message.content)


def says_nothing(message: BaseMessage) -> bool:
    """Tell whether providers refuse the message as empty: no content, no tool call, no result."""
    calls = isinstance(message, AIMessage) and bool(message.tool_calls)
    return not (calls or isinstance(message, ToolMessage) or has_content(message))


def complete_tool_turns(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages without half tool turns, which every provider refuses.

    A tool result without its call is left out; a call that is not followed by all its results
    keeps its text, if it has any.
    """
    kept: list[BaseMessage] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        end = position + 1
        while end < len(messages) and isinstance(messages[end], ToolMessage):
            end += 1
        results = messages[position + 1 : end]
        if isinstance(message, ToolMessage):
            position += 1
            continue
        kept.extend(_tool_turn(message, results))
        position = end
    return kept


def _tool_turn(message: BaseMessage, results: Sequence[BaseMessage]) -> list[BaseMessage]:
    calls = {call["id"] for call in message.tool_calls} if isinstance(message, AIMessage) else set()
    if not calls:
        return [message]
    answered: dict[str, BaseMessage] = {}
    for result in results:
        if isinstance(result, ToolMessage) and result.tool_call_id in calls:
            answered.setdefault(result.tool_call_id, result)
    if set(answered) == calls:
        return [message, *answered.values()]
    text = text_of(message)
    return [AIMessage(content=text, id=message.id, name=message.name)] if text.strip() else []


def _whole(message: BaseMessage) -> BaseMessage:
    # A subclass of a chunk class turns into the chunk class first, hence the loop.
    for _ in range(8):
        if not isinstance(message, BaseMessageChunk):
            break
        message = message_chunk_to_message(message)
    return message


def _data(message: BaseMessage) -> dict[str, Any]:
    return {**message.__dict__, **(message.model_extra or {})}


def _words(text: str) -> str:
    # White space aside: other writers join the blocks of a message in other ways.
    return "".join(text.split())


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _is_text(block: str | dict[Any, Any]) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


def _block_text(block: str | dict[Any, Any]) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text")
    return text if _is_text(block) and isinstance(text, str) else ""


def _of_unknown_type(message: Message, kind: str, data: dict[str, Any]) -> BaseMessage:
    try:
        return ChatMessage(**{**data, "type": "chat", "role": message.role or kind})
    except (TypeError, ValueError) as error:
        logger.warning("message %s cannot be rebuilt (%s); its text is kept", message.id, error)
        return plain(message)
