"""Whatever asks in async code: the embedder never works on the event loop's thread."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from langchain.agents import create_agent

from langchain_semantic_recall import (
    RunnableWithSemanticRecall,
    SemanticRecallChatMessageHistory,
    SemanticRecallMiddleware,
    SemanticRecallRetriever,
    create_recall_tool,
)
from semantic_recall import SemanticRecall
from tests.langchain.agents import CAT, QUESTION, run_in, said, told
from tests.langchain.embedders import CountingEmbedder
from tests.langchain.scripted import ScriptedModel

Ask: TypeAlias = Callable[[SemanticRecall], Awaitable[Any]]


async def _middleware(memory: SemanticRecall) -> Any:
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    await agent.ainvoke(said(QUESTION), run_in("new"))
    return model.requests


async def _chain(memory: SemanticRecall) -> Any:
    model = ScriptedModel.of()
    await RunnableWithSemanticRecall(model, memory).ainvoke(QUESTION, run_in("new"))
    return model.requests


async def _retriever(memory: SemanticRecall) -> Any:
    return await SemanticRecallRetriever(memory=memory).ainvoke(QUESTION, run_in("new"))


async def _tool(memory: SemanticRecall) -> Any:
    return await create_recall_tool(memory, resource_id="ann").ainvoke({"query": QUESTION})


async def _history(memory: SemanticRecall) -> Any:
    return (await SemanticRecallChatMessageHistory(memory, "new", "ann").arecall(QUESTION)).text


@pytest.mark.parametrize(
    "ask", [_middleware, _chain, _retriever, _tool, _history], ids=lambda ask: ask.__name__[1:]
)
async def test_the_event_loop_is_left_alone(tmp_path: Path, ask: Ask) -> None:
    embedder = CountingEmbedder()
    with SemanticRecall.open(tmp_path, embedder=embedder) as memory:
        told(memory, CAT, "old")
        assert "Mimi" in repr(await ask(memory))
    assert embedder.queries == [QUESTION]
    assert threading.get_ident() not in embedder.threads
