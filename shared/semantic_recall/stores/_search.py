"""What search needs: the state of a scope, its rows as arrays, candidates by full text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, bindparam, select

from semantic_recall.records import Part, ScopeRows, ScopeState
from semantic_recall.stores import _scopes
from semantic_recall.stores._adding import TERM
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import among
from semantic_recall.stores._schema import chunk_rows, messages, terms, vectors
from semantic_recall.stores._spaces import space_key
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.stores._text import escape, from_json, unescape
from semantic_recall.types import Scope, VectorSpace

_MOST_POSTINGS = 200_000
"""How many matches of common terms are looked at once the rarer terms have been."""


class Search(UsesDatabase):
    """The part of the store that search reads."""

    @retried
    def state(self, scope: Scope, /) -> ScopeState | None:
        """See `MessageStore.state`."""
        with self._db.glance() as tx:
            place = _scopes.find(tx, scope)
        if place is not None:
            return ScopeState(place.version, place.recallable)
        with self._db.read() as tx:
            # Looked up again, for it may have come or gone since.
            place = _scopes.find(tx, scope)
            if place is not None:
                return ScopeState(place.version, place.recallable)
            version = _ended_at(tx, scope)
            return None if version is None else ScopeState(version, 0)

    @retried
    def rows(
        self,
        scope: Scope,
        space: VectorSpace | None,
        /,
        *,
        since: int = 0,
        keys: Sequence[int] | None = None,
    ) -> ScopeRows:
        """See `MessageStore.rows`."""
        with self._db.read() as tx:
            place = _scopes.find(tx, scope)
            if place is None:
                return _to_rows(_ended_at(tx, scope) or 0, [], _no_vectors(space))
            parameters: dict[str, Any] = {
                "resource": place.resource_key,
                "thread": place.thread_key,
                "since": since,
            }
            if keys is not None:
                parameters["keys"] = tx.listed(keys)
            which = (place.thread_key is not None, keys is not None)
            found = tx.all(_ROWS[which], **parameters)
            parameters["space"] = None if space is None else space_key(tx, space)
            vectors = _no_vectors(space)
            if found and space is not None and parameters["space"] is not None:
                blobs = tx.all(_BLOBS[which], **parameters)
                vectors = tx.backend.vector_rows.decode(blobs, space.dimensions)
        return _to_rows(place.version, found, vectors)

    @retried
    def deleted_since(self, scope: Scope, version: int, /) -> bool:
        """See `MessageStore.deleted_since`."""
        with self._db.read() as tx:
            place = _scopes.find(tx, scope)
            if place is not None:
                return place.deleted_version > version
            ended = _ended_at(tx, scope, whole=False)
            return ended is not None and ended > version

    @retried
    def lexical_candidates(
        self, scope: Scope, terms: Sequence[int], /, *, limit: int
    ) -> tuple[list[int], dict[int, int]]:
        """See `MessageStore.lexical_candidates`.

        The best are those with the largest sum of inverse document frequencies; of equals, the
        newest.
        """
        with self._db.read() as tx:
            place = _scopes.find(tx, scope)
            if place is None:
                return [], dict.fromkeys(terms, 0)
            where = (place.resource_key, place.thread_key)
            full_text = tx.backend.full_text
            counts = full_text.counts(tx, *where, terms)
            lists: list[NDArray[np.int64]] = []
            weights: list[float] = []
            seen = 0
            for term, n in sorted(counts.items(), key=lambda item: item[1]):
                if not n or (lists and seen + n > _MOST_POSTINGS):
                    continue
                lists.append(full_text.matches(tx, *where, term))
                weights.append(np.log1p((max(place.recallable, n) - n + 0.5) / (n + 0.5)))
                seen += n
        return _best(lists, weights, limit), counts

    @retried
    def metadata(self, scope: Scope, /) -> dict[int, Mapping[str, object]]:
        """See `MessageStore.metadata`."""
        with self._db.read() as tx:
            place = _scopes.find(tx, scope)
            if place is None:
                return {}
            rows = tx.all(
                _METADATA[place.thread_key is not None],
                resource=place.resource_key,
                thread=place.thread_key,
            )
        return {key: from_json(text) for key, text in rows}


def _ended_at(tx: Transaction, scope: Scope, *, whole: bool = True) -> int | None:
    """Return the version of a scope that is not there any more; None when it never was.

    With `whole`, that of its resource, which may have gone on without the thread.
    """
    resource = _scopes.stored_resource(scope.resource_id)
    of_resource = _scopes.ended(tx, resource)
    if scope.thread_id is None:
        return of_resource
    of_thread = _scopes.ended(tx, resource, escape(scope.thread_id))
    if of_thread is None or not whole:
        return of_thread
    if of_resource is None:
        owner = _scopes.find_resource(tx, resource)
        of_resource = 0 if owner is None else owner.version
    return max(of_thread, of_resource)


def _best(lists: Sequence[NDArray[np.int64]], weights: Sequence[float], limit: int) -> list[int]:
    if not lists:
        return []
    keys, inverse = np.unique(np.concatenate(lists), return_inverse=True)
    scores = np.bincount(inverse, np.repeat(weights, [len(found) for found in lists]))
    order = np.lexsort((-keys, -scores))[:limit]
    best: list[int] = keys[order].tolist()
    return best


def _no_vectors(space: VectorSpace | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    dimensions = 0 if space is None else space.dimensions
    return np.zeros(0, np.int64), np.zeros((0, dimensions), np.float32)


def _to_rows(
    version: int,
    found: Sequence[Sequence[Any]],
    vectors: tuple[NDArray[np.int64], NDArray[np.float32]],
) -> ScopeRows:
    columns = list(zip(*found, strict=True)) if found else [()] * 7
    keys, threads, created_at, parts, roles, digests, words = columns
    joined = b"".join(word for word in words if word is not None)
    heads = b"".join(digest[:8] for digest in digests)
    known = {role: unescape(role) for role in set(roles)}
    return ScopeRows(
        version=version,
        keys=np.array(keys, dtype=np.int64),
        threads=np.array(threads, dtype=np.int64),
        created_at=np.array(created_at, dtype=np.int64),
        searchable=np.array(parts, dtype=np.int64) == int(Part.SEARCHABLE),
        roles=[known[role] for role in roles],
        digests=np.frombuffer(heads, dtype="<i8").astype(np.int64, copy=False),
        terms=np.frombuffer(joined, dtype=TERM).astype(np.uint32, copy=False),
        term_counts=np.array(
            [0 if word is None else len(word) // 4 for word in words], dtype=np.int64
        ),
        vector_keys=vectors[0],
        vectors=vectors[1],
    )


def _narrowed(statement: Select[Any], in_thread: bool, by_keys: bool) -> Select[Any]:
    # Only what decides best is left to the indexes (`+ 0` hides a column from them): without
    # statistics the planner would walk a whole resource for one thread or a few keys of it.
    version, resource = messages.c.version, messages.c.resource_key
    changed = statement.where(messages.c.part > int(Part.HIDDEN))
    if by_keys:
        changed = changed.where(
            among(messages.c.key, "keys"),
            version + 0 > bindparam("since"),
            resource + 0 == bindparam("resource"),
        )
    else:
        changed = changed.where(version > bindparam("since"))
    if in_thread:
        changed = changed.where(messages.c.thread_key == bindparam("thread"))
    elif not by_keys:
        changed = changed.where(resource == bindparam("resource"))
    return changed.order_by(messages.c.key)


_KINDS = [(in_thread, by_keys) for in_thread in (False, True) for by_keys in (False, True)]
_ROWS = {
    kind: Statement(
        _narrowed(
            select(
                messages.c.key,
                messages.c.thread_key,
                messages.c.created_at,
                messages.c.part,
                messages.c.role,
                messages.c.digest,
                terms.c.terms,
            ).join_from(messages, terms, terms.c.key == messages.c.key, isouter=True),
            *kind,
        )
    )
    for kind in _KINDS
}
_BLOBS = {
    kind: Statement(
        _narrowed(
            select(vectors.c.key, vectors.c.chunks, vectors.c.data)
            .join_from(messages, vectors, vectors.c.key == messages.c.key)
            .where(vectors.c.space_key == bindparam("space")),
            *kind,
        ),
        postgresql=_narrowed(
            select(chunk_rows.c.key, chunk_rows.c.chunks, chunk_rows.c.data)
            .join_from(messages, chunk_rows, chunk_rows.c.key == messages.c.key)
            .where(chunk_rows.c.space_key == bindparam("space")),
            *kind,
        ).order_by(chunk_rows.c.chunk),
    )
    for kind in _KINDS
}
_TAGGED = (
    select(messages.c.key, messages.c.metadata)
    .where(messages.c.metadata.is_not(None), messages.c.part > int(Part.HIDDEN))
    .order_by(messages.c.key)
)
_METADATA = {
    False: Statement(_TAGGED.where(messages.c.resource_key == bindparam("resource"))),
    True: Statement(_TAGGED.where(messages.c.thread_key == bindparam("thread"))),
}
