"""BM25 over an inverted index held in NumPy arrays.

A scope's terms are in one or more segments: a large one, and small ones for what was added since.
Row numbers are slots in the order of arrival; the caller permutes scores into the order of the
conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

_LARGEST_TF = np.iinfo(np.uint16).max
_SHIFT = np.uint64(32)


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """One segment: for each term the rows that hold it. Immutable, safe to share."""

    terms: NDArray[np.uint32]
    """(u,) the distinct terms, ascending."""
    starts: NDArray[np.int64]
    """(u + 1,) where each term's postings start; the last is their number p."""
    rows: NDArray[np.int32]
    """(p,) row numbers, ascending inside a term."""
    tfs: NDArray[np.uint16]
    """(p,) how often the row has the term, at most 65,535."""
    lengths: NDArray[np.float32]
    """(n,) how many terms each row of the segment has, from `first_row` on."""
    first_row: int
    """The row number of `lengths[0]`."""

    @classmethod
    def build(
        cls, terms: NDArray[np.uint32], counts: NDArray[np.int64], first_row: int = 0
    ) -> Postings:
        """Index messages.

        Args:
            terms: (t,) the hashed terms of all messages, one after the other.
            counts: (n,) how many of `terms` belong to each message; they sum to t.
            first_row: The row number of the first message.

        Raises:
            ValueError: `counts` does not sum to t.
        """
        counts = np.asarray(counts, dtype=np.int64)
        if int(counts.sum()) != len(terms):
            raise ValueError(f"{len(terms)} terms, but the counts sum to {int(counts.sum())}")
        rows = np.repeat(np.arange(first_row, first_row + len(counts), dtype=np.uint64), counts)
        # Term and row in one number: a single sort groups by term, then row, then counts.
        pairs = (np.asarray(terms).astype(np.uint64) << _SHIFT) | rows
        pairs.sort()
        heads = _heads(pairs)
        tfs = np.minimum(np.diff(heads, append=len(pairs)), _LARGEST_TF).astype(np.uint16)
        return cls._of_pairs(pairs[heads], tfs, counts.astype(np.float32), first_row)

    @classmethod
    def merge(cls, first: Postings, second: Postings) -> Postings:
        """Join two segments whose rows do not overlap, in either order; gaps get length 0.

        Raises:
            ValueError: The segments' rows overlap.
        """
        if (second.first_row, len(second.lengths)) < (first.first_row, len(first.lengths)):
            first, second = second, first
        gap = second.first_row - (first.first_row + len(first.lengths))
        if gap < 0:
            raise ValueError("the rows of two segments overlap")
        pairs = np.concatenate([first._pairs(), second._pairs()])
        # Two sorted runs: the stable sort merges them in one pass.
        order = np.argsort(pairs, kind="stable")
        lengths = np.concatenate([first.lengths, np.zeros(gap, np.float32), second.lengths])
        tfs = np.concatenate([first.tfs, second.tfs])[order]
        return cls._of_pairs(pairs[order], tfs, lengths, first.first_row)

    @classmethod
    def _of_pairs(
        cls,
        pairs: NDArray[np.uint64],
        tfs: NDArray[np.uint16],
        lengths: NDArray[np.float32],
        first_row: int,
    ) -> Postings:
        all_terms = (pairs >> _SHIFT).astype(np.uint32)
        heads = _heads(all_terms)
        return cls(
            terms=all_terms[heads],
            starts=np.append(heads, len(pairs)).astype(np.int64),
            rows=pairs.astype(np.uint32).view(np.int32),
            tfs=tfs,
            lengths=lengths,
            first_row=first_row,
        )

    def _pairs(self) -> NDArray[np.uint64]:
        terms = np.repeat(self.terms.astype(np.uint64), np.diff(self.starts))
        pairs: NDArray[np.uint64] = (terms << _SHIFT) | self.rows.astype(np.uint64)
        return pairs

    def rows_with(self, term: int) -> NDArray[np.int32]:
        """Return the rows that hold a term, ascending."""
        place = int(np.searchsorted(self.terms, np.uint32(term)))
        if place == len(self.terms) or int(self.terms[place]) != term:
            return self.rows[:0]
        return self.rows[self.starts[place] : self.starts[place + 1]]

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays take."""
        arrays = (self.terms, self.starts, self.rows, self.tfs, self.lengths)
        return sum(array.nbytes for array in arrays)


def bm25(
    postings: Sequence[Postings],
    query_terms: NDArray[np.uint32],
    lengths: NDArray[np.float32],
    *,
    n: int | None = None,
    document_counts: Mapping[int, int] | None = None,
    average: float | None = None,
    k1: float = 1.2,
    b: float = 0.75,
) -> NDArray[np.float32]:
    """Score every message by BM25; a term that the query repeats counts as often.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
    idf = ln(1 + (N - df + 0.5) / (df + 0.5)), which is never negative.

    Args:
        postings: The segments of the scope; their rows do not overlap and are below `len(lengths)`.
        query_terms: (q,) hashed terms, as from `terms.text_terms`.
        lengths: (n,) how many terms each message has.
        n: N, the number of messages; by default those with a term.
        document_counts: df by term; by default counted in `postings`. Give these two and `average`
            when `postings` holds only candidates out of a larger scope.
        average: The mean length of a message; by default of those with a term.
        k1: How slowly repetition saturates.
        b: How much length counts, 0 to 1.

    Returns:
        (n,) float32, 0 for a message that shares no term with the query.
    """
    scores = np.zeros(len(lengths), dtype=np.float32)
    terms, repeats = count_terms(query_terms)
    found = find_terms(postings, terms) if terms else []
    if not found:
        return scores
    known = int(np.count_nonzero(lengths)) if n is None or average is None else 0
    if average is None:
        average = float(lengths.sum(dtype=np.float64)) / max(known, 1)
    weights = idf(found, terms, known if n is None else n, document_counts)
    rows = np.concatenate([segment.rows[begin:end] for segment, _, begin, end in found])
    tfs = np.concatenate([segment.tfs[begin:end] for segment, _, begin, end in found])
    gain = np.repeat(
        np.array(
            [weights[term] * repeats[term] * (k1 + 1.0) for _, term, _, _ in found],
            dtype=np.float32,
        ),
        [end - begin for _, _, begin, end in found],
    )
    tf = tfs.astype(np.float32)
    norm = lengths[rows] * np.float32(k1 * b / max(average, 1e-9)) + np.float32(k1 * (1.0 - b))
    gain *= tf / (tf + norm)
    return np.bincount(rows, weights=gain, minlength=len(lengths)).astype(np.float32)


Found = tuple[Postings, int, int, int]
"""Segment, position of the term in the query, where its postings begin and end."""


def count_terms(query_terms: NDArray[np.uint32]) -> tuple[list[int], list[int]]:
    """Return the distinct terms of a query and how often each occurs."""
    counts: dict[int, int] = {}
    for term in query_terms.tolist():
        counts[term] = counts.get(term, 0) + 1
    return list(counts), list(counts.values())


def find_terms(postings: Sequence[Postings], terms: Sequence[int]) -> list[Found]:
    """Return where in the segments each of `terms` is."""
    wanted = np.array(terms, dtype=np.uint32)
    found: list[Found] = []
    for segment in postings:
        if not len(segment.terms):
            continue
        places = np.searchsorted(segment.terms, wanted)
        places[places == len(segment.terms)] = 0
        for term in np.flatnonzero(segment.terms[places] == wanted).tolist():
            place = int(places[term])
            begin, end = int(segment.starts[place]), int(segment.starts[place + 1])
            found.append((segment, term, begin, end))
    return found


def idf(
    found: Sequence[Found], terms: Sequence[int], n: int, known: Mapping[int, int] | None
) -> list[float]:
    """Return the idf of each term, from `known` document counts or from what was found."""
    frequencies = [0] * len(terms)
    for _, term, begin, end in found:
        frequencies[term] += end - begin
    if known is not None:
        frequencies = [known.get(term, 0) for term in terms]
    return [log1p((max(n - df, 0) + 0.5) / (df + 0.5)) for df in frequencies]


def _heads(values: NDArray[np.uint64] | NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return where each run of equal values starts."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1]).astype(np.int64)
