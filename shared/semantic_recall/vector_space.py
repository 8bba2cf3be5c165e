"""Which vectors fit: into a store, and into a vector space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import InvalidVectorError, VectorSpaceMismatchError
from semantic_recall.protocols import Embedder, MessageStore
from semantic_recall.records import SpaceInfo
from semantic_recall.types import Vector, VectorSpace

_TINY = float(np.finfo(np.float32).tiny)


def checked_vector(value: object, dimensions: int) -> Vector:
    """Return a vector as float32, shape (dimensions,).

    Raises:
        InvalidVectorError: It is no vector of that length, has NaN or infinity, or its length
            is too small (zeros) or too large for a cosine in single precision.
    """
    vector = _single(value)
    if vector.shape != (dimensions,):
        raise InvalidVectorError(f"a vector of shape {vector.shape}, not ({dimensions},)")
    squared = float(np.vdot(vector, vector))  # which, unlike `@`, overflows without a warning
    if not _TINY < squared < np.inf:
        if not np.isfinite(vector).all():
            problem = "NaN or infinity"
        else:
            problem = "only zeros" if squared <= _TINY else "too large numbers"
        raise InvalidVectorError(f"a vector with {problem}")
    return vector


def _single(value: object) -> NDArray[np.float32]:
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return value
    with np.errstate(all="ignore"):  # what overflows is refused later
        try:
            return np.asarray(value, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InvalidVectorError(f"not a vector of numbers: {error}") from error


def checked_vectors(values: Sequence[object], dimensions: int) -> NDArray[np.float32] | None:
    """Return vectors as one array, shape (n, dimensions), or None if one of them is not usable.

    The same checks as `checked_vector`, for many at once.
    """
    with np.errstate(all="ignore"):
        try:
            vectors: NDArray[np.float32] = np.asarray(values, dtype=np.float32)
        except (TypeError, ValueError):
            return None
        if vectors.shape != (len(values), dimensions):
            return None
        squared = np.einsum("ij,ij->i", vectors, vectors)
    return vectors if ((squared > _TINY) & (squared < np.inf)).all() else None


def space_is_new(known: Sequence[SpaceInfo], wanted: VectorSpace) -> bool:
    """Tell whether a store must be made to use `wanted`; False when it does already.

    Raises:
        VectorSpaceMismatchError: The store's vectors were made by another embedder.
    """
    active = next((info.space for info in known if info.active), None)
    if active is None:
        return True
    if active != wanted:
        raise VectorSpaceMismatchError(
            f"this memory was embedded by {active.name!r} ({active.dimensions} dimensions), but "
            f"the embedder is {wanted.name!r} ({wanted.dimensions} dimensions); open it with the "
            "first one, or re-embed it with: semantic-recall reindex"
        )
    return False


def open_space(store: MessageStore, embedder: Embedder) -> None:
    """Make the store use the embedder's vector space.

    Raises:
        VectorSpaceMismatchError: The store's vectors were made by another embedder.
    """
    if space_is_new(store.spaces(), embedder.space):
        store.add_space(embedder.space, active=True)
