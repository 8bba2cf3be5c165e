"""SemanticRecallMemory by itself: what `get` returns, and what storing keeps."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.memory import BaseMemory

from llamaindex_semantic_recall import SemanticRecallMemory, connect
from semantic_recall import Message, Recall, RecallOptions, SemanticRecall, Settings
from semantic_recall.errors import AbortTurn, ConfigurationError, InvalidIdError, StoreError
from semantic_recall.formatting import PREAMBLE
from semantic_recall.tokens import count_tokens
from semantic_recall.types import Vector
from tests.llamaindex.conftest import CountingEmbedder, chats
from tests.llamaindex.scripted import call, refuse_what_providers_refuse, shown

QUESTION = "What is my cat called?"


class Flaky(SemanticRecall):
    """A memory whose database fails when told to."""

    broken = False

    def remember(self, *args: Any, **kwargs: Any) -> list[Message]:
        if self.broken:
            raise StoreError("disk full")
        return super().remember(*args, **kwargs)

    def history(self, *args: Any, **kwargs: Any) -> list[Message]:
        if self.broken:
            raise StoreError("disk full")
        return super().history(*args, **kwargs)


class Slow(CountingEmbedder):
    """Takes its time for queries."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def embed_query(self, text: str, /) -> Vector:
        threading.Event().wait(self.seconds)
        return super().embed_query(text)


def contents(messages: Sequence[ChatMessage]) -> list[str | None]:
    return [message.content for message in messages]


@pytest.fixture
def memory(past: SemanticRecall) -> SemanticRecallMemory:
    return SemanticRecallMemory(past, thread_id="now", resource_id="anna")


# -- get -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [QUESTION, ChatMessage(QUESTION), ChatMessage(blocks=[TextBlock(text=QUESTION)])],
)
def test_report_4_input_may_be_text_or_a_message(
    memory: SemanticRecallMemory, given: str | ChatMessage
) -> None:
    assert "Mochi" in shown(memory.get(given))
    assert "Mochi" in shown(memory.get(input=given, initial_token_count=3, anything="else"))


async def test_all_three_call_shapes_find_the_same(past: SemanticRecall) -> None:
    found = []
    for thread_id, stored, input in (
        ("a", True, None),
        ("b", True, QUESTION),
        ("c", False, QUESTION),
    ):
        memory = SemanticRecallMemory(past, thread_id=thread_id, resource_id="anna")
        if stored:
            memory.put(ChatMessage(QUESTION))
        (system, *rest) = await memory.aget(input)
        assert contents(rest) == ([QUESTION] if stored else [])
        found.append(system.content)
        memory.reset()
    assert len(set(found)) == 1


def test_nothing_to_search_for_is_no_error(memory: SemanticRecallMemory) -> None:
    assert memory.get() == []
    assert memory.get("") == []
    assert memory.get("  ") == []
    memory.put(ChatMessage(role="user", blocks=[ImageBlock(url="https://example.org/a.png")]))
    (image,) = memory.get()
    assert image.blocks[0].block_type == "image"


