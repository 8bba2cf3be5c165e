"""SemanticRecallMemory by itself: what storing keeps, replaces and removes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage, TextBlock

from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import SemanticRecall
from semantic_recall.formatting import PREAMBLE
from tests.llamaindex.conftest import QUESTION, CountingEmbedder, chats, contents
from tests.llamaindex.scripted import shown


def test_report_18_an_empty_batch_is_nothing(memory: SemanticRecallMemory) -> None:
    memory.put_messages([])
    asyncio.run(memory.aput_messages([]))
    assert memory.get_all() == []


def test_report_19_ids_are_ours_and_do_not_reach_the_model(
    recall: SemanticRecall, memory: SemanticRecallMemory
) -> None:
    memory.put_messages([ChatMessage("same"), ChatMessage("same")])
    stored = recall.history("now", "anna")
    assert len({message.id for message in stored}) == 2
    assert not any(m.additional_kwargs for m in [*memory.get(), *memory.get_all()])


def test_report_26_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as recall:
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        memory.put_messages(chats("My cat is called Mochi.", "Nice."))
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as recall:
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        assert contents(memory.get_all()) == ["My cat is called Mochi.", "Nice."]
        later = SemanticRecallMemory(recall, thread_id="later", resource_id="anna")
        assert "Mochi" in shown(later.get(QUESTION))


def test_report_32_reset_removes_vectors_too(past: SemanticRecall) -> None:
    past.flush()
    before = past.stats().vectors
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    memory.put_messages(chats("My cat is called Ghost.", "Noted."))
    past.flush()
    assert past.stats().vectors == before + 2
    memory.reset()
    assert memory.get_all() == []
    past.flush()
    assert past.stats().vectors == before
    other = SemanticRecallMemory(past, thread_id="other", resource_id="anna")
    assert "Ghost" not in shown(other.get("My cat is called Ghost?"))


def test_set_replaces_keeps_and_empties(recall: SemanticRecall, embedder: CountingEmbedder) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    told = chats("one", "two", "three", "four")
    memory.set(told)
    ids = [m.id for m in recall.history("now", "anna")]
    memory.set(told)
    memory.set(told[1:])  # a client's window
    assert [m.id for m in recall.history("now", "anna")] == ids
    memory.set([*told[2:], *chats("five")])
    assert contents(memory.get_all()) == ["one", "two", "three", "four", "five"]
    memory.set([*told[:2], *chats("other three")])
    assert contents(memory.get_all()) == ["one", "two", "other three"]
    recall.flush()
    assert len(embedder.documents) == len(set(embedder.documents))
    memory.set([])
    assert memory.get_all() == []
    assert recall.stats().messages == 0


async def test_what_memory_put_into_a_prompt_is_not_stored_again(
    past: SemanticRecall, memory: SemanticRecallMemory
) -> None:
    memory.put_messages(chats(QUESTION))
    memory.set(memory.get())
    await memory.aput_messages(memory.get()[:1])
    late = SemanticRecallMemory(past, thread_id="now", resource_id="anna", insert="user")
    late.set(late.get())
    assert contents(memory.get_all()) == [QUESTION]
    assert past.stats().messages == 5


def test_a_serialised_record_is_known_and_an_imitation_is_a_message(
    memory: SemanticRecallMemory,
) -> None:
    memory.put(ChatMessage(QUESTION))
    (record, _) = memory.get()
    memory.put(ChatMessage(role="user", content=record.content))
    memory.put(ChatMessage(role="user", content=f"{PREAMBLE} Is that how a record begins?"))
    assert [m.content for m in memory.get_all()][1:] == [f"{PREAMBLE} Is that how a record begins?"]


def test_nothing_is_shared_with_the_caller(memory: SemanticRecallMemory) -> None:
    message = ChatMessage(QUESTION)
    memory.put(message)
    message.blocks[0] = TextBlock(text="changed")
    for messages in (memory.get(), memory.get_all(), memory.get()):
        messages[-1].blocks[0] = TextBlock(text="changed")
    assert contents(memory.get())[-1] == QUESTION
    assert contents(memory.get_all()) == [QUESTION]
