"""`forget(secure=True)` beside other processes, readers and writes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from semantic_recall import SemanticRecall, StoreError
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Vector
from tests.core.erasing import (
    OWNER,
    SECRET,
    left,
    opened,
    secret_message,
    traces,
)

SECOND = """
import sys
from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
memory = SemanticRecall.open(sys.argv[1], embedder=HashEmbedder(64))
for line in sys.stdin:
    print(len(memory.recall("xylophonist", resource_id=sys.argv[2])), flush=True)
memory.close()
"""


def test_beside_a_second_process(memory: SemanticRecall, folder: Path) -> None:
    """It had the text in memory and its connection open; it sees nothing and keeps no file."""
    memory.remember(secret_message())
    assert memory.flush()
    second = subprocess.Popen(
        [sys.executable, "-c", SECOND, str(folder), OWNER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert second.stdin is not None
    assert second.stdout is not None
    try:
        for expected in (1, 0):
            second.stdin.write("recall\n")
            second.stdin.flush()
            assert second.stdout.readline() == f"{expected}\n"
            if expected:
                assert memory.forget(secure=True, resource_id=OWNER).secure
                assert left(folder, traces(SECRET)) == set()
        assert left(folder, traces(SECRET)) == set()
    finally:
        second.communicate()
    assert left(folder, traces(SECRET)) == set()


def test_a_guest_says_that_the_owner_has_to_scrub(memory: SemanticRecall, folder: Path) -> None:
    """The receipt is honest where another memory owns the index; the owner then finishes."""
    memory.remember(secret_message())
    assert memory.flush()
    assert memory.stats().owns_index
    with opened(folder) as guest:
        receipt = guest.forget(secure=True, resource_id=OWNER)
        assert (receipt.messages, receipt.secure) == (1, False)
    assert memory.flush()
    assert memory.forget(secure=True, resource_id=OWNER).secure
    assert left(folder, traces(SECRET)) == set()


def test_a_reader_in_the_way_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot keeps the write-ahead log: said aloud, and done when it is asked for again."""
    monkeypatch.setattr("semantic_recall.stores._sqlite.BUSY_SECONDS", 1)
    with opened(folder) as memory:
        beside_a_reader(memory, folder)


def beside_a_reader(memory: SemanticRecall, folder: Path) -> None:
    memory.remember(secret_message())
    assert memory.flush()
    with SQLMessageStore.open(folder / "recall.sqlite3") as other, other._db.read() as tx:
        tx.sql("SELECT count(*) FROM messages")
        with pytest.raises(StoreError, match="scrub again later"):
            memory.forget(secure=True, resource_id=OWNER)
        assert not memory.recall("xylophonist", resource_id=OWNER)
    assert memory.forget(secure=True, resource_id=OWNER).secure
    assert left(folder, traces(SECRET)) == set()


class Gated(HashEmbedder):
    """Embeds when it is let."""

    def __init__(self) -> None:
        super().__init__(64)
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.asked.set()
        assert self.go_on.wait(20)
        return list(super().embed_documents(texts))


@pytest.mark.parametrize("background", [False, True], ids=["remember", "background"])
def test_an_embedding_in_flight_brings_nothing_back(tmp_path: Path, background: bool) -> None:
    """mastra#23177: the vector arrives after its message was forgotten."""
    embedder = Gated()
    with SemanticRecall.open(tmp_path, embedder=embedder) as memory:
        writer = threading.Thread(
            target=memory.remember, args=[secret_message()], kwargs={"background": background}
        )
        writer.start()
        assert embedder.asked.wait(20)
        forgotten: list[bool] = []

        def forget() -> None:
            forgotten.append(memory.forget(resource_id=OWNER).messages == 1)

        eraser = threading.Thread(target=forget)
        eraser.start()
        until_gone = time.monotonic() + 20
        while list(memory.messages()) and time.monotonic() < until_gone:
            time.sleep(0.01)
        assert not memory.recall(
            "xylophonist", resource_id=OWNER, query_vector=np.ones(64, np.float32)
        )
        embedder.go_on.set()
        writer.join(20)
        eraser.join(20)
        assert forgotten == [True]
        assert memory.flush()
        assert list(memory.messages()) == []
        assert (memory.stats().vectors, memory.stats().pending) == (0, 0)
        assert memory.verify().ok
        assert memory.forget(secure=True, resource_id=OWNER).secure
        assert left(tmp_path, traces(SECRET)) == set()


def test_writes_and_erasure_at_once(folder: Path) -> None:
    """Four threads write and forget their own; what was forgotten last stays forgotten."""
    with opened(folder) as memory:

        def churn(number: int) -> None:
            owner = f"churn-owner-{number}"
            for turn in range(12):
                texts = [f"churned-text-{number}-{turn}-{n}" for n in range(3)]
                memory.remember(
                    [{"role": "user", "content": text} for text in texts],
                    thread_id="t",
                    resource_id=owner,
                    background=turn % 2 == 0,
                )
                memory.forget(resource_id=owner)

        threads = [threading.Thread(target=churn, args=[n]) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert memory.flush()
        assert memory.stats().messages == memory.stats().vectors == 60
        assert memory.verify().ok
        assert memory.forget(secure=True, resource_id="churn-owner-0").secure
    assert left(folder, {"text": b"churned-text-", "owner": b"churn-owner-"}) == set()
