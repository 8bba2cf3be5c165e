"""The collections behind a Chroma index: finding, making, reading and copying them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import numpy as np
from chromadb.api import ClientAPI
from chromadb.api.models.Collection import Collection
from chromadb.errors import NotFoundError
from numpy.typing import NDArray

from semantic_recall.errors import VectorIndexError
from semantic_recall.indexes import _chroma_names as names
from semantic_recall.types import Hit, VectorSpace

T = TypeVar("T")

PAGE = 5_000
"""Ids per read or deletion; about 32,000 break SQLite inside Chroma."""
EMBEDDINGS_PAGE = 1_000
"""Vectors per read; Chroma gives them back as Python-sized floats."""


@contextmanager
def chroma_errors(action: str) -> Iterator[None]:
    """Turn whatever Chroma raises into `VectorIndexError`."""
    try:
        yield
    except VectorIndexError:
        raise
    # Chroma raises ValueError, TypeError, UnicodeEncodeError, AttributeError, its own errors,
    # httpx's, and for an answer of a proxy a bare Exception: no narrower base covers them.
    except Exception as error:
        raise _failed(action, error) from error
    except BaseException as error:
        # A panic in Chroma's Rust code derives from BaseException and cannot be imported.
        if type(error).__name__ == "PanicException":
            raise _failed(action, error) from error
        raise


def _failed(action: str, error: BaseException) -> VectorIndexError:
    return VectorIndexError(
        f"Chroma could not {action}: {type(error).__name__}: {error}. If it goes on, rebuild the "
        "index from the store: semantic-recall verify --repair"
    )


class Collections:
    """The shards of every vector space of one client, made when they are first written."""

    def __init__(self, client: ClientAPI, prefix: str, shards: int) -> None:
        self.client = client
        self._prefix = prefix
        self._shards = shards
        self._handles: dict[str, Collection] = {}
        self._known_shards: dict[str, int] = {}
        self._made = False

    def made_some(self) -> bool:
        """Tell whether a collection was made since this was last asked."""
        made, self._made = self._made, False
        return made

    def reopen(self, client: ClientAPI) -> None:
        """Go on with a new client."""
        self.client = client
        self._handles.clear()
        self._known_shards.clear()

    def shards(self, space: VectorSpace) -> int:
        """Return how many shards the space has, or would get."""
        stem = names.stem(self._prefix, space)
        if stem not in self._known_shards:
            for collection in self.listed(stem):
                stored = (collection.metadata or {}).get("shards")
                if isinstance(stored, int):
                    self._known_shards[stem] = stored
                    break
        return self._known_shards.get(stem, self._shards)

    def listed(self, stem: str | None = None) -> list[Collection]:
        """Return our collections, or those of one space; only to look at, not to write with."""
        start = stem or f"{self._prefix}-"
        return [collection for collection in self._all() if collection.name.startswith(start)]

    def _all(self) -> list[Collection]:
        found: list[Collection] = []
        for page in count():
            part = self.client.list_collections(limit=100, offset=100 * page)
            found.extend(part)
            if len(part) < 100:
                break
        return found

    def call(
        self,
        space: VectorSpace,
        shard: int,
        function: Callable[[Collection], T],
        *,
        create: bool = False,
    ) -> T | None:
        """Call `function` with a shard's collection; None if there is none and none is made."""
        name = f"{names.stem(self._prefix, space)}{shard:03d}"
        for attempt in count():
            collection = self._handles.get(name) or self._open(name, space, create=create)
            if collection is None:
                return None
            try:
                return function(collection)
            except NotFoundError:
                # Another thread or process dropped the space after the handle was made.
                self._handles.pop(name, None)
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def drop(self, space: VectorSpace) -> None:
        """Delete the space's collections; that works with unreadable ones too."""
        stem = names.stem(self._prefix, space)
        for collection in self.listed(stem):
            with suppress(NotFoundError):
                self.client.delete_collection(collection.name)
            self._handles.pop(collection.name, None)
        self._known_shards.pop(stem, None)

    def keep(self, spaces: Iterable[VectorSpace]) -> bool:
        """Delete what an index has written for other spaces or names; True if there was any.

        A process that ended between two steps, or did not own the folder, has left it.
        """
        stems = tuple(names.stem(self._prefix, space) for space in spaces)
        strangers = [
            collection.name
            for collection in self._all()
            if names.OURS.fullmatch(collection.name) and not collection.name.startswith(stems)
        ]
        for name in strangers:
            self.client.delete_collection(name)
        return bool(strangers)

    def copy_changed(self, overwritten: Container[str]) -> None:
        """Replace what lost vectors by copies, so that nothing of those is left in them.

        A crash leaves the old collection or the copy whole; see `finish_copies`.

        Args:
            overwritten: Ids of collections that may hold older vectors.
        """
        for collection in self.listed():
            deleted = (collection.metadata or {}).get("deleted")
            if deleted or str(collection.id) in overwritten:
                self._copy(collection)

    def _copy(self, collection: Collection) -> None:
        name = collection.name
        ids = all_ids(collection)
        if ids:
            shards = (collection.metadata or {}).get("shards", self._shards)
            copy = self._make(name + names.COPY, {"shards": shards})
            for start in range(0, len(ids), EMBEDDINGS_PAGE):
                part = collection.get(
                    ids[start : start + EMBEDDINGS_PAGE], include=["embeddings", "metadatas"]
                )
                vectors = np.asarray(part["embeddings"], dtype=np.float32)
                copy.upsert(part["ids"], embeddings=vectors, metadatas=part["metadatas"])
            self.client.delete_collection(name)
            copy.modify(name=name)
        else:
            self.client.delete_collection(name)
        self._handles.pop(name, None)

    def finish_copies(self) -> None:
        """End what a crash while copying left: the copy counts once the old collection is gone."""
        found = {collection.name: collection for collection in self.listed()}
        for name, copy in found.items():
            if name.endswith(names.COPY):
                if name.removesuffix(names.COPY) in found:
                    self.client.delete_collection(name)
                else:
                    copy.modify(name=name.removesuffix(names.COPY))

    def _open(self, name: str, space: VectorSpace, *, create: bool) -> Collection | None:
        try:
            collection = self.client.get_collection(name, embedding_function=None)
        except NotFoundError:
            if not create:
                return None
            collection = self._make(name, {"shards": self.shards(space)})
        configuration = collection.configuration_json
        measure = (configuration.get("hnsw") or configuration.get("spann") or {}).get("space")
        if measure != "cosine":
            raise VectorIndexError(
                f"the Chroma collection {name} measures {measure!r}, not cosine; delete it and "
                "rebuild the index from the store: semantic-recall verify --repair"
            )
        self._handles[name] = collection
        return collection

    def _make(self, name: str, metadata: Mapping[str, Any]) -> Collection:
        self._made = True
        # get_or_create takes an existing collection as it is: the caller checks its distance.
        return self.client.get_or_create_collection(
            name,
            configuration={"hnsw": {"space": "cosine"}},
            metadata=dict(metadata),
            embedding_function=None,
        )


