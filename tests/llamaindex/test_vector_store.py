"""LlamaIndexVectorIndex over real databases keeps the core's contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient

from llamaindex_semantic_recall import LlamaIndexVectorIndex, collection_name
from semantic_recall import SemanticRecall
from semantic_recall import Settings as RecallSettings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.errors import VectorIndexError
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.testing.vector_index import VectorIndexSuite
from semantic_recall.types import Scope, VectorRecord, VectorSpace

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

        # As docs/llamaindex.md has it. With Chroma's defaults (M 16, ef 100) some of 200 equal
        # vectors are cut off from the graph in one of 60 collections, and then not found.
        graph = {"hnsw:space": "cosine", "hnsw:M": 64, "hnsw:construction_ef": 400}

        def open_store(space: VectorSpace) -> ChromaVectorStore:
            collection = client.get_or_create_collection(collection_name(space), metadata=graph)
            return ChromaVectorStore(chroma_collection=collection)

        index = LlamaIndexVectorIndex(open_store)
        yield index
        index.close()


# -- beyond the suite ----------------------------------------------------------------------------
SPACE = VectorSpace("test", 4)
ANNA = Scope("anna", "t1")


def record(id: str, *values: float) -> VectorRecord:
    return VectorRecord(id=id, scope=ANNA, vector=np.array(values, dtype=np.float32))


class NoSimilarities(ChromaVectorStore):
    """Gives nodes without scores, as some stores do."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        result = super().query(query, **kwargs)
        return VectorStoreQueryResult(nodes=result.nodes, ids=result.ids)


class Unreachable(ChromaVectorStore):
    """Its server is away."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        raise ConnectionError("no route to host")

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        raise ConnectionError("no route to host")


@pytest.fixture
def collection(tmp_path: Path) -> chromadb.Collection:
    settings = Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(tmp_path / "chroma", settings=settings)
    return client.create_collection("everything", metadata={"hnsw:space": "cosine"})


def test_report_3_a_store_without_similarities_gives_the_order(
    collection: chromadb.Collection,
) -> None:
    index = LlamaIndexVectorIndex(NoSimilarities.from_collection(collection))
    index.upsert(SPACE, [record("far", 0, 1, 0, 0), record("near", 1, 0.1, 0, 0)])
    hits = index.search(SPACE, np.array([1, 0, 0, 0], np.float32), Scope("anna"), top_k=2)
    assert [hit.id for hit in hits] == ["near", "far"]
    assert hits[0].score > hits[1].score


def test_report_11_foreign_nodes_in_the_collection_stay_and_do_no_harm(
    collection: chromadb.Collection,
) -> None:
    store = ChromaVectorStore(chroma_collection=collection)
    foreign = TextNode(text="of another application", embedding=[1.0, 0.0, 0.0, 0.0])
    store.add([foreign])
    vectors: list[Sequence[float] | Sequence[int]] = [[1.0, 0.0, 0.0, 0.0]]
    collection.add(ids=["raw"], embeddings=vectors, documents=["no node at all"])
    index = LlamaIndexVectorIndex(store)
    index.upsert(SPACE, [record("1.0", 1, 0, 0, 0)])
    hits = index.search(SPACE, np.array([1, 0, 0, 0], np.float32), ANNA, top_k=9)
    assert [hit.id for hit in hits] == ["1.0"]
    assert list(index.ids(SPACE)) == ["1.0"]
    index.drop(SPACE)
    assert sorted(collection.get()["ids"]) == sorted(["raw", foreign.node_id])


def test_metadata_is_flat_and_tells_nothing(collection: chromadb.Collection) -> None:
    index = LlamaIndexVectorIndex(ChromaVectorStore(chroma_collection=collection))
    index.upsert(SPACE, [record("1.0", 1, 0, 0, 0)])
    (metadata,) = collection.get()["metadatas"] or []
    assert all(isinstance(value, (str, int, float)) for value in metadata.values())
    assert "anna" not in str(metadata)


def test_pages_smaller_than_what_is_stored(collection: chromadb.Collection) -> None:
    index = LlamaIndexVectorIndex(ChromaVectorStore(chroma_collection=collection), page=20)
    index.upsert(SPACE, [record(f"{i}.0", 1, i, 0, 0) for i in range(170)])
    assert sorted(index.ids(SPACE)) == sorted(f"{i}.0" for i in range(170))
    index.drop(SPACE)
    assert list(index.ids(SPACE)) == []


def test_failures_name_what_failed_and_heal(collection: chromadb.Collection) -> None:
    stores: list[BasePydanticVectorStore] = [
        ChromaVectorStore(chroma_collection=collection),
        Unreachable.from_collection(collection),
    ]
    index = LlamaIndexVectorIndex(lambda _: stores.pop())
    with pytest.raises(VectorIndexError, match="failed to write: no route to host") as caught:
        index.upsert(SPACE, [record("1.0", 1, 0, 0, 0)])
    assert isinstance(caught.value.__cause__, ConnectionError)
    index.upsert(SPACE, [record("1.0", 1, 0, 0, 0)])
    assert list(index.ids(SPACE)) == ["1.0"]


def test_what_it_cannot_do_it_says(collection: chromadb.Collection) -> None:
    with pytest.raises(VectorIndexError, match="keeps no metadata"):
        LlamaIndexVectorIndex(SimpleVectorStore()).upsert(SPACE, [record("1.0", 1, 0, 0, 0)])
    index = LlamaIndexVectorIndex(ChromaVectorStore(chroma_collection=collection))
    with pytest.raises(VectorIndexError, match="compaction"):
        index.scrub()


def test_a_memory_that_asks_qdrant(tmp_path: Path) -> None:
    """A whole memory over it: found by vectors, forgotten, rebuilt."""
    client = QdrantClient(":memory:")

    def open_store(space: VectorSpace) -> QdrantVectorStore:
        return QdrantVectorStore(collection_name(space), client=client)

    with SemanticRecall(
        SQLMessageStore.open(tmp_path / "recall.sqlite3"),
        lambda: LlamaIndexVectorIndex(open_store),
        HashEmbedder(),
        settings=RecallSettings(exact_limit=0),
    ) as recall:
        for user in ("anna", "bert"):
            recall.remember(
                [{"role": "user", "content": f"{user} likes tea number {i}"} for i in range(20)],
                thread_id="t",
                resource_id=user,
            )
        assert recall.flush(60)
        found = recall.recall(
            "tea number 7", resource_id="anna", ranking="dense", top_k=1, message_range=0
        )
        assert [m.message.text for m in found] == ["anna likes tea number 7"]
        assert recall.verify().ok
        receipt = recall.forget(resource_id="bert")
        assert receipt.messages == 20
        assert recall.flush(60)
        assert recall.verify().ok
        (name,) = (item.name for item in client.get_collections().collections)
        assert client.count(name).count == 20
        client.delete_collection(name)
        assert not recall.verify().ok
        recall.verify(repair=True)
        assert recall.flush(60)
        assert recall.verify().ok
    client.close()
