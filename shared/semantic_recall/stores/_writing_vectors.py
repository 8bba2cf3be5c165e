"""Writing vectors: beside the messages they come with, or later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import StoreError
from semantic_recall.stores import _queues
from semantic_recall.stores._backend import NewVectors
from semantic_recall.stores._scopes import ThreadId
from semantic_recall.stores._statements import Transaction
from semantic_recall.types import VectorSpace


class Owned(NamedTuple):
    """The vectors of one message, and its thread."""

    vectors: NewVectors
    thread: ThreadId


def check_shape(vectors: NDArray[np.float32], space: VectorSpace, of: str) -> None:
    """Refuse what is not (chunks, dimensions) with at least one chunk.

    Raises:
        StoreError: It is not.
    """
    shape = vectors.shape
    if len(shape) != 2 or shape[0] < 1 or shape[1] != space.dimensions:
        raise StoreError(
            f"the vectors of {of} have shape {shape}; the space {space.name!r}"
            f" takes (chunks, {space.dimensions}) with at least one chunk"
        )


def write_vectors(
    tx: Transaction,
    space_key: int,
    rows: Sequence[Owned],
    *,
    replaced: Mapping[int, int],
    outbox: bool,
    new: Collection[int] = (),
) -> None:
    """Write the vectors of messages that have none in the space, count and queue them.

    Args:
        tx: The transaction.
        space_key: The vector space.
        rows: The vectors.
        replaced: How many vectors a message had before, by its key.
        outbox: Queue them for the vector index.
        new: Messages that were not there before, for which nothing can be queued yet.
    """
    if not rows:
        return
    tx.backend.vector_rows.insert_vectors(tx, space_key, [row.vectors for row in rows])
    written = {row.vectors.key: len(row.vectors.vectors) for row in rows}
    if outbox:
        changes = [
            _queues.Change(space_key, key, max(chunks, replaced.get(key, 0)), *row.thread)
            for row, (key, chunks) in zip(rows, written.items(), strict=True)
        ]
        _queues.push(tx, "upsert", changes, new=new)
    grown = sum(written.values()) - sum(replaced.values())
    _queues.count_vectors(tx, Counter({space_key: grown}))
