"""A scope in memory: the arrays that a search needs, grown by what arrives.

Messages are numbered twice. A *slot* is the order of arrival: growing a view never renumbers
slots, so vectors and postings stay where they are. A *position* is the order of conversation
(by thread, then insertion), which neighbours, smoothing and windows need; `order` maps the
second to the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from semantic_recall.context import Layout, Words, context_bm25
from semantic_recall.periods import Asked
from semantic_recall.priors import favour, prior_scores, wordless_change
from semantic_recall.ranking import DEFAULT_WEIGHTS
from semantic_recall.records import ScopeRows
from semantic_recall.segments import Segment, compacted, one_row_each, only, segment_of
from semantic_recall.terms import QUESTION
from semantic_recall.types import Vector

_Number = TypeVar("_Number", np.int64, np.int32, np.float32, np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeView:
    """The recallable messages of a scope, immutable; n messages in T threads.

    Arrays are in order of conversation unless said otherwise.
    """

    version: int
    keys: NDArray[np.int64]
    threads: NDArray[np.int64]
    created_at: NDArray[np.int64]
    searchable: NDArray[np.bool_]
    digests: NDArray[np.int64]
    repeated: NDArray[np.bool_]
    """(n,) whose digest another message has too."""
    roles: NDArray[np.int32]
    """(n,) index into `role_names`."""
    role_names: tuple[str, ...]
    starts: NDArray[np.int64]
    """(T,) position of each thread's first message."""
    newest: NDArray[np.int64]
    """(n,) the positions, the message that arrived last first."""
    order: NDArray[np.int64]
    """(n,) the slot of each position."""
    prior: NDArray[np.float32]
    """(n,) what speaks for each message whatever is asked, see `priors.prior_scores`."""
    wordless: NDArray[np.float32]
    """(n,) what is added to it where words do not count, see `priors.wordless_change`."""
    lengths: NDArray[np.float32]
    """(n,) terms of each message, by slot."""
    layout: Layout
    """Where each message stands among those around it."""
    has_vector: NDArray[np.bool_]
    """(n,) by slot."""
    segments: tuple[Segment, ...]
    """In order of arrival, each at least twice as large as the next: few, and cheap to grow."""
    vector_rows: NDArray[np.int64] | None
    """(n,) the vector of each position in the only segment, where all is searchable and has one
    vector, as in most scopes: much need not be looked at then. Otherwise None."""

    @classmethod
    def build(cls, rows: ScopeRows) -> ScopeView:
        """Return the view of `rows`, a scope loaded whole (or a cut of it)."""
        names = tuple(dict.fromkeys(rows.roles))
        numbers = {name: number for number, name in enumerate(names)}
        owners = np.searchsorted(rows.keys, rows.vector_keys).astype(np.int64)
        return _arranged(
            version=rows.version,
            keys=rows.keys,
            threads=rows.threads,
            created_at=rows.created_at,
            searchable=rows.searchable,
            digests=rows.digests,
            roles=np.fromiter((numbers[role] for role in rows.roles), np.int32, len(rows.keys)),
            role_names=names,
            lengths=rows.term_counts.astype(np.float32),
            has_vector=_marked(len(rows.keys), owners),
            segments=(segment_of(rows, owners, first_slot=0),),
        )

    def extended(self, rows: ScopeRows) -> ScopeView | None:
        """Return the view with `rows` added, or None when it has to be built anew.

        A message that was edited (other text, role, time or part) needs a new build; new messages
        and vectors that came late do not.
        """
        slots = self._slots_of(rows.keys)
        known = slots >= 0
        if known.any() and not self._unchanged(rows, slots, known):
            return None
        fresh = only(rows, ~known)
        count = len(self.keys)
        if len(fresh.keys) and count and fresh.keys[0] < self.keys.max():
            return None  # an older message became recallable: slots would not be in key order
        slots[~known] = count + np.arange(len(fresh.keys))
        owners = slots[np.searchsorted(rows.keys, rows.vector_keys)]
        late = owners < count
        wanted = ~late
        wanted[late] = ~self.has_vector[owners[late]]
        names = tuple(dict.fromkeys(self.role_names + tuple(fresh.roles)))
        numbers = {name: number for number, name in enumerate(names)}
        roles = np.fromiter((numbers[role] for role in fresh.roles), np.int32, len(fresh.keys))
        segment = segment_of(fresh, owners[wanted], first_slot=count, vectors=rows.vectors[wanted])
        has_vector = np.concatenate((self.has_vector, np.zeros(len(fresh.keys), np.bool_)))
        has_vector[owners[wanted]] = True
        return _arranged(
            version=rows.version,
            keys=self._grown(self.keys, fresh.keys),
            threads=self._grown(self.threads, fresh.threads),
            created_at=self._grown(self.created_at, fresh.created_at),
            searchable=self._grown(self.searchable, fresh.searchable),
            digests=self._grown(self.digests, fresh.digests),
            roles=self._grown(self.roles, roles),
            role_names=names,
            lengths=np.concatenate((self.lengths, fresh.term_counts.astype(np.float32))),
            has_vector=has_vector,
            segments=compacted((*self.segments, segment)),
        )

    def of_role(self, role: str | None) -> NDArray[np.bool_] | None:
        """Return which messages have a role; None when there is no such role here."""
        if role not in self.role_names:
            return None
        favoured: NDArray[np.bool_] = self.roles == self.role_names.index(role)
        return favoured

    def prior_for(self, role: str | None, time: Asked | None) -> NDArray[np.float32]:
        """Return `prior` with what messages gain that the wording of a query points at.

        Args:
            role: Whose messages are asked about.
            time: Which time is asked about.
        """
        prior, favoured = self.prior, self.of_role(role)
        if favoured is not None:
            prior = favour(prior, favoured, DEFAULT_WEIGHTS.role)
        if time is not None:
            favoured = time.marks(self.created_at, datetime.now(timezone.utc))
            prior = favour(prior, favoured, DEFAULT_WEIGHTS.period)
        return prior

    def dense(self, query: Vector) -> NDArray[np.float32]:
        """Return the cosine of each message to `query` (its best chunk), NaN without a vector."""
        norm = math.sqrt(query.dot(query))
        if self.vector_rows is not None and norm > 0:
            cosines: NDArray[np.float32] = self.segments[0].vectors.dot(query / np.float32(norm))
            return cosines[self.vector_rows]
        scores = np.full(len(self.keys), np.nan, np.float32)
        if norm > 0:
            unit = query / np.float32(norm)
            for segment in self.segments:
                if segment.one_each:
                    scores[segment.owners] = segment.vectors @ unit
                elif len(segment.owners):
                    np.fmax.at(scores, segment.owners, segment.vectors @ unit)
        return scores[self.order]

    def lexical(
        self,
        terms: NDArray[np.uint32],
        *,
        messages: int | None = None,
        document_counts: Mapping[int, int] | None = None,
    ) -> Words:
        """Return the BM25 score of each message, in its context, for the query's hashed terms.

        Args:
            terms: Hashed terms of the query.
            messages: How many messages the scope has, when this view is a cut of it.
            document_counts: In how many of them each term is, when this view is a cut of it.
        """
        if messages is None:
            complete = self.vector_rows is not None
            messages = len(self.keys) if complete else int(np.count_nonzero(self.searchable))
        return context_bm25(
            [segment.postings for segment in self.segments],
            terms,
            self.layout,
            n=messages,
            document_counts=document_counts,
        )

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        arrays = (
            self.keys, self.threads, self.created_at, self.searchable, self.digests, self.roles,
            self.repeated, self.starts, self.newest, self.order, self.prior, self.wordless,
            self.lengths, self.has_vector, self.vector_rows,
        )  # fmt: skip
        own = sum(array.nbytes for array in arrays if array is not None) + self.layout.nbytes
        return own + sum(segment.nbytes for segment in self.segments)

    def _slots_of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slot of each key, -1 where it is new; slots are in order of keys."""
        by_slot = self._by_slot(self.keys)
        places = np.searchsorted(by_slot, keys)
        inside = places < len(by_slot)
        inside[inside] = by_slot[places[inside]] == keys[inside]
        return np.where(inside, places, -1).astype(np.int64)

    def _by_slot(self, values: NDArray[_Number]) -> NDArray[_Number]:
        back = np.empty_like(values)
        back[self.order] = values
        return back

    def _grown(self, values: NDArray[_Number], more: NDArray[_Number]) -> NDArray[_Number]:
        return np.concatenate((self._by_slot(values), more))

    def _unchanged(
        self, rows: ScopeRows, slots: NDArray[np.int64], known: NDArray[np.bool_]
    ) -> bool:
        where = slots[known]
        same = (
            np.array_equal(self._by_slot(self.digests)[where], rows.digests[known])
            and np.array_equal(self._by_slot(self.searchable)[where], rows.searchable[known])
            and np.array_equal(self._by_slot(self.created_at)[where], rows.created_at[known])
        )
        old_roles = self._by_slot(self.roles)[where]
        new_roles = [role for role, is_known in zip(rows.roles, known, strict=True) if is_known]
        return same and [self.role_names[number] for number in old_roles] == new_roles


def _arranged(
    *,
    version: int,
    keys: NDArray[np.int64],
    threads: NDArray[np.int64],
    created_at: NDArray[np.int64],
    searchable: NDArray[np.bool_],
    digests: NDArray[np.int64],
    roles: NDArray[np.int32],
    role_names: tuple[str, ...],
    lengths: NDArray[np.float32],
    has_vector: NDArray[np.bool_],
    segments: tuple[Segment, ...],
) -> ScopeView:
    """Return a view from arrays by slot (in order of keys)."""
    order = np.argsort(threads, kind="stable")
    threads = threads[order]
    breaks = np.flatnonzero(threads[1:] != threads[:-1]) + 1
    starts = np.concatenate((np.zeros(min(len(keys), 1), np.int64), breaks)).astype(np.int64)
    asking = [segment.postings.rows_with(QUESTION) for segment in segments]
    questions = _marked(len(keys), np.concatenate(asking))[order]
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    return ScopeView(
        version=version,
        keys=keys[order],
        threads=threads,
        created_at=created_at[order],
        searchable=searchable[order],
        digests=digests[order],
        repeated=_repeated(digests)[order],
        roles=roles[order],
        role_names=role_names,
        starts=starts,
        newest=positions[::-1].copy(),
        order=order,
        prior=prior_scores(starts, questions),
        wordless=wordless_change(starts, questions),
        lengths=lengths,
        layout=Layout.of(lengths, order, starts),
        has_vector=has_vector,
        segments=segments,
        vector_rows=one_row_each(segments, order) if searchable.all() else None,
    )


def _repeated(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    repeated: NDArray[np.bool_] = (counts > 1)[which]
    return repeated


def _marked(size: int, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    marks = np.zeros(size, np.bool_)
    marks[places] = True
    return marks
