"""What Chroma does with odd input, names and batches, and what the index makes of it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.api.client import Client
from chromadb.config import Settings

from semantic_recall.errors import VectorIndexError
from semantic_recall.indexes import _chroma_names as names
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.types import Scope, VectorRecord, VectorSpace

SPACE = VectorSpace("model-a", 4)
ANNA = Scope("anna", "t1")


def record(id: str, *values: float, scope: Scope = ANNA) -> VectorRecord:
    return VectorRecord(id=id, scope=scope, vector=np.array(values, dtype=np.float32))


def query(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(values, dtype=np.float32)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    client = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    assert isinstance(client, Client)
    yield client
    client.close()


@pytest.fixture
def index(client: Client) -> ChromaVectorIndex:
    return ChromaVectorIndex(client, shards=2)


class TestInputs:
    def test_zero_vector_is_similar_to_nothing(self, index: ChromaVectorIndex) -> None:
        index.upsert(SPACE, [record("zero.0", 0, 0, 0, 0), record("one.0", 1, 1, 0, 0)])
        hits = index.search(SPACE, query(1, 0, 0, 0), ANNA, top_k=2)
        assert [hit.id for hit in hits] == ["one.0", "zero.0"]
        assert hits[1].score == pytest.approx(0.0, abs=1e-6)

    def test_wrong_dimension_writes_nothing(self, index: ChromaVectorIndex) -> None:
        with pytest.raises(VectorIndexError, match=r"'b\.0' has shape \(3,\)"):
            index.upsert(SPACE, [record("a.0", 1, 0, 0, 0), record("b.0", 1, 0, 0)])
        assert list(index.ids(SPACE)) == []

    @pytest.mark.parametrize("id", ["", "\ud800"], ids=["empty", "surrogate"])
    def test_id_that_chroma_refuses(self, index: ChromaVectorIndex, id: str) -> None:
        with pytest.raises(VectorIndexError) as caught:
            index.upsert(SPACE, [record(id, 1, 0, 0, 0)])
        assert caught.value.__cause__ is not None

    @pytest.mark.parametrize("id", ["a\x00b", "x" * 10_000], ids=["nul", "long"])
    def test_id_that_chroma_takes(self, index: ChromaVectorIndex, id: str) -> None:
        index.upsert(SPACE, [record(id, 1, 0, 0, 0)])
        assert list(index.ids(SPACE)) == [id]
        index.delete(SPACE, {id: ANNA})
        assert list(index.ids(SPACE)) == []

    @pytest.mark.parametrize("top_k", [0, -1])
    def test_top_k_of_nothing(self, index: ChromaVectorIndex, top_k: int) -> None:
        index.upsert(SPACE, [record("a.0", 1, 0, 0, 0)])
        assert index.search(SPACE, query(1, 0, 0, 0), ANNA, top_k=top_k) == []

    def test_record_of_a_whole_resource_is_refused(self, index: ChromaVectorIndex) -> None:
        with pytest.raises(VectorIndexError, match="belongs to a thread"):
            index.upsert(SPACE, [record("a.0", 1, 0, 0, 0, scope=Scope("anna"))])

    def test_more_than_the_largest_batch(self, client: Client) -> None:
        index = ChromaVectorIndex(client, shards=1)
        space = VectorSpace("m", 2)
        count = client.get_max_batch_size() + 100
        rows = np.ones((count, 2), dtype=np.float32)
        index.upsert(
            space,
            [VectorRecord(id=f"{i}.0", scope=ANNA, vector=rows[i]) for i in range(count)],
        )
        assert len(set(index.ids(space))) == count
        index.delete(space, {f"{i}.0": ANNA for i in range(count)})
        assert list(index.ids(space)) == []

    def test_metadata_is_scope_only_and_moves_with_the_vector(
        self, index: ChromaVectorIndex, client: Client
    ) -> None:
        index.upsert(SPACE, [record("a.0", 1, 0, 0, 0)])
        moved = Scope("anna", "t2")
        index.upsert(SPACE, [record("a.0", 1, 0, 0, 0, scope=moved)])
        (collection,) = client.list_collections()
        stored = client.get_collection(collection.name, embedding_function=None).get()
        assert stored["metadatas"] == [names.metadata(moved)]
        assert set(names.metadata(moved)) == {"resource_id", "thread_key"}
        assert not any(stored["documents"] or [])
        assert index.search(SPACE, query(1, 0, 0, 0), ANNA, top_k=9) == []


class TestSearch:
    def test_scope_hidden_behind_equal_vectors(self, client: Client) -> None:
        """Chroma's graph alone misses some of these; the exact pass finds them all."""
        index = ChromaVectorIndex(client, shards=1)
        generator = np.random.default_rng(0)
        for number in range(20):
            space = VectorSpace(f"space-{number}", 8)
            same = generator.normal(size=8).astype(np.float32)
            crowd = [
                VectorRecord(id=f"{i}.0", scope=Scope(f"u{i}", "t"), vector=same)
                for i in range(150)
            ]
            index.upsert(space, [*crowd, VectorRecord(id="mine.0", scope=ANNA, vector=same)])
            found = index.search(space, same, Scope("anna"), top_k=1)
            assert [hit.id for hit in found] == ["mine.0"]

    def test_exact_pass_orders_by_cosine(self, client: Client) -> None:
        """More asked for than one call may return: the rest comes from the exact pass."""
        index = ChromaVectorIndex(client, shards=1, batch=10)
        rows = np.random.default_rng(3).normal(size=(50, 4)).astype(np.float32)
        index.upsert(
            SPACE, [VectorRecord(id=f"{i}.0", scope=ANNA, vector=rows[i]) for i in range(50)]
        )
        hits = index.search(SPACE, rows[7], ANNA, top_k=30)
        cosines = rows @ rows[7] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[7])
        order = np.argsort(-cosines)[:30]
        assert [hit.id for hit in hits] == [f"{i}.0" for i in order]
        assert [hit.score for hit in hits] == pytest.approx(cosines[order].tolist(), abs=1e-5)


