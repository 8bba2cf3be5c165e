"""Vectors on SQLite: all chunks of a message in one row, float32 little endian."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert

from semantic_recall.stores._backend import NewVectors
from semantic_recall.stores._schema import vectors
from semantic_recall.stores._statements import Statement, Transaction

FLOAT = np.dtype("<f4")

_INSERT = Statement(insert(vectors), ("space_key", "key", "chunks", "data"))
_AT_ONCE = 400
"""Digests per statement: a statement for each costs more than what SQLite does for it."""
_BY_DIGESTS = """
SELECT wanted.column1, (
  SELECT vectors.data FROM messages JOIN vectors ON vectors.key = messages.key
  WHERE vectors.space_key = ? AND messages.digest = wanted.column1 LIMIT 1
) FROM (VALUES {}) AS wanted
"""


def insert_vectors(tx: Transaction, space_key: int, rows: Iterable[NewVectors]) -> None:
    """Write the vectors of messages that have none in the space."""
    tx.many(
        _INSERT,
        [
            {
                "space_key": space_key,
                "key": row.key,
                "chunks": len(row.vectors),
                "data": row.vectors.astype(FLOAT, copy=False).tobytes(),
            }
            for row in rows
        ],
    )


def decode(
    rows: Sequence[Sequence[Any]], dimensions: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the message of each vector and the vectors from rows (key, chunks, data)."""
    data = np.frombuffer(b"".join([row[2] for row in rows]), dtype=FLOAT)
    keys = np.repeat(
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.int64),
    )
    return keys, data.reshape(-1, dimensions)


def by_digests(
    tx: Transaction, space_key: int, digests: Sequence[bytes], dimensions: int
) -> dict[bytes, NDArray[np.float32]]:
    """Return the vectors of any one message for each digest that has some."""
    found: dict[bytes, NDArray[np.float32]] = {}
    wanted = list(dict.fromkeys(digests))
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        text = _BY_DIGESTS.format(",".join(["(?)"] * len(some)))
        for digest, data in tx.sql(text, space_key, *some):
            if data is not None:
                found[digest] = np.frombuffer(data, dtype=FLOAT).reshape(-1, dimensions)
    return found
