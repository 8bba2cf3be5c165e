"""How messages are ranked: pure functions over arrays in conversation order.

*Conversation order* is by thread, and inside a thread by insertion. Neighbours in an array are
neighbours in a conversation, except across the start of a thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semantic_recall.lending import FEW, thread_best, with_previous

_NEVER = np.float32(-np.inf)
_TINY = 1e-30  # 1 / smaller ones is too large for single precision


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """The weights of `hybrid_scores` and of `priors`.

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
    before: float = 0.35
    """How much of the cosine of the message before it a message adds where words do not count, as
    an answer follows what it answers. Of 49 questions of `benchmarks/own` that share no word with
    their evidence 33 and 42 (WordLlama, e5) have it in 1,000 tokens; 28 and 38 without. From 0.3 to
    0.5 it is within two questions there and half a point elsewhere."""
    thread: float = 0.2
    """How much of the mean of its thread's three best a message adds, in resource scope."""
    answer: float = 0.1
    """What a message gains, where words count, when the one before it in the thread asks something:
    without words it hears that one's meaning (the same 49, in e5's five best: 27; with both 21)."""
    question: float = 0.05
    """What a message that asks something loses; twice that where words do not count, as questions
    resemble a query by being questions (27 as above, once: 22)."""
    period: float = 0.2
    """What a message gains from the time that the query names. Evidence in 500 tokens, LoCoMo's 94
    questions with a time: .894, .759 without; in the five best, 10 of `benchmarks/own`: .8, .5."""
    role: float = 0.15
    """What a message gains when its speaker is the one the query is about."""
    heard: float = 0.7
    """How much the words of the last two messages of the current thread count beside those of a
    follow-up ("And the price?"). Evidence of 36 follow-ups over `benchmarks/own` in the five best:
    .75, .42 without (e5: .86, .50). From 0.5 to 1 it is within a question; more messages harm where
    the thread had another subject before, and their vectors add nothing."""


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
    wordless: NDArray[np.float32] | None = None,
    complete: bool = False,
    weights: RankingWeights = DEFAULT_WEIGHTS,
) -> NDArray[np.float32]:
    """Score messages by meaning, words and thread.

    Both kinds of score are scaled to 0..1 over the searchable messages and mixed; for a message
    without a vector the words count alone. So the best by words has 1 even if all it shares with
    the query is a common word: words weigh less where it stays far below `whole`, and cosines less
    the more of the query the embedder cannot read. The less words weigh, the more a message's
    cosine hears that of the message before, as its words do in any case. With `across_threads`
    each adds a share of the mean of its thread's three best (of all, in a thread with fewer);
    `prior` is added last.

    Args:
        dense: (n,) cosine similarity to the query; NaN without a vector.
        lexical: (n,) BM25, >= 0.
        starts: (T,) the first position of each thread, ascending from 0.
        searchable: (n,) what can be a hit; the others lend nothing to their thread.
        across_threads: True when the scope is a resource.
        whole: What the query's words are worth together, in the unit of `lexical`; 0: not known.
        understood: Which share of the query the embedder can read, 0 to 1.
        prior: (n,) from `priors.prior_scores`; None for none.
        wordless: (n,) from `priors.wordless_change`: what is added to it where words do not count.
        complete: Everything is searchable and has a vector, which need not be looked at then.
        weights: The weights.

    Returns:
        (n,) float32, and -inf where not searchable.
    """
    if not len(searchable):
        return np.zeros(0, dtype=np.float32)
    known = searchable if complete else searchable & (dense == dense)  # NaN is not itself
    everywhere = complete or bool(known.all())  # as in most scopes: no masks are needed
    able = lexical if everywhere else lexical[searchable]
    # What cannot be read cannot stand in for words.
    least, most = _extent(able)
    doubt = _doubt(float(most), whole, weights) * understood
    if doubt and not everywhere and not known.any():
        doubt = 0.0  # nor can vectors that are not there
    if doubt:
        dense = with_previous(dense, starts, None if everywhere else known, weights.before * doubt)
    weight = np.float32((1.0 - (1.0 - weights.dense) * (1.0 - doubt)) * understood)
    if everywhere:
        scores = _scaled(dense, weight, *_extent(dense))
        scores += _scaled(lexical, 1 - weight, least, most)
    else:
        scores = _mixed(dense, _scaled(able, np.float32(1), least, most), searchable, known, weight)
    if across_threads and weights.thread:
        scores += np.float32(weights.thread) * thread_best(
            scores, starts, None if complete else searchable
        )
    if prior is not None:
        scores += prior
    if wordless is not None and doubt:
        scores += np.float32(doubt) * wordless
    if not everywhere:
        scores[~searchable] = _NEVER
    return scores


