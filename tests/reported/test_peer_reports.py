"""What users of other memories reported: wrong owners, deletion, duplicates, lost messages."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from semantic_recall import InvalidIdError, InvalidScopeError, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from tests.reported.asking import found, say


def test_mastra_20604_neighbours_of_the_owner_only(memory: SemanticRecall) -> None:
    """mastra #20604, #21863: neighbours and parts were fetched by message id alone."""
    for user in ("ann", "bob"):
        memory.remember(
            [
                {"role": "user", "content": f"{word} of {user}", "id": f"m{n}"}
                for n, word in enumerate(("before", "the pin code", "after"))
            ],
            thread_id="t",
            resource_id=user,
        )
    for user in ("ann", "bob"):
        assert found(memory, "pin code", user, top_k=1, message_range=5) == [
            f"before of {user}",
            f"the pin code of {user}",
            f"after of {user}",
        ]


def test_mastra_18911_nobody_is_not_everybody(memory: SemanticRecall) -> None:
    """mastra #18911: a missing user listed everyone's threads."""
    say(memory, "the pin code is 4711")
    for missing_user in (None, ""):
        with pytest.raises((InvalidScopeError, InvalidIdError)):
            memory.recall("pin code", resource_id=missing_user)
        with pytest.raises((InvalidScopeError, InvalidIdError)):
            memory.forget(resource_id=missing_user)
    assert list(memory.recall("pin code", thread_id="t", scope="thread")) == []
    assert memory.history("t") == []
    assert memory.forget(thread_id="t").messages == 0
    assert found(memory, "pin code") == ["the pin code is 4711"]


@pytest.mark.parametrize("other", ["ann1", "an", "an_", "an%", "%", "_nn", "ANN", "ann.", "ann/x"])
def test_langgraph_8300_no_prefixes_and_patterns(memory: SemanticRecall, other: str) -> None:
    """langgraph #8300, CVE-2026-71433: `LIKE 'user1%'` found user10."""
    say(memory, "the pin code is 4711")
    say(memory, "nothing of interest", user=other)
    assert found(memory, "pin code", other) == ["nothing of interest"]
    assert memory.forget(resource_id=other).messages == 1
    assert found(memory, "pin code") == ["the pin code is 4711"]


def test_mastra_6604_deleted_messages_take_no_places(tmp_path: Path) -> None:
    """mastra #6604: vectors of deleted messages filled top_k, so fewer came back."""
    settings = Settings(exact_limit=0)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64), settings=settings) as memory:
        stored = say(memory, *(f"apple tree {n}" for n in range(40)))
        assert memory.flush()
        memory.forget(ids=[m.id for m in stored[:30]], thread_id="t", resource_id="ann")
        hits = memory.recall("apple tree", resource_id="ann", top_k=10).hits
        assert {hit.message.text for hit in hits} == {f"apple tree {n}" for n in range(30, 40)}


def test_mem0_3928_forgetting_one_user_leaves_the_others(tmp_path: Path) -> None:
    """mem0 #3928, #3746, #3785: `delete_all(user_id=...)` reset the collection of everybody."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64)) as memory:
        for user in ("ann", "bob"):
            say(memory, f"the pin code of {user}", user=user)
        assert memory.flush()
        receipt = memory.forget(resource_id="ann", secure=True)
        assert (receipt.messages, receipt.vectors) == (1, 1)
        assert found(memory, "pin code", "bob") == ["the pin code of bob"]
        report = memory.verify()
        assert (report.ok, report.vectors, report.indexed) == (True, 1, 1)


def test_cognee_3526_what_is_forgotten_stays_so_and_its_name_is_free(tmp_path: Path) -> None:
    """cognee #3526: it came back when all was processed again; #3895: its name was unusable."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64)) as memory:
        say(memory, "the pin code is 4711")
        memory.forget(resource_id="ann")
        memory.reindex(HashEmbedder(32))
        memory.verify(repair=True)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        assert memory.flush()
        assert found(memory, "pin code") == []
        say(memory, "the new pin code is 1234")
        assert found(memory, "pin code") == ["the new pin code is 1234"]


