"""Which messages of a run are new and worth keeping. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from langchain_semantic_recall.injecting import query_message
from langchain_semantic_recall.messages import (
    from_langchain,
    has_content,
    is_conversation,
    role_of,
    stored_id,
    text_of,
)
from semantic_recall.types import Message

Fingerprint: TypeAlias = tuple[str | None, str, str]
"""Stored id, role and text."""


def current_turn(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the user's last messages and everything after them.

    Messages before them belong to earlier turns: they were stored then, or forgotten since, and
    are not stored again.
    """
    query = query_message(messages)
    start = next((i for i, message in enumerate(messages) if message is query), 0)
    while start > 0 and _from_user(messages[start - 1]):
        start -= 1
    return list(messages[start:])


@dataclass(frozen=True, slots=True)
class Kept:
    """A message to store, and what is stored as its text if that is not its own."""

    message: BaseMessage
    text: str | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """What tells whether just this was stored before."""
        message = self.message
        return stored_id(message), role_of(message), self.text or text_of(message)

    def as_stored(self, *, thread_id: str, resource_id: str | None) -> Message:
        """Return the message as it is stored."""
        return from_langchain(
            self.message, thread_id=thread_id, resource_id=resource_id, text=self.text
        )


def worth_storing(
    turn: Sequence[BaseMessage], *, tools: bool, structured: object = None
) -> list[Kept]:
    """Return the messages of a turn to keep: the user's and the model's final answers.

    Never recalled messages, summaries, system messages or messages without content.

    Args:
        turn: The messages of the turn.
        tools: Keep tool calls and results too.
        structured: The structured response that the run ended with, if it did. A model that
            gives it as a tool call says nothing else: its arguments are kept as its text.
    """
    answer = None if structured is None else _structured_answer(turn, structured)
    kept = []
    for message in turn:
        if message is answer:
            text = _arguments(answer)
            # Without its result a call would be refused, should it ever be sent again.
            plain = AIMessage(text, id=answer.id, name=answer.name)
            kept.append(Kept(answer, text) if tools else Kept(plain))
        elif _is_worth(message, tools):
            kept.append(Kept(message))
    return kept


def _structured_answer(turn: Sequence[BaseMessage], structured: object) -> AIMessage | None:
    """Return the tool call that ended the turn as its structured response, if one did."""
    last = next((m for m in reversed(turn) if not isinstance(m, ToolMessage)), None)
    if not isinstance(last, AIMessage) or has_content(last):
        return None
    # The response may be an earlier turn's, still in the state: then its name is another one.
    named = isinstance(structured, Mapping) or type(structured).__name__ in {
        call["name"] for call in last.tool_calls
    }
    return last if last.tool_calls and named else None


def _is_worth(message: BaseMessage, tools: bool) -> bool:
    if not is_conversation(message) or isinstance(message, SystemMessage):
        return False
    if isinstance(message, ToolMessage):
        return tools
    if isinstance(message, AIMessage) and message.tool_calls:
        return tools
    return has_content(message)


def _arguments(answer: AIMessage) -> str:
    arguments = [call["args"] for call in answer.tool_calls]
    return json.dumps(arguments[0] if len(arguments) == 1 else arguments, ensure_ascii=False)


def _from_user(message: BaseMessage) -> bool:
    return role_of(message) == "user" and is_conversation(message)
