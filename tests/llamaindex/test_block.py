"""Recall inside LlamaIndex's own `Memory`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import InsertMethod, Memory, StaticMemoryBlock
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import StaticPool

from llamaindex_semantic_recall import IndexingMemory, SemanticRecallMemoryBlock
from semantic_recall import SemanticRecall
from semantic_recall.errors import ConfigurationError
from tests.llamaindex.conftest import QUESTION, CountingEmbedder, chats
from tests.llamaindex.scripted import ScriptedLLM, call, shown

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


@pytest.fixture
async def buffer() -> AsyncIterator[AsyncEngine]:
    """Where `Memory` keeps its buffer; it never closes what it makes itself."""
    engine = create_async_engine("sqlite+aiosqlite:///:memory:", poolclass=StaticPool)
    yield engine
    await engine.dispose()


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_a_block_recalls_for_the_users_message(
    buffer: AsyncEngine, past: SemanticRecall
) -> None:
    block = SemanticRecallMemoryBlock(past, resource_id="anna")
    memory = Memory.from_defaults(async_engine=buffer, session_id="now", memory_blocks=[block])
    llm = ScriptedLLM("Mochi.")
    await SimpleChatEngine.from_defaults(llm=llm, memory=memory).achat(QUESTION)
    prompt = shown(llm.prompts[-1])
    assert prompt.count("My cat is called Mochi") == 1
    assert "<semantic_recall>" in prompt
    assert "Pixel" not in prompt


async def test_report_2_one_block_serves_two_sessions_and_does_not_mix_them(
    recall: SemanticRecall,
) -> None:
    """Without a resource each session sees itself alone, whichever came first."""
    block = SemanticRecallMemoryBlock(recall)
    for session, secret in (("a", "The code of my safe is 1234."), ("b", "I like tea.")):
        await block.aput([ChatMessage(secret)], session_id=session)
    asked = [ChatMessage("What is the code of my safe? I like tea.")]
    for session, told in (("a", "1234"), ("b", "tea"), ("a", "1234")):
        text = await block.aget(asked, session_id=session)
        assert told in text
        assert ("1234" in text) == (session == "a")


async def test_what_leaves_the_buffer_is_stored_and_the_callers_messages_stay_as_they_are(
    buffer: AsyncEngine,
    recall: SemanticRecall,
) -> None:
    block = SemanticRecallMemoryBlock(recall, resource_id="anna")
    memory = Memory.from_defaults(
        async_engine=buffer,
        session_id="now",
        memory_blocks=[block],
        token_limit=100,
        token_flush_size=20,
        chat_history_token_ratio=0.5,
    )
    for i in range(10):
        await memory.aput_messages(chats(f"My number {i} is {i * 11}, remember it.", "Noted."))
    stored = recall.history("now", "anna", last=None)
    assert stored[0].text == "My number 0 is 0, remember it."
    assert all("session_id" not in str(message.payload) for message in stored)
    text = await block.aget([ChatMessage("My number 1?")], session_id="now")
    assert "My number 1 is 11" in text


async def test_a_block_without_session_and_thread_says_what_is_missing(
    recall: SemanticRecall,
) -> None:
    block = SemanticRecallMemoryBlock(recall, resource_id="anna")
    with pytest.raises(ConfigurationError, match="thread_id"):
        await block.aput([ChatMessage("lost?")])
    assert await block.aget([]) == ""
    assert await block.aget(None) == ""


async def test_truncation_keeps_whole_messages_inside_the_fence(past: SemanticRecall) -> None:
    for i in range(8):
        past.remember(
            {"role": "user", "content": f"My cat story {i}: " + "it slept all day. " * 10},
            thread_id=f"story-{i}",
            resource_id="anna",
        )
    block = SemanticRecallMemoryBlock(past, resource_id="anna")
    full = await block.aget([ChatMessage("cat story slept")], session_id="now")
    cut = await block.atruncate(full, 150)
    assert cut is not None
    assert len(cut) < len(full)
    assert cut.rstrip().endswith(">")
    again = await block.atruncate(cut, 20)
    assert again is not None
    assert len(again) < len(cut)
    assert await block.atruncate(full, 10**6) is None
    assert await block.atruncate("not ours", 1) is None


async def test_memory_truncates_the_block_by_priority(
    buffer: AsyncEngine, past: SemanticRecall
) -> None:
    block = SemanticRecallMemoryBlock(past, resource_id="anna", priority=2)
    memory = Memory.from_defaults(
        async_engine=buffer, session_id="now", memory_blocks=[block], token_limit=60
    )
    found = await memory.aget(input=QUESTION)
    assert shown(found) == ""
    block = SemanticRecallMemoryBlock(past, resource_id="anna", priority=0)
    memory = Memory.from_defaults(
        async_engine=buffer, session_id="now", memory_blocks=[block], token_limit=60
    )
    assert "Mochi" in shown(await memory.aget(input=QUESTION))


@pytest.mark.parametrize("field", ["context_str", "query_str"])
async def test_fields_in_a_block_are_not_filled_in(
    buffer: AsyncEngine, recall: SemanticRecall, field: str
) -> None:
    recall.remember(
        {"role": "user", "content": f"My cat {{{field}}} is {{odd}}"},
        thread_id="old",
        resource_id="anna",
    )
    memory = IndexingMemory.from_recall(
        recall, async_engine=buffer, session_id="now", resource_id="anna"
    )
    text = shown(await memory.aget(input="What is my cat?"))
    assert f"{{{field}}}" not in text
    assert f"{{ {field} }}" in text
    assert "{odd}" in text


async def test_report_13_the_history_may_live_elsewhere(
    past: SemanticRecall, buffer: AsyncEngine
) -> None:
    """Recall alone: another store keeps the conversation, and nothing is stored twice."""
    block = SemanticRecallMemoryBlock(past, resource_id="anna", accept_short_term_memory=False)
    memory = Memory.from_defaults(
        async_engine=buffer, session_id="now", memory_blocks=[block], token_limit=100
    )
    before = past.stats().messages
    for _ in range(5):
        await memory.aput_messages(chats("Let us talk about something else. " * 5, "Very well."))
    assert past.stats().messages == before
    assert "Mochi" in await block.aget([ChatMessage(QUESTION)], session_id="now")


# -- IndexingMemory ------------------------------------------------------------------------------
async def test_report_30_every_message_is_indexed_at_once(
    buffer: AsyncEngine, past: SemanticRecall, embedder: CountingEmbedder
) -> None:
    memory = IndexingMemory.from_recall(
        past, async_engine=buffer, session_id="now", resource_id="anna"
    )
    llm = ScriptedLLM(call("add", a=1, b=2), "Mochi, and three.")
    response = await FunctionAgent(tools=[add], llm=llm).run(QUESTION, memory=memory)
    assert str(response) == "Mochi, and three."
    assert embedder.queries == [QUESTION]
    for prompt in llm.prompts:
        assert shown(prompt).count("My cat is called Mochi") == 1
        assert shown(prompt).count(QUESTION) == 1
        assert "None" not in shown(prompt)
    stored = past.history("now", "anna", last=None)
    assert [m.role for m in stored] == ["user", "assistant", "tool", "assistant"]
    other = IndexingMemory.from_recall(
        past, async_engine=buffer, session_id="next", resource_id="anna"
    )
    assert "Mochi, and three." in shown(await other.aget(input="Mochi and three?"))
    bert = IndexingMemory.from_recall(
        past, async_engine=buffer, session_id="berts", resource_id="bert"
    )
    assert "three" not in shown(await bert.aget(input="Mochi and three?"))


async def test_what_the_buffer_holds_is_not_recalled(
    past: SemanticRecall, buffer: AsyncEngine
) -> None:
    memory = IndexingMemory.from_recall(
        past, async_engine=buffer, session_id="now", resource_id="anna"
    )
    await memory.aput_messages(chats("My cat is called Mochi and likes fish.", "Fish, I see."))
    text = shown(await memory.aget(input="What does my cat Mochi like? Fish?"))
    assert text.count("likes fish") == 1
    assert text.count("Fish, I see.") == 1
    assert "sleeps all day" in text


async def test_made_without_a_recall_it_says_how_to_make_it(buffer: AsyncEngine) -> None:
    memory = IndexingMemory.from_defaults(async_engine=buffer)
    with pytest.raises(ConfigurationError, match="from_recall"):
        await memory.aput(ChatMessage("hello"))


async def test_report_4_a_chat_message_as_input_reaches_the_block(
    buffer: AsyncEngine, past: SemanticRecall
) -> None:
    memory = IndexingMemory.from_recall(
        past, async_engine=buffer, session_id="now", resource_id="anna"
    )
    assert "Mochi" in shown(await memory.aget(input=ChatMessage(QUESTION)))


async def test_report_18_an_empty_batch_is_nothing(
    buffer: AsyncEngine, recall: SemanticRecall
) -> None:
    memory = IndexingMemory.from_recall(
        recall, async_engine=buffer, session_id="now", resource_id="anna"
    )
    await memory.aput_messages([])
    assert await memory.aget_all() == []
    assert recall.history("now", "anna") == []


def test_sync_methods_and_reset(buffer: AsyncEngine, past: SemanticRecall) -> None:
    memory = IndexingMemory.from_recall(
        past,
        async_engine=buffer,
        session_id="now",
        resource_id="anna",
        chat_history=chats("My dog is Rex.", "Good."),
    )
    memory.put(ChatMessage("My fish is Nemo."))
    assert [m.text for m in past.history("now", "anna")] == [
        "My dog is Rex.",
        "Good.",
        "My fish is Nemo.",
    ]
    memory.reset()
    assert memory.get_all() == []
    assert past.history("now", "anna") == []
    assert len(past.history("long-ago", "anna")) == 2
    memory.set([])
    assert memory.get_all() == []


async def test_other_blocks_and_insert_methods_go_on_working(
    buffer: AsyncEngine, past: SemanticRecall
) -> None:
    memory = IndexingMemory.from_recall(
        past,
        async_engine=buffer,
        session_id="now",
        resource_id="anna",
        memory_blocks=[
            StaticMemoryBlock(name="rules", static_content=[TextBlock(text="Be kind.")])
        ],
        insert_method=InsertMethod.USER,
    )
    await memory.aput(ChatMessage(QUESTION))
    (message,) = await memory.aget()
    assert message.role is MessageRole.USER
    assert "Be kind." in (message.content or "")
    assert "Mochi" in (message.content or "")


async def test_many_sessions_at_once(buffer: AsyncEngine, past: SemanticRecall) -> None:
    # LlamaIndex's store makes its table at the first use, and fails when two do at once.
    await IndexingMemory.from_recall(past, async_engine=buffer).aget()

    async def one(number: int) -> str:
        memory = IndexingMemory.from_recall(
            past, async_engine=buffer, session_id=f"s{number}", resource_id=f"u{number}"
        )
        await memory.aput_messages(chats(f"My secret is {number}{number}.", "Fine."))
        return shown(await memory.aget(input="What is my secret?"))

    for number, text in enumerate(await asyncio.gather(*map(one, range(6)))):
        assert f"secret is {number}{number}." in text
        assert sum(f"secret is {other}{other}." in text for other in range(6)) == 1
