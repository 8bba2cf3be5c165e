"""Processes, crashes and forks around an embedded Chroma index."""

import os
import signal
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

    def test_the_lock_file_is_deleted_under_the_owner(self, path: Path) -> None:
        """There is still one owner; the next is let in when it is gone."""
        holder = run(HOLD, path)
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            for _ in range(2):
                path.with_name("chroma.lock").unlink()
                with pytest.raises(IndexLockedError, match="another process"):
                    ChromaVectorIndex.embedded(path)
        finally:
            holder.kill()
            holder.communicate()
        index = ChromaVectorIndex.embedded(path)
        index.upsert(SPACE, records(3))
        path.with_name("chroma.lock").unlink()
        other = run(HOLD, path)
        assert "IndexLockedError" in other.communicate()[1]
        assert len(index.search(SPACE, QUERY, ANNA, top_k=5)) == 3
        index.close()

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
