"""Vectors on SQLite: all chunks of a message in one row, float32 little endian."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, insert, select

from semantic_recall.stores._backend import NewVectors
from semantic_recall.stores._schema import messages, vectors
from semantic_recall.stores._statements import Statement, Transaction

FLOAT = np.dtype("<f4")

_INSERT = Statement(insert(vectors), ("space_key", "key", "chunks", "data"))
_BY_DIGEST = Statement(
    select(vectors.c.data)
    .join_from(messages, vectors, vectors.c.key == messages.c.key)
    .where(
        vectors.c.space_key == bindparam("space"),
        messages.c.digest == bindparam("wanted"),
    )
    .limit(1)
)


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
    for digest in dict.fromkeys(digests):
        data = tx.value(_BY_DIGEST, space=space_key, wanted=digest)
        if data is not None:
            found[digest] = np.frombuffer(data, dtype=FLOAT).reshape(-1, dimensions)
    return found
