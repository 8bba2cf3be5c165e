"""Vectors on PostgreSQL: a pgvector for each chunk, beside the keys of its scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semantic_recall.stores._backend import NewVectors
from semantic_recall.stores._postgres_bulk import bounded
from semantic_recall.stores._postgres_types import (
    Packed,
    from_vectors,
    to_int8s,
    to_vector,
    to_vectors,
)
from semantic_recall.stores._statements import Transaction

MOST_FLOATS = 16 * 2**20
"""In one statement: each takes 4 bytes on its way."""


class PostgresVectors:
    """The `VectorRows` of one schema.

    Args:
        schema: Its name, quoted.
    """

    def __init__(self, schema: str) -> None:
        # A text like "ok" has many messages: the first with vectors will do.
        self._owners = (
            "SELECT wanted.digest, owner.key"
            " FROM unnest(CAST(%s AS bytea[])) AS wanted(digest) CROSS JOIN LATERAL ("
            f"SELECT m.key FROM {schema}.messages m JOIN {schema}.vectors v ON v.key = m.key"
            " WHERE m.digest = wanted.digest AND v.space_key = %s AND v.chunk = 0 LIMIT 1"
            ") AS owner"
        )
        self._data = (
            f"SELECT key, chunks, data FROM {schema}.vectors"
            " WHERE space_key = %s AND key = ANY (CAST(%s AS bigint[])) ORDER BY key, chunk"
        )

        self._table = f"{schema}.vectors"
        self._insert = (
            f"INSERT INTO {self._table}"
            " (space_key, key, chunks, resource_key, thread_key, chunk, data)"
            " SELECT %s, given.* FROM unnest(%s, %s, %s, %s, %s, %s) AS given"
        )
        self._oid = 0
        self._nearest: dict[bool, str] = {}

    def use(self, extension: str, oid: int) -> None:
        """Name the schema of pgvector, quoted, and its type; it need not be on the search path."""
        self._oid = oid
        for in_thread, column in ((False, "resource_key"), (True, "thread_key")):
            self._nearest[in_thread] = (
                f"SELECT key, chunk, 1 - (data OPERATOR({extension}.<=>) %s) AS score"
                f" FROM {self._table} WHERE space_key = %s AND {column} = %s"
                f" ORDER BY data OPERATOR({extension}.<=>) %s, key, chunk LIMIT %s"
            )

    def nearest(
        self, tx: Transaction, place: tuple[int, int | None], space_key: int,
        vector: NDArray[np.float32], limit: int,
    ) -> Sequence[Sequence[Any]]:  # fmt: skip
        """Return the nearest chunks of a scope, best first: rows (key, chunk, cosine).

        The scope's rows are sorted whole, so nothing is missed.

        Args:
            tx: The transaction.
            place: The keys of the resource and, for a thread, of the thread.
            space_key: The vector space.
            vector: Shape (dimensions,).
            limit: How many.
        """
        resource_key, thread_key = place
        sought = to_vector(vector)
        scope = resource_key if thread_key is None else thread_key
        return tx.sql(
            self._nearest[thread_key is not None], sought, space_key, scope, sought, limit
        )

    def insert_vectors(self, tx: Transaction, space_key: int, rows: Iterable[NewVectors]) -> None:
        rows = list(rows)
        for part in bounded(rows, [row.vectors.size for row in rows], MOST_FLOATS):
            tx.many_sql(self._insert, [(space_key, *self._packed(part))])

    def _packed(self, rows: Sequence[NewVectors]) -> tuple[Packed, ...]:
        counts = np.array([len(row.vectors) for row in rows])
        of_message = (
            [row.key for row in rows],
            counts,
            [row.resource_key for row in rows],
            [row.thread_key for row in rows],
        )
        chunk = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return (
            *(to_int8s(np.repeat(values, counts)) for values in of_message),
            to_int8s(chunk),
            to_vectors(np.concatenate([row.vectors for row in rows]), self._oid),
        )

    def decode(
        self, rows: Sequence[Sequence[Any]], dimensions: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        keys = np.array([row[0] for row in rows], dtype=np.int64)
        return keys, from_vectors([row[2] for row in rows], dimensions)

    def by_digests(
        self, tx: Transaction, space_key: int, digests: Sequence[bytes], dimensions: int
    ) -> dict[bytes, NDArray[np.float32]]:
        owners = dict(tx.sql(self._owners, list(dict.fromkeys(digests)), space_key))
        if not owners:
            return {}
        rows = tx.sql(self._data, space_key, list(owners.values()))
        keys, data = self.decode(rows, dimensions)
        return {digest: data[keys == key] for digest, key in owners.items()}
