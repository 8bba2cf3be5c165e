"""A whole memory with `Settings(index_process=True)`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.indexes.process import ProcessVectorIndex
from tests.core.erasing import OWNER, SECRET, fill, left, secret_message, traces
from tests.core.indexing import until

ASKED = Settings(index_process=True, exact_limit=0)


def process_index(memory: SemanticRecall) -> ProcessVectorIndex:
    index = memory._indexer.index()
    assert isinstance(index, ProcessVectorIndex)
    return index


def say(memory: SemanticRecall, *texts: str) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    memory.remember(messages, thread_id="t", resource_id="r")


def found(memory: SemanticRecall, text: str) -> bool:
    recalled = memory.recall(text, resource_id="r", ranking="dense", top_k=1, message_range=0)
    return [item.message.text for item in recalled] == [text]


def test_the_default_is_this_process(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        say(memory, "apple")
        assert memory.flush()
        assert isinstance(memory._indexer.index(), ChromaVectorIndex)


def test_no_chroma_here(tmp_path: Path) -> None:
    """And nothing is left over when Python ends without close(): no process, no warning."""
    code = """
        import sys
        from semantic_recall import SemanticRecall, Settings
        from semantic_recall.embedders.hash import HashEmbedder
        settings = Settings(index_process=True, exact_limit=0)
        memory = SemanticRecall.open(sys.argv[1], embedder=HashEmbedder(32), settings=settings)
        memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
        assert memory.flush() and memory.stats().owns_index
        assert memory.recall("apple", resource_id="r").hits
        assert memory.verify().indexed == 1
        assert "chromadb" not in sys.modules
    """
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert not (tmp_path / "chroma" / "in-use").exists(), "it was closed"
    ChromaVectorIndex.embedded(tmp_path / "chroma").close()


def test_where_there_is_no_python_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/assistant/assistant")
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32), settings=ASKED) as memory:
        say(memory, "apple")
        assert memory.flush()
        assert isinstance(memory._indexer.index(), ChromaVectorIndex)
        assert found(memory, "apple")


@pytest.mark.parametrize("write", [True, False], ids=["writing", "only reading"])
def test_its_process_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, write: bool
) -> None:
    """Recall goes on, a new process is started, and what was missed is written."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32), settings=ASKED) as memory:
        say(memory, *(f"apple {n}" for n in range(20)))
        assert memory.flush()
        first = process_index(memory)
        for _ in range(2):
            os.kill(process_index(memory)._child._process.pid, signal.SIGKILL)
            assert found(memory, "apple 7")
            if write:
                say(memory, "pear")
                assert found(memory, "pear")
            until(lambda: memory._indexer.index() is not None)
            until(lambda: not memory.stats().index_lag)
            assert process_index(memory) is not first
            assert found(memory, "apple 8")
        report = memory.verify()
        assert (report.ok, report.indexed) == (True, 22 if write else 20)
        assert first.lost


def test_its_folder_is_gone_when_it_starts_again(tmp_path: Path) -> None:
    """The index is filled from the store, as when a memory is opened."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32), settings=ASKED) as memory:
        say(memory, "apple", "pear")
        assert memory.flush()
        os.kill(process_index(memory)._child._process.pid, signal.SIGKILL)
        until(lambda: not memory.stats().owns_index)
        (tmp_path / "chroma" / "chroma.sqlite3").unlink()
        assert found(memory, "apple")
        assert memory.verify().indexed == 2


def test_no_byte_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    with SemanticRecall.open(folder, embedder=HashEmbedder(64), settings=ASKED) as memory:
        fill(memory, 60)
        memory.remember(secret_message())
        assert memory.flush()
        assert len(left(folder, traces(SECRET))) > 10
        receipt = memory.forget(secure=True, resource_id=OWNER)
        assert (receipt.complete, receipt.secure) == (True, True)
        assert left(folder, traces(SECRET)) == set()
        assert memory.verify().ok
    assert left(folder, traces(SECRET)) == set()


WRITER = """
    import sys
    from semantic_recall import SemanticRecall, Settings
    from semantic_recall.embedders.hash import HashEmbedder
    path, name = sys.argv[1:]
    settings = Settings(index_process=True)
    with SemanticRecall.open(path, embedder=HashEmbedder(32), settings=settings) as memory:
        for n in range(60):
            memory.remember(
                {"role": "user", "content": f"apple {name} {n}"}, thread_id=name, resource_id="r"
            )
"""


def test_four_writers(tmp_path: Path) -> None:
    """As `uvicorn --workers 4`: one of them, whichever, indexes for all; one is killed."""
    code = textwrap.dedent(WRITER)
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, tmp_path, name],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("ana", "ben", "eve", "mia")
    ]
    doomed = subprocess.Popen([sys.executable, "-c", code, tmp_path, "doomed"])
    try:
        doomed.wait(2)
    except subprocess.TimeoutExpired:
        doomed.kill()
        doomed.wait()
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32), settings=ASKED) as memory:
        assert memory.flush()
        report = memory.verify()
        assert report.ok
        assert report.indexed == memory.stats().messages >= 240
        for name in ("ana", "ben", "eve", "mia"):
            assert found(memory, f"apple {name} 59")
