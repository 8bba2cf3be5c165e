"""BM25 over a message's words and, with less weight, the words around it in its thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log1p
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semantic_recall.postings import Postings

CONTEXT = ((1, 0.7), (2, 0.5), (3, 0.3), (-1, 0.5), (-2, 0.2))
"""(offset, weight): how much of a message's words count for the message `offset` after it; its own
count 1. An answer follows its question, so what came before weighs more. Flat: other falling
weights that reach 2 to 5 messages are within a point."""

HEARD_BEFORE = max(offset for offset, _ in CONTEXT)
HEARD_AFTER = -min(offset for offset, _ in CONTEXT)
"""How many messages before and after a message count for it."""

_REACH = max(HEARD_BEFORE, HEARD_AFTER)
_KERNEL = np.zeros(HEARD_BEFORE + 1 + HEARD_AFTER, dtype=np.float32)
"""The weights by offset, from -HEARD_AFTER to HEARD_BEFORE; a message's own words count 1."""
_KERNEL[HEARD_AFTER] = 1.0
for _offset, _weight in CONTEXT:
    _KERNEL[HEARD_AFTER + _offset] = _weight
_BACKWARDS = _KERNEL[::-1].copy()
_MAX_TERMS = 128
_TERMS_OF_A_QUESTION = 24
"""As many terms may a message be expected to share with a query: who pastes a page asks for no
message that has all of its words. A Chinese question of 12 characters has 23 terms."""
_CELLS = 1 << 17
"""How many counts are worked on at once: half a megabyte, which stays in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The messages of a scope in conversation order, with gaps between threads.

    Gaps are as wide as the reach of `CONTEXT`, so that no shift crosses into another thread.
    Made once for a scope; immutable.
    """

    spots: NDArray[np.int64]
    """(n,) where each position stands."""
    spot_of: NDArray[np.int64]
    """(n,) where each row of the postings stands."""
    norm: NDArray[np.float32]
    """(s,) what BM25 adds to a term's count below the fraction line, at each spot; above 0."""
    k1: float

    @classmethod
    def of(
        cls,
        lengths: NDArray[np.float32],
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        *,
        k1: float = 0.9,
        b: float = 0.75,
    ) -> Layout:
        """Lay out a scope.

        Args:
            lengths: (n,) how many terms each message has, by row of the postings.
            order: (n,) the row of each position, in conversation order.
            starts: (T,) the position at which each thread starts, strictly ascending from 0.
            k1: How slowly repetition saturates.
            b: How much length counts, 0 to 1.
        """
        sizes = np.append(starts[1:], len(order)) - starts
        gaps = np.repeat(np.arange(1, len(starts) + 1) * _REACH, sizes)
        spots = np.arange(len(order)) + gaps
        spot_of = np.empty_like(spots)
        spot_of[order] = spots
        laid_out = np.zeros(len(order) + (len(starts) + 1) * _REACH, dtype=np.float32)
        laid_out[spot_of] = lengths
        wide = _over_context(laid_out)
        heard = wide[spots]
        average = float(heard.sum(dtype=np.float64)) / max(int(np.count_nonzero(heard)), 1)
        norm = wide * np.float32(k1 * b / max(average, 1e-9)) + np.float32(k1 * (1.0 - b))
        # Never 0, so that an empty spot is 0 / norm and not 0 / 0.
        return cls(spots, spot_of, np.maximum(norm, np.float32(1e-9)), k1)

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays take."""
        return self.spots.nbytes + self.spot_of.nbytes + self.norm.nbytes


class Words(NamedTuple):
    """What `context_bm25` found."""

    scores: NDArray[np.float32]
    """(n,) in conversation order; 0 where neither a message nor one of those around it shares a
    term with the query."""
    whole: float
    """The score of a message of average length that has the query's rarest 24 terms once each,
    also those that are nowhere in the scope: whether the best has found anything is told by how
    far it is from this."""


def context_bm25(
    postings: Sequence[Postings],
    query_terms: NDArray[np.uint32],
    layout: Layout,
    *,
    n: int,
    document_counts: Mapping[int, int] | None = None,
) -> Words:
    """Score every message by BM25 over its own words and those around it.

    A message of a chat leaves out what was just said ("Did you like Rome?" - "Loved it!"). So it
    is searched as a document whose term counts are the weighted sum (`CONTEXT`) over the messages
    around it in its thread, as BM25F sums fields: Robertson, Zaragoza, Taylor, "Simple BM25
    Extension to Multiple Weighted Fields" (CIKM 2004). No second index is needed. idf is
    ln(1 + (N - df + 0.5) / (df + 0.5)) over messages, which is never negative.

    Of a longer query only the 128 rarest terms count, which bounds the time.

    Args:
        postings: The segments of the scope; their rows do not overlap.
        query_terms: (q,) hashed terms, as from `terms.text_terms`.
        layout: The scope's layout.
        n: N, the number of searchable messages in the scope.
        document_counts: df by term; by default counted in `postings`. Give it and `n` of the
            whole scope when `postings` holds only candidates.
    """
    counts: dict[int, int] = {}
    for term in query_terms.tolist():
        counts[term] = counts.get(term, 0) + 1
    found, frequencies = _found(postings, np.array(list(counts), dtype=np.uint32))
    size = len(layout.norm)
    scores = np.zeros(size, dtype=np.float32)
    if document_counts is not None:
        frequencies = [document_counts.get(term, 0) for term in counts]
    # A handful of numbers: lists are quicker than arrays.
    rarity = [log1p((max(n - df, 0) + 0.5) / (df + 0.5)) for df in frequencies]
    most = layout.k1 + 1.0
    gains = [most * rare * times for rare, times in zip(rarity, counts.values(), strict=True)]
    if found:
        lines = max(_CELLS // size, 1)
        if len(gains) <= min(lines, _MAX_TERMS):  # as with most queries: all terms at once
            # `dot` takes half the time of `@` here.
            scores = np.array(gains, np.float32).dot(_saturated(found, len(gains), layout))
        else:
            chosen = sorted(range(len(gains)), key=lambda term: -rarity[term])[:_MAX_TERMS]
            for first in range(0, len(chosen), lines):
                block = chosen[first : first + lines]
                gain = np.array([gains[term] for term in block], dtype=np.float32)
                parts = [part.only(block) for part in found]
                scores += gain @ _saturated(parts, len(block), layout)
    asked = gains if len(gains) <= _TERMS_OF_A_QUESTION else nlargest(_TERMS_OF_A_QUESTION, gains)
    return Words(scores.take(layout.spots), sum(asked) / most)


class _Found(NamedTuple):
    """Where a segment has the terms of a query, in their order; t terms."""

    segment: Postings
    begins: NDArray[np.int64]
    """(t,) where the postings of each begin."""
    sizes: NDArray[np.int64]
    """(t,) how many there are; 0 for a term that is not there."""

    def only(self, block: Sequence[int]) -> _Found:
        """Return the same for some of the terms."""
        return _Found(self.segment, self.begins[block], self.sizes[block])


def _found(
    postings: Sequence[Postings], terms: NDArray[np.uint32]
) -> tuple[list[_Found], list[int]]:
    """Return where the terms are, and in how many messages each is."""
    found: list[_Found] = []
    frequencies = [0] * len(terms)
    for segment in postings:
        if not len(segment.terms):
            continue
        places = segment.terms.searchsorted(terms)
        # Behind the last term nothing begins; "clip" stays inside.
        there = segment.terms.take(places, mode="clip") == terms
        begins = segment.starts.take(places)
        sizes = (segment.starts.take(places + 1, mode="clip") - begins) * there
        numbers = sizes.tolist()
        if any(numbers):
            frequencies = list(map(add, frequencies, numbers))
            found.append(_Found(segment, begins, sizes))
    return found, frequencies


def _saturated(found: Sequence[_Found], terms: int, layout: Layout) -> NDArray[np.float32]:
    """Return tf / (tf + norm) with counts heard over the context: a line per term."""
    width = len(layout.norm)
    tfs = np.zeros(terms * width, dtype=np.float32)
    lines = np.arange(0, terms * width, width)
    for segment, begins, sizes in found:
        # The postings of all terms in one go: begin, begin + 1, ... of each, one after another.
        ends = sizes.cumsum()
        places = (begins - ends + sizes).repeat(sizes)
        places += np.arange(len(places))
        spots = lines.repeat(sizes)
        spots += layout.spot_of.take(segment.rows.take(places))
        tfs[spots] = segment.tfs.take(places).astype(np.float32)
    # Every line ends in a gap: shifted as one long line, none reaches a message of the next.
    heard = _over_context(tfs).reshape(terms, width)
    heard /= heard + layout.norm
    return heard


def _over_context(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return each spot's value with the weighted values around it."""
    if len(values) < len(_KERNEL):  # gaps alone are longer: no message stands there
        return np.zeros_like(values)
    heard: NDArray[np.float32] = np.correlate(values, _BACKWARDS, "full")
    return heard[HEARD_AFTER : HEARD_AFTER + len(values)]
