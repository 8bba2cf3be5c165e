"""What a message store, a vector index and an embedder must do.

Bring your own by writing a class with these methods; no base class is needed. The suites in
`semantic_recall.testing` check a new one; `semantic_recall.records` has what they take and give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from semantic_recall.records import (
    Embedded,
    IndexOperation,
    MessageRecord,
    MessageVectors,
    PendingMessage,
    Removal,
    ScopeRows,
    ScopeState,
    SpaceInfo,
    Stored,
)
from semantic_recall.types import (
    Hit,
    Message,
    ResourceInfo,
    Scope,
    ThreadInfo,
    Vector,
    VectorRecord,
    VectorSpace,
)


class MessageStore(Protocol):
    """The truth: messages, their terms and vectors, and the work that is still to do.

    Every method is one transaction, safe to call from many threads and beside other processes,
    and durable when it returns; but vectors and queues, which can be made anew, may be undone by a
    power loss (not by a dying process) until the next durable write. All raise `StoreError` when
    the database fails and `StoreClosedError` after `close`.
    """

    def add(
        self, records: Sequence[MessageRecord], embedded: Embedded | None = None, /
    ) -> list[Stored]:
        """Store messages in order; the same id again (in its thread) replaces in place.

        A replaced message keeps its key; if its digest changed, its vectors are removed. Of the
        same id twice in one call the last wins. A SEARCHABLE message that changed gets what
        `embedded` has for it, and becomes pending in every other space. Returns one per record.
        """
        ...

    def fetch(self, scope: Scope, keys: Sequence[int], /) -> dict[int, Message]:
        """Return the messages among `keys` that are in `scope`; others are left out."""
        ...

    def keys(self, scope: Scope, ids: Sequence[str], /) -> dict[str, list[int]]:
        """Return the keys of messages by id; an id may stand in several threads of a resource."""
        ...

    def window(
        self, scope: Scope, keys: Sequence[int], /, *, before: int, after: int
    ) -> dict[int, list[int]]:
        """Return for each of `keys` in `scope` the keys of its neighbours and itself, ascending.

        Neighbours are of its own thread; HIDDEN messages are stepped over and not counted.
        """
        ...

    def history(self, scope: Scope, /, *, last: int | None = None) -> list[Message]:
        """Return the last messages of the scope (all with None), oldest first, HIDDEN included."""
        ...

    def export(self, scope: Scope | None, /) -> Iterator[Message]:
        """Yield every message of the scope or the store, by thread, in order, in bounded memory."""
        ...

    def threads(self, resource_id: str | None = None, /) -> list[ThreadInfo]:
        """Return the threads of one resource, or of all with None; newest message first."""
        ...

    def resources(self) -> list[ResourceInfo]:
        """Return the resources with messages, sorted by id."""
        ...

    def state(self, scope: Scope, /) -> ScopeState | None:
        """Return the scope's state, or None when it has no messages and never had any."""
        ...

    def rows(
        self,
        scope: Scope,
        space: VectorSpace | None,
        /,
        *,
        since: int = 0,
        keys: Sequence[int] | None = None,
    ) -> ScopeRows:
        """Return the scope's rows that changed after version `since`, or only those of `keys`.

        A row counts as changed when its message or its vectors changed. Deletions are not in
        it: see `deleted_since`.
        """
        ...

    def deleted_since(self, scope: Scope, version: int, /) -> bool:
        """Tell whether a message of the scope was deleted or became HIDDEN after `version`."""
        ...

    def lexical_candidates(
        self, scope: Scope, terms: Sequence[int], /, *, limit: int
    ) -> tuple[list[int], dict[int, int]]:
        """Return the keys of the best matches for hashed terms, and in how many messages each is.

        For scopes that do not fit into memory; the counts are of the scope.
        """
        ...

    def metadata(self, scope: Scope, /) -> dict[int, Mapping[str, object]]:
        """Return the metadata of the scope's messages by key, where it is not empty."""
        ...

    def set_vectors(self, space: VectorSpace, vectors: Sequence[MessageVectors], /) -> int:
        """Store vectors and queue them for the index; returns for how many messages it was done.

        Skips a message that is gone, or whose digest is another by now: a write in flight never
        brings back what was deleted or replaced.
        """
        ...

    def find_vectors(
        self, space: VectorSpace, digests: Sequence[bytes], /
    ) -> dict[bytes, NDArray[np.float32]]:
        """Return vectors already stored for the same indexed text: digest to (chunks, dims)."""
        ...

    def pending(
        self, space: VectorSpace, /, *, limit: int, due_only: bool = True
    ) -> list[PendingMessage]:
        """Return what waits for vectors, oldest first; `due_only`: not what is postponed still."""
        ...

    def postpone(self, space: VectorSpace, keys: Sequence[int], /, *, seconds: float) -> None:
        """Count a failed attempt for pending messages and try them again after `seconds`."""
        ...

    def operations(self, *, limit: int, durable: bool = False) -> list[IndexOperation]:
        """Return what the vector index has to catch up on, in order.

        With `durable` they survive a power loss: an index that is told of them never holds a
        vector that the store has lost.
        """
        ...

    def acknowledge(self, operations: Sequence[IndexOperation], /) -> None:
        """Take operations off the queue: the vector index has applied them."""
        ...

    def queue_all(self, space: VectorSpace, /) -> int:
        """Queue an upsert of every stored vector of the space: the index is rebuilt from them."""
        ...

    def spaces(self) -> list[SpaceInfo]:
        """Return the vector spaces of this store, the oldest first."""
        ...

    def add_space(self, space: VectorSpace, /, *, active: bool) -> None:
        """Make a space known and its missing vectors pending; `active` switches recall to it.

        The same space again only switches.
        """
        ...

    def drop_space(self, space: VectorSpace, /) -> None:
        """Remove a space with its vectors and pending work."""
        ...

    def vector_ids(self, space: VectorSpace, /) -> Iterator[tuple[str, Scope]]:
        """Yield the index id (see `vector_id`) and thread of every stored vector."""
        ...

    def delete(self, scope: Scope, /, *, ids: Sequence[str] | None = None) -> Removal:
        """Delete the scope's messages (those with `ids`, or all) with everything made from them.

        Queues the deletion in the vector index in the same transaction.
        """
        ...

    def remains(self, keys: Sequence[int], /) -> Mapping[str, int]:
        """Count what is left of deleted messages, by place.

        The places: "messages", "terms", "full_text", "vectors", "pending", "outbox".
        """
        ...

    def scrub(self) -> None:
        """Overwrite freed bytes so that deleted text is not left in the database files."""
        ...

    def check(self) -> list[str]:
        """Return what is wrong inside the store, one line each; empty when it is sound."""
        ...

    def setting(self, name: str, default: str, /) -> str:
        """Return a setting of the store; the first call with a name fixes it to `default`."""
        ...

    def size(self) -> Mapping[str, int]:
        """Return "messages", "threads", "resources", "vectors", "pending", "outbox", "bytes"."""
        ...

    def close(self) -> None:
        """Release the database; closing twice is fine."""
        ...


