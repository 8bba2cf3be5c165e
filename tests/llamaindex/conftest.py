"""Memories on disk, with an embedder that counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector

QUESTION = "What is my cat called?"


class CountingEmbedder(HashEmbedder):
    """The hash embedder, remembering what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []
        self.documents: list[str] = []

    def embed_query(self, text: str, /) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.documents.extend(texts)
        return super().embed_documents(texts)


class SlowEmbedder(CountingEmbedder):
    """Takes its time for queries."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def embed_query(self, text: str, /) -> Vector:
        threading.Event().wait(self.seconds)
        return super().embed_query(text)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def recall(tmp_path: Path, embedder: CountingEmbedder) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(tmp_path / "memory", embedder=embedder) as opened:
        yield opened


@pytest.fixture
def past(recall: SemanticRecall) -> SemanticRecall:
    """A memory in which Anna told something in another conversation, and Bert did too."""
    for resource, cat in (("anna", "Mochi"), ("bert", "Pixel")):
        recall.remember(
            [
                {"role": "user", "content": f"My cat is called {cat} and sleeps all day."},
                {"role": "assistant", "content": f"Give {cat} my regards!"},
            ],
            thread_id="long-ago",
            resource_id=resource,
        )
    return recall


@pytest.fixture
def memory(past: SemanticRecall) -> SemanticRecallMemory:
    """Anna's memory in a new conversation."""
    return SemanticRecallMemory(past, thread_id="now", resource_id="anna")


def contents(messages: Sequence[ChatMessage]) -> list[str | None]:
    return [message.content for message in messages]


def chats(*texts: str) -> list[ChatMessage]:
    """Messages of user and assistant in turn."""
    roles = ("user", "assistant")
    return [ChatMessage(role=roles[i % 2], content=text) for i, text in enumerate(texts)]
