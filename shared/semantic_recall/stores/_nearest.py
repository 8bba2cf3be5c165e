"""The nearest vectors of a scope, where the database itself can find them."""

from __future__ import annotations

import math

from semantic_recall.errors import StoreError
from semantic_recall.records import vector_id
from semantic_recall.stores import _scopes
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._spaces import space_key
from semantic_recall.types import Hit, Scope, Vector, VectorSpace


class Nearest(UsesDatabase):
    """The part of the store that a vector index over its own rows asks."""

    @retried
    def nearest(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        """Return the nearest vectors of the scope, best first, by cosine similarity; exact.

        Raises:
            StoreError: The database failed, or it is one that knows no vectors (SQLite).
        """
        with self._db.read() as tx:
            vectors = tx.backend.nearest_vectors
            if vectors is None:
                raise StoreError("SQLite finds no nearest vectors; use a vector index beside it")
            place = _scopes.find(tx, scope)
            key = space_key(tx, space)
            if place is None or key is None:
                return []
            rows = vectors.nearest(
                tx, (place.resource_key, place.thread_key), key, vector, max(top_k, 0)
            )
        # A stored vector of zeros has no direction, and its cosine is not a number.
        return [Hit(vector_id(key, chunk), s) for key, chunk, s in rows if not math.isnan(s)]
