"""A kept recall is shown again only while nothing of it can have been deleted."""

from __future__ import annotations

from pathlib import Path

from semantic_recall import Recall, SemanticRecall


def told(memory: SemanticRecall, thread: str, resource: str | None) -> None:
    memory.remember({"role": "user", "content": "tea"}, thread_id=thread, resource_id=resource)


async def test_a_deletion_by_any_opener_ends_it_and_a_new_message_does_not(tmp_path: Path) -> None:
    with (
        SemanticRecall.open(tmp_path, embedder="hash") as memory,
        SemanticRecall.open(tmp_path, embedder="hash") as other,
    ):
        for resource in ("ann", "bob"):
            told(memory, "one", resource)
            told(memory, "two", resource)
        recall = memory.recall("tea", resource_id="ann", thread_id="one", message_range=0)
        assert memory.is_current(recall)
        told(other, "three", "ann")
        other.forget(resource_id="bob")
        assert memory.is_current(recall)
        assert await memory.ais_current(recall)
        other.forget(thread_id="two", resource_id="ann")
        assert not memory.is_current(recall)
        assert not await memory.ais_current(recall)


def test_without_a_resource_only_the_thread_counts(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        told(memory, "one", None)
        told(memory, "two", None)
        recall = memory.recall("any tea", thread_id="one", scope="thread")
        assert recall.messages
        memory.forget(thread_id="two")
        assert memory.is_current(recall)
        memory.forget(thread_id="one")
        assert not memory.is_current(recall)


def test_of_a_recall_made_by_hand_only_an_empty_one_is_current(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        told(memory, "one", "ann")
        found = memory.recall("tea", resource_id="ann")
        by_hand = Recall(query="tea", messages=found.messages, resource_id="ann")
        assert memory.is_current(Recall(query="tea"))
        assert not memory.is_current(by_hand)
