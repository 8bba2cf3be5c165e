"""Replays in a vector index what the store has queued for it."""

from __future__ import annotations

from collections.abc import Sequence

from semantic_recall.protocols import VectorIndex
from semantic_recall.records import IndexOperation, vector_id
from semantic_recall.types import Scope, VectorRecord, VectorSpace


def apply(index: VectorIndex, operations: Sequence[IndexOperation]) -> None:
    """Bring the index to where the operations, one after the other, lead.

    Of each vector only its last state is written, which is the same and takes fewer calls.
    """
    spaces: dict[VectorSpace, dict[str, VectorRecord | Scope]] = {}
    for operation in operations:
        state = spaces.setdefault(operation.space, {})
        for chunk in range(len(operation.vectors), operation.chunks):
            state[vector_id(operation.key, chunk)] = operation.scope
        if operation.kind == "upsert":
            for chunk, vector in enumerate(operation.vectors):
                id = vector_id(operation.key, chunk)
                state[id] = VectorRecord(id=id, scope=operation.scope, vector=vector)
    for space, state in spaces.items():
        gone = {id: item for id, item in state.items() if isinstance(item, Scope)}
        records = [item for item in state.values() if isinstance(item, VectorRecord)]
        if gone:
            index.delete(space, gone)
        if records:
            index.upsert(space, records)
