"""An index that keeps failing is opened again, then written anew; a reindex leaves nothing over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.index_worker import REBUILD_AFTER, REOPEN_AFTER
from semantic_recall.indexer import Indexer
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import VectorSpace
from tests.core.indexing import LOGGER, SPACE, Failing, Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
    store.add_space(SPACE, active=True)
    yield Memory(tmp_path, store)
    store.close()


class TestMending:
    def test_opened_again_then_written_anew(
        self, memory: Memory, caplog: pytest.LogCaptureFixture
    ) -> None:
        index = Failing()
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a", "b")
        assert indexer.flush()
        memory.add("c")
        index.failures = REBUILD_AFTER
        with caplog.at_level(logging.WARNING, LOGGER.name):
            for number in range(1, REBUILD_AFTER + 1):
                assert not indexer.flush()
                assert index.closed == (number >= REOPEN_AFTER)
        assert index.kept == {}
        assert "written anew" in caplog.text
        assert indexer.flush()
        assert sorted(index.kept) == memory.stored_ids()
        assert len(index.kept) == 3
        indexer.close()

    def test_written_anew_once(self, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
        """An index that fails on and on is not dropped again and again."""
        index = Failing(failures=1_000)
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        with caplog.at_level(logging.WARNING, LOGGER.name):
            for _ in range(3 * REBUILD_AFTER):
                assert not indexer.flush()
        assert sum("written anew" in record.message for record in caplog.records) == 1
        indexer.close()

    def test_a_failing_embedder_costs_the_index_nothing(self, memory: Memory) -> None:
        index = Failing()
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        assert indexer.flush()
        for _ in range(2 * REBUILD_AFTER):
            indexer._worker._failed(RuntimeError("a bug in an embedder"))
        assert (index.closed, len(index.kept)) == (0, 1)
        indexer.close()


def test_a_reindex_removes_what_stopped_ones_left(tmp_path: Path) -> None:
    """A half-built space would keep vectors of messages that are forgotten later."""
    stray = VectorSpace("half-built", 16)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        memory._store.add_space(stray, active=False)
        memory.reindex(HashEmbedder(48))
        assert [info.space.dimensions for info in memory._store.spaces()] == [48]
        assert memory.stats().pending == 0
        assert memory.verify().indexed == 1


def test_a_memory_removes_spaces_from_its_index_that_it_does_not_know(tmp_path: Path) -> None:
    """A process was killed between leaving an embedder's space and clearing the index of it."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        assert memory.flush()
        (space,) = (info.space for info in memory._store.spaces())
    with SQLMessageStore.open(tmp_path / "recall.sqlite3") as store:
        store.drop_space(space)
        store.acknowledge(store.operations(limit=10))
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(48)) as memory:
        assert memory.flush()
        assert memory.verify().indexed == 1
        index = memory._indexer.index()
        assert index is not None
        assert list(index.ids(space)) == []
