"""A real import that is killed goes on where it was, with a progress bar on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from semantic_recall import SemanticRecall
from tests.core.cli_support import said, start, write_lines

COUNT = 20_000


def stored(path: Path) -> list[str]:
    with SemanticRecall.open(path, embedder=None) as memory:
        return [one.text for one in memory.messages()]


def test_a_killed_import_goes_on(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "chat.jsonl", *(said(f"message {i}") for i in range(COUNT)))
    path = tmp_path / "memory"
    arguments = ("import", file, "--path", path, "--embedder", "none")
    with start(*arguments) as process, SemanticRecall.open(path, embedder=None) as memory:
        while memory.stats().messages < 1_000:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.kill()
    before = stored(path)
    # Whole batches, in order.
    assert before == [f"message {i}" for i in range(len(before))]
    assert 1_000 <= len(before) < COUNT
    assert len(before) % 1_000 == 0

    terminal, end = os.openpty()
    command = [sys.executable, "-m", "semantic_recall.cli", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, env=environment) as process:
        os.close(end)
        shown = b""
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:  # how a terminal tells that the other end is closed
            pass
        assert process.stdout is not None
        out = process.stdout.read().decode()
    os.close(terminal)
    assert process.returncode == 0
    assert f"{COUNT:,} messages stored in" in out
    assert f"({COUNT - len(before):,} new)" in out
    assert b"storing" in shown
    assert b"%" in shown
    assert stored(path) == [f"message {i}" for i in range(COUNT)]
