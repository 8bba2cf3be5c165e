"""The memory's reranker decides what LlamaIndex gets, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llamaindex_semantic_recall import SemanticRecallMemory, SemanticRecallRetriever
from semantic_recall import SemanticRecall, Settings


def dog_first(query: str, texts: Sequence[str]) -> list[float]:
    return [1.0 if "dog" in text else 0.0 for text in texts]


async def test_retriever_and_memory_have_its_order(tmp_path: Path) -> None:
    settings = Settings(reranker=dog_first)
    with SemanticRecall.open(
        tmp_path, embedder="hash", settings=settings, top_k=1, message_range=0
    ) as recall:
        for text in ("My cat is called Mochi.", "The dog barks at night.", "It rains."):
            recall.remember(
                {"role": "user", "content": text}, thread_id="long-ago", resource_id="anna"
            )
        retriever = SemanticRecallRetriever(recall, resource_id="anna")
        for found in (retriever.retrieve("my cat"), await retriever.aretrieve("my cat")):
            assert [(node.text, node.score) for node in found] == [("The dog barks at night.", 1.0)]
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        for messages in (memory.get("my cat"), await memory.aget("my cat")):
            assert "dog barks" in str(messages[0].content)
            assert "Mochi" not in str(messages)
