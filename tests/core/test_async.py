"""One memory under an event loop: many at once, nothing blocked, native async awaited."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector


async def test_twenty_users_at_once_stay_apart(tmp_path: Path) -> None:
    async with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64)) as memory:

        async def user(number: int) -> None:
            resource = f"u{number}"
            for turn in range(10):
                await memory.aremember(
                    [
                        {"role": "user", "content": f"apple{number} turn{turn}"},
                        {"role": "assistant", "content": f"pear{number} so{turn}"},
                    ],
                    thread_id="t",
                    resource_id=resource,
                )
                recalled = await memory.arecall(f"turn{turn}", resource_id=resource)
                assert recalled.hits[0].message.text == f"apple{number} turn{turn}"
                assert {m.message.resource_id for m in recalled} == {resource}

        await asyncio.gather(*(user(number) for number in range(20)))
        stats = await memory.astats()
        assert (stats.messages, stats.resources, stats.pending) == (400, 20, 0)


class NativeAsyncEmbedder(HashEmbedder):
    """Awaits instead of blocking; its sync methods must not be used under a loop."""

    def __init__(self) -> None:
        super().__init__(64)
        self.awaited = 0

    async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.awaited += 1
        await asyncio.sleep(0.05)
        return list(super().embed_documents(texts))

    async def aembed_query(self, text: str, /) -> Vector:
        self.awaited += 1
        await asyncio.sleep(0.05)
        return super().embed_query(text)


async def test_a_native_async_embedder_is_awaited(tmp_path: Path) -> None:
    embedder = NativeAsyncEmbedder()
    async with SemanticRecall.open(tmp_path, embedder=embedder) as memory:
        await memory.aremember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        recalled = await memory.arecall("apple pie", resource_id="r")
        assert [m.message.text for m in recalled] == ["apple"]
        assert embedder.awaited == 2


class BlockingEmbedder(HashEmbedder):
    def embed_query(self, text: str, /) -> Vector:
        time.sleep(0.3)
        return super().embed_query(text)


async def test_a_blocking_embedder_does_not_block_the_loop(tmp_path: Path) -> None:
    async with SemanticRecall.open(tmp_path, embedder=BlockingEmbedder(64)) as memory:
        await memory.aremember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        recalling = asyncio.create_task(memory.arecall("apple", resource_id="r"))
        ticks = 0
        while not recalling.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert ticks >= 10
        assert await recalling


async def test_context_variables_reach_the_embedder(tmp_path: Path) -> None:
    user = contextvars.ContextVar("user", default="nobody")
    seen = []

    class ContextEmbedder(HashEmbedder):
        def embed_query(self, text: str, /) -> Vector:
            seen.append(user.get())
            return super().embed_query(text)

    async with SemanticRecall.open(tmp_path, embedder=ContextEmbedder(64)) as memory:
        await memory.aremember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        user.set("ana")
        await memory.arecall("one", resource_id="r")
        await memory.arecall_for_turn("two", resource_id="r")
        memory.recall_for_turn("three", resource_id="r")
    assert seen == ["ana"] * 3


async def test_a_cancelled_recall_leaves_the_memory_usable(tmp_path: Path) -> None:
    async with SemanticRecall.open(tmp_path, embedder=BlockingEmbedder(64)) as memory:
        await memory.aremember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(memory.arecall("apple", resource_id="r"), 0.05)
        assert await memory.arecall("apple", resource_id="r")
