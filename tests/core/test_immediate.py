"""An immediate embedder's vectors are committed together with the messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
from semantic_recall.immediate import embed_at_once
from semantic_recall.incoming import as_messages, as_record
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Vector
from semantic_recall.vector_cache import VectorCache


class Immediate(HashEmbedder):
    """The hash embedder; notes what it is asked and how many messages other processes see then."""

    def __init__(self, path: Path, *, immediate: bool = True) -> None:
        super().__init__(16)
        self.immediate = immediate
        self.asked: list[list[str]] = []
        self.committed: list[int] = []
        self.broken: Exception | None = None
        self.made: object = None
        self._path = path

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.asked.append(list(texts))
        with SQLMessageStore.open(self._path) as store:
            self.committed.append(store.size()["messages"])
        if self.broken is not None:
            raise self.broken
        if self.made is not None:
            return self.made  # type: ignore[return-value] # what a broken embedder does
        return super().embed_documents(texts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recall.sqlite3"


def opened(path: Path, embedder: Immediate) -> SemanticRecall:
    return SemanticRecall(SQLMessageStore.open(path), None, embedder)


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text, "id": text[:99]} for text in texts]


def test_one_commit(path: Path) -> None:
    embedder = Immediate(path)
    with opened(path, embedder) as memory:
        memory.remember(said("tea", "coffee"), thread_id="t", resource_id="anna")
        assert embedder.committed == [0]
        assert (memory.stats().vectors, memory.stats().pending) == (2, 0)
        assert memory.recall("tea", resource_id="anna", top_k=1).hits[0].message.text == "tea"


def test_others_are_committed_first(path: Path) -> None:
    embedder = Immediate(path, immediate=False)
    with opened(path, embedder) as memory:
        memory.remember(said("tea", "coffee"), thread_id="t")
        assert embedder.committed == [2]
        embedder.immediate = True  # its model is loaded by now
        memory.remember(said("milk"), thread_id="t")
        assert embedder.committed == [2, 2]


def test_async(path: Path) -> None:
    embedder = Immediate(path)
    with opened(path, embedder) as memory:
        asyncio.run(memory.aremember(said("tea"), thread_id="t"))
        assert embedder.committed == [0]
        assert memory.stats().pending == 0


def test_the_background_keeps_its_work(path: Path) -> None:
    embedder = Immediate(path)
    with opened(path, embedder) as memory:
        memory.remember(said("tea"), thread_id="t", background=True)
        assert memory.flush(timeout=30)
        assert embedder.committed == [1]


def test_texts_known_in_memory_are_not_asked_for(path: Path) -> None:
    embedder = Immediate(path)
    with opened(path, embedder) as memory:
        memory.remember(said("tea"), thread_id="t")
        memory.remember(said("tea", "milk"), thread_id="other")
        assert embedder.asked == [["user: tea"], ["user: milk"]]
        assert memory.stats().vectors == 3


def test_a_replaced_text_has_its_new_vector_only(path: Path) -> None:
    with opened(path, Immediate(path)) as memory:
        for text in ("tea", "coffee"):
            memory.remember({"role": "user", "content": text, "id": "1"}, thread_id="t")
        assert (memory.stats().vectors, memory.stats().pending) == (1, 0)
        (hit,) = memory.recall("coffee?", thread_id="t", scope="thread", ranking="dense").hits
        assert hit.message.text == "coffee"
        query, document = map(HashEmbedder(16).embed_query, ("coffee?", "user: coffee"))
        assert hit.dense == pytest.approx(float(query @ document), abs=1e-5)


def test_long_texts_come_in_chunks(path: Path) -> None:
    embedder = Immediate(path.with_name("other.sqlite3"))
    with SemanticRecall.open(path.parent / "memory", embedder=embedder) as memory:
        memory.remember(said("word " * 2_000, "short"), thread_id="t")
        assert len(embedder.asked) == 1
        assert memory.stats().vectors == len(embedder.asked[0]) > 3
        assert memory.stats().pending == 0
        assert memory.flush(timeout=30)
        assert not memory.verify().problems


@pytest.mark.parametrize("made", [[], [np.full(16, np.nan)], [np.ones(15)], ["x"], 3])
def test_what_cannot_be_used_stays_pending(
    path: Path, made: object, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Immediate(path)
    embedder.made = made
    with opened(path, embedder) as memory:
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            memory.remember(said("tea"), thread_id="t")
        assert len(caplog.records) == 1
        assert (memory.stats().messages, memory.stats().pending) == (1, 1)
        embedder.made = None
        assert memory.flush(timeout=30)
        assert (memory.stats().vectors, memory.stats().pending) == (1, 0)


def test_a_failure_is_told_once_and_mended(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    embedder = Immediate(path)
    embedder.broken = OSError("the weights are gone")
    with opened(path, embedder) as memory:
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            memory.remember(said("tea"), thread_id="t")
        assert ["the weights are gone" in record.message for record in caplog.records] == [True]
        assert (memory.stats().messages, memory.stats().pending) == (1, 1)
        embedder.broken = None
        assert memory.flush(timeout=30)
        assert memory.stats().pending == 0


def test_so_many_texts_are_committed_first(path: Path) -> None:
    embedder = Immediate(path)
    with opened(path, embedder) as memory:
        memory.remember(said(*map(str, range(1_025))), thread_id="t")
        assert set(embedder.committed) == {1_025}
        assert memory.stats().pending == 0
        memory.remember(said(*(f"more {n}" for n in range(1_024))), thread_id="t")
        assert embedder.committed[-1] == 1_025


def test_only_what_is_searched_is_embedded() -> None:
    messages = as_messages(
        [{"role": role, "content": f"by {role}"} for role in ("user", "tool", "system")],
        thread_id="t",
        resource_id=None,
    )
    records = [as_record(message, frozenset({"user"})) for message in messages]
    embedder = WordLlamaEmbedder()
    embedder.embed_query("loads the model")
    found = embed_at_once(records, embedder, VectorCache(10))
    assert found is not None
    assert list(found.vectors) == [records[0].digest]
    assert found.space == embedder.space
    expected = embedder.embed_documents(["user: by user"])
    assert found.vectors[records[0].digest].tolist() == np.stack(expected).tolist()


def test_a_space_that_another_process_dropped(path: Path) -> None:
    """The messages are stored all the same, and are embedded by who knows the new space."""
    embedder = Immediate(path)
    with opened(path, embedder) as memory:
        other = HashEmbedder(32)
        with SQLMessageStore.open(path) as store:
            store.add_space(other.space, active=True)
            store.drop_space(embedder.space)
        with pytest.raises(Exception, match="no vector space"):
            memory.remember(said("tea"), thread_id="t")
    with SemanticRecall(SQLMessageStore.open(path), None, other) as memory:
        assert memory.flush(timeout=30)
        assert (memory.stats().messages, memory.stats().vectors) == (1, 1)