class TestCollections:
    def test_reading_makes_no_collection(self, index: ChromaVectorIndex, client: Client) -> None:
        index.search(SPACE, query(1, 0, 0, 0), ANNA, top_k=1)
        index.delete(SPACE, {"a.0": ANNA})
        assert list(index.ids(SPACE)) == []
        assert client.list_collections() == []

    def test_other_distance_under_our_name(self, client: Client) -> None:
        """Chroma would silently keep L2."""
        name = names.stem("memory", SPACE) + "000"
        client.create_collection(
            name, configuration={"hnsw": {"space": "l2"}}, embedding_function=None
        )
        index = ChromaVectorIndex(client, shards=1)
        with pytest.raises(VectorIndexError, match="'l2', not cosine"):
            index.upsert(SPACE, [record("a.0", 1, 0, 0, 0)])
        with pytest.raises(VectorIndexError, match="rebuild"):
            index.search(SPACE, query(1, 0, 0, 0), ANNA, top_k=1)
        index.drop(SPACE)
        index.upsert(SPACE, [record("a.0", 1, 0, 0, 0)])
        assert list(index.ids(SPACE)) == ["a.0"]

    def test_number_of_shards_is_the_one_it_was_made_with(self, client: Client) -> None:
        scopes = [Scope(f"user{i}", "t") for i in range(20)]
        ChromaVectorIndex(client, shards=3).upsert(
            SPACE, [record(f"{i}.0", 1, 0, 0, 0, scope=scope) for i, scope in enumerate(scopes)]
        )
        assert len(client.list_collections()) == 3
        again = ChromaVectorIndex(client, shards=16)
        for i, scope in enumerate(scopes):
            hits = again.search(SPACE, query(1, 0, 0, 0), scope, top_k=9)
            assert [hit.id for hit in hits] == [f"{i}.0"]
        assert len(list(again.ids(SPACE))) == 20

    def test_collection_deleted_behind_our_back(
        self, index: ChromaVectorIndex, client: Client
    ) -> None:
        index.upsert(SPACE, [record("a.0", 1, 0, 0, 0)])
        for collection in client.list_collections():
            client.delete_collection(collection.name)
        assert index.search(SPACE, query(1, 0, 0, 0), ANNA, top_k=1) == []
        index.upsert(SPACE, [record("b.0", 1, 0, 0, 0)])
        assert list(index.ids(SPACE)) == ["b.0"]

    def test_foreign_collections_are_left_alone(
        self, index: ChromaVectorIndex, client: Client
    ) -> None:
        client.create_collection("memory", embedding_function=None)
        client.create_collection("memory-of-somebody", embedding_function=None)
        index.upsert(SPACE, [record("a.0", 1, 0, 0, 0)])
        index.drop(SPACE)
        assert sorted(collection.name for collection in client.list_collections()) == [
            "memory",
            "memory-of-somebody",
        ]

    def test_settings_are_never_shared(self, tmp_path: Path) -> None:
        """Chroma's HTTP client rewrites the settings object that it is given."""
        settings = Settings(anonymized_telemetry=False)
        with pytest.raises(ValueError, match="Could not connect"):
            chromadb.HttpClient("127.0.0.1", 9, settings=settings)
        one = ChromaVectorIndex.embedded(tmp_path / "one")
        two = ChromaVectorIndex.embedded(tmp_path / "two")
        one.upsert(SPACE, [record("a.0", 1, 0, 0, 0)])
        assert list(two.ids(SPACE)) == []
        one.close()
        two.close()

    def test_scrub_of_a_client_that_is_not_ours(self, index: ChromaVectorIndex) -> None:
        with pytest.raises(VectorIndexError, match="chroma vacuum"):
            index.scrub()


