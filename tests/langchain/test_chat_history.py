"""A thread as LangChain's chat message history."""

from __future__ import annotations

import asyncio
import threading
import warnings
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_semantic_recall import SemanticRecallChatMessageHistory
from langchain_semantic_recall.injecting import as_recalled
from semantic_recall import InvalidIdError, InvalidScopeError, SemanticRecall
from tests.langchain.scripted import calling
from tests.langchain.test_messages import WHOLE


@pytest.fixture
def history(memory: SemanticRecall) -> SemanticRecallChatMessageHistory:
    return SemanticRecallChatMessageHistory(memory, "one", "ann")


TALK: list[BaseMessage] = [
    SystemMessage("Be kind."),
    HumanMessage("My cat is called Mimi."),
    calling(("weather", {"city": "Porto"}), text="I look."),
    ToolMessage("rain", tool_call_id="call_1", artifact={"raw": b"\x00"}),
    AIMessage("It rains, keep her in."),
    ChatMessage(role="critic", content="Too short."),
]


def test_langchain_redis_74_everything_comes_back_as_it_was_added(
    history: SemanticRecallChatMessageHistory,
) -> None:
    history.add_messages(TALK)
    assert history.messages == TALK
    history.add_user_message("Thanks")
    history.add_ai_message("You're welcome")
    history.add_message(HumanMessage("Bye"))
    assert [message.text for message in history.messages[6:]] == ["Thanks", "You're welcome", "Bye"]
    assert history.messages == history.messages


def test_langchain_redis_51_every_type_of_message(
    history: SemanticRecallChatMessageHistory,
) -> None:
    kept = [message for message in WHOLE.values() if not isinstance(message, RemoveMessage)]
    history.add_messages(kept)
    assert history.messages == kept


async def test_langchain_postgres_122_one_object_serves_sync_and_async(
    history: SemanticRecallChatMessageHistory,
) -> None:
    await history.aadd_messages(TALK)
    assert await history.aget_messages() == history.messages == TALK
    await history.aclear()
    assert await history.aget_messages() == history.messages == []


async def test_langchain_23716_async_methods_never_use_the_loops_thread(
    memory: SemanticRecall,
) -> None:
    loop_thread = threading.get_ident()
    used: set[int] = set()

    class Watched(SemanticRecallChatMessageHistory):
        def last(self, count: int | None) -> Any:
            used.add(threading.get_ident())
            return super().last(count)

    watched = Watched(memory, "one")
    await watched.aadd_messages([HumanMessage("x")])
    assert await watched.aget_messages() == [HumanMessage("x")]
    assert used
    assert loop_thread not in used


def test_many_messages_are_one_write(history: SemanticRecallChatMessageHistory) -> None:
    history.add_messages([HumanMessage(f"message {i}") for i in range(500)])
    assert [message.text for message in history.messages] == [f"message {i}" for i in range(500)]
    history.add_messages([])
    assert len(history.messages) == 500


def test_another_object_of_the_same_thread_sees_it_and_other_threads_do_not(
    memory: SemanticRecall, history: SemanticRecallChatMessageHistory
) -> None:
    history.add_messages(TALK)
    assert SemanticRecallChatMessageHistory(memory, "one", "ann").messages == TALK
    for thread, resource in (("one", "bob"), ("one", None), ("two", "ann"), ("on", "ann")):
        assert SemanticRecallChatMessageHistory(memory, thread, resource).messages == []


def test_clear_removes_for_good(
    memory: SemanticRecall, history: SemanticRecallChatMessageHistory
) -> None:
    other = SemanticRecallChatMessageHistory(memory, "two", "ann")
    history.add_messages(TALK)
    other.add_messages([HumanMessage("My dog is called Rex.")])
    history.clear()
    assert history.messages == []
    assert "Mimi" not in repr(other.recall("What is my cat called?").messages)
    assert len(other.messages) == 1
    assert memory.stats().messages == 1


def test_recall_finds_in_the_owners_other_threads(
    memory: SemanticRecall, history: SemanticRecallChatMessageHistory
) -> None:
    history.add_messages(TALK)
    new = SemanticRecallChatMessageHistory(memory, "two", "ann")
    recall = new.recall("What is my cat called?", top_k=1)
    assert "Mimi" in recall.text
    assert new.messages == []
    alone = SemanticRecallChatMessageHistory(memory, "one", None)
    assert alone.recall("What is my cat called?").messages == ()
    alone.add_messages(TALK)
    assert "Mimi" in repr(alone.recall("What is my cat called?").messages)


async def test_async_recall_is_the_same(history: SemanticRecallChatMessageHistory) -> None:
    history.add_messages(TALK)
    question = "What is my cat called?"
    assert await history.arecall(question) == history.recall(question)


