"""What the tests of agents share: words, ids, tools."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.tools import tool

from semantic_recall import SemanticRecall

CAT = "My cat is called Mimi and she is afraid of thunder."
QUESTION = "What is the name of my cat?"


def said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def run_in(thread: object, resource: object = "ann") -> Any:
    return {"configurable": {"thread_id": thread, "resource_id": resource}}


def told(memory: SemanticRecall, text: str, thread: str, resource: str | None = "ann") -> None:
    memory.remember(
        [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}],
        thread_id=thread,
        resource_id=resource,
    )


def texts(memory: SemanticRecall, thread: str, resource: str | None = "ann") -> list[str]:
    return [message.text for message in memory.history(thread, resource, last=None)]


def system_of(request: list[BaseMessage]) -> str:
    assert isinstance(request[0], SystemMessage)
    return str(request[0].text)


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"
