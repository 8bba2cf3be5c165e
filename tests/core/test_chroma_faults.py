"""Processes, crashes and damaged files around an embedded Chroma index."""

import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from semantic_recall.errors import IndexLockedError, VectorIndexError
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.types import Scope, VectorRecord, VectorSpace

SPACE = VectorSpace("model", 4)
ANNA = Scope("anna", "t1")
QUERY = np.array([1, 0, 0, 0], dtype=np.float32)


def records(count: int, scope: Scope = ANNA, start: int = 0) -> list[VectorRecord]:
    rows = np.random.default_rng(start).normal(size=(count, 4)).astype(np.float32)
    return [
        VectorRecord(id=f"{start + i}.0", scope=scope, vector=row) for i, row in enumerate(rows)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start another Python process on the code."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


HOLD = """
import sys, time
from semantic_recall.indexes.chroma import ChromaVectorIndex
index = ChromaVectorIndex.embedded(sys.argv[1])
print("open", flush=True)
time.sleep(60)
"""


class TestOwner:
    def test_two_openers(self, path: Path) -> None:
        """The second process is refused at once, and served when the first is gone."""
        holder = run(HOLD, path)
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            began = time.monotonic()
            with pytest.raises(IndexLockedError, match="another process"):
                ChromaVectorIndex.embedded(path)
            assert time.monotonic() - began < 2
        finally:
            holder.kill()
            holder.communicate()
        ChromaVectorIndex.embedded(path).close()

    def test_two_openers_in_one_process(self, path: Path) -> None:
        first = ChromaVectorIndex.embedded(path)
        with pytest.raises(IndexLockedError):
            ChromaVectorIndex.embedded(path.parent / "x" / ".." / path.name)
        first.close()
        ChromaVectorIndex.embedded(path).close()

    def test_failed_opening_leaves_no_lock(self, path: Path) -> None:
        path.write_text("a file")
        for _ in range(2):
            with pytest.raises(VectorIndexError) as caught:
                ChromaVectorIndex.embedded(path)
            assert not isinstance(caught.value, IndexLockedError)

    def test_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(VectorIndexError, match="cannot be locked"):
            ChromaVectorIndex.embedded(tmp_path / "file" / "chroma")

    def test_forgotten_index_lets_go(self, path: Path) -> None:
        index = ChromaVectorIndex.embedded(path)
        index.upsert(SPACE, records(3))
        del index
        again = ChromaVectorIndex.embedded(path)
        assert len(list(again.ids(SPACE))) == 3
        again.close()


WRITE = """
import sys
import numpy as np
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.types import Scope, VectorRecord, VectorSpace
index = ChromaVectorIndex.embedded(sys.argv[1], shards=1)
space, scope = VectorSpace("model", 4), Scope("anna", "t1")
rows = np.random.default_rng(1).normal(size=(100_000, 4)).astype(np.float32)
for start in range(0, 100_000, 100):
    batch = range(start, start + 100)
    index.upsert(space, [VectorRecord(id=f"{i}.0", scope=scope, vector=rows[i]) for i in batch])
    print(start + 100, flush=True)
"""


class TestCrash:
    @pytest.mark.parametrize("acknowledged", [300, 1500])
    def test_reopen_after_kill(self, path: Path, acknowledged: int) -> None:
        """What was written is there and can be searched; the write in flight may be too."""
        writer = run(WRITE, path)
        assert writer.stdout is not None
        last = 0
        while last < acknowledged:
            last = int(writer.stdout.readline())
        writer.kill()
        rest, _ = writer.communicate()
        last = max([last, *map(int, rest.split())])
        index = ChromaVectorIndex.embedded(path)
        found = set(index.ids(SPACE))
        assert {f"{i}.0" for i in range(last)} <= found
        assert len(found) in (last, last + 100)
        rows = np.random.default_rng(1).normal(size=(100_000, 4)).astype(np.float32)
        (best,) = index.search(SPACE, rows[last - 1], ANNA, top_k=1)
        assert best.score == pytest.approx(1.0, abs=1e-5)
        index.close()

    def test_crash_between_copy_and_rename(self, path: Path) -> None:
        """`scrub` was stopped: the copy counts when the old collection is gone, else the old."""
        index = ChromaVectorIndex.embedded(path, shards=1)
        index.upsert(SPACE, records(5))
        other = VectorSpace("other", 4)
        index.upsert(other, records(7))
        client = index._collections.client
        for collection in client.list_collections():
            if collection.count() == 5:
                collection.modify(name=collection.name + "-copy")
            else:
                client.create_collection(collection.name + "-copy", embedding_function=None)
        index.close()
        again = ChromaVectorIndex.embedded(path)
        assert len(list(again.ids(SPACE))) == 5
        assert len(list(again.ids(other))) == 7
        assert len(again._collections.listed()) == 2
        again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
class TestFork:
    @staticmethod
    def in_child(work: Callable[[], bool]) -> int:
        """Run `work` in a forked child; returns its exit code, -1 when it hung."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if work() else 2
            finally:
                os._exit(code)
        for _ in range(200):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -1

    @pytest.fixture
    def index(self, path: Path) -> Iterator[ChromaVectorIndex]:
        index = ChromaVectorIndex.embedded(path)
        index.upsert(SPACE, records(5))
        yield index
        index.close()

    def test_child_is_refused_at_once(self, index: ChromaVectorIndex) -> None:
        def refuses(call: Callable[[], object]) -> bool:
            try:
                call()
            except VectorIndexError as error:
                return "forked" in str(error)
            return False

        def work() -> bool:
            calls: list[Callable[[], object]] = [
                lambda: index.search(SPACE, QUERY, ANNA, top_k=1),
                lambda: index.upsert(SPACE, records(1)),
                lambda: index.delete(SPACE, {"1.0": ANNA}),
                lambda: list(index.ids(SPACE)),
                lambda: index.drop(SPACE),
                index.scrub,
            ]
            refused = [refuses(call) for call in calls]
            index.close()
            return all(refused)

        assert self.in_child(work) == 0
        assert len(list(index.ids(SPACE))) == 5

    def test_child_leaves_the_lock_to_the_parent(
        self, index: ChromaVectorIndex, path: Path
    ) -> None:
        def work() -> bool:
            index.close()
            try:
                ChromaVectorIndex.embedded(path)
            except IndexLockedError:
                return True
            return False

        assert self.in_child(work) == 0
        with pytest.raises(IndexLockedError):
            ChromaVectorIndex.embedded(path)

    def test_child_is_refused_the_folder_also_when_the_parent_is_done(
        self, index: ChromaVectorIndex, path: Path
    ) -> None:
        """SQLite in the child would wait for locks of the parent that are long gone."""
        go_on, done = os.pipe()

        def work() -> bool:
            os.read(go_on, 1)
            try:
                ChromaVectorIndex.embedded(path)
            except IndexLockedError as error:
                return "forked" in str(error)
            return False

        child = os.fork()
        if child == 0:
            os._exit(0 if work() else 2)
        index.close()
        os.write(done, b"!")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ChromaVectorIndex.embedded(path).close()

    def test_child_is_refused_any_folder(self, index: ChromaVectorIndex, path: Path) -> None:
        """Chroma's threads are not in the child; some calls would work and some would hang."""
        other = path.with_name("other")

        def work() -> bool:
            try:
                ChromaVectorIndex.embedded(other)
            except IndexLockedError:
                return False
            except VectorIndexError as error:
                return "spawn" in str(error)
            return False

        assert self.in_child(work) == 0
        assert not other.exists()

    def test_child_can_end_like_any_process(self, path: Path) -> None:
        """Freeing an inherited client at exit would hang for ever."""
        code = """
import os, sys, time
from semantic_recall.indexes.chroma import ChromaVectorIndex
index = ChromaVectorIndex.embedded(sys.argv[1])
child = os.fork()
if child == 0:
    sys.exit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""
        process = run(code, path)
        try:
            out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert out == "7\n", err


class TestDamage:
    @pytest.fixture
    def segments(self, path: Path) -> list[Path]:
        """Fill one collection so far that its vectors are in files; returns their folders."""
        index = ChromaVectorIndex.embedded(path, shards=1)
        index.upsert(SPACE, records(1500))
        index.upsert(SPACE, records(500, Scope("bert", "t1"), start=1500))
        index.close()
        found = [entry for entry in path.iterdir() if entry.is_dir()]
        assert found
        return found

    def recovers(self, path: Path) -> None:
        """The space can be dropped and written anew."""
        index = ChromaVectorIndex.embedded(path, shards=1)
        index.drop(SPACE)
        index.upsert(SPACE, records(2000))
        assert len(list(index.ids(SPACE))) == 2000
        assert len(index.search(SPACE, QUERY, ANNA, top_k=5)) == 5
        index.close()

    def test_torn_pickle(self, path: Path, segments: list[Path]) -> None:
        for folder in segments:
            file = folder / "index_metadata.pickle"
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        index = ChromaVectorIndex.embedded(path)
        for call in (
            lambda: index.search(SPACE, QUERY, ANNA, top_k=1),
            lambda: index.upsert(SPACE, records(1)),
            lambda: list(index.ids(SPACE)),
        ):
            with pytest.raises(VectorIndexError, match="rebuild") as caught:
                call()
            assert caught.value.__cause__ is not None
        index.close()
        self.recovers(path)

    def test_deleted_segment_folder(self, path: Path, segments: list[Path]) -> None:
        for folder in segments:
            shutil.rmtree(folder)
        index = ChromaVectorIndex.embedded(path)
        with pytest.raises(VectorIndexError):
            index.search(SPACE, QUERY, ANNA, top_k=5)
        index.close()
        self.recovers(path)

    def test_garbage_database(
        self, path: Path, segments: list[Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is emptied: everything in it is in the store too."""
        (path / "chroma.sqlite3").write_bytes(b"not a database " * 1000)
        (path / "notes.txt").write_text("not ours")
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            index = ChromaVectorIndex.embedded(path)
        assert "damaged" in caplog.text
        assert list(index.ids(SPACE)) == []
        index.close()
        assert not any(folder.exists() for folder in segments)
        assert (path / "notes.txt").exists()
        self.recovers(path)

    def test_folder_removed_under_an_open_index(self, path: Path) -> None:
        index = ChromaVectorIndex.embedded(path)
        index.upsert(SPACE, records(5))
        shutil.rmtree(path)
        with pytest.raises(VectorIndexError):
            index.upsert(SPACE, records(5))
        index.close()
        self.recovers(path)


class TestErasure:
    def test_drop_removes_the_files(self, path: Path) -> None:
        """Chroma leaves the vectors of a deleted collection on the disk (#5520)."""
        index = ChromaVectorIndex.embedded(path, shards=2)
        index.upsert(SPACE, records(1500))
        assert any(entry.is_dir() for entry in path.iterdir())
        index.drop(SPACE)
        assert [entry.name for entry in path.iterdir()] == ["chroma.sqlite3"]
        index.close()

    @pytest.mark.parametrize("count", [50, 1500], ids=["in the log", "in files"])
    def test_scrub_leaves_no_byte(self, path: Path, count: int) -> None:
        """Neither vector nor id nor resource of what was deleted or replaced is in any file."""
        index = ChromaVectorIndex.embedded(path, shards=2)
        index.upsert(SPACE, records(count))
        secret = np.array([0.123456, 7.654321, -3.141592, 2.718281], dtype=np.float32)
        older = np.array([9.87654, -1.23456, 5.55555, 4.44444], dtype=np.float32)
        mallory = Scope("mallory-the-resource", "t")
        index.upsert(SPACE, [VectorRecord(id="secret-id.0", scope=mallory, vector=secret)])
        index.upsert(SPACE, [VectorRecord(id="0.0", scope=ANNA, vector=older)])
        index.upsert(SPACE, records(1))
        index.delete(SPACE, {"secret-id.0": mallory})
        traces = [secret.tobytes(), older.tobytes(), b"secret-id", b"mallory-the-resource"]
        index.scrub()
        assert sorted(index.ids(SPACE)) == sorted(f"{i}.0" for i in range(count))
        assert len(index.search(SPACE, QUERY, ANNA, top_k=7)) == 7
        index.close()
        files = [file for file in path.rglob("*") if file.is_file()]
        left = {
            (file.name, trace) for file in files for trace in traces if trace in file.read_bytes()
        }
        assert left == set()
        with sqlite3.connect(path / "chroma.sqlite3") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
