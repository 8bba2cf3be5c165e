"""The indexer on a real store and a real Chroma index."""

import gc
import subprocess
import sys
import threading
import time

import numpy as np

from semantic_recall.index_operations import apply
from semantic_recall.indexer import Indexer
from semantic_recall.records import IndexOperation
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Scope, VectorRecord
from tests.core.indexing import LOGGER, SPACE, Failing, Memory, message, owned, until


class TestThread:
    def test_wake_embeds_and_indexes(self, memory: Memory, indexer: Indexer) -> None:
        memory.add(*map(str, range(40)))
        indexer.wake()
        until(lambda: memory.left() == (0, 0))
        assert sorted(owned(indexer).ids(SPACE)) == memory.stored_ids()
        assert len(memory.stored_ids()) == 40

    def test_wake_is_cheap_and_starts_one_thread(self, indexer: Indexer) -> None:
        def running() -> int:
            return sum(t.name == "semantic-recall-indexer" for t in threading.enumerate())

        before = running()
        pool = [threading.Thread(target=indexer.wake) for _ in range(16)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
        assert running() == before + 1
        began = time.monotonic()
        for _ in range(1000):
            indexer.wake()
        assert time.monotonic() - began < 0.5

    def test_nothing_to_do_opens_no_index(self, memory: Memory, indexer: Indexer) -> None:
        indexer.wake()
        assert indexer.flush()
        assert not indexer.owns_index
        assert not (memory.path / "chroma").exists()

    def test_index_is_opened_when_somebody_asks(self, memory: Memory, indexer: Indexer) -> None:
        assert indexer.index() is None
        until(lambda: indexer.index() is not None)
        assert indexer.owns_index

    def test_operations_of_other_processes_are_found(
        self, memory: Memory, indexer: Indexer
    ) -> None:
        memory.add("one")
        assert indexer.flush()
        indexer.wake()
        other = SQLMessageStore.open(memory.path / "recall.sqlite3")
        other.delete(Scope("anna"))
        other.close()
        until(lambda: memory.left() == (0, 0), 10)
        assert list(owned(indexer).ids(SPACE)) == []

    def test_forgotten_indexer_ends_its_thread(self, memory: Memory) -> None:
        indexer = Indexer(memory.store, memory.open_index, memory.embed, logger=LOGGER)
        memory.add("one")
        indexer.wake()
        until(lambda: memory.left() == (0, 0))
        before = threading.active_count()
        del indexer
        gc.collect()
        until(lambda: threading.active_count() < before, 5)
        memory.open_index().close()  # the lock is free

    def test_process_that_closes_nothing_ends(self, memory: Memory) -> None:
        code = """
import logging, sys
from semantic_recall.indexer import Indexer
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Scope
store = SQLMessageStore.open(sys.argv[1] + "/recall.sqlite3")
indexer = Indexer(store, lambda: ChromaVectorIndex.embedded(sys.argv[1] + "/chroma"), None,
                  logger=logging.getLogger())
indexer.flush(bulk=True)
store.delete(Scope("anna"))
indexer.wake()
print("end")
"""
        memory.add(*map(str, range(100)))
        memory.embed(100)
        done = subprocess.run(
            [sys.executable, "-c", code, str(memory.path)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


class TestReplay:
    def test_store_and_index_agree_after_any_change(self, memory: Memory, indexer: Indexer) -> None:
        memory.chunks = 3
        memory.add("a", "b", "c")
        assert indexer.flush()
        assert len(memory.stored_ids()) == 9
        memory.chunks = 1
        memory.store.add([message("changed", "m-a")])  # fewer chunks than before
        memory.store.delete(Scope("anna", "t1"), ids=["m-b"])
        assert indexer.flush()
        assert memory.left() == (0, 0)
        assert sorted(owned(indexer).ids(SPACE)) == memory.stored_ids()
        assert len(memory.stored_ids()) == 4

    def test_last_operation_of_a_vector_wins(self) -> None:
        def operation(number: int, key: int, vectors: int, chunks: int) -> IndexOperation:
            rows = np.full((vectors, 4), number, dtype=np.float32)
            kind = "upsert" if vectors else "delete"
            return IndexOperation(
                number, "upsert" if kind == "upsert" else "delete", SPACE, Scope("r", "t"),
                key, rows, chunks,
            )  # fmt: skip

        index = Failing()
        apply(
            index,
            [
                operation(1, 7, 3, 0),
                operation(2, 7, 0, 3),
                operation(3, 7, 2, 3),
                operation(4, 8, 2, 0),
                operation(5, 8, 0, 2),
            ],
        )
        assert sorted(index.kept) == ["7.0", "7.1"]
        assert {float(record.vector[0]) for record in index.kept.values()} == {3.0}

    def test_upsert_without_vectors_deletes(self) -> None:
        index = Failing()
        scope = Scope("r", "t")
        index.kept["5.0"] = VectorRecord(id="5.0", scope=scope, vector=np.ones(4, np.float32))
        empty = np.zeros((0, 4), dtype=np.float32)
        apply(index, [IndexOperation(1, "upsert", SPACE, scope, 5, empty, 1)])
        assert index.kept == {}

    def test_batches_are_small_while_serving(self, memory: Memory) -> None:
        index = Failing()
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add(*map(str, range(40)))
        assert indexer.flush()
        assert [name for _, name in index.calls] == ["upsert 16", "upsert 16", "upsert 8"]
        memory.add(*map(str, range(100, 140)))
        assert indexer.flush(bulk=True)
        assert index.calls[-1][1] == "upsert 40"
        indexer.close()

    def test_reopened_memory_replays_what_was_left(self, memory: Memory) -> None:
        first = Indexer(memory.store, memory.open_index, None, logger=LOGGER)
        memory.add("a", "b")
        memory.embed(10)
        first.close()
        assert memory.left() == (0, 2)
        second = Indexer(memory.store, memory.open_index, None, logger=LOGGER)
        second.wake()
        until(lambda: memory.left() == (0, 0))
        assert sorted(owned(second).ids(SPACE)) == memory.stored_ids()
        second.close()

    def test_killed_process_is_caught_up_with(self, memory: Memory) -> None:
        """Killed between the index's write and the acknowledgement: the replay repeats it."""
        code = """
import os, sys
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.index_operations import apply
from semantic_recall.stores.sql import SQLMessageStore
store = SQLMessageStore.open(sys.argv[1] + "/recall.sqlite3")
apply(ChromaVectorIndex.embedded(sys.argv[1] + "/chroma"), store.operations(limit=3))
os.kill(os.getpid(), 9)
"""
        memory.add("a", "b", "c", "d", "e")
        memory.embed(10)
        killed = subprocess.run([sys.executable, "-c", code, str(memory.path)], check=False)
        assert killed.returncode == -9
        assert memory.left() == (0, 5)
        indexer = Indexer(memory.store, memory.open_index, None, logger=LOGGER)
        assert indexer.flush()
        assert sorted(owned(indexer).ids(SPACE)) == memory.stored_ids()
        indexer.close()

    def test_index_that_somebody_deleted_is_written_anew(self, memory: Memory) -> None:
        memory.add("a", "b")
        first = Indexer(memory.store, memory.open_index, memory.embed, logger=LOGGER)
        assert first.flush()
        first.close()
        for file in (memory.path / "chroma").iterdir():
            if file.is_file():
                file.unlink()
        second = Indexer(memory.store, memory.open_index, memory.embed, logger=LOGGER)
        assert second.flush(bulk=True)
        assert sorted(owned(second).ids(SPACE)) == memory.stored_ids()
        second.close()

    def test_rebuild(self, memory: Memory, indexer: Indexer) -> None:
        memory.add("a", "b")
        assert indexer.flush()
        index = owned(indexer)
        stray = VectorRecord(id="99.0", scope=Scope("x", "y"), vector=np.ones(4, np.float32))
        index.upsert(SPACE, [stray])
        index.delete(SPACE, {memory.stored_ids()[0]: Scope("anna", "t1")})
        indexer.rebuild(SPACE)
        assert indexer.flush()
        assert sorted(index.ids(SPACE)) == memory.stored_ids()
