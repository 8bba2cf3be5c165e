"""Several processes on one folder: all write and recall, one owns the vector index."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder

WRITER = """
    import sys
    from semantic_recall import SemanticRecall
    from semantic_recall.embedders.hash import HashEmbedder
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with SemanticRecall.open(path, embedder=HashEmbedder(32)) as memory:
        for n in range(count):
            memory.remember(
                {"role": "user", "content": f"apple {name} {n}"},
                thread_id=name, resource_id="r",
            )
            print(n, flush=True)
        print("own" if memory.stats().owns_index else "guest", flush=True)
"""


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(WRITER), str(path), name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_write_and_each_sees_what_the_other_committed(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        memory.remember({"role": "user", "content": "first"}, thread_id="t", resource_id="r")
        memory.flush()
        writers = [start(tmp_path, name, 40) for name in ("ana", "ben")]
        for writer in writers:
            out, err = writer.communicate(timeout=120)
            assert writer.returncode == 0, err
            assert out.split()[-1] == "guest"
        recalled = memory.recall("apple ben 39", resource_id="r", top_k=1, message_range=0)
        assert [m.message.text for m in recalled] == ["apple ben 39"]
        assert memory.stats().messages == 81
        deadline = time.monotonic() + 30
        while memory.stats().index_lag and time.monotonic() < deadline:
            time.sleep(0.1)  # the owner takes over what the guests left, unasked
        assert memory.verify().ok
        assert memory.verify().indexed == 81


@pytest.mark.parametrize("after", [0, 7, 23])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, after: int) -> None:
    writer = start(tmp_path, "ana", 10_000)
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= after:
            break
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        for n in range(after + 1):
            recalled = memory.recall(f"apple ana {n}", resource_id="r", top_k=1, message_range=0)
            assert [m.message.text for m in recalled] == [f"apple ana {n}"]
        assert memory.flush()
        assert memory.verify().ok


def test_a_forked_child_works_on_its_own(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        memory.remember({"role": "user", "content": "parent"}, thread_id="t", resource_id="r")
        memory.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(20)
                memory.remember(
                    {"role": "user", "content": "child"}, thread_id="t", resource_id="r"
                )
                code = 0 if len(memory.recall("child parent", resource_id="r")) == 2 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(memory.recall("child parent", resource_id="r")) == 2
        assert memory.flush()
        assert memory.verify().ok
