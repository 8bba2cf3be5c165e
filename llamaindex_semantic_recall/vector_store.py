"""Any LlamaIndex vector store as the core's vector index."""

from __future__ import annotations

import hashlib
import math
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TypeAlias

import numpy as np
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from semantic_recall.errors import VectorIndexError
from semantic_recall.types import Hit, Scope, Vector, VectorRecord, VectorSpace

StoreOf: TypeAlias = Callable[[VectorSpace], BasePydanticVectorStore]

# The metadata of a node. Digests, because databases differ in which text they compare exactly
# and how long it may be; none of them tells who talked about what.
_ID, _SPACE, _RESOURCE, _THREAD, _BUCKET = (
    f"recall_{field}" for field in ("id", "space", "resource", "thread", "bucket")
)
_BUCKETS = 2**20
"""Ids are listed bucket by bucket: a store cuts what `get_nodes` returns without saying so."""


def collection_name(space: VectorSpace) -> str:
    """Return a name for a space's collection: letters, digits and underscores, 50 characters."""
    return f"semantic_recall_{_digest(space.name, str(space.dimensions))}"


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (len(encoded), encoded))
    return digest.hexdigest()[:32]


def _chroma_cosine(similarity: float) -> float:
    # ChromaVectorStore gives exp(-distance); in a collection with cosine space distance = 1 - cos.
    return 1.0 + math.log(similarity) if similarity > 0.0 else -1.0


def _same(similarity: float) -> float:
    return similarity


_COSINE = {"ChromaVectorStore": _chroma_cosine}


