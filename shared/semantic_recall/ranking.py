"""How messages are ranked: pure functions over arrays in conversation order.

*Conversation order* is by thread, and inside a thread by insertion. Neighbours in an array are
neighbours in a conversation, except across the start of a thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEVER = np.float32(-np.inf)
_TINY = 1e-30  # 1 / smaller ones is too large for single precision
_LAST_PLACES = np.array([1, 2, 3])
_FEW = 500  # up to so many messages a loop over threads is quicker than array operations
_ONE, _SHIFT = np.uint64(1), np.uint64(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """The weights of `hybrid_scores` and `prior_scores`.

    Chosen on conversations with labelled evidence (LoCoMo's, companion chats in English and
    Chinese, the tuning half of `benchmarks/own`); what helps only one of them was left out, and
    every weight is flat around its value. Convex fusion: Bruch, Gai, Ingber, "An Analysis of Fusion
    Functions for Hybrid Retrieval" (ACM TOIS 2023); it beat reciprocal ranks here by 5 points.
    """

    dense: float = 0.5
    """Weight of the cosine similarity; the rest of 1 is the weight of BM25."""
    little: float = 0.25
    """Where the best message's words cover no more of the query than this, words do not count."""
    enough: float = 0.35
    """From here on they have their whole weight. Paraphrases stay below (median in `benchmarks/own`
    .17, other questions .35 to .67): in Chinese and Korean e5 finds 17 of 20 first, 11 without."""
    thread: float = 0.2
    """How much of the mean of its thread's three best a message adds, in resource scope."""
    answer: float = 0.1
    """What a message gains when the one before it in the thread asks something."""
    question: float = 0.05
    """What a message that asks something loses."""
    period: float = 0.2
    """What a message gains from the time that the query names. Evidence in 500 tokens, LoCoMo's 94
    questions with a time: .894, .759 without; in the five best, 10 of `benchmarks/own`: .8, .5."""
    role: float = 0.15
    """What a message gains when its speaker is the one the query is about."""


DEFAULT_WEIGHTS = RankingWeights()


def hybrid_scores(
    dense: NDArray[np.float32],
    lexical: NDArray[np.float32],
    starts: NDArray[np.int64],
    searchable: NDArray[np.bool_],
    *,
    across_threads: bool,
    whole: float = 0.0,
    understood: float = 1.0,
    prior: NDArray[np.float32] | None = None,
    weights: RankingWeights = DEFAULT_WEIGHTS,
) -> NDArray[np.float32]:
    """Score messages by meaning, words and thread.

    Both kinds of score are scaled to 0..1 over the searchable messages and mixed; for a message
    without a vector the words count alone. So the best by words has 1 even if all it shares with
    the query is a common word: words weigh less where it stays far below `whole`, and cosines less
    the more of the query the embedder cannot read. With `across_threads` each adds a share of the
    mean of its thread's three best (of all, in a thread with fewer); `prior` is added last.

    Args:
        dense: (n,) cosine similarity to the query; NaN without a vector.
        lexical: (n,) BM25, >= 0.
        starts: (T,) the first position of each thread, ascending from 0.
        searchable: (n,) what can be a hit; the others lend nothing to their thread.
        across_threads: True when the scope is a resource.
        whole: What the query's words are worth together, in the unit of `lexical`; 0: not known.
        understood: Which share of the query the embedder can read, 0 to 1.
        prior: (n,) from `prior_scores`; None for none.
        weights: The weights.

    Returns:
        (n,) float32, and -inf where not searchable.
    """
    if not len(searchable):
        return np.zeros(0, dtype=np.float32)
    scores = _mixed(dense, lexical, searchable, whole, understood, weights)
    if across_threads and weights.thread:
        scores += np.float32(weights.thread) * _thread_best(scores, starts, searchable)
    if prior is not None:
        scores += prior
    if not searchable.all():
        scores[~searchable] = _NEVER
    return scores


def prior_scores(
    starts: NDArray[np.int64],
    questions: NDArray[np.bool_],
    favoured: NDArray[np.bool_] | None = None,
    *,
    weights: RankingWeights = DEFAULT_WEIGHTS,
) -> NDArray[np.float32]:
    """Return what speaks for a message before its words are looked at.

    A message that asks something seldom answers anything, the one after it often does; and a
    query like "what did you suggest?" is about what the assistant said.

    Args:
        starts: (T,) the first position of each thread, ascending from 0.
        questions: (n,) which messages ask something (`terms.QUESTION`).
        favoured: (n,) which messages are of the role asked about; None when none is.
        weights: The weights.

    Returns:
        (n,) float32.
    """
    asked = np.zeros(len(questions), dtype=np.bool_)
    asked[1:] = questions[:-1]
    asked[starts] = False
    scores: NDArray[np.float32] = np.float32(weights.answer) * asked.astype(np.float32)
    scores -= np.float32(weights.question) * questions
    return scores if favoured is None else favour(scores, favoured, weights.role)


def favour(
    prior: NDArray[np.float32], favoured: NDArray[np.bool_], gain: float
) -> NDArray[np.float32]:
    """Return `prior` with what the favoured messages gain; a scope's own can be kept so."""
    raised: NDArray[np.float32] = prior + np.float32(gain) * favoured
    return raised


