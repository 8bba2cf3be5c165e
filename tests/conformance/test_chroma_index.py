"""The Chroma index keeps the contract: embedded, and with a client of the caller."""

from collections.abc import Callable, Iterator
from pathlib import Path

import chromadb
import pytest
from chromadb.api.client import Client
from chromadb.config import Settings

from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.testing.vector_index import DurableVectorIndexSuite, VectorIndexSuite


class TestChromaEmbedded(DurableVectorIndexSuite):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[ChromaVectorIndex]:
        index = ChromaVectorIndex.embedded(tmp_path / "chroma")
        yield index
        index.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[], ChromaVectorIndex]]:
        opened: list[ChromaVectorIndex] = []

        def again() -> ChromaVectorIndex:
            opened.append(ChromaVectorIndex.embedded(tmp_path / "chroma"))
            return opened[-1]

        yield again
        for index in opened:
            index.close()


class TestChromaOneShard(VectorIndexSuite):
    """All users in one collection: nothing but the filter keeps them apart."""

    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[ChromaVectorIndex]:
        index = ChromaVectorIndex.embedded(tmp_path / "chroma", shards=1)
        yield index
        index.close()


class TestChromaClientOfTheCaller(VectorIndexSuite):
    """Small calls only, as Chroma Cloud demands."""

    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[ChromaVectorIndex]:
        settings = Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(tmp_path / "chroma", settings=settings)
        assert isinstance(client, Client)  # PersistentClient's declared type has no close()
        index = ChromaVectorIndex(client, batch=300, prefix="recall")
        yield index
        index.close()
        assert client.heartbeat() > 0  # the index did not close it
        client.close()
