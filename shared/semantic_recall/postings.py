"""An inverted index held in NumPy arrays.

A scope's terms are in one or more segments: a large one, and small ones for what was added since.
Row numbers are slots in the order of arrival; the caller permutes scores into the order of the
conversation.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def _heads(values: NDArray[np.uint64] | NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return where each run of equal values starts."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1]).astype(np.int64)
