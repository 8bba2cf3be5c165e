"""The views of hot scopes in memory, bounded by bytes and never older than the store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias

from semantic_recall.forks import renew_in_child
from semantic_recall.protocols import MessageStore
from semantic_recall.records import ScopeState
from semantic_recall.scope_view import ScopeView
from semantic_recall.types import Scope, VectorSpace

_Key: TypeAlias = "tuple[str | None, str | None, str | None]"
"""Resource, thread, name of the vector space: strings know their hashes."""

_LOAD_LOCKS = 64


class ScopeCache:
    """Least recently used views, brought up to date on every look.

    Safe to call from many threads; one scope is loaded by one thread at a time.

    Args:
        store: Where views are loaded from.
        limit_bytes: How much memory the views may take together; a view larger than that is
            built for each search and not kept.
    """

    def __init__(self, store: MessageStore, *, limit_bytes: int) -> None:
        self._store = store
        self._limit = limit_bytes
        self.hits = 0
        """Looks that the kept views answered."""
        self.misses = 0
        """Looks for which the store was read, whole or for what was new."""
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin empty, with locks that nobody holds."""
        self._views: OrderedDict[_Key, ScopeView] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._loading = [threading.Lock() for _ in range(_LOAD_LOCKS)]

    def view(self, scope: Scope, space: VectorSpace | None, state: ScopeState) -> ScopeView:
        """Return a view of the scope that shows at least what `state` shows.

        Raises:
            StoreError: The store failed.
        """
        key = (scope.resource_id, scope.thread_id, None if space is None else space.name)
        view = self._get(key, state.version)
        if view is not None and view.version >= state.version:
            return view
        with self._loading[hash(key) % _LOAD_LOCKS]:
            view = self._get(key, state.version)
            if view is not None and view.version >= state.version:
                return view
            fresh = self._load(scope, space, view)
            self._put(key, fresh)
            return fresh

    def drop(self, resource_id: str | None) -> None:
        """Forget every view of a resource."""
        with self._lock:
            for key in [key for key in self._views if key[0] == resource_id]:
                self._bytes -= self._views.pop(key).nbytes

    def clear(self) -> None:
        """Forget every view."""
        with self._lock:
            self._views.clear()
            self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes that the kept views take."""
        return self._bytes

    def _load(self, scope: Scope, space: VectorSpace | None, old: ScopeView | None) -> ScopeView:
        if old is not None:
            rows = self._store.rows(scope, space, since=old.version)
            # Asked after the rows were read: a deletion in between only costs a new build.
            if not self._store.deleted_since(scope, old.version):
                grown = old.extended(rows)
                if grown is not None:
                    return grown
        return ScopeView.build(self._store.rows(scope, space))

    def _get(self, key: _Key, version: int) -> ScopeView | None:
        with self._lock:
            view = self._views.get(key)
            if view is not None:
                self._views.move_to_end(key)
                self.hits += view.version >= version
            return view

    def _put(self, key: _Key, view: ScopeView) -> None:
        with self._lock:
            self.misses += 1
            old = self._views.pop(key, None)
            if old is not None:
                self._bytes -= old.nbytes
            if view.nbytes > self._limit:
                return
            self._views[key] = view
            self._bytes += view.nbytes
            while self._bytes > self._limit:
                _, evicted = self._views.popitem(last=False)
                self._bytes -= evicted.nbytes
