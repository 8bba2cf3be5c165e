"""Messages that are under way when a memory is closed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall, StoreClosedError
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector


class Slow(HashEmbedder):
    """Takes its time for each batch, and says when it began."""

    def __init__(self, seconds: float) -> None:
        super().__init__(32)
        self.seconds = seconds
        self.began = threading.Event()

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.began.set()
        time.sleep(self.seconds)
        return super().embed_documents(texts)


def comes_true(folder: Path, messages: int) -> None:
    """Opened again, the memory embeds and indexes what was left, though nobody asks it to."""
    with SemanticRecall.open(folder, embedder=HashEmbedder(32)) as memory:
        assert memory.stats().messages == messages
        deadline = time.monotonic() + 60
        while memory.stats().pending or memory.stats().index_lag:
            assert time.monotonic() < deadline, memory.stats()
            time.sleep(0.02)
        for n in range(messages):
            (hit,) = memory.recall(f"apple n{n}", resource_id="r", top_k=1, ranking="dense").hits
            assert hit.message.text == f"apple n{n}"
        report = memory.verify()
        assert (report.ok, report.indexed, report.pending) == (True, messages, 0)


def messages(count: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"apple n{n}"} for n in range(count)]


def test_what_waits_for_its_vectors_is_embedded_by_the_next(tmp_path: Path) -> None:
    memory = SemanticRecall.open(tmp_path, embedder=Slow(1.0))
    memory.remember(messages(5), thread_id="t", resource_id="r", background=True)
    memory.close()
    comes_true(tmp_path, 5)


def test_closing_beside_an_embedding(tmp_path: Path) -> None:
    """It is not waited for, and its vectors find the store closed: the messages are not lost."""
    embedder = Slow(0.5)
    memory = SemanticRecall.open(tmp_path, embedder=embedder)
    errors: list[BaseException] = []

    def remember() -> None:
        try:
            memory.remember(messages(5), thread_id="t", resource_id="r")
        except StoreClosedError as error:
            errors.append(error)

    writer = threading.Thread(target=remember)
    writer.start()
    assert embedder.began.wait(30)
    memory.close()
    writer.join()
    assert len(errors) <= 1  # or it was done before the store closed
    comes_true(tmp_path, 5)


def test_what_comes_after_is_refused(tmp_path: Path) -> None:
    memory = SemanticRecall.open(tmp_path, embedder=HashEmbedder(32))
    memory.close()
    with pytest.raises(StoreClosedError):
        memory.remember(messages(1), thread_id="t", resource_id="r")
