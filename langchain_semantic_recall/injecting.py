"""Where recalled messages go in a prompt that providers accept. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_semantic_recall.messages import (
    RECALLED_KEY,
    is_conversation,
    is_recalled,
    role_of,
    stored_id,
    text_of,
)
from semantic_recall.formatting import as_chat_message
from semantic_recall.result import Recall
from semantic_recall.types import Message, RecalledMessage

Insert: TypeAlias = Literal["system", "user"]

OPENING: Final = "(Earlier messages of this conversation:)"
"""Stands before recalled messages that begin with an answer: Anthropic wants a user first."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is given: at most one system message, then the conversation."""

    system: SystemMessage | None
    messages: list[BaseMessage]

    @property
    def whole(self) -> list[BaseMessage]:
        """Everything as one list."""
        return self.messages if self.system is None else [self.system, *self.messages]


def query_message(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the last message that a user wrote: what recall searches for."""
    for message in reversed(messages):
        if role_of(message) == "user" and is_conversation(message):
            return message
    return None


def ids_in(messages: Sequence[BaseMessage]) -> frozenset[str]:
    """Return the stored ids of what a prompt already holds, recalled or live."""
    found = {
        message.additional_kwargs[RECALLED_KEY].get("id")
        if is_recalled(message)
        else stored_id(message)
        for message in messages
    }
    return frozenset(id for id in found if id)


def repeated_ids(stored: Iterable[Message], live: Sequence[BaseMessage]) -> frozenset[str]:
    """Return the ids of stored messages that the prompt holds word for word."""
    told = {(role_of(message), text_of(message)) for message in live if not is_recalled(message)}
    return frozenset(message.id for message in stored if (message.role, message.text) in told)


def inject(prompt: Prompt, recall: Recall, insert: Insert = "system") -> Prompt:
    """Return the prompt with what was recalled; the given one is left as it is.

    Messages of the same thread go before the live ones, as text. Those of other threads go as
    one block into the system message, or, with `insert="user"`, into a user message of their own
    just before the user's last message.
    """
    system, front, live = _split(prompt)
    block = recall.text
    if block and insert == "system":
        system = _with_block(system, block)
    elif block:
        live = _with_user_block(live, block)
    recalled = [as_recalled(found) for found in recall.same_thread]
    if recalled and isinstance(recalled[0], AIMessage):
        recalled.insert(0, _own_words(OPENING))
    if prompt.system is None and isinstance(front, SystemMessage):
        return Prompt(None, [system or front, *recalled, *live])
    return Prompt(system, [*recalled, *live])


def memory_messages(recall: Recall) -> list[BaseMessage]:
    """Return what was recalled as messages alone, the block as a user message before the others.

    For a place in the middle of a prompt, where no system message may stand.
    """
    recalled = [as_recalled(found) for found in recall.same_thread]
    if recall.text:
        return [_own_words(recall.text), *recalled]
    if recalled and isinstance(recalled[0], AIMessage):
        return [_own_words(OPENING), *recalled]
    return recalled


def as_recalled(found: RecalledMessage) -> BaseMessage:
    """Return a recalled message for a prompt: role and text alone, marked as recalled."""
    plain = as_chat_message(found)
    message = found.message
    mark: dict[str, Any] = {
        "source": found.source,
        "id": message.id,
        "thread_id": message.thread_id,
        "created_at": message.created_at.isoformat(),
    }
    kind = AIMessage if plain["role"] == "assistant" else HumanMessage
    return kind(content=plain["content"], additional_kwargs={RECALLED_KEY: mark})


def _split(
    prompt: Prompt,
) -> tuple[SystemMessage | None, BaseMessage | None, list[BaseMessage]]:
    """Return the system message, the first message if it is that one, and the conversation."""
    first = prompt.messages[0] if prompt.messages else None
    if prompt.system is None and isinstance(first, SystemMessage):
        return first, first, list(prompt.messages[1:])
    return prompt.system, None, list(prompt.messages)


def _with_block(system: SystemMessage | None, block: str) -> SystemMessage:
    if system is None:
        return SystemMessage(block)
    if isinstance(system.content, str):
        content: Any = f"{system.content}\n\n{block}" if system.content else block
    else:
        # After the existing blocks: one with cache_control still ends the cached beginning.
        content = [*system.content, {"type": "text", "text": f"\n\n{block}"}]
    return system.model_copy(update={"content": content})


def _with_user_block(live: list[BaseMessage], block: str) -> list[BaseMessage]:
    query = query_message(live)
    place = next((i for i, message in enumerate(live) if message is query), len(live))
    return [*live[:place], _own_words(block), *live[place:]]


def _own_words(text: str) -> HumanMessage:
    return HumanMessage(text, additional_kwargs={RECALLED_KEY: {}})
