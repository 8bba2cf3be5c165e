"""Every embedder of the library against the suite that is shipped."""

from __future__ import annotations

import numpy as np
from chromadb.api.types import Documents, EmbeddingFunction, Embeddings

from semantic_recall.embedders.chroma import ChromaEmbedder
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.embedders.multilingual import MultilingualEmbedder
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
from semantic_recall.protocols import Embedder
from semantic_recall.testing.embedder import EmbedderSuite


class ByteHistogram(EmbeddingFunction[Documents]):
    """A small, real embedding function: how often each byte comes, and a constant."""

    def __init__(self) -> None:
        self.weight = 1.0

    def __call__(self, input: Documents) -> Embeddings:
        counts = [np.bincount(list(text.encode()), minlength=257) for text in input]
        return [row.astype(np.float32) + np.float32(0.01) for row in counts]

    @staticmethod
    def name() -> str:
        return "byte-histogram"

    def get_config(self) -> dict[str, float]:
        return {"weight": self.weight}

    @staticmethod
    def build_from_config(config: dict[str, float]) -> EmbeddingFunction[Documents]:
        return ByteHistogram()


class TestHash(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return HashEmbedder()


class TestWordLlama(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return WordLlamaEmbedder()


class TestWordLlama64(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return WordLlamaEmbedder(64)


class TestChroma(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return ChromaEmbedder(ByteHistogram())


class TestMultilingual(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return MultilingualEmbedder()