class VectorIndex(Protocol):
    """A derived index of vectors for scopes that are too large to search exactly.

    Every method is safe to call from many threads and raises `VectorIndexError` when it fails.
    Everything in the index can be lost: it is rebuilt from the store. An index may also have
    `lost: bool`, true once it is of no use any more; it is then closed and opened anew.
    """

    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        """Write vectors; the same id again (in the same thread) replaces. Any number at once."""
        ...

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        """Delete vectors by id, with the thread each was written under; a missing id is fine."""
        ...

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        """Return the nearest vectors by cosine, best first; the scope filters before `top_k`."""
        ...

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        """Yield every id of the space, in no order."""
        ...

    def drop(self, space: VectorSpace, /) -> None:
        """Remove everything of the space."""
        ...

    def scrub(self) -> None:
        """Overwrite freed bytes so that deleted vectors are not left in the index's files."""
        ...

    def close(self) -> None:
        """Release the index; closing twice is fine."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors. Must be safe to call from many threads.

    An embedder may also have the coroutine methods of `AsyncEmbedder`, which the async methods of
    `SemanticRecall` await; `coverage(text) -> float`, the share of a text that it can read; and
    `immediate: bool`, true while texts take it less time than a commit: they are embedded first.
    """

    @property
    def space(self) -> VectorSpace:
        """The fingerprint and dimensions: equal fingerprints mean equal vectors."""
        ...

    @property
    def max_characters(self) -> int | None:
        """The longest text it reads whole; longer ones are cut into chunks. None: any length."""
        ...

    def embed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """Return one vector per text to be found, in order."""
        ...

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with."""
        ...


class AsyncEmbedder(Embedder, Protocol):
    """An embedder with native async methods."""

    async def aembed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """Return one vector per text to be found, in order."""
        ...

    async def aembed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with."""
        ...
