"""Plain BM25 of each message alone: the yardstick, and an ingredient of older recipes."""

from __future__ import annotations

from collections import Counter
from math import log1p

import numpy as np
from numpy.typing import NDArray

from semantic_recall.postings import Postings


def bm25(
    postings: Postings, query_terms: NDArray[np.uint32], *, k1: float = 1.2, b: float = 0.75
) -> NDArray[np.float32]:
    """Score every message by BM25; a term that the query repeats counts as often.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
    idf = ln(1 + (N - df + 0.5) / (df + 0.5)), which is never negative.

    Args:
        postings: The messages of the scope; row i is message i.
        query_terms: (q,) hashed terms, as from `terms.text_terms`.
        k1: How slowly repetition saturates.
        b: How much length counts, 0 to 1.

    Returns:
        (n,) float32, 0 for a message that shares no term with the query.
    """
    lengths = postings.lengths
    known = int(np.count_nonzero(lengths))
    average = float(lengths.sum(dtype=np.float64)) / max(known, 1)
    scores = np.zeros(len(lengths), dtype=np.float32)
    for term, repeats in Counter(query_terms.tolist()).items():
        place = int(np.searchsorted(postings.terms, np.uint32(term)))
        if place == len(postings.terms) or int(postings.terms[place]) != term:
            continue
        begin, end = int(postings.starts[place]), int(postings.starts[place + 1])
        rows = postings.rows[begin:end]
        rarity = log1p((known - len(rows) + 0.5) / (len(rows) + 0.5))
        tf = postings.tfs[begin:end].astype(np.float32)
        norm = k1 * (1.0 - b) + (k1 * b / average) * lengths[rows]
        scores[rows] += np.float32(rarity * repeats * (k1 + 1.0)) * (tf / (tf + norm))
    return scores
