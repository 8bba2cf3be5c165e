"""An index in a process of its own: either process may be killed, stopped or forked."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from semantic_recall.errors import IndexLockedError, VectorIndexError
from semantic_recall.indexes._index_child import RemoteTraceback
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.indexes.process import ProcessVectorIndex
from semantic_recall.types import Scope, VectorRecord, VectorSpace
from tests.core.indexing import until

SPACE = VectorSpace("model", 4)
ANNA = Scope("anna", "t1")
QUERY = np.array([1, 0, 0, 0], dtype=np.float32)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills and forks as POSIX does")


def records(count: int, dimensions: int = 4) -> list[VectorRecord]:
    rows = np.random.default_rng(0).normal(size=(count, dimensions)).astype(np.float32)
    return [VectorRecord(id=f"{i}.0", scope=ANNA, vector=row) for i, row in enumerate(rows)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


@pytest.fixture
def index(path: Path) -> Iterator[ProcessVectorIndex]:
    index = ProcessVectorIndex(path)
    index.upsert(SPACE, records(5))
    yield index
    index.close()


def child_of(index: ProcessVectorIndex) -> int:
    return index._child._process.pid


def is_running(pid: int) -> bool:
    """Tell whether a process is there and not only waits to be collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


class TestTheChildEnds:
    def test_killed(self, index: ProcessVectorIndex, path: Path) -> None:
        """Calls fail with the reason, and the folder is free for the next one."""
        assert not index.lost
        os.kill(child_of(index), signal.SIGKILL)
        with pytest.raises(VectorIndexError, match="ended \\(SIGKILL\\)"):
            index.search(SPACE, QUERY, ANNA, top_k=1)
        assert index.lost
        with pytest.raises(VectorIndexError, match="ended \\(SIGKILL\\)"):
            list(index.ids(SPACE))
        again = ProcessVectorIndex(path)
        assert len(list(again.ids(SPACE))) == 5
        again.close()

    def test_killed_in_the_middle_of_a_call(self, index: ProcessVectorIndex) -> None:
        """The caller does not wait for ever, however much it was about to send."""
        os.kill(child_of(index), signal.SIGSTOP)
        killing = subprocess.Popen(["sh", "-c", f"sleep 1; kill -9 {child_of(index)}"])
        with pytest.raises(VectorIndexError, match="SIGKILL"):
            index.upsert(VectorSpace("wide", 1024), records(2_000, 1024))
        killing.wait()

    def test_hangs(self, path: Path) -> None:
        """It is killed after the timeout, as it would never let go of the folder."""
        index = ProcessVectorIndex(path, timeout=1.0)
        os.kill(child_of(index), signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(VectorIndexError, match="did not answer 'search' within 1 s"):
            index.search(SPACE, QUERY, ANNA, top_k=1)
        assert time.monotonic() - began < 10
        until(lambda: index.lost)
        index.close()
        ChromaVectorIndex.embedded(path).close()

    def test_hangs_while_it_is_closed(self, path: Path) -> None:
        """An application that ends does not wait for it."""
        index = ProcessVectorIndex(path, timeout=1.0)
        os.kill(child_of(index), signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(VectorIndexError, match="did not answer 'close' within 1 s"):
            index.close()
        assert time.monotonic() - began < 10
        ChromaVectorIndex.embedded(path).close()

    @needs_proc
    def test_ends_with_the_index(self, path: Path) -> None:
        index = ProcessVectorIndex(path)
        child = child_of(index)
        assert is_running(child)
        index.close()
        assert not is_running(child)
        with pytest.raises(VectorIndexError, match="is closed"):
            index.search(SPACE, QUERY, ANNA, top_k=1)
        forgotten = ProcessVectorIndex(path)
        child = child_of(forgotten)
        del forgotten
        assert not is_running(child)
        ChromaVectorIndex.embedded(path).close()

    @pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
    def test_leaves_the_signals_of_a_group_to_the_parent(
        self, index: ProcessVectorIndex, name: str
    ) -> None:
        """What ends the application lets it close its memory first."""
        assert os.getpgid(child_of(index)) != os.getpgid(0)
        os.kill(child_of(index), signal.Signals[name])
        time.sleep(0.2)
        assert len(index.search(SPACE, QUERY, ANNA, top_k=9)) == 5


OPEN = """
import os, sys, time
from semantic_recall.indexes.process import ProcessVectorIndex
index = ProcessVectorIndex(sys.argv[1])
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(15)
    os._exit(0)
print(index._child._process.pid, flush=True)
time.sleep(60)
"""


@needs_proc
class TestTheParentEnds:
    @pytest.mark.parametrize("fork", ["", "fork"])
    def test_killed(self, path: Path, fork: str) -> None:
        """The child goes too and the folder is free, even if forked processes live on."""
        parent = subprocess.Popen(
            [sys.executable, "-c", OPEN, path, fork], stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        with pytest.raises(IndexLockedError):
            ProcessVectorIndex(path)
        parent.kill()
        parent.wait()
        parent.stdout.close()
        until(lambda: not is_running(child), 5)
        ProcessVectorIndex(path).close()

    def test_killed_while_the_child_writes(self, path: Path) -> None:
        code = OPEN.replace(
            "time.sleep(60)",
            "import tests.core.test_index_process as t\n"
            "while True: index.upsert(t.VectorSpace('wide', 512), t.records(2000, 512))",
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(2)
        parent.kill()
        parent.wait()
        parent.stdout.close()
        until(lambda: not is_running(child), 10)
        again = ProcessVectorIndex(path)
        again.upsert(SPACE, records(3))
        assert len(list(again.ids(SPACE))) == 3
        again.close()


def test_one_owner(index: ProcessVectorIndex, path: Path) -> None:
    """Also beside an index in this process; who is refused starts no process for it."""
    for opened in (ProcessVectorIndex, ChromaVectorIndex.embedded):
        began = time.monotonic()
        with pytest.raises(IndexLockedError, match="another process"):
            opened(path)
        assert time.monotonic() - began < 0.5


def test_an_error_tells_where_it_was_raised(index: ProcessVectorIndex) -> None:
    with pytest.raises(VectorIndexError, match="the query vector has only zeros") as caught:
        index.search(SPACE, np.zeros(4, np.float32), ANNA, top_k=1)
    assert isinstance(caught.value.__cause__, RemoteTraceback)
    assert "chroma.py" in str(caught.value.__cause__)
    with pytest.raises(VectorIndexError, match="cannot be locked"):
        ProcessVectorIndex(Path(os.devnull) / "chroma")


def test_what_is_logged_there_is_logged_here(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.mkdir()
    (path / "chroma.sqlite3").write_bytes(b"no database " * 1000)
    with caplog.at_level(logging.WARNING, "semantic_recall"):
        ProcessVectorIndex(path).close()
    (record,) = caplog.records
    assert record.name == "semantic_recall"
    assert "was damaged" in record.getMessage()


def test_a_forked_child_is_refused_and_may_have_an_index_of_its_own(
    index: ProcessVectorIndex, path: Path
) -> None:
    """No thread of Chroma's is in the parent, so the child can do what it likes elsewhere."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(30)
            try:
                index.search(SPACE, QUERY, ANNA, top_k=1)
            except VectorIndexError as error:
                code = 0 if "forked" in str(error) else 2
            index.close()
            try:
                ProcessVectorIndex(path)
            except IndexLockedError:
                own = ProcessVectorIndex(path.with_name("own"))
                own.upsert(SPACE, records(3))
                code += len(list(own.ids(SPACE))) - 3
                own.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(index.search(SPACE, QUERY, ANNA, top_k=9)) == 5
