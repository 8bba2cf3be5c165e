"""Embedders for tests: real ones, small, that count, look up or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector, VectorSpace


class TableEmbedder:
    """Looks vectors up by indexed text ("role: text"); unknown texts get a vector of their own."""

    def __init__(self, table: Mapping[str, Sequence[float]], dimensions: int) -> None:
        self._table = {text: np.asarray(vector, np.float32) for text, vector in table.items()}
        self.space = VectorSpace("table", dimensions)
        self.max_characters = None

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str, /) -> Vector:
        found = self._table.get(text)
        return np.ones(self.space.dimensions, np.float32) if found is None else found


class CountingEmbedder(HashEmbedder):
    """The hash embedder, writing down what it was asked."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.documents.extend(texts)
        return list(super().embed_documents(texts))

    def embed_query(self, text: str, /) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


class BrokenEmbedder(HashEmbedder):
    """The hash embedder, out of order while `broken` is set."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.broken = True

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        if self.broken:
            raise ConnectionError("the embedding service is down")
        return list(super().embed_documents(texts))

    def embed_query(self, text: str, /) -> Vector:
        if self.broken:
            raise ConnectionError("the embedding service is down")
        return super().embed_query(text)
