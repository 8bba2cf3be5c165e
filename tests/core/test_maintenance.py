"""Reindex, verify and repair on real stores and indexes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from semantic_recall import EmbedderError, SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector
from tests.core.embedders import BrokenEmbedder, CountingEmbedder


def fill(path: Path, count: int = 30) -> None:
    with SemanticRecall.open(path, embedder=HashEmbedder(32)) as memory:
        memory.remember(
            [{"role": "user", "content": f"message {n}"} for n in range(count)],
            thread_id="t",
            resource_id="r",
        )
        assert memory.flush()


def test_a_sound_memory_verifies(tmp_path: Path) -> None:
    fill(tmp_path)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        report = memory.verify()
        assert report.ok
        assert (report.vectors, report.indexed, report.missing, report.orphans) == (30, 30, 0, 0)


def test_a_deleted_index_is_noticed_and_rebuilt_from_the_store(tmp_path: Path) -> None:
    fill(tmp_path)
    shutil.rmtree(tmp_path / "chroma")
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        assert memory.recall("message 7", resource_id="r", top_k=1)
        memory.verify(repair=True)  # finds 30 missing, unless the owner has noticed before
        report = memory.verify()
        assert (report.ok, report.indexed) == (True, 30)


def test_orphans_in_the_index_are_noticed_and_removed(tmp_path: Path) -> None:
    fill(tmp_path)
    with sqlite3.connect(tmp_path / "recall.sqlite3") as database:
        database.execute("DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM vectors LIMIT 3)")
    database.close()
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        assert memory.verify().orphans == 3
        memory.verify(repair=True)
        assert memory.verify().orphans == 0


class StoppingEmbedder(HashEmbedder):
    """Works for `left` texts and is then stopped, as by Ctrl-C."""

    def __init__(self, left: int) -> None:
        super().__init__(64)
        self.left = left

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        if self.left < len(texts):
            raise KeyboardInterrupt
        self.left -= len(texts)
        return list(super().embed_documents(texts))


def test_a_stopped_reindex_goes_on_where_it_was(tmp_path: Path) -> None:
    fill(tmp_path, count=1200)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.reindex(StoppingEmbedder(left=1100))
        assert memory.recall("message 7", resource_id="r", ranking="dense").hits
    embedder = CountingEmbedder(64)
    seen: list[tuple[int, int]] = []
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        report = memory.reindex(embedder, progress=lambda done, total: seen.append((done, total)))
        assert 0 < report.embedded < 1200
        assert len(embedder.documents) == report.embedded
        assert seen[0][0] == 0
        assert seen[-1] == (report.embedded, report.embedded)
        assert memory.stats().vectors == 1200
        assert memory.verify().ok
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64)) as memory:
        assert memory.recall("message 7", resource_id="r", ranking="dense", top_k=1).hits


def test_a_reindex_with_an_embedder_that_is_down_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        with pytest.raises(EmbedderError, match="none of 30"):
            memory.reindex(BrokenEmbedder(64))
        assert memory.recall("message 7", resource_id="r", ranking="dense").hits
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        assert memory.verify().ok


def test_messages_stored_during_a_reindex_get_both_vectors(tmp_path: Path) -> None:
    fill(tmp_path)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        late = {"role": "user", "content": "a late quokka"}

        def progress(done: int, total: int) -> None:
            if not done:
                memory.remember(late, thread_id="t", resource_id="r")

        memory.reindex(HashEmbedder(64), progress=progress)
        found = memory.recall("late quokka", resource_id="r", ranking="dense", top_k=1)
        assert found.hits[0].message.text == "a late quokka"
        assert memory.stats().pending == 0


def test_a_memory_made_without_an_embedder_can_get_one(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=None) as memory:
        memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        assert memory.flush()
        assert memory.recall("apple", resource_id="r", ranking="dense").hits
