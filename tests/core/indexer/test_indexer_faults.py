"""The indexer beside failing indexes, other processes, forks and an early close."""

import logging
import os
import subprocess
import sys
import threading
import time

import pytest

from semantic_recall.errors import IndexLockedError
from semantic_recall.indexer import Indexer
from semantic_recall.protocols import VectorIndex
from semantic_recall.records import vector_id
from tests.core.indexing import LOGGER, SPACE, Failing, Memory, owned, until


class TestFailure:
    def test_flush_reports_and_goes_on_later(
        self, memory: Memory, caplog: pytest.LogCaptureFixture
    ) -> None:
        index = Failing(failures=2)
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        with caplog.at_level(logging.INFO, LOGGER.name):
            assert not indexer.flush()
            assert not indexer.flush()
            assert memory.left() == (0, 1)
            assert indexer.flush()
        assert memory.left() == (0, 0)
        levels = [record.levelname for record in caplog.records]
        assert levels == ["WARNING", "INFO"]
        assert "the disk is full" in caplog.text
        indexer.close()

    def test_thread_backs_off(self, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
        index = Failing(failures=2)
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        with caplog.at_level(logging.WARNING, LOGGER.name):
            deadline = time.monotonic() + 20
            while memory.left() != (0, 0):
                assert time.monotonic() < deadline
                indexer.wake()  # wakes do not shorten the wait
                time.sleep(0.02)
        first, second, third = (moment for moment, _ in index.calls)
        assert second - first >= 0.5
        assert third - second >= 1.0
        assert len(caplog.records) == 1
        indexer.close()

    def test_embedding_goes_on_while_the_index_fails(self, memory: Memory) -> None:
        index = Failing(failures=1000)
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        indexer.wake()
        until(lambda: index.calls != [])
        memory.add("b")
        indexer.wake()
        until(lambda: memory.left() == (0, 2))
        indexer.close()

    def test_embedder_that_does_nothing_ends_flush(self, memory: Memory) -> None:
        indexer = Indexer(memory.store, None, lambda limit: 0, logger=LOGGER)
        memory.add("a")
        assert indexer.flush(timeout=20)
        assert memory.left() == (1, 0)
        indexer.close()

    def test_error_of_user_code_does_not_end_the_thread(self, memory: Memory) -> None:
        raised: list[bool] = []

        def embed(limit: int) -> int:
            if not raised:
                raised.append(True)
                raise RuntimeError("a bug in an embedder")
            return memory.embed(limit)

        indexer = Indexer(memory.store, None, embed, logger=LOGGER)
        memory.add("a")
        indexer.wake()
        until(lambda: memory.left()[0] == 0)
        indexer.close()

    def test_without_index_the_queue_is_dropped(self, memory: Memory) -> None:
        indexer = Indexer(memory.store, None, memory.embed, logger=LOGGER)
        memory.add("a")
        assert indexer.flush()
        assert memory.left() == (0, 0)
        assert indexer.index() is None
        indexer.close()


HOLD = """
import sys
from semantic_recall.indexes.chroma import ChromaVectorIndex
index = ChromaVectorIndex.embedded(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
index.close()
"""


class TestProcesses:
    def test_index_of_another_process(
        self, memory: Memory, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Flush embeds, leaves the rest to the owner, and takes over when the owner is gone."""
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(memory.path / "chroma")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        indexer = Indexer(memory.store, memory.open_index, memory.embed, logger=LOGGER)
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            memory.add("a")
            with caplog.at_level(logging.INFO, LOGGER.name):
                assert indexer.flush(timeout=30)
                assert indexer.flush(timeout=30)
            assert memory.left() == (0, 1)
            assert not indexer.owns_index
            assert [record.levelname for record in caplog.records] == ["INFO"]
            indexer.wake()
        finally:
            holder.communicate("")
        until(lambda: memory.left() == (0, 0))
        assert sorted(owned(indexer).ids(SPACE)) == memory.stored_ids()
        indexer.close()

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
    def test_forked_child_leaves_the_index_to_the_parent(
        self, memory: Memory, indexer: Indexer
    ) -> None:
        memory.add("a")
        indexer.wake()
        assert indexer.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                memory.add("b")
                indexer.wake()
                fine = indexer.flush(timeout=10) and not indexer.owns_index
                code = 0 if fine and memory.left()[0] == 0 else 2
                indexer.close()
            finally:
                os._exit(code)
        deadline = time.monotonic() + 20
        pid, status = 0, 0
        while not pid and time.monotonic() < deadline:
            pid, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.02)
        if not pid:
            os.kill(child, 9)
            os.waitpid(child, 0)
        assert (pid, os.waitstatus_to_exitcode(status)) == (child, 0)
        assert indexer.flush()
        assert sorted(owned(indexer).ids(SPACE)) == memory.stored_ids()
        assert len(memory.stored_ids()) == 2

    def test_locked_is_not_a_failure(
        self, memory: Memory, caplog: pytest.LogCaptureFixture
    ) -> None:
        def open_index() -> VectorIndex:
            raise IndexLockedError("somebody else has it")

        indexer = Indexer(memory.store, open_index, memory.embed, logger=LOGGER)
        memory.add("a")
        with caplog.at_level(logging.INFO, LOGGER.name):
            indexer.wake()
            until(lambda: memory.left() == (0, 1))
            indexer.rebuild(SPACE)
        assert {record.levelname for record in caplog.records} <= {"INFO"}
        indexer.close()


class TestClose:
    def test_twice_and_calls_after(self, memory: Memory) -> None:
        index = Failing()
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        assert indexer.flush()
        indexer.close()
        indexer.close()
        assert index.closed == 1
        indexer.wake()
        assert not indexer.flush()
        assert indexer.index() is None

    def test_while_busy(self, memory: Memory) -> None:
        """Waits for the batch, closes the index after it, and leaves the rest queued."""
        index = Failing()
        index.go_on.clear()
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add(*map(str, range(40)))
        indexer.wake()
        assert index.busy.wait(20)
        threading.Timer(0.3, index.go_on.set).start()
        indexer.close()
        assert index.closed == 1
        assert memory.left() == (0, 24)

    def test_longer_than_its_timeout(self, memory: Memory) -> None:
        """The thread closes the index when the batch is done."""
        index = Failing()
        index.go_on.clear()
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        indexer.wake()
        assert index.busy.wait(20)
        began = time.monotonic()
        indexer.close(timeout=0.2)
        assert time.monotonic() - began < 2
        assert index.closed == 0
        index.go_on.set()
        until(lambda: index.closed == 1)

    def test_flush_runs_out_of_time(self, memory: Memory) -> None:
        index = Failing()
        index.go_on.clear()
        indexer = Indexer(memory.store, lambda: index, memory.embed, logger=LOGGER)
        memory.add("a")
        indexer.wake()
        assert index.busy.wait(20)
        assert not indexer.flush(timeout=0.1)
        index.go_on.set()
        assert indexer.flush(timeout=20)
        assert vector_id(1, 0) in index.kept
        indexer.close()

    def test_store_closed_first(self, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
        """The thread ends without noise."""
        indexer = Indexer(memory.store, memory.open_index, memory.embed, logger=LOGGER)
        indexer.wake()
        memory.store.close()
        with caplog.at_level(logging.INFO, LOGGER.name):
            indexer.wake()
            until(lambda: not any("indexer" in t.name for t in threading.enumerate()), 10)
        assert caplog.records == []
        indexer.close()