def all_ids(collection: Collection) -> list[str]:
    """Return every id; nobody may write meanwhile, or pages shift."""
    found: list[str] = []
    for page in count():
        part = collection.get(limit=PAGE, offset=PAGE * page, include=[])["ids"]
        found.extend(part)
        if len(part) < PAGE:
            return found
    raise AssertionError("unreachable")


@dataclass(frozen=True)
class Upsert:
    """Write a batch of vectors."""

    ids: list[str]
    vectors: NDArray[np.float32]
    metadata: list[dict[str, str]]

    def __call__(self, collection: Collection) -> None:
        """Do it."""
        # Chroma merges metadata into what is there; so the full set goes in.
        collection.upsert(self.ids, embeddings=self.vectors, metadatas=[*self.metadata])


@dataclass(frozen=True)
class Delete:
    """Delete a batch of vectors."""

    ids: list[str]

    def __call__(self, collection: Collection) -> None:
        """Do it."""
        _mark_deleted(collection)
        collection.delete(ids=self.ids)


def _mark_deleted(collection: Collection) -> None:
    """Note in the collection, before the first deletion, that `scrub` has to copy it."""
    metadata = dict(collection.metadata or {})
    if not metadata.get("deleted"):
        collection.modify(metadata={**metadata, "deleted": True})


def nearest(
    collection: Collection, query: NDArray[np.float32], where: dict[str, Any], top_k: int
) -> list[Hit]:
    """Return what Chroma's graph finds; it may be fewer than there are.

    Raises:
        VectorIndexError: A distance is not a number: the collection is damaged.
    """
    found = collection.query(
        query_embeddings=[query.tolist()], n_results=top_k, where=where, include=["distances"]
    )
    ids = found["ids"][0]
    scores = 1.0 - np.asarray((found["distances"] or [[]])[0], dtype=np.float64)
    if np.isnan(scores).any():
        raise VectorIndexError(f"the Chroma collection {collection.name} is damaged: NaN distance")
    best = dict(zip(ids, np.clip(scores, -1.0, 1.0).tolist(), strict=True))
    return [Hit(id, score) for id, score in best.items()]


def exact(
    collection: Collection, query: NDArray[np.float32], ids: Sequence[str], top_k: int
) -> list[Hit]:
    """Return the best of `ids` by comparing the query with each of their vectors."""
    direction = query / np.linalg.norm(query)
    found: list[str] = []
    scores: list[NDArray[np.float32]] = []
    for start in range(0, len(ids), EMBEDDINGS_PAGE):
        part = collection.get(list(ids[start : start + EMBEDDINGS_PAGE]), include=["embeddings"])
        if not part["ids"]:
            continue
        vectors = np.asarray(part["embeddings"], dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1)
        lengths[lengths == 0] = 1.0
        found.extend(part["ids"])
        scores.append(vectors @ direction / lengths)
    if not found:
        return []
    all_scores = np.clip(np.concatenate(scores), -1.0, 1.0)
    order = np.argsort(-all_scores, kind="stable")[:top_k]
    return [Hit(found[place], float(all_scores[place])) for place in order]
