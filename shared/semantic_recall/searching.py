"""One search: from a scope and a query to positions in a view, best first.

Small scopes are scored whole. A scope above the exact limit is cut first: candidates come from
the vector index, from the store's full text and from what the index has not seen yet; with their
neighbours they are scored by the same functions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import VectorIndexError
from semantic_recall.filtering import filtered, positions_of, with_metadata
from semantic_recall.options import RecallOptions
from semantic_recall.protocols import MessageStore, ScopeState, VectorIndex, vector_key
from semantic_recall.ranking import dense_scores, hybrid_scores, select
from semantic_recall.scope_cache import ScopeCache
from semantic_recall.scope_view import ScopeView
from semantic_recall.types import MessageRange, Scope, Vector, VectorSpace

CANDIDATES = 256
"""How many candidates each side (vectors, words) gives for a scope that is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is searched for, worked out once."""

    vector: Vector | None
    terms: NDArray[np.uint32]
    digest: int
    """First 8 bytes of the digest that the query would have as a stored user message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found: positions in `view`, and the scores of every position."""

    view: ScopeView
    hits: list[int]
    """Best first."""
    scores: NDArray[np.float32]
    dense: NDArray[np.float32]
    lexical: NDArray[np.float32]
    excluded: NDArray[np.bool_]
    """Positions that must not be shown, also not as neighbours."""
    dropped: Mapping[str, int]


class Searcher:
    """Searches scopes of one memory.

    Args:
        store: The truth.
        cache: Views of hot scopes.
        index: Gives the vector index if this process owns it.
        exact_limit: Up to how many messages a scope is scored whole.
        logger: Where a failing index is reported.
    """

    def __init__(
        self,
        store: MessageStore,
        cache: ScopeCache,
        *,
        index: Callable[[], VectorIndex | None],
        exact_limit: int,
        logger: logging.Logger,
    ) -> None:
        self._store = store
        self._cache = cache
        self._index = index
        self._exact_limit = exact_limit
        self._logger = logger

    def search(
        self,
        scope: Scope,
        space: VectorSpace | None,
        query: Query,
        options: RecallOptions,
        *,
        thread: Scope | None,
    ) -> Found | None:
        """Return the best messages of the scope, or None when it has none.

        Args:
            scope: What may be seen.
            space: The space of the query's vector; None searches by words alone.
            query: What is searched for.
            options: top_k, ranking and filters.
            thread: The current thread, whose last message may be the query itself.
        """
        state = self._store.state(scope)
        if state is None or state.messages == 0:
            return None
        cut = None
        if state.messages > self._exact_limit:
            cut = self._cut(scope, space, query, options)
        view, lexical = cut or self._whole(scope, space, query, state)
        missing = np.full(len(view.keys), np.nan, np.float32)
        dense = missing if query.vector is None else view.dense(query.vector)
        if options.ranking == "dense":
            scores = dense_scores(dense, view.searchable)
        else:
            scores = hybrid_scores(
                dense, lexical, view.starts, view.searchable,
                across_threads=scope.thread_id is None,
            )  # fmt: skip
        excluded = self._excluded(scope, view, query, options, thread)
        matching = None
        if options.filter is not None:
            keys = with_metadata(self._store.metadata(scope), options.filter)
            matching = positions_of(view, keys)
        eligible, dropped = filtered(view, dense, options, matching=matching, excluded=excluded)
        hits = select(
            scores,
            eligible,
            options.top_k,
            digests=view.digests if options.ranking == "hybrid" else None,
            recency=view.keys,
        )
        return Found(
            view=view,
            hits=hits,
            scores=scores,
            dense=dense,
            lexical=lexical,
            excluded=excluded,
            dropped=dropped,
        )

    def _whole(
        self, scope: Scope, space: VectorSpace | None, query: Query, state: ScopeState
    ) -> tuple[ScopeView, NDArray[np.float32]]:
        view = self._cache.view(scope, space, state)
        return view, view.lexical(query.terms)

    def _cut(
        self, scope: Scope, space: VectorSpace | None, query: Query, options: RecallOptions
    ) -> tuple[ScopeView, NDArray[np.float32]] | None:
        """Return the candidates and their neighbours, or None when the index cannot be asked."""
        index = self._index()
        if index is None:
            return None
        limit = max(CANDIDATES, 4 * options.top_k)
        keys: set[int] = set()
        if query.vector is not None and space is not None:
            recent = self._store.operations(limit=limit + 1)
            if len(recent) > limit:
                return None  # the index is too far behind to be asked
            keys.update(op.key for op in recent if op.kind == "upsert")
            try:
                found = index.search(space, query.vector, scope, top_k=limit)
            except VectorIndexError as error:
                self._logger.warning("the vector index failed, searching exactly: %s", error)
                return None
            keys.update(vector_key(hit.id) for hit in found)
        words, counts = self._store.lexical_candidates(scope, query.terms.tolist(), limit=limit)
        keys.update(words)
        around = MessageRange.of(options.message_range)
        # One neighbour on each side is what smoothing looks at; windows may need more.
        before, after = max(around.before, 1), max(around.after, 1)
        windows = self._store.window(scope, sorted(keys), before=before, after=after)
        nearby = sorted({key for window in windows.values() for key in window})
        state = self._store.state(scope)
        view = ScopeView.build(self._store.rows(scope, space, keys=nearby))
        lexical = view.lexical(
            query.terms, messages=state.messages if state else len(nearby), document_counts=counts
        )
        return view, lexical

    def _excluded(
        self,
        scope: Scope,
        view: ScopeView,
        query: Query,
        options: RecallOptions,
        thread: Scope | None,
    ) -> NDArray[np.bool_]:
        keys: set[int] = set()
        if options.exclude_ids:
            found = self._store.keys(scope, list(options.exclude_ids))
            keys.update(key for same_id in found.values() for key in same_id)
        own = None if thread is None else self._own_message(scope, view, query, thread)
        if own is not None:
            keys.add(own)
        if not keys:
            return np.zeros(len(view.keys), np.bool_)
        return positions_of(view, keys)

    def _own_message(
        self, scope: Scope, view: ScopeView, query: Query, thread: Scope
    ) -> int | None:
        """Return the query's own message if it is stored: the last one of the current thread."""
        ends = np.append(view.starts[1:], len(view.keys)) - 1
        for position in ends[view.digests[ends] == query.digest].tolist():
            key = int(view.keys[position])
            message = self._store.fetch(scope, [key]).get(key)
            if message and Scope(message.resource_id, message.thread_id) == thread:
                return key
        return None
