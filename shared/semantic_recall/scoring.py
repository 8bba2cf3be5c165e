"""What a query makes of a view: the scores of its messages. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semantic_recall.context import Words
from semantic_recall.current_thread import LastTurns
from semantic_recall.periods import Asked
from semantic_recall.ranking import DEFAULT_WEIGHTS, hybrid_scores
from semantic_recall.scope_view import ScopeView
from semantic_recall.types import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is searched for, worked out once."""

    vector: Vector | None
    understood: float
    """Which share of the text the embedder can read, 0 to 1."""
    terms: NDArray[np.uint32]
    role: str | None
    """Whose messages are asked about, if the wording tells."""
    time: Asked | None
    """Which time is asked about, if the wording tells."""
    digest: int
    """The number of the digest that the query would have as a stored user message."""
    is_follow_up: bool = False
    """Whether the wording leaves out what it is about."""


def dense_of(view: ScopeView, query: Query) -> NDArray[np.float32]:
    """Return the cosine of each message to the query, NaN where either has no vector."""
    if query.vector is None:
        return np.full(len(view.keys), np.nan, np.float32)
    return view.dense(query.vector)


def query_scores(
    view: ScopeView,
    query: Query,
    dense: NDArray[np.float32],
    words: Words,
    *,
    across: bool,
    complete: bool = False,
    searchable: NDArray[np.bool_] | None = None,
) -> NDArray[np.float32]:
    """Return the hybrid score of each message.

    Args:
        view: The messages.
        query: What is searched for.
        dense: (n,) their cosines to it.
        words: What its words find.
        across: Whether threads lend their messages something: where many are searched.
        complete: Everything is searchable and has a vector.
        searchable: (n,) what can be a hit, if not all that the view says.
    """
    return hybrid_scores(
        dense,
        words.scores,
        view.starts,
        view.searchable if searchable is None else searchable,
        across_threads=across,
        whole=words.whole,
        understood=query.understood,
        prior=view.prior_for(query.role, query.time),
        wordless=view.wordless,
        complete=complete,
    )


def follow_up_scores(
    view: ScopeView,
    query: Query,
    dense: NDArray[np.float32],
    words: Words,
    last: LastTurns,
    *,
    across: bool,
    excluded: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.float32], Words]:
    """Return the hybrid scores for a query that says only with the last turns what it is about.

    What was said last is all that its own words ask for: it would be the best, and the measure of
    all others. Where it may be shown, the query alone says what it is worth.

    Args:
        view: The messages.
        query: What is searched for.
        dense: (n,) their cosines to it.
        words: What its own words find.
        last: What was said last.
        across: As in `query_scores`.
        excluded: (n,) what must not be shown; None: all may be.

    Returns:
        The scores, and what was found by the words of both; the query's own stay the measure.
    """
    heard = view.lexical(last.terms).scores * np.float32(DEFAULT_WEIGHTS.heard)
    both = Words(words.scores + heard, words.whole)
    apart = (view.digests[:, None] == last.digests).any(axis=1)
    others = view.searchable & ~apart
    scores = query_scores(view, query, dense, both, across=across, searchable=others)
    if excluded is None or (apart & ~excluded).any():
        alone = query_scores(view, query, dense, words, across=across)
        scores = np.where(apart, alone, scores)
    return scores, both
