"""One memory for applications of both frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient

from langchain_semantic_recall import SemanticRecallMiddleware
from llamaindex_semantic_recall import (
    LlamaIndexVectorIndex,
    SemanticRecallMemory,
    collection_name,
)
from semantic_recall import SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import VectorSpace
from tests.langchain.scripted import ScriptedModel, calling
from tests.llamaindex.scripted import ScriptedLLM, refuse_what_providers_refuse, shown

# The local mode says that it ignores payload indexes; a server uses them.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")


@tool
def vet(city: str) -> str:
    """Find a vet."""
    return f"Dr. Paw in {city}"


def test_a_langchain_agent_searches_a_vector_database_of_llamaindex(tmp_path: Path) -> None:
    client = QdrantClient(":memory:")
    asked: list[float] = []

    def open_store(space: VectorSpace) -> QdrantVectorStore:
        return QdrantVectorStore(collection_name(space), client=client)

    def cosine(similarity: float) -> float:
        asked.append(similarity)
        return similarity

    with SemanticRecall(
        SQLMessageStore.open(tmp_path / "recall.sqlite3"),
        lambda: LlamaIndexVectorIndex(open_store, cosine=cosine),
        HashEmbedder(),
        settings=Settings(exact_limit=0),
    ) as recall:
        for user, cat in (("anna", "Mochi"), ("bert", "Pixel")):
            told = {"role": "user", "content": f"My cat is called {cat}."}
            recall.remember(told, thread_id="old", resource_id=user)
        assert recall.flush(60)
        asked.clear()
        model = ScriptedModel.of("Mochi.")
        agent: Any = create_agent(model, middleware=[SemanticRecallMiddleware(recall)])
        run = {"configurable": {"thread_id": "now", "resource_id": "anna"}}
        agent.invoke({"messages": [("user", "What is my cat called?")]}, run)
        assert asked
        assert "My cat is called Mochi." in str(model.requests[0])
        assert "Pixel" not in str(model.requests[0])
    client.close()


def test_each_recalls_what_the_other_wrote(recall: SemanticRecall) -> None:
    model = ScriptedModel.of(calling(("vet", {"city": "Porto"})), "Dr. Paw in Porto.", "Rex.")
    agent: Any = create_agent(model, tools=[vet], middleware=[SemanticRecallMiddleware(recall)])

    def said(text: str, thread_id: str, resource_id: str = "anna") -> str:
        run = {"configurable": {"thread_id": thread_id, "resource_id": resource_id}}
        result = agent.invoke({"messages": [("user", text)]}, run)
        answer = result["messages"][-1]
        assert isinstance(answer, AIMessage)
        return str(answer.text)

    # A LangChain agent writes; a LlamaIndex chat engine recalls it in another thread.
    assert said("My cat Mochi needs a vet in Porto.", "langchain") == "Dr. Paw in Porto."
    llm = ScriptedLLM("Dr. Paw.", "Good dog.")
    engine = SimpleChatEngine.from_defaults(
        llm=llm, memory=SemanticRecallMemory(recall, thread_id="llama", resource_id="anna")
    )
    engine.chat("Which vet did you find for my cat Mochi?")
    assert "My cat Mochi needs a vet in Porto." in shown(llm.prompts[-1])
    assert "Dr. Paw in Porto." in shown(llm.prompts[-1])

    # And the other way round.
    engine.chat("My dog is called Rex.")
    assert said("What is my dog called?", "langchain-2") == "Rex."
    assert "My dog is called Rex." in str(model.requests[-1])

    # The other framework's thread can be gone on with: what it wrote reads as role and text.
    memory = SemanticRecallMemory(recall, thread_id="langchain", resource_id="anna")
    history = memory.get("Thanks!")
    refuse_what_providers_refuse([m for m in history if m.role.value != "system"])
    assert [m.content for m in history][-2:] == [
        "My cat Mochi needs a vet in Porto.",
        "Dr. Paw in Porto.",
    ]
    memory.put_messages(history[-2:])

    # Nobody else sees any of it.
    other = SemanticRecallMemory(recall, thread_id="langchain", resource_id="bert")
    assert other.get("My cat Mochi and my dog Rex and the vet in Porto?") == []
