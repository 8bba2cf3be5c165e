"""One search: from a scope and a query to positions in a view, best first.

Small scopes are scored whole. A scope above the exact limit is cut first: candidates come from
the vector index, from the store's full text and from what the index has not seen yet; with their
neighbours they are scored by the same functions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semantic_recall.context import HEARD_AFTER, HEARD_BEFORE, Words
from semantic_recall.current_thread import LastTurns, last_turns, own_message
from semantic_recall.filtering import BELOW_THRESHOLD, filtered, positions_of, with_metadata
from semantic_recall.index_answers import Answer, answer_of
from semantic_recall.options import RecallOptions
from semantic_recall.protocols import MessageStore, VectorIndex
from semantic_recall.ranking import dense_scores, select
from semantic_recall.records import ScopeState
from semantic_recall.scope_cache import ScopeCache
from semantic_recall.scope_view import ScopeView
from semantic_recall.scoring import Query, dense_of, follow_up_scores, query_scores
from semantic_recall.types import MessageRange, Scope, VectorSpace

CANDIDATES = 256
"""How many candidates each side (vectors, words) gives for a scope that is too large."""
NOT_IN_SCOPE = "not in scope"
"""Why a message is dropped that the index names and the store does not have in the scope."""


class Found(NamedTuple):
    """What a search found: positions in `view`, and the scores of every position."""

    view: ScopeView
    hits: list[int]
    """Best first."""
    scores: NDArray[np.float32]
    dense: NDArray[np.float32]
    lexical: NDArray[np.float32]
    excluded: NDArray[np.bool_] | None
    """Positions that must not be shown, also not as neighbours; None: all may be."""
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
            thread: The current thread, whose last message may be the query itself; a follow-up
                is understood by what was said there last.
        """
        state = self._store.state(scope)
        if state is None or state.messages == 0:
            return None
        dropped: Mapping[str, int] = {}
        if state.messages > self._exact_limit:
            cut = self._cut(scope, space, query, options)
            if cut is not None:
                dropped = {NOT_IN_SCOPE: cut.wrong} if cut.wrong else {}
                found = self._scored(
                    scope, cut.view, cut.words, query, options, thread=thread, dropped=dropped
                )
                if _suffices(found, cut, query, options, state):
                    return found
        view = self._cache.view(scope, space, state)
        words = view.lexical(query.terms)
        hears = query.is_follow_up and options.ranking == "hybrid"
        last = last_turns(self._store, thread, query.digest) if hears else None
        return self._scored(
            scope, view, words, query, options, thread=thread, dropped=dropped, last=last
        )

    def _scored(
        self,
        scope: Scope,
        view: ScopeView,
        words: Words,
        query: Query,
        options: RecallOptions,
        *,
        thread: Scope | None,
        dropped: Mapping[str, int],
        last: LastTurns | None = None,
    ) -> Found:
        """Score a view and choose the hits.

        `dropped` is what was dropped on the way to it, `last` what a follow-up is about.
        """
        dense = dense_of(view, query)
        excluded = self._excluded(scope, view, query, options, thread)
        complete = view.vector_rows is not None and query.vector is not None and last is None
        across = scope.thread_id is None
        if options.ranking == "dense":
            scores = dense_scores(dense, view.searchable)
        elif last is None:
            scores = query_scores(view, query, dense, words, across=across, complete=complete)
        else:
            scores, words = follow_up_scores(
                view, query, dense, words, last, across=across, excluded=excluded
            )
        matching = None
        if options.filter is not None:
            keys = with_metadata(self._store.metadata(scope), options.filter)
            matching = positions_of(view, keys)
        eligible, filtered_out = filtered(
            view, dense, options, matching=matching, excluded=excluded
        )
        hits = select(
            scores,
            None if complete and eligible is view.searchable else eligible,
            options.top_k,
            digests=view.digests if options.ranking == "hybrid" else None,
            newest=view.newest,
            repeated=view.repeated,
        )
        return Found(
            view=view,
            hits=hits,
            scores=scores,
            dense=dense,
            lexical=words.scores,
            excluded=excluded,
            dropped={**filtered_out, **dropped},
        )

    def _cut(
        self, scope: Scope, space: VectorSpace | None, query: Query, options: RecallOptions
    ) -> _Cut | None:
        """Return the candidates and their neighbours, or None when the index cannot be asked."""
        index = self._index()
        if index is None:
            return None
        limit = max(CANDIDATES, 4 * options.top_k)
        keys: set[int] = set()
        answer = Answer(set(), 0)
        if query.vector is not None and space is not None:
            recent = self._store.operations(limit=limit + 1)
            if len(recent) > limit:
                return None  # the index is too far behind to be asked
            keys.update(op.key for op in recent if op.kind == "upsert")
            try:
                answer = answer_of(index.search(space, query.vector, scope, top_k=limit), limit)
            # Any class can be an index, and whatever it raises, the store knows the answer too.
            except Exception as error:  # noqa: BLE001 - see above; it is logged
                self._logger.warning("the vector index failed, searching exactly: %s", error)
                return None
        words, counts = self._store.lexical_candidates(scope, query.terms.tolist(), limit=limit)
        keys.update(answer.keys, words)
        around = MessageRange.of(options.message_range)
        # As far as a message hears its neighbours when it is scored; windows may need more.
        before, after = max(around.before, HEARD_BEFORE), max(around.after, HEARD_AFTER)
        windows = self._store.window(scope, sorted(keys), before=before, after=after)
        wrong = answer.unreadable + len(answer.keys - windows.keys())
        nearby = sorted({key for window in windows.values() for key in window})
        state = self._store.state(scope)
        view = ScopeView.build(self._store.rows(scope, space, keys=nearby))
        cut_words = view.lexical(
            query.terms, messages=state.messages if state else len(nearby), document_counts=counts
        )
        return _Cut(view, cut_words, right=len(answer.keys & windows.keys()), wrong=wrong)

    def _excluded(
        self,
        scope: Scope,
        view: ScopeView,
        query: Query,
        options: RecallOptions,
        thread: Scope | None,
    ) -> NDArray[np.bool_] | None:
        keys: set[int] = set()
        if options.exclude_ids:
            found = self._store.keys(scope, list(options.exclude_ids))
            keys.update(key for same_id in found.values() for key in same_id)
        own = own_message(self._store, scope, view, query.digest, thread)
        if own is not None:
            keys.add(own)
        return positions_of(view, keys) if keys else None


@dataclass(frozen=True, slots=True)
class _Cut:
    """The part of a scope that an index and the full text point to."""

    view: ScopeView
    words: Words
    right: int
    """Messages that the index named and that are in the scope."""
    wrong: int
    """What the index named besides: deleted, of another scope, or no id at all."""


def _suffices(
    found: Found, cut: _Cut, query: Query, options: RecallOptions, state: ScopeState
) -> bool:
    """Tell whether a search of the whole scope would find no more than the cut gave."""
    if len(cut.view.keys) >= state.messages:
        return True
    if cut.wrong and cut.right < options.top_k:
        return False  # the index is not to be relied on
    if len(found.hits) >= options.top_k:
        return True
    filters = found.dropped.keys() - {BELOW_THRESHOLD, NOT_IN_SCOPE}
    # The nearest were looked at: where they are below the threshold, so is the rest. And a search
    # by words alone wants no message without them.
    return not filters and (query.vector is None or BELOW_THRESHOLD in found.dropped)