def test_memos_1103_eight_hundred_are_deleted_at_once(memory: SemanticRecall) -> None:
    """MemOS #1103: 142 s for 793 (here well below a second on an idle machine); Memori #303."""
    say(memory, *(f"apple {n}" for n in range(793)))
    began = time.perf_counter()
    receipt = memory.forget(resource_id="ann")
    assert time.perf_counter() - began < 20
    assert receipt.messages == 793
    assert set(receipt.remaining.values()) <= {0}


def test_mem0_4573_what_was_recalled_is_not_stored_again(memory: SemanticRecall) -> None:
    """mem0 #4573: memories that were shown came back as new ones, until they were nearly all."""
    say(memory, "my dog is called Bello", thread="old")
    for n in range(5):
        asked = [{"role": "user", "content": f"what is my dog called, {n}?"}]
        prompt = memory.process_input(asked, thread_id="new", resource_id="ann")
        assert "Bello" in str(prompt)
        answer = {"role": "assistant", "content": f"Bello, as you said, {n}."}
        memory.process_output([*prompt, answer], thread_id="new", resource_id="ann")
    stored = [message.text for message in memory.history("new", "ann")]
    assert len(stored) == 10
    assert not any("my dog is called" in text for text in stored)


def test_mem0_4721_equal_texts_take_one_place(memory: SemanticRecall) -> None:
    """mem0 #4721, #5850: the same thing said often filled the whole answer."""
    for n in range(20):
        say(memory, "my dog is called Bello", thread=f"t{n}")
    say(memory, "my dog likes carrots", thread="other")
    texts = found(memory, "my dog", top_k=2, message_range=0)
    assert sorted(texts) == ["my dog is called Bello", "my dog likes carrots"]


def test_redisvl_449_messages_of_one_instant(memory: SemanticRecall) -> None:
    """redisvl #449: an id made of the time; PR 178: no order among equal times."""
    now = datetime.now(timezone.utc)
    memory.remember(
        [{"role": "user", "content": f"n{n}", "created_at": now} for n in range(200)],
        thread_id="t",
        resource_id="ann",
    )
    stored = memory.history("t", "ann", last=None)
    assert [message.text for message in stored] == [f"n{n}" for n in range(200)]
    assert len({message.id for message in stored}) == 200


def test_mem0_3215_an_answer_alone_is_stored(memory: SemanticRecall) -> None:
    """mem0 #3215: nothing was kept of a batch without a user's message."""
    memory.remember(
        {"role": "assistant", "content": "your dog is Bello"}, thread_id="t", resource_id="ann"
    )
    assert found(memory, "dog") == ["your dog is Bello"]


def test_mastra_9991_the_last_messages_are_the_newest(memory: SemanticRecall) -> None:
    """mastra #9991, PR 10543: the oldest came."""
    say(memory, *(f"n{n}" for n in range(30)))
    assert [m.text for m in memory.history("t", "ann", last=3)] == ["n27", "n28", "n29"]
    prompt = memory.process_input(
        [{"role": "user", "content": "and now?"}],
        thread_id="t",
        resource_id="ann",
        last_messages=3,
        top_k=0,
    )
    assert [message["content"] for message in prompt] == ["n27", "n28", "n29", "and now?"]


def test_truememory_256_ten_threads_lose_nothing(memory: SemanticRecall) -> None:
    """TrueMemory #256: a quarter of 10 x 50 writes was lost on a shared connection."""

    def write(number: int) -> None:
        for n in range(50):
            say(memory, f"apple {number} {n}", thread=f"t{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = {message.text for message in memory.messages(resource_id="ann")}
    assert stored == {f"apple {number} {n}" for number in range(10) for n in range(50)}


def test_mastra_17797_what_is_recalled_is_in_the_prompt(memory: SemanticRecall) -> None:
    """mastra #17797: the panel showed it, the model never saw it."""
    say(memory, "my dog is called Bello", "he likes carrots", thread="old")
    shown = found(memory, "what is my dog called?", thread_id="new")
    prompt = memory.process_input(
        [{"role": "user", "content": "what is my dog called?"}], thread_id="new", resource_id="ann"
    )
    assert shown
    assert all(text in str(prompt) for text in shown)