def test_langchain_24005_an_id_again_replaces_and_no_id_is_fine(
    history: SemanticRecallChatMessageHistory,
) -> None:
    history.add_messages([HumanMessage("old", id="1"), AIMessage("a", id="2")])
    history.add_messages([HumanMessage("new", id="1"), HumanMessage("x"), HumanMessage("x", id="")])
    texts = [message.text for message in history.messages]
    assert texts == ["new", "a", "x", "x"]
    history.add_messages([HumanMessage("first", id="9"), HumanMessage("second", id="9")])
    assert [message.text for message in history.messages][4:] == ["second"]


def test_langchain_14511_a_streamed_answer_is_stored_whole(
    history: SemanticRecallChatMessageHistory,
) -> None:
    history.add_message(AIMessageChunk(content="Hello", id="run-1"))
    assert history.messages == [AIMessage("Hello", id="run-1")]


async def test_a_remove_message_removes(history: SemanticRecallChatMessageHistory) -> None:
    history.add_messages([HumanMessage("a", id="1"), HumanMessage("b", id="2")])
    history.add_messages([RemoveMessage(id="1"), HumanMessage("c", id="3")])
    assert [message.text for message in history.messages] == ["b", "c"]
    await history.aadd_messages([RemoveMessage(id="__remove_all__"), HumanMessage("d")])
    assert [message.text for message in history.messages] == ["d"]
    history.add_message(RemoveMessage(id="never stored"))
    assert len(history.messages) == 1
    history.add_message(HumanMessage("an id that is stored as a digest", id="x" * 5000))
    history.add_message(RemoveMessage(id="x" * 5000))
    assert len(history.messages) == 1


def test_what_was_recalled_is_never_stored(history: SemanticRecallChatMessageHistory) -> None:
    history.add_messages(TALK)
    recalled = [as_recalled(found) for found in history.recall("cat called?").messages]
    assert recalled
    history.add_messages([*recalled, HumanMessage("New")])
    assert [message.text for message in history.messages] == [
        *(message.text for message in TALK),
        "New",
    ]


def test_setting_messages_replaces_the_thread(history: SemanticRecallChatMessageHistory) -> None:
    history.add_messages(TALK)
    history.messages = [HumanMessage("Only this")]
    assert history.messages == [HumanMessage("Only this")]


def test_langgraph_8734_reading_never_writes(
    memory: SemanticRecall, history: SemanticRecallChatMessageHistory
) -> None:
    assert history.messages == []
    assert history.recall("anything").messages == ()
    assert memory.threads() == []
    assert memory.resources() == []


@pytest.mark.parametrize("thread", ["日本 🐈", "a/b:c", "%", "o'ne", "x" * 1024, "\x00", "one "])
def test_langgraph_8300_ids_are_compared_exactly(memory: SemanticRecall, thread: str) -> None:
    history = SemanticRecallChatMessageHistory(memory, thread, thread)
    SemanticRecallChatMessageHistory(memory, "one", thread).add_user_message("other")
    history.add_user_message("mine")
    assert [message.text for message in history.messages] == ["mine"]


def test_ids_of_other_types(memory: SemanticRecall) -> None:
    number: Any = 7
    SemanticRecallChatMessageHistory(memory, number).add_user_message("x")
    assert len(SemanticRecallChatMessageHistory(memory, "7").messages) == 1
    uuid: Any = UUID(int=1)
    assert SemanticRecallChatMessageHistory(memory, uuid).thread_id == str(UUID(int=1))
    for nothing in ("", None):
        with pytest.raises(InvalidScopeError, match="thread_id"):
            SemanticRecallChatMessageHistory(memory, nothing)  # type: ignore[arg-type]
    unusable: list[Any] = [["list"], "x" * 1025, True]
    for bad in unusable:
        with pytest.raises(InvalidIdError):
            SemanticRecallChatMessageHistory(memory, bad)


async def test_concurrent_writers_lose_nothing(memory: SemanticRecall) -> None:
    async def write(i: int) -> None:
        history = SemanticRecallChatMessageHistory(memory, "one", "ann")
        await history.aadd_messages([HumanMessage(f"q{i}"), AIMessage(f"a{i}")])

    await asyncio.gather(*(write(i) for i in range(20)))
    texts = [
        str(message.text)
        for message in SemanticRecallChatMessageHistory(memory, "one", "ann").messages
    ]
    assert len(texts) == 40
    for i in range(20):
        place = texts.index(f"q{i}")
        assert texts[place + 1] == f"a{i}"


def test_no_warning_of_a_deprecated_base_class(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with SemanticRecall.open(tmp_path, embedder=None) as memory:
            SemanticRecallChatMessageHistory(memory, "one").add_user_message("x")
    assert [str(warning.message) for warning in seen] == []


def test_text_forms(history: SemanticRecallChatMessageHistory) -> None:
    history.add_user_message("Hello")
    assert str(history) == "Human: Hello"
    assert repr(history) == "SemanticRecallChatMessageHistory('one', 'ann')"
