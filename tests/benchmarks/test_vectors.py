from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._vectors import MemoEmbedder
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector


class CountingEmbedder(HashEmbedder):
    """Counts the texts that it embeds; while it does, it may be interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.memo: MemoEmbedder | None = None

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.texts += texts
        if self.memo is not None:
            self.memo.give([], [])
        return list(super().embed_documents(texts))

    def embed_query(self, text: str, /) -> Vector:
        self.texts.append(text)
        return super().embed_query(text)

    def coverage(self, text: str, /) -> float:
        return 0.25


def test_nothing_is_embedded_twice() -> None:
    inner = CountingEmbedder()
    memo = MemoEmbedder(inner)
    first = memo.embed_documents(["a", "b", "a"])
    again = memo.embed_documents(["b"])
    memo.embed_query("q")
    memo.embed_query("q")
    assert inner.texts == ["a", "b", "q"]
    np.testing.assert_array_equal(first[1], again[0])
    np.testing.assert_array_equal(first[0], first[2])


def test_given_vectors_serve_as_both_kinds_and_replace_the_old() -> None:
    inner = CountingEmbedder()
    memo = MemoEmbedder(inner)
    memo.embed_documents(["old"])
    vector = np.ones(256, dtype=np.float32)
    memo.give(["new"], [vector])
    np.testing.assert_array_equal(memo.embed_documents(["new"])[0], vector)
    np.testing.assert_array_equal(memo.embed_query("new"), vector)
    memo.embed_documents(["old"])
    assert inner.texts == ["old", "old"]


def test_vectors_given_while_others_are_made_do_no_harm() -> None:
    inner = CountingEmbedder()
    inner.memo = memo = MemoEmbedder(inner)
    assert len(memo.embed_documents(["a", "b"])) == 2


def test_vectors_are_kept_between_runs(tmp_path: Path) -> None:
    first, second = CountingEmbedder(), CountingEmbedder()
    made = MemoEmbedder(first, tmp_path / "vectors").embed_documents(["a", "b"])
    found = MemoEmbedder(second, tmp_path / "vectors").embed_documents(["a", "b"])
    assert (first.texts, second.texts) == (["a", "b"], [])
    np.testing.assert_array_equal(np.stack(made), np.stack(found))


def test_it_reads_as_much_as_the_embedder_inside() -> None:
    assert MemoEmbedder(CountingEmbedder()).coverage("text") == 0.25
    assert MemoEmbedder(HashEmbedder()).coverage("text") == 1.0
