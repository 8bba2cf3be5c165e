"""One embedder for everybody: what is measured is never the time of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from semantic_recall.protocols import Embedder
from semantic_recall.types import Vector, VectorSpace
from semantic_recall.vectorizer import coverage


@runtime_checkable
class _WithCoverage(Protocol):
    def coverage(self, text: str, /) -> float: ...


class MemoEmbedder:
    """An embedder that embeds nothing twice, so that all get equal vectors for the price of one.

    Args:
        inner: What makes the vectors.
        folder: Vectors of documents are kept there between runs; None keeps none.
    """

    def __init__(self, inner: Embedder, folder: Path | None = None) -> None:
        self._inner = inner
        self._tells_coverage = isinstance(inner, _WithCoverage)  # slow: not at each query
        self._folder = folder
        self._documents: dict[str, Vector] = {}
        self._queries: dict[str, Vector] = {}

    @property
    def space(self) -> VectorSpace:
        """The fingerprint and dimensions."""
        return self._inner.space

    @property
    def max_characters(self) -> int | None:
        """The longest text it reads whole."""
        return self._inner.max_characters

    @property
    def immediate(self) -> bool:
        """It is a dictionary, or is as good as one for what is measured."""
        return True

    def coverage(self, text: str, /) -> float:
        """Return which share of a text it can read, 0 to 1."""
        return coverage(self._inner, text) if self._tells_coverage else 1.0

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one vector per text to be found, in order."""
        known = self._documents  # another thread may be given others meanwhile
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        if missing:
            known.update(zip(missing, self._made(missing), strict=True))
        return [known[text] for text in texts]

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with."""
        known = self._queries
        if text not in known:
            known[text] = self._inner.embed_query(text)
        return known[text]

    def give(self, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Take known vectors, as documents and as queries, in place of those held so far.

        Some libraries embed what they store as a query: they find a vector there too.
        """
        self._documents = dict(zip(texts, vectors, strict=True))
        self._queries = dict(self._documents)

    def _made(self, texts: list[str]) -> list[Vector]:
        if self._folder is None:
            return list(self._inner.embed_documents(texts))
        digest = hashlib.sha256("\0".join([self.space.name, *texts]).encode()).hexdigest()
        path = self._folder / f"vectors-{digest[:16]}.npy"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            np.save(path, np.stack(self._inner.embed_documents(texts)))
        return list(np.load(path))