class TestNames:
    def test_encodings_never_meet(self) -> None:
        ids = [None, "-", "r:-", "x:2d", "\ud800", "x:eda080", "r:\ud800", ""]
        assert len({names.resource_value(id) for id in ids}) == len(ids)

    def test_thread_keys_never_meet(self) -> None:
        pairs = [
            (None, "t"),
            ("-", "t"),
            ("a", "bc"),
            ("ab", "c"),
            ("a\x00b", "c"),
            ("a", "b\x00c"),
        ]
        assert len({names.thread_value(*pair) for pair in pairs}) == len(pairs)

    def test_spaces_never_meet(self) -> None:
        spaces = [
            VectorSpace("m", 11),
            VectorSpace("m1", 1),
            VectorSpace("m", 1),
            VectorSpace("", 1),
        ]
        assert len({names.stem("p", space) for space in spaces}) == len(spaces)

    def test_name_is_one_that_chroma_takes(self, client: Client) -> None:
        stem = names.stem("memory", VectorSpace("model /\\ \ud800 é" * 50, 384))
        client.create_collection(f"{stem}000{names.COPY}", embedding_function=None)

    def test_thread_lies_in_the_shard_of_its_resource(self) -> None:
        for shards in (1, 2, 16, 64):
            for i in range(50):
                resource = names.shard_of(Scope(f"user{i}"), shards)
                assert resource == names.shard_of(Scope(f"user{i}", f"t{i}"), shards) < shards


class TestServer:
    def test_unreachable(self) -> None:
        with pytest.raises(VectorIndexError, match=r"127\.0\.0\.1:9"):
            ChromaVectorIndex.server("127.0.0.1", 9, timeout=2)

    @pytest.mark.timeout(20)
    def test_server_that_never_answers(self) -> None:
        # The kernel takes the connection; nobody reads from it.
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            pytest.raises(VectorIndexError, match="timed out"),
        ):
            ChromaVectorIndex.server("127.0.0.1", server.getsockname()[1], timeout=0.5)
