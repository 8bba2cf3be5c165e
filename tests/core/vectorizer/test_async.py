"""Embedding in async code: native coroutines are awaited, others do not block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from semantic_recall.errors import (
    EmbedderError,
)
from semantic_recall.types import Vector
from semantic_recall.vectorizer import Vectorizer
from tests.core.vectorizing import (
    DIMENSIONS,
    POISON,
    NativeAsync,
    Recorder,
    RecordingStore,
    add,
    pending,
)


async def test_native_coroutines_are_awaited_on_the_loop(store: RecordingStore) -> None:
    embedder = NativeAsync()
    vectorizer = Vectorizer(store, embedder)
    assert vectorizer.is_async
    assert await vectorizer.aembed(add(store, "one", "two", space=embedder.space)) == 2
    await vectorizer.aquery("one")
    await vectorizer.aquery("one")
    assert embedder.queries == ["one"]
    assert embedder.threads == {threading.get_ident()}


async def test_without_coroutines_the_loop_is_not_blocked(store: RecordingStore) -> None:
    class Threaded(Recorder):
        def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            assert threading.current_thread() is not threading.main_thread()
            return super().embed_documents(texts)

    embedder = Threaded()
    vectorizer = Vectorizer(store, embedder)
    assert not vectorizer.is_async
    assert await vectorizer.aembed(add(store, "one", space=embedder.space)) == 1
    assert (await vectorizer.aquery("one")).shape == (DIMENSIONS,)


async def test_async_failures_are_those_of_sync(store: RecordingStore) -> None:
    embedder = NativeAsync()
    vectorizer = Vectorizer(store, embedder)
    add(store, "one", POISON, "three", space=embedder.space)
    assert await vectorizer.aembed(pending(store, embedder.space)) == 0
    assert await vectorizer.aembed(pending(store, embedder.space)) == 2
    with pytest.raises(EmbedderError, match="no answer"):
        await vectorizer.aembed(pending(store, embedder.space), strict=True)


async def test_a_cancelled_embedding_leaves_the_messages_pending(store: RecordingStore) -> None:
    class Stuck(NativeAsync):
        async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            await asyncio.Event().wait()
            return []

    embedder = Stuck()
    items = add(store, "one", space=embedder.space)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(Vectorizer(store, embedder).aembed(items), timeout=0.05)
    assert [item.attempts for item in pending(store, embedder.space)] == [0]