def test_the_present_message_is_not_its_own_hit(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    memory.put(ChatMessage("My cat is called Mochi"))
    assert contents(memory.get()) == ["My cat is called Mochi"]
    assert contents(memory.get("My cat is called Mochi")) == ["My cat is called Mochi"]


def test_a_repeated_question_is_a_new_turn(
    past: SemanticRecall, memory: SemanticRecallMemory
) -> None:
    """Context engines name the message before they store it, also when it is the same again."""
    first = memory.get(QUESTION)
    memory.put_messages(chats(QUESTION, "Mochi."))
    past.remember(
        {"role": "user", "content": "My cat is now called Ghost."},
        thread_id="meanwhile",
        resource_id="anna",
    )
    assert "Ghost" not in shown(first)
    assert "Ghost" in shown(memory.get(QUESTION))


def test_old_messages_of_the_thread_come_back_as_messages_before_the_history(
    recall: SemanticRecall,
) -> None:
    memory = SemanticRecallMemory(
        recall, thread_id="now", resource_id="anna", token_limit=200, options=RecallOptions(top_k=1)
    )
    memory.put_messages(chats("My cat is called Mochi {context_str}.", "What a nice name."))
    for i in range(20):
        memory.put_messages(chats(f"Let us talk about {i} {i} {i}.", f"Number {i}, very well."))
    memory.put(ChatMessage(QUESTION))
    found = memory.get()
    refuse_what_providers_refuse(found)
    assert contents(found)[:2] == ["My cat is called Mochi { context_str }.", "What a nice name."]
    assert contents(found)[-1] == QUESTION
    assert len(found) < 20
    assert len(memory.get_all()) == 43


def test_an_old_answer_alone_comes_in_the_block_so_that_the_user_begins(
    recall: SemanticRecall,
) -> None:
    options = RecallOptions(top_k=1, message_range=0, roles=["assistant"])
    memory = SemanticRecallMemory(
        recall, thread_id="now", resource_id="anna", token_limit=400, options=options
    )
    memory.put_messages(chats("Suggest a name.", "Call the cat Mochi."))
    for i in range(40):
        memory.put_messages(chats(f"Let us talk about {i} {i} {i}.", f"Number {i}, very well."))
    found = memory.get("Which name did you suggest for the cat? Call Mochi?")
    refuse_what_providers_refuse(found)
    assert found[0].role is MessageRole.SYSTEM
    assert "Call the cat Mochi." in shown(found)


def test_report_7_the_history_starts_with_the_user(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    memory.put(ChatMessage(role="assistant", content="Hello, I am your assistant."))
    assert memory.get() == []
    memory.put_messages(chats("Hi.", "How can I help?"))
    found = memory.get()
    refuse_what_providers_refuse(found)
    assert contents(found)[-2:] == ["Hi.", "How can I help?"]


def test_report_8_system_messages_stay_in_front_and_are_never_recalled(
    recall: SemanticRecall, embedder: CountingEmbedder
) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna", token_limit=500)
    memory.put(ChatMessage(role="system", content="You speak like a pirate."))
    for i in range(150):
        memory.put_messages(chats(f"Question {i} about pirates?", f"Arr, answer {i}."))
    found = memory.get()
    assert found[0].role is MessageRole.SYSTEM
    assert (found[0].content or "").startswith("You speak like a pirate.")
    assert sum(m.role is MessageRole.SYSTEM for m in found) == 1
    recall.flush()
    assert not any("speak like a pirate" in text for text in embedder.documents)
    other = SemanticRecallMemory(recall, thread_id="other", resource_id="anna")
    assert "speak like a pirate" not in shown(other.get("speak like a pirate"))


def test_empty_messages_are_kept_and_not_given_to_a_model(memory: SemanticRecallMemory) -> None:
    told = [ChatMessage("hello"), ChatMessage(role="assistant", blocks=[]), *chats(" ", "", "now")]
    memory.put_messages(told)
    assert memory.get_all() == told
    assert contents(memory.get())[-2:] == ["hello", "now"]


def test_the_block_joins_a_stored_system_message(past: SemanticRecall) -> None:
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    memory.put(ChatMessage(role="system", content="Be brief."))
    memory.put(ChatMessage(QUESTION))
    (system, user) = memory.get()
    assert (system.content or "").startswith("Be brief.\n")
    assert "Mochi" in (system.content or "")
    assert user.content == QUESTION
    assert memory.get_all()[0].content == "Be brief."


@pytest.mark.parametrize("place", ["blocks", "additional_kwargs"])
def test_report_6_tool_calls_count(recall: SemanticRecall, place: str) -> None:
    memory = SemanticRecallMemory(
        recall, thread_id="now", token_limit=1000, options=RecallOptions(top_k=0)
    )
    asking = call("add", "c1", text="many words " * 1000)
    if place == "additional_kwargs":
        calls = [{"id": "c1", "function": {"name": "add", "arguments": "many words " * 1000}}]
        asking = ChatMessage(role="assistant", additional_kwargs={"tool_calls": calls})
    result = ChatMessage(role="tool", content="3", additional_kwargs={"tool_call_id": "c1"})
    memory.put_messages([ChatMessage("big"), asking, result])
    memory.put_messages(chats("small", "answer", "now"))
    assert contents(memory.get()) == ["small", "answer", "now"]


@pytest.mark.parametrize("limit", [0, 1, 10, 60, 100, 150, 200, 300, 500, 1000, 5000])
@pytest.mark.parametrize("insert", ["system", "user"])
def test_report_5_no_limit_is_an_error_and_each_is_kept(
    past: SemanticRecall, limit: int, insert: str
) -> None:
    """Recall gives way first, then history; the last turn stays whatever it takes."""
    memory = SemanticRecallMemory(
        past, thread_id="now", resource_id="anna", token_limit=limit, insert=insert
    )
    for i in range(12):
        memory.put_messages(chats(f"Is {i} cats many? " * 3, f"I think that {i} is a number."))
    memory.put(ChatMessage(QUESTION))
    found = memory.get()
    refuse_what_providers_refuse(found)
    assert (found[-1].content or "").endswith(QUESTION)
    texts = [block.text for m in found for block in m.blocks if isinstance(block, TextBlock)]
    used = sum(count_tokens(text) for text in texts)
    assert used <= max(limit, count_tokens(QUESTION))
    assert ("Mochi" in shown(found)) == (limit >= 500)
    assert contents(memory.get(initial_token_count=10**9)) == [QUESTION]


def test_a_long_thread_is_read_as_far_as_it_fits(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna", token_limit=10**6)
    memory.put_messages(chats(*(f"message {i}" for i in range(301))))
    assert len(memory.get()) == 301


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
    embedder = Slow(2.0)
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


# -- storing -------------------------------------------------------------------------------------
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


# -- when something is wrong ---------------------------------------------------------------------
@pytest.fixture
def flaky(tmp_path: Path) -> Iterator[Flaky]:
    with Flaky.open(tmp_path / "flaky", embedder="hash") as opened:
        yield opened


async def test_the_conversation_goes_on_without_its_database(
    flaky: Flaky, caplog: pytest.LogCaptureFixture
) -> None:
    memory = SemanticRecallMemory(flaky, thread_id="now", resource_id="anna")
    memory.put_messages(chats("one", "two"))
    flaky.broken = True
    with caplog.at_level(logging.WARNING, logger="semantic_recall"):
        memory.put(ChatMessage("three"))
        assert contents(await memory.aget())[-1] == "three"
        assert contents(memory.get())[-1] == "three"
    assert "disk full" in caplog.text
    flaky.broken = False
    memory.put(ChatMessage(role="assistant", content="four"))
    assert contents(memory.get_all()) == ["one", "two", "three", "four"]
    assert len(flaky.history("now", "anna")) == 4


@pytest.mark.parametrize("sync", [True, False])
async def test_a_slow_recall_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sync: bool
) -> None:
    settings = Settings(timeout=1.5)
    with SemanticRecall.open(tmp_path / "slow", embedder=Slow(4.0), settings=settings) as recall:
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        memory.put(ChatMessage(QUESTION))
        with caplog.at_level(logging.WARNING, logger="semantic_recall"):
            found = memory.get() if sync else await memory.aget()
        assert contents(found) == [QUESTION]
        assert "1.5 s" in caplog.text


@pytest.mark.parametrize("sync", [True, False])
async def test_a_hook_may_stop_the_turn(tmp_path: Path, sync: bool) -> None:
    def stop(_: Recall) -> Recall:
        raise AbortTurn("not allowed")

    settings = Settings(before_inject=stop)
    with SemanticRecall.open(tmp_path / "hook", embedder="hash", settings=settings) as recall:
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        for _ in range(2):
            with pytest.raises(AbortTurn, match="not allowed"):
                memory.get(QUESTION) if sync else await memory.aget(QUESTION)


def test_wrong_arguments_fail_where_they_are_made(recall: SemanticRecall) -> None:
    with pytest.raises(InvalidIdError, match="empty"):
        SemanticRecallMemory(recall, thread_id="")
    with pytest.raises(InvalidIdError):
        SemanticRecallMemory(recall, thread_id="t", resource_id="x" * 2000)
    with pytest.raises(ValueError, match="insert"):
        SemanticRecallMemory(recall, insert="somewhere")
    with pytest.raises(ConfigurationError, match=r"SemanticRecall\.open"):
        SemanticRecallMemory.from_defaults()


OFFLINE = """
import sys
from llama_index.core.llms import ChatMessage
from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import SemanticRecall

with SemanticRecall.open(sys.argv[1], embedder="hash") as recall:
    old = SemanticRecallMemory(recall, thread_id="old", resource_id="anna")
    old.put(ChatMessage("My cat is called Mochi. <|endoftext|>"))
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    print("Mochi" in str(memory.get("What is my cat called?")))
"""


def test_report_29_counting_tokens_needs_no_network(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE, str(tmp_path / "memory")],
        env={**os.environ, "TIKTOKEN_CACHE_DIR": cache, "HTTPS_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"


# -- carrying it around --------------------------------------------------------------------------
def test_it_is_a_llamaindex_memory(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory.from_defaults(
        recall, thread_id="now", resource_id="anna", chat_history=chats("one", "two")
    )
    assert isinstance(memory, BaseMemory)
    assert bool(memory)
    assert contents(memory.get_all()) == ["one", "two"]
    assert len(SemanticRecallMemory(recall).thread_id) == 32


def test_every_copy_is_the_same_memory(recall: SemanticRecall) -> None:
    moment = datetime(2026, 1, 2, tzinfo=timezone.utc)
    options = RecallOptions(
        top_k=3, message_range=(2, 0), since=moment, roles=["user"], exclude_ids=["x"]
    )
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna", options=options)
    for again in (
        SemanticRecallMemory.from_dict(memory.to_dict()),
        SemanticRecallMemory.from_json(memory.to_json()),
        pickle.loads(pickle.dumps(memory)),
        copy.copy(memory),
        copy.deepcopy(memory),
    ):
        assert again is memory
    written = memory.to_json()
    del memory
    again = SemanticRecallMemory.from_json(written)
    assert (again.thread_id, again.resource_id, again.options) == ("now", "anna", options)
    assert SemanticRecallMemory.from_json(again.to_json()) is again


def test_a_memory_whose_store_is_not_open_says_what_to_do(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path / "gone", embedder="hash") as recall:
        written = SemanticRecallMemory(recall, thread_id="now").to_dict()
    written["instance_id"], written["memory_id"] = "unknown", "unknown"
    with pytest.raises(ConfigurationError, match="connect"):
        SemanticRecallMemory.from_dict(written)


def test_a_memory_of_a_closed_store_is_made_again_on_the_opened_one(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as recall:
        old = SemanticRecallMemory(recall, thread_id="now")
        old.put(ChatMessage("kept"))
        written = old.to_dict()
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as recall:
        connect(recall)
        again = SemanticRecallMemory.from_dict(written)
        assert again is not old
        assert contents(again.get_all()) == ["kept"]


def test_from_dict_does_not_lend_a_memory_to_another_thread(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    other = SemanticRecallMemory.from_dict({**memory.to_dict(), "resource_id": "bert"})
    assert other is not memory
    assert other.resource_id == "bert"
