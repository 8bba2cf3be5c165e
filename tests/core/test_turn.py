"""A whole turn with plain role/content dicts."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semantic_recall import (
    AbortTurn,
    InvalidScopeError,
    Message,
    Recall,
    SemanticRecall,
    Settings,
)
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.turn import MemoryMessage, query_text, unseen, without_live
from semantic_recall.types import Vector

IDS: dict[str, Any] = {"thread_id": "now", "resource_id": "ana"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(tmp_path / "memory", embedder=HashEmbedder(64)) as memory:
        memory.remember(
            [
                {"role": "user", "content": "my sister Vera lives in Oslo", "id": "v"},
                {"role": "assistant", "content": "noted, Vera is in Oslo", "id": "n"},
            ],
            thread_id="old",
            resource_id="ana",
        )
        yield memory


def user(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_a_system_message_is_made_for_what_other_threads_hold(memory: SemanticRecall) -> None:
    prompt = memory.process_input([user("where does my sister Vera live?")], **IDS)
    assert [message["role"] for message in prompt] == ["system", "user"]
    assert "my sister Vera lives in Oslo" in prompt[0]["content"]
    assert prompt[1] == user("where does my sister Vera live?")


def test_the_block_joins_the_one_system_message(memory: SemanticRecall) -> None:
    live = [{"role": "system", "content": "Be kind."}, user("sister Vera")]
    prompt = memory.process_input(live, **IDS)
    assert [message["role"] for message in prompt] == ["system", "user"]
    assert prompt[0]["content"].startswith("Be kind.\n\n")
    assert live[0]["content"] == "Be kind."


def test_the_block_joins_a_system_message_of_parts(memory: SemanticRecall) -> None:
    part = {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    prompt = memory.process_input([{"role": "system", "content": [part]}, user("Vera")], **IDS)
    assert prompt[0]["content"][0] == part
    assert "Oslo" in prompt[0]["content"][1]["text"]


def test_the_block_can_be_a_user_message(memory: SemanticRecall) -> None:
    prompt = memory.process_input([user("sister Vera")], **IDS, insert="user")
    assert [message["role"] for message in prompt] == ["user", "user"]
    assert "Oslo" in prompt[0]["content"]


def test_messages_of_this_thread_come_as_messages_before_the_live_ones(
    memory: SemanticRecall,
) -> None:
    memory.remember([user("my desk is red"), answer("a red desk")], **IDS)
    prompt = memory.process_input([user("desk?")], **IDS, top_k=1)
    assert prompt == [user("my desk is red"), answer("a red desk"), user("desk?")]


def test_what_the_prompt_holds_is_not_recalled_again(memory: SemanticRecall) -> None:
    prompt = memory.process_input([user("sister Vera", id="v")], **IDS, message_range=0, top_k=1)
    assert "my sister Vera lives" not in str(prompt)


def test_the_recent_history_is_put_in_on_request(memory: SemanticRecall) -> None:
    memory.remember([user("one"), answer("two"), user("three"), answer("four")], **IDS)
    prompt = memory.process_input([user("five")], **IDS, last_messages=2, top_k=1, message_range=0)
    assert prompt[-3:] == [user("three"), answer("four"), user("five")]


def test_a_live_message_that_is_stored_already_comes_once(memory: SemanticRecall) -> None:
    memory.remember([user("one"), answer("two"), user("three")], **IDS)
    prompt = memory.process_input([user("three")], **IDS, last_messages=10, top_k=0)
    assert prompt == [user("one"), answer("two"), user("three")]


def test_turns_are_stored_once_although_the_whole_conversation_is_handed_over(
    memory: SemanticRecall,
) -> None:
    conversation: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for number in range(4):
        conversation.append(user(f"question {number}"))
        conversation = memory.process_input(conversation, **IDS)
        assert len({str(message) for message in conversation}) == len(conversation)
        assert conversation[0]["content"].count("Be kind.") == 1
        assert conversation[0]["content"].count("is a record of") <= 1
        conversation.append(answer(f"answer {number}"))
        memory.process_output(conversation, **IDS)
    stored = [message.text for message in memory.history("now", "ana")]
    assert stored == [f"{what} {n}" for n in range(4) for what in ("question", "answer")]


def test_a_short_answer_that_was_given_before_is_stored_again(memory: SemanticRecall) -> None:
    memory.process_output([user("ready?"), answer("yes")], **IDS)
    memory.process_output([user("sure?"), answer("yes")], **IDS)
    memory.process_output([answer("yes")], **IDS)
    assert [m.text for m in memory.history("now", "ana")] == [
        "ready?",
        "yes",
        "sure?",
        "yes",
        "yes",
    ]


def test_nothing_is_asked_when_the_user_sent_no_words(memory: SemanticRecall) -> None:
    image = user([{"type": "image_url", "image_url": {"url": "data:"}}])
    assert memory.process_input([user("Vera"), answer("?"), image], **IDS) == [
        user("Vera"), answer("?"), image,
    ]  # fmt: skip
    assert memory.process_input([], **IDS) == []


def test_a_first_turn_in_an_empty_memory(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        assert memory.process_input([user("hi")], **IDS, last_messages=5) == [user("hi")]


def test_a_wrong_call_does_not_fail_open(memory: SemanticRecall) -> None:
    with pytest.raises(InvalidScopeError):
        memory.process_input([user("hi")], thread_id="now")


class SlowEmbedder(HashEmbedder):
    def embed_query(self, text: str, /) -> Vector:
        time.sleep(1.0)
        return super().embed_query(text)


class CrashingEmbedder(HashEmbedder):
    def embed_query(self, text: str, /) -> Vector:
        raise MemoryError("no memory left")


async def test_a_slow_recall_does_not_hold_up_the_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(timeout=0.1)
    with SemanticRecall.open(tmp_path, embedder=SlowEmbedder(64), settings=settings) as memory:
        memory.remember(user("apple"), thread_id="old", resource_id="ana")
        for prompt in (
            memory.process_input([user("apple")], **IDS),
            await memory.aprocess_input([user("apple")], **IDS),
        ):
            assert prompt == [user("apple")]
        assert caplog.text.count("more than 0.1 s") == 2
        time.sleep(1.2)  # the recalls that were given up end before the memory closes


@pytest.mark.parametrize("hook", [ValueError("a hook with a fault"), None])
async def test_a_failing_recall_does_not_stop_the_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hook: Exception | None
) -> None:
    def before_inject(recall: Recall) -> Recall:
        if hook is not None:
            raise hook
        return recall

    settings = Settings(before_inject=before_inject)
    embedder = HashEmbedder(64) if hook else CrashingEmbedder(64)
    with SemanticRecall.open(tmp_path, embedder=embedder, settings=settings) as memory:
        memory.remember(user("apple"), thread_id="old", resource_id="ana")
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            prompt = memory.process_input([user("apple")], **IDS)
            assert await memory.aprocess_input([user("apple")], **IDS) == prompt
        assert prompt[-1] == user("apple")
        assert ("a hook with a fault" if hook else "no memory left") in caplog.text


async def test_a_hook_can_abort_the_turn(tmp_path: Path) -> None:
    def abort(recall: Recall) -> Recall:
        raise AbortTurn("not allowed")

    settings = Settings(before_inject=abort)
    with SemanticRecall.open(tmp_path, embedder="hash", settings=settings) as memory:
        with pytest.raises(AbortTurn, match="not allowed"):
            memory.process_input([user("x")], **IDS)
        with pytest.raises(AbortTurn, match="not allowed"):
            await memory.aprocess_input([user("x")], **IDS)


async def test_the_async_turn_does_the_same(memory: SemanticRecall) -> None:
    live = [user("where does my sister Vera live?")]
    assert await memory.aprocess_input(live, **IDS) == memory.process_input(live, **IDS)
    await memory.aprocess_output([*live, answer("in Oslo")], **IDS)
    assert [m.text for m in memory.history("now", "ana")] == [live[0]["content"], "in Oslo"]


def test_query_text_is_the_last_user_message() -> None:
    assert query_text([user("a"), answer("b"), user("c"), answer("d")]) == "c"
    assert query_text([user("a"), user(None)]) == ""
    assert query_text([answer("b")]) == ""


def stored(*texts: str) -> list[Message]:
    return [
        Message(role=("user", "assistant")[i % 2], text=text, thread_id="t")
        for i, text in enumerate(texts)
    ]


def test_unseen_recognises_a_conversation_that_is_sent_again() -> None:
    old = [user("a"), answer("b")]
    assert unseen(stored("a", "b"), [*old, user("c")]) == [user("c")]
    assert unseen(stored("x", "y", "a", "b"), old) == []
    assert unseen(stored("a", "b"), [user("other"), *old]) == [user("other"), *old]
    assert unseen([], old) == old
    assert unseen([], [MemoryMessage({"role": "user", "content": "recalled"}), *old]) == old


def test_without_live_drops_only_what_the_live_messages_repeat() -> None:
    history = stored("a", "b", "c")
    assert without_live(history, [user("c")]) == history[:2]
    assert without_live(history, [user("a"), answer("b"), user("c"), answer("d")]) == []
    assert without_live(history, [user("b")]) == history


def test_every_method_has_an_async_twin_with_its_signature() -> None:
    public = {
        name: method
        for name, method in inspect.getmembers(SemanticRecall, inspect.isfunction)
        if not name.startswith("_")
    }
    for name, method in public.items():
        if f"a{name}" in public:
            twin = public[f"a{name}"]
            assert inspect.iscoroutinefunction(twin), name
            assert inspect.signature(method) == inspect.signature(twin), name
        else:
            assert name in {"messages"} or inspect.iscoroutinefunction(method), name
