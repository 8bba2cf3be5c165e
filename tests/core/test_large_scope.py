"""A scope above the exact limit: candidates from the index and the full text, same scoring."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall import Message, SemanticRecall, Settings, VectorIndexError
from semantic_recall.embedders.hash import HashEmbedder

WORDS = [f"{a}{b}" for a in ("ka", "mo", "ri", "su", "te", "lo") for b in ("ban", "dor", "fin")]


def messages(count: int, resource: str = "r") -> Iterator[Message]:
    picker = random.Random(3)
    for number in range(count):
        yield Message(
            id=f"{resource}{number}",
            role="user" if number % 2 == 0 else "assistant",
            text=" ".join(picker.choices(WORDS, k=12)) + f" number{number}",
            thread_id=f"t{number // 20}",
            resource_id=resource,
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large")
    with SemanticRecall.open(path, embedder=HashEmbedder(64)) as memory:
        memory.remember(messages(1200), background=True)
        memory.remember(messages(100, "other"), background=True)
        assert memory.flush()
    return path


def asking_the_index(path: Path) -> SemanticRecall:
    settings = Settings(exact_limit=0)
    return SemanticRecall.open(path, embedder=HashEmbedder(64), settings=settings)


def test_it_finds_what_an_exact_search_finds(folder: Path) -> None:
    picker = random.Random(5)
    queries = [f"{' '.join(picker.choices(WORDS, k=4))} number{n}" for n in range(0, 1200, 60)]

    def found(memory: SemanticRecall, **more: object) -> list[list[str]]:
        return [
            [m.message.id for m in memory.recall(query, resource_id="r", **more)]  # type: ignore[arg-type]
            for query in queries
        ]

    with SemanticRecall.open(folder, embedder=HashEmbedder(64)) as memory:
        exact = found(memory, top_k=1)
        exact_dense = found(memory, ranking="dense", message_range=2)
    with asking_the_index(folder) as memory:
        assert found(memory, top_k=1) == exact
        assert found(memory, ranking="dense", message_range=2) == exact_dense


def test_it_keeps_to_its_scope(folder: Path) -> None:
    with asking_the_index(folder) as memory:
        recalled = memory.recall("number7 kaban", resource_id="other", top_k=300)
        assert {m.message.resource_id for m in recalled} == {"other"}
        recalled = memory.recall(
            "number7", resource_id="r", thread_id="t3", scope="thread", top_k=300
        )
        assert {m.message.thread_id for m in recalled} == {"t3"}
        assert len(recalled) == 20


def test_it_sees_what_the_index_has_not_seen_and_not_what_is_forgotten(folder: Path) -> None:
    with asking_the_index(folder) as memory:
        memory.remember(
            {"role": "user", "content": "fresh quokka", "id": "fresh"},
            thread_id="new",
            resource_id="r",
        )
        assert memory.recall("quokka", resource_id="r").hits[0].message.id == "fresh"
        memory.forget(thread_id="new", resource_id="r")
        recalled = memory.recall("quokka", resource_id="r", top_k=50)
        assert "fresh" not in {m.message.id for m in recalled}


def test_a_failing_index_is_reported_and_searched_around(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class BrokenIndex:
        """An index that fails every search; nothing else is asked of it here."""

        def search(self, *_: object, **__: object) -> list[object]:
            raise VectorIndexError("the index is torn")

    with asking_the_index(folder) as memory, caplog.at_level(logging.WARNING, "semantic_recall"):
        searcher = memory._recaller._searcher
        searcher._index = BrokenIndex  # type: ignore[assignment]
        recalled = memory.recall("number700", resource_id="r", top_k=1, message_range=0)
        assert [m.message.id for m in recalled] == ["r700"]
        assert "the index is torn" in caplog.text
