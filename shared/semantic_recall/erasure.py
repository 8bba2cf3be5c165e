"""Forgetting: hidden at once, removed everywhere, and counted afterwards."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from semantic_recall.errors import InvalidScopeError, VectorIndexError
from semantic_recall.indexer import Indexer
from semantic_recall.protocols import MessageStore
from semantic_recall.scope_cache import ScopeCache
from semantic_recall.telemetry import Removal, Telemetry
from semantic_recall.types import Scope
from semantic_recall.vectorizer import Vectorizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReceipt:
    """What was removed, and what a look into every place found afterwards."""

    messages: int
    threads: int
    vectors: int
    remaining: Mapping[str, int]
    """By place, after the removal: all zero. "outbox" is not while the vector index has still to
    be changed by the process that owns it."""
    secure: bool
    """True when the freed bytes were overwritten too, in the database and the vector index.
    False after `secure=True` means that another process owns the index: scrub it there. Or the
    index could not do it, as a Chroma server cannot: the log says why."""

    @property
    def complete(self) -> bool:
        """True when nothing of it is left anywhere in this memory."""
        return not any(self.remaining.values())


class Eraser:
    """Removes messages from one memory.

    Args:
        store: The truth.
        vectorizer: Its cache is emptied.
        indexer: Takes the vectors out of the vector index.
        cache: Its views of the resource are dropped.
        telemetry: Is told of every removal.
        logger: Is told why the index was not scrubbed.
    """

    def __init__(
        self,
        store: MessageStore,
        vectorizer: Vectorizer | None,
        indexer: Indexer,
        cache: ScopeCache,
        telemetry: Telemetry,
        logger: logging.Logger,
    ) -> None:
        self._store = store
        self._vectorizer = vectorizer
        self._indexer = indexer
        self._cache = cache
        self._logger = logger
        self._telemetry = telemetry

    def forget(
        self,
        *,
        ids: Sequence[str] | None,
        thread_id: str | None,
        resource_id: str | None,
        secure: bool,
    ) -> ForgetReceipt:
        """Delete the messages of the scope, or those of it that have one of `ids`."""
        if thread_id is None and resource_id is None:
            raise InvalidScopeError(
                "forget needs a thread_id or a resource_id (ids alone are not unique)"
            )
        scope = Scope(resource_id, thread_id)
        with self._telemetry.forget(scope, secure=secure) as told:
            receipt = self._forget(scope, ids, secure=secure)
            told(Removal(receipt.messages, receipt.vectors))
        return receipt

    def _forget(self, scope: Scope, ids: Sequence[str] | None, *, secure: bool) -> ForgetReceipt:
        removal = self._store.delete(scope, ids=ids)
        self._cache.drop(scope.resource_id)
        if self._vectorizer is not None:
            self._vectorizer.clear()
        # A bulk flush opens the index even with nothing to write, so that it can be scrubbed.
        self._indexer.flush(bulk=secure, embed=False)
        scrubbed = secure and self._scrub()
        return ForgetReceipt(
            messages=removal.messages,
            threads=removal.threads,
            vectors=removal.vectors,
            remaining=self._store.remains(removal.keys),
            secure=scrubbed,
        )

    def _scrub(self) -> bool:
        self._store.scrub()
        index = self._indexer.index()
        if index is None:
            return not self._indexer.has_index
        try:
            index.scrub()
        except VectorIndexError as error:
            # The messages are gone and the receipt of that must reach the caller.
            self._logger.warning("the vector index was not scrubbed: %s", error)
            return False
        return True
