"""What a `before_store` hook takes out of a text does not come back from anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_semantic_recall import (
    RunnableWithSemanticRecall,
    SemanticRecallChatMessageHistory,
    SemanticRecallRetriever,
)
from semantic_recall import Message, SemanticRecall, Settings
from tests.langchain.agents import run_in
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel, calling

CARD = "4111-1111"


def without_cards(messages: Sequence[Message]) -> Sequence[Message]:
    return [dataclasses.replace(m, text=m.text.replace(CARD, "[card]")) for m in messages]


@pytest.fixture
def redacting(tmp_path: Path) -> Iterator[SemanticRecall]:
    settings = Settings(before_store=without_cards)
    with SemanticRecall.open(tmp_path / "memory", embedder="hash", settings=settings) as memory:
        yield memory


TALK: list[BaseMessage] = [
    HumanMessage([{"type": "text", "text": f"My card is {CARD}"}, {"type": "text", "text": "ok?"}]),
    calling(("pay", {"sum": 5}), text=f"I pay with {CARD}."),
    ToolMessage(
        f"paid with {CARD}", tool_call_id="call_1", artifact={"card": CARD}, status="error"
    ),
    AIMessage(f"{CARD} was refused.", additional_kwargs={"raw": CARD}),
]


def test_the_history_shows_what_was_stored(redacting: SemanticRecall) -> None:
    history = SemanticRecallChatMessageHistory(redacting, "one", "ann")
    history.add_messages([*TALK, HumanMessage("Thanks", additional_kwargs={"mood": "calm"})])
    shown = history.messages
    assert CARD not in repr(shown)
    assert [message.text for message in shown] == [
        "My card is [card]\nok?",
        "I pay with [card].",
        "paid with [card]",
        "[card] was refused.",
        "Thanks",
    ]
    assert [message.type for message in shown] == ["human", "ai", "tool", "ai", "human"]
    assert isinstance(shown[2], ToolMessage)
    assert (shown[2].tool_call_id, shown[2].status) == ("call_1", "error")
    assert shown[4].additional_kwargs == {"mood": "calm"}  # what no hook changed is whole


async def test_a_chain_and_a_retriever_show_what_was_stored(
    redacting: SemanticRecall, ask: Ask
) -> None:
    model = ScriptedModel.of(f"{CARD}, I see.")
    chain = RunnableWithSemanticRecall(model, redacting)
    await ask(chain, f"My card is {CARD}", run_in("one"))
    await ask(chain, "What is my card?", run_in("one"))
    await ask(chain, "What is my card?", run_in("two"))
    assert all(CARD not in repr(request) for request in model.requests[1:])
    assert "[card], I see." in repr(model.requests[1])
    assert "My card is [card]" in repr(model.requests[2])
    found = await ask(SemanticRecallRetriever(memory=redacting), "card", run_in("three"))
    assert found
    assert CARD not in repr(found)
