"""A vector index over the store's own rows in PostgreSQL.

The store writes vectors and messages in one transaction, so there is nothing to keep in step:
what writes to an index does nothing here, and a search asks the store. It is exact: PostgreSQL
reads the vectors of the scope by a B-tree and sorts them. An HNSW index is not used, because it
filters by scope after the search and comes back short of what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from semantic_recall.errors import StoreError, VectorIndexError
from semantic_recall.types import Hit, Scope, Vector, VectorRecord, VectorSpace


class VectorRows(Protocol):
    """The store whose vectors are searched."""

    def nearest(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        """Return the nearest vectors of the scope, best first."""
        ...

    def vector_ids(self, space: VectorSpace, /) -> Iterator[tuple[str, Scope]]:
        """Yield the id and thread of every stored vector."""
        ...


class PgVectorIndex:
    """A `VectorIndex` that searches what the store has written.

    `upsert`, `delete`, `drop` and `scrub` do nothing: the store's own methods have done it in the
    transaction that changed the messages.

    Args:
        store: A `SQLMessageStore` in PostgreSQL, opened with `outbox=False`; it is not closed
            with the index.
    """

    def __init__(self, store: VectorRows) -> None:
        self._store = store
        self._closed = False

    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        """Do nothing: `MessageStore.set_vectors` has written them."""
        self._check_open()

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        """Do nothing: `MessageStore.delete` has removed them."""
        self._check_open()

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        """See `VectorIndex.search`.

        Raises:
            VectorIndexError: The vector has no direction or another length than the space, or
                the database failed.
        """
        self._check_open()
        sought = np.asarray(vector, dtype=np.float32)
        if sought.shape != (space.dimensions,):
            raise VectorIndexError(
                f"the query has shape {sought.shape}; {space.name!r} takes ({space.dimensions},)"
            )
        if not np.isfinite(sought).all() or not sought.any():
            raise VectorIndexError("the query has NaN or infinity in it, or is all zeros")
        try:
            return self._store.nearest(space, sought, scope, top_k=top_k)
        except StoreError as error:
            raise VectorIndexError(f"the search in PostgreSQL failed: {error}") from error

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        """See `VectorIndex.ids`."""
        self._check_open()
        try:
            for id, _ in self._store.vector_ids(space):
                yield id
        except StoreError as error:
            raise VectorIndexError(f"reading vectors from PostgreSQL failed: {error}") from error

    def drop(self, space: VectorSpace, /) -> None:
        """Do nothing: `MessageStore.drop_space` has removed it."""
        self._check_open()

    def scrub(self) -> None:
        """Do nothing: `MessageStore.scrub` has rewritten the tables."""
        self._check_open()

    def close(self) -> None:
        """Release the index; closing twice is fine. The store stays open."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise VectorIndexError("the vector index is closed")
