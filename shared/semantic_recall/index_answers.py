"""What a vector index said, as far as it can be read: any class can be an index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from semantic_recall.records import vector_key
from semantic_recall.types import Hit


@dataclass(frozen=True, slots=True)
class Answer:
    """The messages that an index named."""

    keys: set[int]
    unreadable: int
    """How many hits have an id that names no message."""


def answer_of(hits: Iterable[Hit], limit: int) -> Answer:
    """Read at most `limit` hits; their scores are not used, as the store's vectors are compared."""
    read = [_key_of(hit) for hit in islice(hits, limit)]
    return Answer({key for key in read if key is not None}, read.count(None))


def _key_of(hit: Hit) -> int | None:
    try:
        return vector_key(hit.id)
    except ValueError:
        return None
