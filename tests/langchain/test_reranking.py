"""The memory's reranker decides what LangChain gets, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent

from langchain_semantic_recall import SemanticRecallMiddleware, SemanticRecallRetriever
from semantic_recall import RerankerError, SemanticRecall, Settings
from tests.langchain.scripted import ScriptedModel
from tests.langchain.test_retriever import fill


def rex_first(query: str, texts: Sequence[str]) -> list[float]:
    return [1.0 if "called Rex" in text else 0.0 for text in texts]


def broken(query: str, texts: Sequence[str]) -> list[float]:
    raise ConnectionError("no route to the model")


async def test_the_retriever_has_its_order(tmp_path: Path) -> None:
    settings = Settings(reranker=rex_first)
    with SemanticRecall.open(tmp_path, embedder="hash", settings=settings) as memory:
        fill(memory)
        retriever = SemanticRecallRetriever(memory=memory, k=1, neighbours="none")
        for found in (
            retriever.invoke("What is my cat called?", resource_id="ann"),
            await retriever.ainvoke("What is my cat called?", resource_id="ann"),
        ):
            assert [document.page_content for document in found] == ["My dog is called Rex."]
            assert found[0].metadata["score"] == 1.0


async def test_the_middleware_goes_on_without_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SemanticRecall.open(
        tmp_path, embedder="hash", settings=Settings(reranker=broken)
    ) as memory:
        fill(memory)
        with pytest.raises(RerankerError, match="no route to the model"):
            memory.recall("What is my cat called?", resource_id="ann")
        model = ScriptedModel.of("Mimi.")
        agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
        config: Any = {"configurable": {"thread_id": "now", "resource_id": "ann"}}
        await agent.ainvoke({"messages": [("user", "What is my cat called?")]}, config)
        assert "Mimi" in str(model.requests[0])
    assert "the reranker failed" in caplog.text