def dense_scores(dense: NDArray[np.float32], searchable: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Score messages by cosine similarity alone; -inf without a vector or not searchable."""
    return np.where(searchable & ~np.isnan(dense), dense, _NEVER).astype(np.float32, copy=False)


def select(
    scores: NDArray[np.float32],
    eligible: NDArray[np.bool_],
    top_k: int,
    *,
    digests: NDArray[np.int64] | None,
    recency: NDArray[np.int64],
    repeated: NDArray[np.bool_] | None = None,
) -> list[int]:
    """Return the positions of the best messages, best first; of equal scores the newest first.

    Args:
        scores: (n,) NaN and -inf are never selected.
        eligible: (n,) what may be selected.
        top_k: How many at most; 0 or less selects none.
        digests: (n,) equal for equal texts: of those only the newest eligible one counts, with
            its own score. None: every message counts.
        recency: (n,) grows with the order of arrival (the messages' keys).
        repeated: (n,) False where the digest is known to occur once, which saves a look; None
            when that is not known.
    """
    candidates = np.flatnonzero(eligible & (scores > _NEVER))
    chosen: list[int] = []
    if top_k <= 0:
        return chosen
    newest: dict[int, int] = {}
    reach = top_k if digests is None else 2 * top_k + 8
    done = 0
    while done < len(candidates):
        ranked = _ranked(scores, candidates, reach, recency)
        for position in ranked[done:]:
            if (
                digests is None
                or (repeated is not None and not repeated[position])
                or _is_newest(position, candidates, digests, recency, newest)
            ):
                chosen.append(position)
                if len(chosen) == top_k:
                    return chosen
        # Everything so far was a repetition or k is not reached: look further down.
        done, reach = len(ranked), reach * 8
    return chosen


def _mixed(
    dense: NDArray[np.float32],
    lexical: NDArray[np.float32],
    searchable: NDArray[np.bool_],
    whole: float,
    understood: float,
    weights: RankingWeights,
) -> NDArray[np.float32]:
    """Return both kinds of score scaled and mixed, 0 where not searchable."""
    known = searchable & (dense == dense)  # NaN is not equal to itself
    everywhere = known.all()  # as in most scopes: no masks are needed
    able = lexical if everywhere else lexical[searchable]
    covered = float(able.max()) / whole if whole > 0 and len(able) else 1.0
    low, high = weights.little, weights.enough
    trust = max(covered - low, 0.0) / (high - low) if covered < high else 1.0
    trust = 1.0 - (1.0 - trust) * understood  # what cannot be read cannot stand in for words
    weight = np.float32((1.0 - (1.0 - weights.dense) * trust) * understood)
    if everywhere:
        return _scaled(dense, weight) + _scaled(lexical, 1 - weight)
    words = np.zeros(len(lexical), np.float32)
    words[searchable] = _scaled(able, np.float32(1))
    # What still waits for its vector is judged by its words as if its vector agreed.
    meaning: NDArray[np.float32] = weight * words
    meaning[known] = _scaled(dense[known], weight)
    meaning += (1 - weight) * words
    return meaning


def _scaled(values: NDArray[np.float32], to: np.float32) -> NDArray[np.float32]:
    """Return values scaled to 0..`to`; equal ones become 0, or `to` if positive."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    if high - low > _TINY:
        scaled: NDArray[np.float32] = (values - low) * (to / (high - low))
        return scaled
    return np.full(len(values), to * (high > 0), dtype=np.float32)


def _thread_best(
    scores: NDArray[np.float32], starts: NDArray[np.int64], searchable: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Return for each message the mean of its thread's three best searchable scores, else 0."""
    ends = np.append(starts[1:], len(scores))
    best = best_of_few if len(scores) <= _FEW else best_of_many
    return np.repeat(best(scores, starts, ends, searchable), ends - starts)


def best_of_few(
    scores: NDArray[np.float32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    searchable: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Return the mean of each thread's three best; for few messages, as most scopes have."""
    values = np.where(searchable, scores, _NEVER).tolist()
    means = []
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        best = [value for value in sorted(values[begin:end])[-3:] if value >= 0]
        means.append(sum(best) / len(best) if best else 0.0)
    return np.array(means, np.float32)


def best_of_many(
    scores: NDArray[np.float32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    searchable: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Return the same without a loop over threads.

    The bits of a float >= 0, read as a whole number, are in the order of the floats: thread and
    score make one number, so a single plain sort orders every thread.
    """
    ranks = scores.view(np.uint32).astype(np.uint64) + _ONE
    ranks[~searchable] = 0
    ranks |= np.repeat(np.arange(len(starts), dtype=np.uint64) << _SHIFT, ends - starts)
    ranks.sort()
    places = ends[:, None] - _LAST_PLACES
    bits = ranks[np.maximum(places, 0)].astype(np.uint32)
    there = (places >= starts[:, None]) & (bits > 0)
    best = np.where(there, (bits - np.uint32(1)).view(np.float32), np.float32(0.0))
    mean = best.sum(axis=1) / np.maximum(there.sum(axis=1), 1).astype(np.float32)
    result: NDArray[np.float32] = mean.astype(np.float32, copy=False)
    return result


def _ranked(
    scores: NDArray[np.float32],
    candidates: NDArray[np.int64],
    reach: int,
    recency: NDArray[np.int64],
) -> list[int]:
    """Return the best `reach` candidates and those that tie with the last of them, in order."""
    if max(reach, _FEW) < len(candidates):
        values = scores[candidates]
        cut = np.partition(values, len(values) - reach)[len(values) - reach]
        candidates = candidates[values >= cut]
    order = np.lexsort((-recency[candidates], -scores[candidates]))
    ranked: list[int] = candidates[order].tolist()
    return ranked


def _is_newest(
    position: int,
    candidates: NDArray[np.int64],
    digests: NDArray[np.int64],
    recency: NDArray[np.int64],
    newest: dict[int, int],
) -> bool:
    digest = int(digests[position])
    if digest not in newest:
        same = candidates[digests[candidates] == digest]
        newest[digest] = int(same[np.argmax(recency[same])])
    return newest[digest] == position
