"""The common embedder as LangChain `Embeddings`, for the peers that take those."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from benchmarks._vectors import MemoEmbedder


class MemoEmbeddings(Embeddings):
    """Hands out the common vectors."""

    def __init__(self, memo: MemoEmbedder) -> None:
        self._memo = memo

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text, in order."""
        return [vector.tolist() for vector in self._memo.embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        vector: list[float] = self._memo.embed_query(text).tolist()
        return vector
