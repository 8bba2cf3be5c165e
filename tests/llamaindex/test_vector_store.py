"""LlamaIndexVectorIndex over real databases keeps the core's contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import chromadb
import pytest
from chromadb.config import Settings
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient

from llamaindex_semantic_recall import LlamaIndexVectorIndex, collection_name
from semantic_recall.testing.vector_index import VectorIndexSuite
from semantic_recall.types import VectorSpace

# The local mode says that it ignores payload indexes; a server uses them.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")


class TestQdrant(VectorIndexSuite):
    @pytest.fixture
    def index(self) -> Iterator[LlamaIndexVectorIndex]:
        client = QdrantClient(":memory:")

        def open_store(space: VectorSpace) -> QdrantVectorStore:
            return QdrantVectorStore(collection_name(space), client=client)

        index = LlamaIndexVectorIndex(open_store)
        yield index
        index.close()
        client.close()


class TestChroma(VectorIndexSuite):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[LlamaIndexVectorIndex]:
        settings = Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(tmp_path / "chroma", settings=settings)

        def open_store(space: VectorSpace) -> ChromaVectorStore:
            collection = client.get_or_create_collection(
                collection_name(space), metadata={"hnsw:space": "cosine"}
            )
            return ChromaVectorStore(chroma_collection=collection)

        index = LlamaIndexVectorIndex(open_store)
        yield index
        index.close()
