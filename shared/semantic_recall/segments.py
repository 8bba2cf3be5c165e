"""What a view of a scope is made of: a large segment, and small ones for what came since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semantic_recall.postings import Postings
from semantic_recall.records import ScopeRows


@dataclass(frozen=True, slots=True)
class Segment:
    """What one load brought: terms of new slots, and vectors of new or earlier slots."""

    rows: int
    postings: Postings
    vectors: NDArray[np.float32]
    """(m, dimensions) normalised, so that a dot product is a cosine."""
    owners: NDArray[np.int64]
    """(m,) the slot of each vector."""
    one_each: bool
    """True when no message has two vectors here; none ever has vectors in two segments."""

    def merged(self, later: Segment) -> Segment:
        """Return one segment for this one and the next."""
        vectors = [s.vectors for s in (self, later) if len(s.owners)]
        return Segment(
            self.rows + later.rows,
            Postings.merge(self.postings, later.postings),
            np.concatenate(vectors) if vectors else self.vectors,
            np.concatenate((self.owners, later.owners)),
            self.one_each and later.one_each,
        )

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return self.vectors.nbytes + self.owners.nbytes + self.postings.nbytes


def segment_of(
    rows: ScopeRows,
    owners: NDArray[np.int64],
    *,
    first_slot: int,
    vectors: NDArray[np.float32] | None = None,
) -> Segment:
    """Return the segment of `rows` whose slots begin at `first_slot`.

    Args:
        rows: Messages in order of keys.
        owners: The slot of each vector.
        first_slot: The slot of the first message.
        vectors: (m, dimensions), if not those of `rows`.
    """
    vectors = rows.vectors if vectors is None else vectors
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Segment(
        len(rows.keys),
        Postings.build(rows.terms, rows.term_counts, first_slot),
        np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0),
        owners,
        len(np.unique(owners)) == len(owners),
    )


def compacted(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Merge from the end until each segment is at least twice as large as the next.

    The merging of a binary counter: n messages that arrive one by one are copied about log2(n)
    times each, and a search meets at most log2(n) segments.
    """
    merged = list(segments)
    while len(merged) > 1 and _weight(merged[-1]) * 2 > _weight(merged[-2]):
        later = merged.pop()
        merged[-1] = merged[-1].merged(later)
    return tuple(merged)


def _weight(segment: Segment) -> int:
    return max(segment.rows, len(segment.owners))


def one_row_each(
    segments: tuple[Segment, ...], order: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return the vector of each position, if there is one segment with one for each message.

    Args:
        segments: Of a view.
        order: (n,) the slot of each position.
    """
    if len(segments) != 1 or not segments[0].one_each or len(segments[0].owners) != len(order):
        return None
    rows = np.empty_like(order)
    rows[segments[0].owners] = np.arange(len(order))
    return rows[order]


def only(rows: ScopeRows, wanted: NDArray[np.bool_]) -> ScopeRows:
    """Return the wanted rows, without vectors."""
    if wanted.all():
        chosen_terms = rows.terms
        roles = rows.roles
    else:
        chosen_terms = rows.terms[np.repeat(wanted, rows.term_counts)]
        roles = [role for role, is_wanted in zip(rows.roles, wanted, strict=True) if is_wanted]
    return ScopeRows(
        version=rows.version,
        keys=rows.keys[wanted],
        threads=rows.threads[wanted],
        created_at=rows.created_at[wanted],
        searchable=rows.searchable[wanted],
        roles=roles,
        digests=rows.digests[wanted],
        terms=chosen_terms,
        term_counts=rows.term_counts[wanted],
        vector_keys=np.zeros(0, np.int64),
        vectors=np.zeros((0, 0), np.float32),
    )
