"""SemanticRecallMemory asked more than once: in a turn, at once, by several users."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import SemanticRecall
from tests.llamaindex.conftest import QUESTION, CountingEmbedder, SlowEmbedder, chats, contents
from tests.llamaindex.scripted import shown


def test_report_31_the_prompt_is_byte_identical_within_a_turn(
    past: SemanticRecall, memory: SemanticRecallMemory
) -> None:
    memory.put(ChatMessage(QUESTION))
    first = memory.get()
    past.remember(
        {"role": "user", "content": "My cat is called Mochi, I said!"},
        thread_id="meanwhile",
        resource_id="anna",
    )
    assert memory.get() == first
    assert memory.get(QUESTION) == first
    memory.put_messages(chats("And my cat's age?"))
    assert "I said!" in shown(memory.get())


async def test_report_17_five_first_gets_at_once(
    past: SemanticRecall, memory: SemanticRecallMemory, embedder: CountingEmbedder
) -> None:
    await memory.aput(ChatMessage(QUESTION))
    found = await asyncio.gather(*(memory.aget() for _ in range(5)))
    assert all(messages == found[0] for messages in found)
    assert embedder.queries == [QUESTION]
    with ThreadPoolExecutor(5) as pool:
        again = list(pool.map(lambda _: memory.get(), range(5)))
    assert again == found
    assert embedder.queries == [QUESTION]


async def test_a_cancelled_get_does_not_spoil_the_others(tmp_path: Path) -> None:
    embedder = SlowEmbedder(2.0)
    with SemanticRecall.open(tmp_path / "slow", embedder=embedder) as recall:
        recall.remember(
            {"role": "user", "content": "My cat is Mochi"}, thread_id="old", resource_id="anna"
        )
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        memory.get("so that everything is loaded")
        first = asyncio.create_task(memory.aget(QUESTION))
        await asyncio.sleep(0.2)
        others = [asyncio.create_task(memory.aget(QUESTION)) for _ in range(3)]
        await asyncio.sleep(0.1)
        first.cancel()
        for messages in await asyncio.gather(*others):
            assert "Mochi" in shown(messages)
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_report_14_sync_calls_inside_a_running_loop(memory: SemanticRecallMemory) -> None:
    memory.put(ChatMessage("sync"))
    await memory.aput(ChatMessage("async"))
    memory.put_messages(chats("more"))
    assert contents(memory.get())[-3:] == ["sync", "async", "more"]
    assert contents(await memory.aget_all()) == ["sync", "async", "more"]


def test_several_event_loops(memory: SemanticRecallMemory) -> None:
    for i in range(3):
        asyncio.run(memory.aput(ChatMessage(f"loop {i}")))
        assert f"loop {i}" in shown(asyncio.run(memory.aget()))


def test_two_users_on_one_store_do_not_see_each_other(past: SemanticRecall) -> None:
    """LlamaIndex's own block leaks here (report 2); the same thread id is two threads."""
    anna = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    bert = SemanticRecallMemory(past, thread_id="now", resource_id="bert")
    nobody = SemanticRecallMemory(past, thread_id="now")
    anna.put(ChatMessage("Anna's secret is blue."))
    bert.put(ChatMessage("Bert's secret is red."))
    for memory, own, foreign in (
        (anna, ("Mochi", "blue"), ("Pixel", "red")),
        (bert, ("Pixel", "red"), ("Mochi", "blue")),
    ):
        text = shown(memory.get(f"{QUESTION} And what is my secret?"))
        assert all(word in text for word in own)
        assert not any(word in text for word in foreign)
    assert shown(nobody.get(f"{QUESTION} And what is my secret?")) == ""
    bert.reset()
    assert "blue" in shown(anna.get())
