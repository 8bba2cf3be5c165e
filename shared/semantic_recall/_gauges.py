"""What gauges read: the state of the memories of this process, none of them kept alive."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Iterator, Mapping

from semantic_recall.errors import StoreClosedError, StoreError
from semantic_recall.protocols import MessageStore
from semantic_recall.telemetry import LookUps


class Gauges:
    """Asks memories for their state when an exporter wants to know; safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._memories: list[_Memory] = []
        self._caches: list[_Cache] = []
        self._totals: dict[tuple[str, bool], int] = {}

    def add(self, store: MessageStore, caches: Mapping[str, LookUps]) -> None:
        """Begin to watch a store and its caches; the same store again only adds the caches."""
        with self._lock:
            if all(memory.store() is not store for memory in self._memories):
                self._memories.append(_Memory(store))
            self._caches += [_Cache(name, cache) for name, cache in caches.items()]

    def sizes(self, name: str) -> Iterator[tuple[str, int]]:
        """Yield the id of each memory and an entry of its store's `size`.

        The entries of one collection come from one look into the database. A memory whose
        database fails is left out this time, one that is closed for ever.
        """
        with self._lock:
            memories = list(self._memories)
        seen = set()
        for memory in memories:
            try:
                number = memory.size(name)
            except StoreClosedError:
                with self._lock:
                    self._memories = [other for other in self._memories if other is not memory]
                continue
            if number is not None and memory.id not in seen:  # one folder may be open twice
                seen.add(memory.id)
                yield memory.id, number

    def lookups(self) -> Iterator[tuple[str, bool, int]]:
        """Yield for each cache's name its hits (True) and misses (False) since the beginning.

        They never go down: what was counted stays when a cache is replaced.
        """
        with self._lock:
            alive = []
            for cache in self._caches:
                looked_up = cache.ref()
                if looked_up is None:
                    continue
                alive.append(cache)
                for hit, number in ((True, looked_up.hits), (False, looked_up.misses)):
                    key = (cache.name, hit)
                    self._totals[key] = self._totals.get(key, 0) + number - cache.counted[hit]
                    cache.counted[hit] = number
            self._caches = alive
            totals = dict(self._totals)
        for (name, hit), number in totals.items():
            yield name, hit, number


class _Memory:
    """One store, asked once for all gauges."""

    def __init__(self, store: MessageStore) -> None:
        self.store = weakref.ref(store)
        self.id = ""
        self._lock = threading.Lock()
        self._size: Mapping[str, int] | None = None
        self._told: set[str] = set()

    def size(self, name: str) -> int | None:
        """Return an entry of the size; whoever asks for it a second time gets a new one.

        Raises:
            StoreClosedError: The store is closed, or there is none any more.
        """
        with self._lock:
            if self._size is None or name in self._told:
                self._size = self._look()
                self._told = set()
            self._told.add(name)
            return self._size.get(name)

    def _look(self) -> Mapping[str, int]:
        store = self.store()
        if store is None:
            raise StoreClosedError("the memory was collected")
        try:
            self.id = self.id or store.setting("memory_id", uuid.uuid4().hex)
            return store.size()
        except StoreClosedError:
            raise
        except StoreError:
            return {}  # whoever uses the memory is told by it; a gauge has no point this time


class _Cache:
    def __init__(self, name: str, cache: LookUps) -> None:
        self.name = name
        self.ref = weakref.ref(cache)
        self.counted = {True: 0, False: 0}
