"""What a recall searches, leaves out, puts in order and reports."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semantic_recall import (
    InvalidScopeError,
    InvalidVectorError,
    Message,
    SemanticRecall,
)
from semantic_recall.embedders.hash import HashEmbedder
from tests.core.talking import say, texts


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(tmp_path / "memory", embedder=HashEmbedder(64)) as memory:
        yield memory


def test_scopes_are_never_widened(memory: SemanticRecall) -> None:
    say(memory, "alpha beta")
    with pytest.raises(InvalidScopeError):
        memory.recall("alpha", thread_id="t")
    with pytest.raises(InvalidScopeError):
        memory.recall("alpha", resource_id="ana", scope="thread")
    assert not memory.recall("alpha", thread_id="t", scope="thread")
    assert memory.recall("alpha", thread_id="t", resource_id="ana", scope="thread")
    assert not memory.recall("alpha", resource_id="an")


def test_a_thread_without_a_resource_is_its_own(memory: SemanticRecall) -> None:
    memory.remember({"role": "user", "content": "ownerless words"}, thread_id="t")
    say(memory, "words of ana")
    assert texts(memory.recall("words", thread_id="t", scope="thread")) == ["ownerless words"]
    assert texts(memory.recall("words", resource_id="ana")) == ["words of ana"]
    assert len(memory.threads()) == 2


def test_filters_act_before_top_k(memory: SemanticRecall) -> None:
    start = datetime(2024, 5, 1, tzinfo=timezone.utc)
    memory.remember(
        Message(
            role="user" if i % 2 else "assistant",
            text=f"apple pie {i}",
            thread_id="t",
            resource_id="ana",
            id=f"m{i}",
            created_at=start + timedelta(days=i),
            metadata={"topic": "food" if i < 10 else "work", "n": i},
        )
        for i in range(20)
    )

    def found(**overrides: Any) -> set[str]:
        recalled = memory.recall(
            "apple pie", resource_id="ana", message_range=0, **{"top_k": 4, **overrides}
        )
        return {m.message.id for m in recalled}

    assert len(found()) == 4
    assert found(since=start + timedelta(days=17)) == {"m17", "m18", "m19"}
    assert found(until=start + timedelta(days=2)) == {"m0", "m1"}
    assert found(roles=["user"], until=start + timedelta(days=5)) == {"m1", "m3"}
    assert found(filter={"topic": "work"}, since=start + timedelta(days=18)) == {"m18", "m19"}
    assert found(filter={"n": [3, 5]}) == {"m3", "m5"}
    assert found(filter={"n": 99}) == set()
    assert found(exclude_ids=[f"m{i}" for i in range(18)]) == {"m18", "m19"}
    assert found(top_k=50) == {f"m{i}" for i in range(20)}
    assert found(top_k=0) == set()
    assert found(top_k=-3) == set()
    assert found(threshold=1.0) == set()


def test_what_was_dropped_is_reported(memory: SemanticRecall) -> None:
    say(memory, "apple", "pear", "apple pie", "pear pie")
    recalled = memory.recall("apple", resource_id="ana", roles=["user"], threshold=0.05)
    assert recalled.dropped["role"] == 2


def test_identical_texts_count_once_as_the_newest(memory: SemanticRecall) -> None:
    for thread in ("a", "b", "c"):
        say(memory, "remind me to drink water", "sure", thread=thread)
    say(memory, "water the plants", "done", thread="d")
    recalled = memory.recall("drink water", resource_id="ana", top_k=8, message_range=0)
    assert [hit.message.thread_id for hit in recalled.hits if "drink" in hit.message.text] == ["c"]
    assert len({hit.message.text for hit in recalled.hits}) == len(recalled.hits) == 4


def test_the_query_does_not_find_itself(memory: SemanticRecall) -> None:
    say(memory, "what is my shoe size?", "you wear 42", thread="old")
    say(memory, "what is my shoe size?", thread="now")
    recalled = memory.recall(
        "what is my shoe size?", resource_id="ana", thread_id="now", top_k=1, message_range=1
    )
    assert [m.message.thread_id for m in recalled] == ["old", "old"]


def test_windows_step_over_tool_messages(memory: SemanticRecall) -> None:
    memory.remember(
        [
            {"role": "user", "content": "how warm is it in Porto"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "porto porto porto 21", "tool_call_id": "1"},
            {"role": "assistant", "content": "It is 21 degrees"},
            {"role": "system", "content": "porto is a city"},
        ],
        thread_id="t",
        resource_id="ana",
    )
    recalled = memory.recall("warm Porto", resource_id="ana", top_k=1)
    assert texts(recalled) == ["how warm is it in Porto", "It is 21 degrees"]
    assert len(memory.history("t", "ana")) == 5
    assert memory.history("t", "ana")[1].payload == {"message": {"tool_calls": [{"id": "1"}]}}


def test_max_tokens_keeps_the_best_and_reports_the_rest(memory: SemanticRecall) -> None:
    say(memory, "apple " * 50, "long answer " * 50, "short apple", "fine", thread="a")
    recalled = memory.recall("short apple", resource_id="ana", max_tokens=150)
    assert "short apple" in texts(recalled)
    assert recalled.tokens <= 150
    assert recalled.dropped["over max_tokens"] >= 1
    assert not memory.recall("apple", resource_id="ana", max_tokens=0)


def test_a_clock_that_goes_back_does_not_turn_a_conversation_round(memory: SemanticRecall) -> None:
    start = datetime(2024, 5, 1, tzinfo=timezone.utc)
    memory.remember(
        Message(role="user", text=f"step {i}", thread_id="t", resource_id="ana",
                created_at=start - timedelta(hours=i))
        for i in range(5)
    )  # fmt: skip
    assert texts(memory.recall("step", resource_id="ana", top_k=5)) == [
        f"step {i}" for i in range(5)
    ]


def test_a_given_query_vector_is_checked(memory: SemanticRecall) -> None:
    say(memory, "a")
    for bad in (np.ones(3), np.full(64, np.nan), np.zeros(64)):
        with pytest.raises(InvalidVectorError):
            memory.recall("a", resource_id="ana", query_vector=bad.astype(np.float32))
