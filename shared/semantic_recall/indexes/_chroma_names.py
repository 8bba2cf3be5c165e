"""How scopes, vector spaces, shards and vectors are given to Chroma: pure functions.

Chroma cannot hold every id: a lone surrogate is not UTF-8, and None is no value. So a resource
is stored as "r:" and the id, or, when the id cannot be encoded, as "x:" and the hex digits of
its bytes, or as "-" for threads without a resource. No two resources share a form.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import VectorIndexError
from semantic_recall.types import Scope, Vector, VectorSpace

T = TypeVar("T")

OURS = re.compile(r".*-[0-9a-f]{16}-\d{3}(-copy)?")
"""The names that collections of an index have, whatever their prefix."""
COPY = "-copy"
"""Ends the name of a collection that `scrub` is copying into."""


def _digest(*parts: str, size: int) -> str:
    """Return a digest of the parts; each has its length before it, so none can run into another."""
    hasher = blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


def resource_value(resource_id: str | None) -> str:
    """Return what stands for a resource in Chroma's metadata."""
    if resource_id is None:
        return "-"
    try:
        resource_id.encode("utf-8")
    except UnicodeEncodeError:
        return "x:" + resource_id.encode("utf-8", "surrogatepass").hex()
    return "r:" + resource_id


def thread_value(resource_id: str | None, thread_id: str) -> str:
    """Return the key of one thread: 32 hex digits made from the pair (resource, thread)."""
    return _digest(resource_value(resource_id), thread_id, size=16)


def where(scope: Scope) -> dict[str, str]:
    """Return Chroma's filter for a scope."""
    if scope.thread_id is None:
        return {"resource_id": resource_value(scope.resource_id)}
    return {"thread_key": thread_value(scope.resource_id, scope.thread_id)}


def metadata(thread: Scope) -> dict[str, str]:
    """Return the whole metadata of a vector of the thread.

    Raises:
        ValueError: The scope is not a thread.
    """
    if thread.thread_id is None:
        raise ValueError("a vector belongs to a thread, not to a whole resource")
    return {
        "resource_id": resource_value(thread.resource_id),
        "thread_key": thread_value(thread.resource_id, thread.thread_id),
    }


def shard_of(scope: Scope, shards: int) -> int:
    """Return the shard that holds the whole scope: by resource, or by thread without one."""
    if scope.resource_id is None and scope.thread_id is not None:
        key = thread_value(None, scope.thread_id)
    else:
        key = resource_value(scope.resource_id)
    return zlib.crc32(key.encode("utf-8")) % shards


def stem(prefix: str, space: VectorSpace) -> str:
    """Return how the names of the space's collections begin."""
    return f"{prefix}-{_digest(space.name, str(space.dimensions), size=8)}-"


def checked(space: VectorSpace, vector: Vector, what: str) -> NDArray[np.float32]:
    """Return a vector as Chroma takes it.

    Raises:
        VectorIndexError: It has another length, NaN or infinity.
    """
    row = np.asarray(vector, dtype=np.float32)
    if row.shape != (space.dimensions,):
        raise VectorIndexError(
            f"{what} has shape {row.shape}; the space {space.name} has "
            f"{space.dimensions} dimensions"
        )
    if not np.isfinite(row).all():
        raise VectorIndexError(f"{what} has NaN or infinity")
    return row


def grouped(pairs: Iterable[tuple[int, T]]) -> Iterator[tuple[int, list[T]]]:
    """Yield each key with its values, in order."""
    groups: dict[int, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    yield from groups.items()


def batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` items."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
