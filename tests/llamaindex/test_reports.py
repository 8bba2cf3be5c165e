"""What users of LlamaIndex and its neighbours reported, and must not happen here.

Reports that belong to one surface are in that surface's tests, under the same kind of name.
"""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import requires
from pathlib import Path
from typing import Any, cast

import chromadb
import pytest
from chromadb.config import Settings as ChromaSettings
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryResult
from llama_index.vector_stores.chroma import ChromaVectorStore

from llamaindex_semantic_recall import LlamaIndexVectorIndex, SemanticRecallMemory
from semantic_recall import SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.protocols import MessageStore
from semantic_recall.stores.sql import SQLMessageStore
from tests.llamaindex.conftest import QUESTION, chats, contents
from tests.llamaindex.scripted import ScriptedLLM, shown


class AnyStore:
    """Somebody's own store: it has what the protocol asks for, and nothing else."""

    def __init__(self, store: SQLMessageStore) -> None:
        self._store = store
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name not in dir(MessageStore):
            raise AttributeError(f"not in the protocol: {name}")
        self.used.add(name)
        return getattr(self._store, name)


async def test_report_12_the_store_is_any_that_keeps_the_protocol(tmp_path: Path) -> None:
    own = AnyStore(SQLMessageStore.open(tmp_path / "recall.sqlite3"))
    with SemanticRecall(cast("MessageStore", own), None, HashEmbedder()) as recall:
        old = SemanticRecallMemory(recall, thread_id="old", resource_id="anna")
        old.put_messages(chats("My cat is called Mochi.", "Nice."))
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        llm = ScriptedLLM("Mochi.")
        await SimpleChatEngine.from_defaults(llm=llm, memory=memory).achat(QUESTION)
        assert "Mochi" in shown(llm.prompts[-1])
        memory.set(chats("another", "history"))
        assert contents(memory.get_all()) == ["another", "history"]
        old.reset()
        assert recall.flush()
        assert recall.stats().messages == 2
        assert recall.verify().ok
    assert {"add", "history", "delete"} <= own.used


class SlowChroma(ChromaVectorStore):
    """Its server is far away."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        time.sleep(1.0)
        return super().query(query, **kwargs)


async def test_report_28_a_slow_chroma_does_not_block_the_event_loop(tmp_path: Path) -> None:
    client = chromadb.PersistentClient(
        tmp_path / "chroma", settings=ChromaSettings(anonymized_telemetry=False)
    )
    collection = client.create_collection("recall", metadata={"hnsw:space": "cosine"})
    with SemanticRecall(
        SQLMessageStore.open(tmp_path / "recall.sqlite3"),
        lambda: LlamaIndexVectorIndex(SlowChroma.from_collection(collection)),
        HashEmbedder(),
        settings=Settings(exact_limit=0),
    ) as recall:
        recall.remember(
            {"role": "user", "content": "My cat is called Mochi."},
            thread_id="old",
            resource_id="anna",
        )
        assert recall.flush(60)
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        await memory.aget("so that everything is loaded")
        gaps: list[float] = []

        async def tick() -> None:
            while True:
                before = time.perf_counter()
                await asyncio.sleep(0.01)
                gaps.append(time.perf_counter() - before)

        ticker = asyncio.create_task(tick())
        began = time.perf_counter()
        found = await memory.aget(QUESTION)
        waited = time.perf_counter() - began
        ticker.cancel()
    assert "Mochi" in shown(found)
    assert waited >= 1.0
    assert max(gaps) < 0.8


async def test_report_10_an_abandoned_async_stream_is_stored(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    engine = SimpleChatEngine.from_defaults(llm=ScriptedLLM("one two three"), memory=memory)
    response = await engine.astream_chat("Count.")
    async for _ in response.async_response_gen():
        break
    deadline = time.monotonic() + 10
    while len(memory.get_all()) < 2 and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert contents(memory.get_all()) == ["Count.", "one two three"]


@pytest.mark.parametrize("package", ["chromadb", "llama-index-core", "langchain-core", "langchain"])
def test_report_27_what_may_rename_its_arguments_has_an_upper_bound(package: str) -> None:
    """Mem0 did; what we call of each is run by the conformance suites and on real engines."""
    (line,) = [
        line
        for line in requires("chat-semantic-recall") or ()
        if line.startswith((f"{package}<", f"{package}>")) and "all" not in line
    ]
    assert "<" in line


async def test_an_answer_without_content_is_not_sent_again(recall: SemanticRecall) -> None:
    """A provider that stops at once leaves an empty answer; others refuse a prompt with one."""
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    llm = ScriptedLLM(ChatMessage(role="assistant", content=""), "Here I am.")
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
    await engine.achat("Hello?")
    await engine.achat("Still there?")
    assert contents(llm.prompts[-1])[-2:] == ["Hello?", "Still there?"]
    assert contents(memory.get_all()) == ["Hello?", "", "Still there?", "Here I am."]