class LlamaIndexVectorIndex:
    """A vector database that has a LlamaIndex vector store, as the index of large scopes.

    The store must keep nodes (`stores_text`) and filter by metadata: with `==` on strings and, to
    list what it holds, with `>=` and `<` on whole numbers. Make its collection with the cosine
    metric. Nodes of other applications in the same collection are neither read nor changed.
    Vectors are written with length 1.

        def open_store(space: VectorSpace) -> QdrantVectorStore:
            return QdrantVectorStore(collection_name(space), client=QdrantClient("http://db:6333"))

        index = LlamaIndexVectorIndex(open_store)

    Args:
        store: A function from vector space to store, called once per space (the collection of a
            new embedder is another one); or one store, which then holds one space.
        cosine: From the store's similarity to the cosine similarity. Default: what fits for
            Chroma (with cosine space); for other stores the similarity itself.
        page: How many nodes are written at once; `get_nodes` of the store returns as many.
        concurrent: Several threads may use the store at once. True for clients of servers;
            embedded databases (Qdrant's local mode) need False.
    """

    def __init__(
        self,
        store: BasePydanticVectorStore | StoreOf,
        *,
        cosine: Callable[[float], float] | None = None,
        page: int = 1000,
        concurrent: bool = False,
    ) -> None:
        self._open = (lambda _: store) if isinstance(store, BasePydanticVectorStore) else store
        self._cosine = cosine
        self._page = page
        self._stores: dict[VectorSpace, BasePydanticVectorStore] = {}
        self._opening = threading.Lock()
        self._using = nullcontext() if concurrent else threading.RLock()
        self._closed = False

    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        """Write vectors; the same id again (in the same thread) replaces.

        Raises:
            VectorIndexError: The store failed.
        """
        nodes = {node.node_id: node for node in (_node(space, record) for record in records)}
        for ids in _batches(list(nodes), self._page):
            with self._use(space, "write") as store:
                # Some stores (Chroma's) keep the old vector when an id is added again.
                store.delete_nodes(ids)
                store.add([nodes[id] for id in ids])

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        """Delete vectors by id, with the thread each was written under; a missing id is fine.

        Raises:
            VectorIndexError: The store failed.
        """
        node_ids = [_node_id(space, scope, id) for id, scope in ids.items()]
        for batch in _batches(node_ids, self._page):
            with self._use(space, "delete") as store:
                store.delete_nodes(batch)

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        """Return the nearest vectors of the scope, best first.

        The scores are cosine similarities as far as `cosine` is right; of a store that gives no
        similarities they only show the order.

        Raises:
            VectorIndexError: The store failed.
        """
        if top_k <= 0:
            return []
        if scope.thread_id is None:
            where = _equal(_RESOURCE, _digest(scope.resource_id or ""))
        else:
            where = _equal(_THREAD, _thread_digest(scope))
        query = VectorStoreQuery(
            query_embedding=_unit(space, vector),
            similarity_top_k=top_k,
            filters=MetadataFilters(filters=[_equal(_SPACE, collection_name(space)), where]),
        )
        with self._use(space, "search") as store:
            result = store.query(query)
            cosine = self._cosine or _COSINE.get(store.class_name(), _same)
        nodes = result.nodes or []
        scores = result.similarities or [1.0 - i / (len(nodes) + 1) for i in range(len(nodes))]
        hits = [
            Hit(node.metadata[_ID], cosine(score))
            for node, score in zip(nodes, scores, strict=True)
        ]
        return sorted(hits, key=lambda hit: -hit.score)

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        """Yield every id of the space, in no order.

        Raises:
            VectorIndexError: The store failed or cannot list nodes.
        """
        for nodes in self._pages(space):
            yield from (node.metadata[_ID] for node in nodes)

    def drop(self, space: VectorSpace, /) -> None:
        """Remove everything of the space; the collection itself stays.

        Raises:
            VectorIndexError: The store failed or cannot list nodes.
        """
        for nodes in self._pages(space):
            with self._use(space, "delete") as store:
                store.delete_nodes([node.node_id for node in nodes])

    def scrub(self) -> None:
        """Refuse: freed bytes are the database's own business.

        Raises:
            VectorIndexError: Always.
        """
        raise VectorIndexError(
            "vectors were deleted, but LlamaIndex cannot overwrite the freed bytes in the files "
            "of a vector database; use the database's own compaction or VACUUM"
        )

    def close(self) -> None:
        """Forget the stores; their clients belong to who made them. Closing twice is fine."""
        self._closed = True
        self._stores.clear()

    def _pages(self, space: VectorSpace) -> Iterator[list[BaseNode]]:
        """Yield the nodes of the space in pages that the store has surely not cut."""
        low, width = 0, _BUCKETS // 1024
        while low < _BUCKETS:
            filters = MetadataFilters(
                filters=[
                    _equal(_SPACE, collection_name(space)),
                    MetadataFilter(key=_BUCKET, value=low, operator=FilterOperator.GTE),
                    MetadataFilter(key=_BUCKET, value=low + width, operator=FilterOperator.LT),
                ]
            )
            with self._use(space, "list") as store:
                nodes = store.get_nodes(None, filters=filters)
            if len(nodes) >= self._page and width > 1:
                width = max(1, width // 2)
                continue
            if len(nodes) >= self._page:
                raise VectorIndexError(f"more than {self._page} nodes in one page; give page=")
            if nodes:
                yield nodes
            low += width
            if len(nodes) < self._page // 2:
                width *= 2 if len(nodes) >= self._page // 8 else 4

    @contextmanager
    def _use(self, space: VectorSpace, what: str) -> Iterator[BasePydanticVectorStore]:
        if self._closed:
            raise VectorIndexError("the vector index was used after close()")
        try:
            with self._opening:
                store = self._stores.get(space)
                if store is None:
                    store = self._open(space)
                    if not store.stores_text:
                        raise VectorIndexError(f"{store.class_name()} keeps no metadata of nodes")
                    with self._using:
                        _make_collection(store, space)
                    self._stores[space] = store
            with self._using:
                yield store
        except VectorIndexError:
            raise
        except Exception as error:  # every database has errors of its own
            self._stores.pop(space, None)  # a collection that is gone is made again
            raise VectorIndexError(f"the vector store failed to {what}: {error}") from error


def _make_collection(store: BasePydanticVectorStore, space: VectorSpace) -> None:
    """Make sure that the store can be searched.

    Some stores (Qdrant's, Milvus's) make the collection with the first node, and fail before.
    """
    first = [1.0] + [0.0] * (space.dimensions - 1)
    try:
        store.query(VectorStoreQuery(query_embedding=first, similarity_top_k=1))
    except Exception:  # noqa: BLE001 - each has its own error; a real failure shows in `add`
        node = TextNode(id_=str(uuid.uuid4()), text="", embedding=first)
        store.add([node])
        store.delete_nodes([node.node_id])


def _node(space: VectorSpace, record: VectorRecord) -> TextNode:
    scope = record.scope
    node_id = _node_id(space, scope, record.id)
    return TextNode(
        id_=node_id,
        text="",
        embedding=_unit(space, record.vector),
        metadata={
            _ID: record.id,
            _SPACE: collection_name(space),
            _RESOURCE: "" if scope.resource_id is None else _digest(scope.resource_id),
            _THREAD: _thread_digest(scope),
            _BUCKET: uuid.UUID(node_id).int % _BUCKETS,
        },
    )


def _node_id(space: VectorSpace, scope: Scope, id: str) -> str:
    """Return a UUID, which is what Qdrant and Weaviate take as an id."""
    return str(uuid.UUID(hex=_digest(collection_name(space), _thread_digest(scope), id)))


def _thread_digest(scope: Scope) -> str:
    thread = scope.thread_id or ""
    return _digest(thread) if scope.resource_id is None else _digest(scope.resource_id, thread)


def _unit(space: VectorSpace, vector: Vector) -> list[float]:
    if vector.shape != (space.dimensions,):
        raise VectorIndexError(
            f"a vector has the shape {vector.shape}; {space.name} has ({space.dimensions},)"
        )
    length = float(np.linalg.norm(vector))
    if not math.isfinite(length) or length == 0.0:
        raise VectorIndexError("a vector has no direction: it is zero, infinite or not a number")
    return [float(x) for x in vector / length]


def _equal(key: str, value: str) -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=FilterOperator.EQ)


def _batches(ids: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
