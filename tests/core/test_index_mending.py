"""An index that keeps failing is opened again, then written anew; a reindex leaves nothing over."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
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


KILLED_AFTER_THE_SWITCH = """
import os, signal, sys
from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.stores.sql import SQLMessageStore

class Fatal(ChromaVectorIndex):
    def drop(self, space):
        os.kill(os.getpid(), signal.SIGKILL)

folder = sys.argv[1]
store = SQLMessageStore.open(folder + "/recall.sqlite3")
memory = SemanticRecall(store, lambda: Fatal.embedded(folder + "/chroma"), HashEmbedder(32))
memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
assert memory.flush()
memory.reindex(HashEmbedder(48))
"""


def killed_after_the_switch(folder: Path) -> None:
    """A reindex that ends between its switch and the removal of the old vectors."""
    folder.mkdir(exist_ok=True)
    code = subprocess.run([sys.executable, "-c", KILLED_AFTER_THE_SWITCH, folder]).returncode
    assert code == -signal.SIGKILL
    with SQLMessageStore.open(folder / "recall.sqlite3") as store:
        assert [(i.space.dimensions, i.active) for i in store.spaces()] == [(32, False), (48, True)]


def test_a_reindex_killed_after_its_switch_leaves_nothing(tmp_path: Path) -> None:
    """The next who opens the index removes the old vectors, unasked."""
    killed_after_the_switch(tmp_path)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(48)) as memory:
        assert memory.flush()
        assert [info.space.dimensions for info in memory._store.spaces()] == [48]
        assert memory.verify().indexed == 1
        index = memory._indexer.index()
        assert index is not None
        assert list(index.ids(HashEmbedder(32).space)) == []
        assert len(memory.recall("apple", resource_id="r")) == 1


def test_a_reindex_back_to_what_a_killed_one_left(tmp_path: Path) -> None:
    """Another process owns the index, so the old space is still there when it is wanted again."""
    killed_after_the_switch(tmp_path)
    store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
    with SemanticRecall(store, None, HashEmbedder(48)) as memory:
        assert memory.reindex(HashEmbedder(32)).embedded == 1
        assert [info.space.dimensions for info in store.spaces()] == [32]
        assert len(memory.recall("apple", resource_id="r")) == 1


def test_a_reindex_that_was_stopped_halfway_is_not_left_behind(tmp_path: Path) -> None:
    """Opening and verifying leave alone what the next run goes on with."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        memory._store.add_space(HashEmbedder(48).space, active=False)
        assert memory.verify().ok
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        assert memory.flush()
        assert [info.space.dimensions for info in memory._store.spaces()] == [32, 48]


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
