"""Vectors of texts that were embedded lately, in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import InvalidOptionError
from semantic_recall.forks import renew_in_child

Side: TypeAlias = Literal["document", "query"]
Key: TypeAlias = tuple[str, Side, bytes]
"""The embedder's fingerprint, the side, and the digest of the text."""


class VectorCache:
    """The vectors used last, by text; safe to use from many threads.

    Args:
        capacity: How many vectors it holds; a text in 5 chunks counts as 5. 0 holds none.

    Raises:
        InvalidOptionError: `capacity` is negative.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise InvalidOptionError(f"cache_entries must be 0 or more, not {capacity!r}")
        self._capacity = capacity
        self.hits = 0
        self.misses = 0
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin empty, with a lock that nobody holds."""
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, NDArray[np.float32]] = OrderedDict()
        self._vectors = 0

    def __len__(self) -> int:
        """Return how many vectors it holds."""
        return self._vectors

    def get(self, key: Key) -> NDArray[np.float32] | None:
        """Return what `put` was given, shape (chunks, dimensions), read-only."""
        return self.get_all([key]).get(key)

    def get_all(self, keys: Sequence[Key]) -> dict[Key, NDArray[np.float32]]:
        """Return what `put` was given for each key that it has, read-only."""
        with self._lock:
            entries = self._entries
            found = {key: entries[key] for key in keys if key in entries}
            for key in found:
                entries.move_to_end(key)
            self.hits += len(found)
            self.misses += len(keys) - len(found)
            return found

    def put(self, key: Key, vectors: NDArray[np.float32]) -> None:
        """Keep vectors, shape (chunks, dimensions), and make them read-only."""
        self.put_all({key: vectors})

    def put_all(self, items: Mapping[Key, NDArray[np.float32]]) -> None:
        """Keep many, in this order."""
        with self._lock:
            for key, vectors in items.items():
                vectors.flags.writeable = False
                if len(vectors) > self._capacity:
                    continue
                replaced = self._entries.pop(key, None)
                if replaced is not None:
                    self._vectors -= len(replaced)
                self._entries[key] = vectors
                self._vectors += len(vectors)
            while self._vectors > self._capacity:
                _, dropped = self._entries.popitem(last=False)
                self._vectors -= len(dropped)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._vectors = 0
