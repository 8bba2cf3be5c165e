"""BM25 over a message's words and, with less weight, the words around it in its thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semantic_recall.postings import Found, Postings, count_terms, find_terms, idf

CONTEXT = ((1, 0.7), (2, 0.5), (3, 0.3), (-1, 0.5), (-2, 0.2))
"""(offset, weight): how much of a message's words count for the message `offset` after it; its own
count 1. An answer follows its question, so what came before weighs more. Flat: other falling
weights that reach 2 to 5 messages are within a point."""

HEARD_BEFORE = max(offset for offset, _ in CONTEXT)
HEARD_AFTER = -min(offset for offset, _ in CONTEXT)
"""How many messages before and after a message count for it."""

_REACH = max(HEARD_BEFORE, HEARD_AFTER)
_MAX_TERMS = 128
_CELLS = 1 << 17
"""How many counts are worked on at once: half a megabyte, which stays in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The messages of a scope in conversation order, with gaps between threads.

    Gaps are as wide as the reach of `CONTEXT`, so that no shift crosses into another thread.
    Made once for a scope; immutable.
    """

    spots: NDArray[np.int32]
    """(n,) where each position stands."""
    spot_of: NDArray[np.int32]
    """(n,) where each row of the postings stands."""
    lengths: NDArray[np.float32]
    """(s,) the length at each spot, counted over the context like the terms."""
    average: float
    """The mean of `lengths` over messages."""

    @classmethod
    def of(
        cls,
        lengths: NDArray[np.float32],
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> Layout:
        """Lay out a scope.

        Args:
            lengths: (n,) how many terms each message has, by row of the postings.
            order: (n,) the row of each position, in conversation order.
            starts: (T,) the position at which each thread starts, strictly ascending from 0.
        """
        sizes = np.append(starts[1:], len(order)) - starts
        gaps = np.repeat(np.arange(1, len(starts) + 1) * _REACH, sizes)
        spots = (np.arange(len(order)) + gaps).astype(np.int32)
        spot_of = np.empty_like(spots)
        spot_of[order] = spots
        laid_out = np.zeros(len(order) + (len(starts) + 1) * _REACH, dtype=np.float32)
        laid_out[spot_of] = lengths
        wide = _over_context(laid_out)
        heard = wide[spots]
        average = float(heard.sum(dtype=np.float64)) / max(int(np.count_nonzero(heard)), 1)
        return cls(spots, spot_of, wide, average)

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays take."""
        return self.spots.nbytes + self.spot_of.nbytes + self.lengths.nbytes


def context_bm25(
    postings: Sequence[Postings],
    query_terms: NDArray[np.uint32],
    layout: Layout,
    *,
    n: int,
    document_counts: Mapping[int, int] | None = None,
    k1: float = 0.9,
    b: float = 0.75,
) -> NDArray[np.float32]:
    """Score every message by BM25 over its own words and those around it.

    A message of a chat leaves out what was just said ("Did you like Rome?" - "Loved it!"). So it
    is searched as a document whose term counts are the weighted sum (`CONTEXT`) over the messages
    around it in its thread, as BM25F sums fields: Robertson, Zaragoza, Taylor, "Simple BM25
    Extension to Multiple Weighted Fields" (CIKM 2004). No second index is needed. idf counts
    messages, as in `bm25`.

    Of a longer query only the 128 rarest terms count, which bounds the time.

    Args:
        postings: The segments of the scope; their rows do not overlap.
        query_terms: (q,) hashed terms, as from `terms.text_terms`.
        layout: The scope's layout.
        n: N, the number of searchable messages in the scope.
        document_counts: df by term; by default counted in `postings`. Give it and `n` of the
            whole scope when `postings` holds only candidates.
        k1: How slowly repetition saturates.
        b: How much length counts, 0 to 1.

    Returns:
        (n,) float32 in conversation order; 0 where neither a message nor one of those around it
        shares a term with the query.
    """
    terms, repeats = count_terms(query_terms)
    found = find_terms(postings, terms) if terms else []
    scores = np.zeros(len(layout.lengths), dtype=np.float32)
    if found:
        weights = idf(found, terms, n, document_counts)
        gains = [(k1 + 1.0) * w * times for w, times in zip(weights, repeats, strict=True)]
        norm = layout.lengths * np.float32(k1 * b / max(layout.average, 1e-9))
        # Never 0, so that an empty spot is 0 / norm and not 0 / 0.
        norm = np.maximum(norm + np.float32(k1 * (1.0 - b)), np.float32(1e-9))
        for block in _blocks(found, weights, max(_CELLS // len(scores), 1)):
            scores += _block_scores(block, gains, layout, norm)
    result: NDArray[np.float32] = scores[layout.spots]
    return result


def _block_scores(
    found: Sequence[Found], gains: Sequence[float], layout: Layout, norm: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the scores that a few terms give, by spot: one line of counts for each term."""
    lines = {term: line for line, term in enumerate(dict.fromkeys(each[1] for each in found))}
    size = len(norm)
    tfs = np.zeros((len(lines), size), dtype=np.float32)
    for segment, term, begin, end in found:
        tfs[lines[term], layout.spot_of[segment.rows[begin:end]]] = segment.tfs[begin:end]
    # Every line ends in a gap: shifted as one long line, none reaches a message of the next.
    heard = _over_context(tfs.reshape(-1)).reshape(tfs.shape)
    heard /= heard + norm
    scores: NDArray[np.float32] = np.array([gains[term] for term in lines], np.float32) @ heard
    return scores


def _over_context(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return each spot's value with the weighted values around it."""
    summed: NDArray[np.float32] = values.copy()
    for offset, weight in CONTEXT:
        if offset > 0:
            summed[offset:] += np.float32(weight) * values[:-offset]
        else:
            summed[:offset] += np.float32(weight) * values[-offset:]
    return summed


def _blocks(found: Sequence[Found], weights: Sequence[float], lines: int) -> list[list[Found]]:
    """Return what was found of the rarest terms, `lines` terms at a time."""
    by_term: dict[int, list[Found]] = {}
    for each in found:
        by_term.setdefault(each[1], []).append(each)
    chosen = sorted(by_term, key=lambda term: -weights[term])[:_MAX_TERMS]
    return [
        [each for term in chosen[first : first + lines] for each in by_term[term]]
        for first in range(0, len(chosen), lines)
    ]
