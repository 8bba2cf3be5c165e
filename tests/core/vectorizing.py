"""Embedders, a store and messages for the tests of the vectorizer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np

from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.indexed_text import digest, indexed_text
from semantic_recall.records import MessageRecord, Part, PendingMessage
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message, Scope, Vector, VectorSpace

DIMENSIONS = 16
POISON = "poison"


BAD = {
    "NaN": np.full(DIMENSIONS, np.nan, np.float32),
    "infinity": np.full(DIMENSIONS, np.inf, np.float32),
    "zeros": np.zeros(DIMENSIONS, np.float32),
    "zeros in single precision": np.full(DIMENSIONS, 1e-60),
    "too large for single precision": np.full(DIMENSIONS, 1e300),
    "too large to be squared": np.full(DIMENSIONS, 1e30, np.float32),
    "too short": np.ones(DIMENSIONS - 1, np.float32),
    "two-dimensional": np.ones((1, DIMENSIONS), np.float32),
    "words": ["a"] * DIMENSIONS,
    "None": None,
    "ragged": [[1.0], [1.0, 2.0]],
}


class RecordingStore(SQLMessageStore):
    """The SQL store, writing down how long it was asked to wait."""

    delays: list[tuple[float, int]]

    def postpone(self, space: VectorSpace, keys: Sequence[int], /, *, seconds: float) -> None:
        self.delays.append((seconds, len(keys)))
        super().postpone(space, keys, seconds=seconds)


class Recorder(HashEmbedder):
    """The hash embedder, writing down what it is asked."""

    def __init__(self, max_characters: int | None = 200) -> None:
        super().__init__(DIMENSIONS, max_characters=max_characters)
        self.calls: list[list[str]] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.calls.append(list(texts))
        return super().embed_documents(texts)

    def embed_query(self, text: str, /) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


class Flaky(Recorder):
    """Refuses a batch with the poison in it, or everything while it is down."""

    down = False

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        vectors = super().embed_documents(texts)
        if self.down or any(POISON in text for text in texts):
            raise ConnectionError("no answer")
        return vectors


class BadVectors(Recorder):
    """Gives a certain vector for texts with the poison."""

    def __init__(self, bad: object) -> None:
        super().__init__()
        self.bad = bad

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        vectors: list[object] = [
            self.bad if POISON in text else HashEmbedder(DIMENSIONS).embed_query(text)
            for text in texts
        ]
        return vectors  # type: ignore[return-value] # what a broken embedder does

    def embed_query(self, text: str, /) -> Vector:
        return self.bad  # type: ignore[return-value] # what a broken embedder does


class NativeAsync(Flaky):
    """An embedder with coroutine methods, which must run on the event loop's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        await asyncio.sleep(0)
        self.threads.add(threading.get_ident())
        return self.embed_documents(texts)

    async def aembed_query(self, text: str, /) -> Vector:
        await asyncio.sleep(0)
        self.threads.add(threading.get_ident())
        return self.embed_query(text)


def add(store: SQLMessageStore, *texts: str, space: VectorSpace) -> list[PendingMessage]:
    """Store messages and return what is pending."""
    if not store.spaces():
        store.add_space(space, active=True)
    records = [record(text) for text in texts]
    store.add(records)
    return store.pending(space, limit=1_000, due_only=False)


def record(text: str) -> MessageRecord:
    message = Message(role="user", text=text, thread_id="t")
    return MessageRecord(
        message=message,
        part=Part.SEARCHABLE,
        terms=np.zeros(0, dtype=np.uint32),
        digest=digest(indexed_text(message)),
    )


def pending(store: SQLMessageStore, space: VectorSpace) -> list[PendingMessage]:
    return store.pending(space, limit=1_000, due_only=False)


def stored_vectors(store: SQLMessageStore, space: VectorSpace) -> int:
    return len(store.rows(Scope(None, "t"), space).vectors)