def dense_scores(dense: NDArray[np.float32], searchable: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Score messages by cosine similarity alone; -inf without a vector or not searchable."""
    return np.where(searchable & ~np.isnan(dense), dense, _NEVER).astype(np.float32, copy=False)


def select(
    scores: NDArray[np.float32],
    eligible: NDArray[np.bool_] | None,
    top_k: int,
    *,
    digests: NDArray[np.int64] | None,
    newest: NDArray[np.int64],
    repeated: NDArray[np.bool_] | None = None,
) -> list[int]:
    """Return the positions of the best messages, best first; of equal scores the newest first.

    Args:
        scores: (n,) NaN and -inf are never selected.
        eligible: (n,) what may be selected; None: everything, and all scores are finite.
        top_k: How many at most; 0 or less selects none.
        digests: (n,) equal for equal texts: of those only the newest eligible one counts, with
            its own score. None: every message counts.
        newest: (n,) the positions, the message that arrived last first.
        repeated: (n,) False where the digest is known to occur once, which saves a look; None
            when that is not known.
    """
    chosen: list[int] = []
    if top_k <= 0:
        return chosen
    candidates = newest
    if eligible is not None:
        candidates = newest[(eligible & (scores > _NEVER))[newest]]
    first: dict[int, int] = {}
    reach = top_k if digests is None else 2 * top_k + 8
    done = 0
    while done < len(candidates):
        ranked = _ranked(scores, candidates, reach)
        for position in ranked[done:]:
            if (
                digests is None
                or (repeated is not None and not repeated[position])
                or _is_newest(position, candidates, digests, first)
            ):
                chosen.append(position)
                if len(chosen) == top_k:
                    return chosen
        # Everything so far was a repetition or k is not reached: look further down.
        done, reach = len(ranked), reach * 8
    return chosen


def _doubt(best: float, whole: float, weights: RankingWeights) -> float:
    """Return how little the words tell, 0 to 1, by how much of the query the best covers."""
    covered = best / whole if whole > 0 else 1.0
    low, high = weights.little, weights.enough
    return 1.0 - max(covered - low, 0.0) / (high - low) if covered < high else 0.0


def _mixed(
    dense: NDArray[np.float32],
    able: NDArray[np.float32],
    searchable: NDArray[np.bool_],
    known: NDArray[np.bool_],
    weight: np.float32,
) -> NDArray[np.float32]:
    """Return both kinds of score scaled and mixed, 0 where not searchable.

    Args:
        dense: (n,) cosines.
        able: BM25 of the searchable messages, scaled.
        searchable: (n,) what can be a hit.
        known: (n,) which of them have a vector.
        weight: The weight of `dense`.
    """
    words = np.zeros(len(dense), np.float32)
    words[searchable] = able
    # What still waits for its vector is judged by its words as if its vector agreed.
    meaning: NDArray[np.float32] = weight * words
    cosines = dense[known]
    meaning[known] = _scaled(cosines, weight, *_extent(cosines))
    meaning += (1 - weight) * words
    return meaning


def _extent(values: NDArray[np.float32]) -> tuple[np.float32, np.float32]:
    """Return the least and the largest value, 0 of none."""
    if not len(values):
        return np.float32(0), np.float32(0)
    return values[values.argmin()], values[values.argmax()]  # in a third of the time of min, max


def _scaled(
    values: NDArray[np.float32], to: np.float32, low: np.float32, high: np.float32
) -> NDArray[np.float32]:
    """Return values from `low` to `high` as 0 to `to`; equal ones as 0, or `to` if positive."""
    if high - low > _TINY:
        scaled: NDArray[np.float32] = (values - low) * (to / (high - low))
        return scaled
    return np.full(len(values), to * (high > 0), dtype=np.float32)


def _ranked(scores: NDArray[np.float32], candidates: NDArray[np.int64], reach: int) -> list[int]:
    """Return the best `reach` candidates and those that tie with the last of them, best first.

    Equal ones stay in the order of `candidates`.
    """
    values = scores[candidates]
    if max(reach, FEW) < len(candidates):
        cut = np.partition(values, len(values) - reach)[len(values) - reach]
        candidates = candidates[values >= cut]
        values = scores[candidates]
    ranked: list[int] = candidates[(-values).argsort(kind="stable")].tolist()
    return ranked


def _is_newest(
    position: int,
    candidates: NDArray[np.int64],
    digests: NDArray[np.int64],
    first: dict[int, int],
) -> bool:
    """Tell whether none of the candidates, which come newest first, repeats it later."""
    digest = int(digests[position])
    if digest not in first:
        first[digest] = int(candidates[np.argmax(digests[candidates] == digest)])
    return first[digest] == position
