"""Half tool turns never reach a provider."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)

from langchain_semantic_recall.messages import (
    complete_tool_turns,
)


def _answer(*ids: str, text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=[{"name": "t", "args": {}, "id": id} for id in ids])


def _result(id: str) -> ToolMessage:
    return ToolMessage("r", tool_call_id=id)


H, A = HumanMessage("h"), AIMessage("a")
TOOL_TURNS: dict[str, tuple[Callable[[], list[BaseMessage]], Callable[[], list[BaseMessage]]]] = {
    "whole turn": (
        lambda: [H, _answer("1", "2"), _result("1"), _result("2"), A],
        lambda: [H, _answer("1", "2"), _result("1"), _result("2"), A],
    ),
    "result without call": (lambda: [_result("1"), H, A], lambda: [H, A]),
    "call without result": (lambda: [H, _answer("1"), A], lambda: [H, A]),
    "call without result keeps its text": (
        lambda: [H, _answer("1", text="I look"), H],
        lambda: [H, AIMessage("I look"), H],
    ),
    "half answered": (lambda: [H, _answer("1", "2"), _result("1"), H], lambda: [H, H]),
    "foreign result inside": (
        lambda: [_answer("1"), _result("9"), _result("1")],
        lambda: [_answer("1"), _result("1")],
    ),
    "answered twice": (
        lambda: [_answer("1"), _result("1"), _result("1")],
        lambda: [_answer("1"), _result("1")],
    ),
    "call at the end": (lambda: [H, _answer("1")], lambda: [H]),
}


@pytest.mark.parametrize("name", TOOL_TURNS)
def test_langchain_27216_half_tool_turns_never_reach_a_provider(name: str) -> None:
    given_, expected = TOOL_TURNS[name]
    assert complete_tool_turns(given_()) == expected()
