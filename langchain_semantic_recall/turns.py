"""Which messages of a run are new and worth keeping. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from langchain_semantic_recall.injecting import query_message
from langchain_semantic_recall.messages import from_langchain, is_conversation, role_of
from semantic_recall.types import Message


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


def worth_storing(turn: Sequence[BaseMessage], *, tools: bool) -> list[BaseMessage]:
    """Return the messages of a turn to keep: the user's and the model's final answers.

    Never recalled messages, summaries, system messages or messages without content.

    Args:
        turn: The messages of the turn.
        tools: Keep tool calls and results too.
    """
    return [message for message in turn if _is_worth(message, tools)]


def as_stored(
    turn: Sequence[BaseMessage],
    *,
    thread_id: str,
    resource_id: str | None,
    tools: bool,
    structured: bool = False,
) -> list[Message]:
    """Return the messages of a turn as they are stored.

    Args:
        turn: The messages of the turn.
        thread_id: The thread.
        resource_id: Its owner.
        tools: Keep tool calls and results too.
        structured: The run ended with a structured response. A model that gives it as a tool
            call says nothing else: its arguments are kept as the answer's text.
    """
    answer = structured_answer(turn) if structured else None
    kept = {id(message) for message in worth_storing(turn, tools=tools)}
    messages = []
    for message in turn:
        text = None
        if answer is message:
            text = _arguments(answer)
            if not tools:  # without its result a call would be refused, should it be sent again
                message = AIMessage(text, id=answer.id, name=answer.name)
        elif id(message) not in kept:
            continue
        messages.append(
            from_langchain(message, thread_id=thread_id, resource_id=resource_id, text=text)
        )
    return messages


def structured_answer(turn: Sequence[BaseMessage]) -> AIMessage | None:
    """Return the tool call that ended the turn as its structured response, if one did."""
    for message in reversed(turn):
        if isinstance(message, AIMessage):
            return message if message.tool_calls and not _has_content(message) else None
        if not isinstance(message, ToolMessage):
            return None
    return None


def structured_response(state: Mapping[str, Any]) -> bool:
    """Tell whether an agent's state holds a structured response."""
    return state.get("structured_response") is not None


def _is_worth(message: BaseMessage, tools: bool) -> bool:
    if not is_conversation(message) or isinstance(message, SystemMessage):
        return False
    if isinstance(message, ToolMessage):
        return tools
    if isinstance(message, AIMessage) and message.tool_calls:
        return tools
    return _has_content(message)


def _arguments(answer: AIMessage) -> str:
    arguments = [call["args"] for call in answer.tool_calls]
    return json.dumps(arguments[0] if len(arguments) == 1 else arguments, ensure_ascii=False)


def _has_content(message: BaseMessage) -> bool:
    if isinstance(message.content, str):
        return bool(message.content.strip())
    return bool(message.content)


def _from_user(message: BaseMessage) -> bool:
    return role_of(message) == "user" and is_conversation(message)
