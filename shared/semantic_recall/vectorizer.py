"""From stored messages to stored vectors, and from a query to its vector.

The middle, free of the embedder's I/O and shared by the sync and the async methods, is in
`embedding_work`; here the embedder is called.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from semantic_recall.embedding_work import EmbeddingWork, MissingText, Plan, failures_named, resume
from semantic_recall.forks import renew_in_child
from semantic_recall.immediate import ImmediateEmbedder, embed_at_once
from semantic_recall.indexed_text import digest
from semantic_recall.protocols import Embedder, MessageStore
from semantic_recall.records import Embedded, MessageRecord, MessageVectors, PendingMessage
from semantic_recall.telemetry import LookUps, Telemetry
from semantic_recall.types import Vector, VectorSpace
from semantic_recall.vector_cache import Key, VectorCache
from semantic_recall.vector_space import checked_vector, open_space, space_is_new

__all__ = ["MissingText", "Plan", "Vectorizer", "coverage", "open_space", "space_is_new"]


@runtime_checkable
class _NativeAsync(Protocol):
    async def aembed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]: ...

    async def aembed_query(self, text: str, /) -> Vector: ...


@runtime_checkable
class _WithCoverage(Protocol):
    def coverage(self, text: str, /) -> float: ...


def coverage(embedder: Embedder, text: str) -> float:
    """Return which share of a text the embedder can read, 0 to 1.

    An embedder may have a method `coverage(text)` that tells it: a vector made of pieces that
    mean nothing has its direction by accident. 1 for one that has no such method.
    """
    return embedder.coverage(text) if isinstance(embedder, _WithCoverage) else 1.0


class Vectorizer:
    """Gives messages their vectors, and queries theirs; safe to use from many threads.

    No text is embedded twice under the same fingerprint: vectors are looked up in memory, then in
    the store (not by `embed_at_once`: embedding is cheaper there). What the embedder fails at stays
    pending in the store and is tried again after 1 second, then 2, 4, ... up to 10 minutes.

    Args:
        store: Where pending messages come from and vectors go to.
        embedder: Makes the vectors; its coroutine methods, if it has them, are awaited by
            `aembed` and `aquery`.
        cache_entries: How many vectors to hold in memory.
        logger: Gets the warnings; by default the logger `semantic_recall`.
        telemetry: Is told of the failures; by default nobody is.
    """

    def __init__(
        self,
        store: MessageStore,
        embedder: Embedder,
        *,
        cache_entries: int = 10_000,
        logger: logging.Logger | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._native = embedder if isinstance(embedder, _NativeAsync) else None
        self._reader = embedder if isinstance(embedder, _WithCoverage) else None
        self._immediate = embedder if isinstance(embedder, ImmediateEmbedder) else None
        self._cache = VectorCache(cache_entries)
        self.renew()
        renew_in_child(self)
        self._work = EmbeddingWork(
            store,
            embedder,
            self._cache,
            logger or logging.getLogger("semantic_recall"),
            telemetry or Telemetry(),
        )

    def renew(self) -> None:
        """Begin with nothing in hand: a forked child has none of the threads that had it."""
        self._lock = threading.Lock()
        self._hands: Counter[int] = Counter()

    @property
    def space(self) -> VectorSpace:
        """The vector space of the embedder."""
        return self._embedder.space

    @property
    def cache(self) -> LookUps:
        """How often the vectors in memory were looked up."""
        return self._cache

    @property
    def is_async(self) -> bool:
        """Whether the embedder has coroutine methods of its own."""
        return self._native is not None

    # -- messages -----------------------------------------------------------------------------
    def plan(self, items: Sequence[PendingMessage], /) -> Plan:
        """Look up what is known already, and cut the texts that are not.

        Raises:
            StoreError: The store failed.
        """
        return self._work.plan(items)

    def finish(self, plan: Plan, vectors: Sequence[Vector], /) -> list[MessageVectors]:
        """Return the vectors of the plan's messages, the known ones included.

        A message with a vector that cannot be used is left out, with a warning.

        Args:
            plan: What `plan` returned.
            vectors: One per text of `plan.texts`, in order.

        Raises:
            EmbedderError: The number of vectors is not that of the texts.
        """
        return self._work.finish(plan, vectors)

    def embed(self, items: Sequence[PendingMessage], /, *, strict: bool = False) -> int:
        """Embed messages and store their vectors.

        Args:
            items: Messages that are pending in the embedder's space.
            strict: Raise when the embedder fails, instead of a warning.

        Returns:
            For how many messages it was done; the others stay pending.

        Raises:
            EmbedderError: Only with `strict`; what could be done is stored before.
            StoreError: The store failed.
        """
        with self._in_hand(items):
            work = self._work.run(items, strict=strict)
            step = resume(work, None)
            while isinstance(step, tuple):
                step = resume(work, self._answer(step))
            return step

    async def aembed(self, items: Sequence[PendingMessage], /, *, strict: bool = False) -> int:
        """Do what `embed` does without blocking the event loop.

        Raises:
            EmbedderError: Only with `strict`; what could be done is stored before.
            StoreError: The store failed.
        """
        if self._native is None:
            return await asyncio.to_thread(self.embed, items, strict=strict)
        with self._in_hand(items):
            work = self._work.run(items, strict=strict)
            step = await asyncio.to_thread(resume, work, None)
            while isinstance(step, tuple):
                answer = await _awaited(self._native, step)
                step = await asyncio.to_thread(resume, work, answer)
            return step

    def embed_at_once(self, records: Sequence[MessageRecord], /) -> Embedded | None:
        """Return vectors to store together with the messages, see `immediate.embed_at_once`."""
        embedder = self._immediate
        return None if embedder is None else embed_at_once(records, embedder, self._cache)

    def embed_pending(self, limit: int, *, due_only: bool = True) -> int:
        """Embed up to `limit` pending messages, oldest first; for a background worker.

        With `due_only`, what another thread is embedding just now is left to it: the embedder may
        cost money. Without, as in a flush, nothing is left out.

        Returns:
            For how many messages it was done.

        Raises:
            StoreError: The store failed. The embedder's errors are only logged.
        """
        items = self._store.pending(self.space, limit=limit, due_only=due_only)
        if due_only:
            items = [item for item in items if not self._hands[item.key]]
        return self.embed(items) if items else 0

    # -- queries --------------------------------------------------------------------------------
    def query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with, read-only.

        Of a text that is longer than the embedder reads whole, both ends are read.

        Raises:
            EmbedderError: The embedder failed, or gave a vector that cannot be used.
        """
        key = self._key(text)
        cached = self._cache.get(key)
        if cached is not None:
            return _only(cached)
        with failures_named("embed the query"):
            vector = self._embedder.embed_query(self._both_ends(text))
        return self._keep_query(key, vector)

    async def aquery(self, text: str, /) -> Vector:
        """Do what `query` does without blocking the event loop.

        Raises:
            EmbedderError: The embedder failed, or gave a vector that cannot be used.
        """
        if self._native is None:
            return await asyncio.to_thread(self.query, text)
        key = self._key(text)
        cached = self._cache.get(key)
        if cached is not None:
            return _only(cached)
        with failures_named("embed the query"):
            vector = await self._native.aembed_query(self._both_ends(text))
        return self._keep_query(key, vector)

    def coverage(self, text: str, /) -> float:
        """Return which share of a query the embedder can read, see `coverage`.

        Raises:
            EmbedderError: The embedder failed.
        """
        if self._reader is None:
            return 1.0
        with failures_named("tell what it can read"):
            return min(max(float(self._reader.coverage(text)), 0.0), 1.0)

    def clear(self) -> None:
        """Drop the vectors in memory; for after a deletion."""
        self._cache.clear()

    # -- inside ---------------------------------------------------------------------------------
    @contextmanager
    def _in_hand(self, items: Sequence[PendingMessage]) -> Iterator[None]:
        """Let the background worker know what it need not embed."""
        keys = [item.key for item in items]
        with self._lock:
            self._hands.update(keys)
        try:
            yield
        finally:
            with self._lock:
                self._hands.subtract(keys)
                for key in keys:
                    if not self._hands[key]:
                        del self._hands[key]

    def _answer(self, texts: Sequence[str]) -> Sequence[Vector] | Exception:
        try:
            return self._embedder.embed_documents(texts)
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            return error

    def _key(self, text: str) -> Key:
        return self.space.name, "query", digest(text)

    def _both_ends(self, text: str) -> str:
        limit = self._embedder.max_characters
        if limit is None or len(text) <= limit:
            return text
        # In a long message the question mostly stands at the beginning or at the end.
        half = max((limit - 1) // 2, 1)
        return f"{text[:half]}\n{text[-half:]}"

    def _keep_query(self, key: Key, value: object) -> Vector:
        kept = checked_vector(value, self.space.dimensions)[np.newaxis].copy()
        self._cache.put(key, kept)
        return _only(kept)


async def _awaited(embedder: _NativeAsync, texts: Sequence[str]) -> Sequence[Vector] | Exception:
    try:
        return await embedder.aembed_documents(texts)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return error


def _only(vectors: NDArray[np.float32]) -> Vector:
    vector: Vector = vectors[0]
    return vector
