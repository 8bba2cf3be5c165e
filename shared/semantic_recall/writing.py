"""Remembering: commit first, embed second, index in the background.

Where the embedder is faster than the second commit would be, vectors are committed with the texts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from semantic_recall.incoming import Incoming, as_messages, as_record
from semantic_recall.indexer import Indexer
from semantic_recall.protocols import MessageStore
from semantic_recall.records import Part, PendingMessage
from semantic_recall.settings import Settings
from semantic_recall.telemetry import Told
from semantic_recall.types import Message
from semantic_recall.vectorizer import Vectorizer


class Writer:
    """Stores and embeds messages of one memory.

    Args:
        store: The truth.
        vectorizer: Embeds; None for a memory that searches by words alone.
        indexer: Told when there is something for the vector index.
        settings: Which roles are embedded, the hook before storing, and the telemetry.
    """

    def __init__(
        self,
        store: MessageStore,
        vectorizer: Vectorizer | None,
        indexer: Indexer,
        settings: Settings,
    ) -> None:
        self._store = store
        self._vectorizer = vectorizer
        self._indexer = indexer
        self._settings = settings

    def remember(
        self,
        messages: Incoming | Iterable[Incoming],
        *,
        thread_id: str | None,
        resource_id: str | None,
        background: bool,
        strict: bool,
    ) -> list[Message]:
        """Commit the messages; then embed them here, or leave that to the background."""
        with self._telling(background) as told:
            kept, pending = self._commit(
                messages, thread_id, resource_id, self._vectorizer if not background else None
            )
            told(kept)
            if pending and self._vectorizer is not None and not background:
                self._vectorizer.embed(pending, strict=strict)
        # Only the index can wait for more of an import: vectors that are left to it cannot.
        self._indexer.wake(0 if background else len(kept))
        return kept

    async def aremember(
        self,
        messages: Incoming | Iterable[Incoming],
        *,
        thread_id: str | None,
        resource_id: str | None,
        background: bool,
        strict: bool,
    ) -> list[Message]:
        """Commit the messages in a thread; await the embedder when it is natively async."""
        vectorizer = self._vectorizer
        if background or vectorizer is None or not vectorizer.is_async:
            return await asyncio.to_thread(
                self.remember,
                messages,
                thread_id=thread_id,
                resource_id=resource_id,
                background=background,
                strict=strict,
            )
        with self._telling(background) as told:
            kept, pending = await asyncio.to_thread(self._commit, messages, thread_id, resource_id)
            told(kept)
            if pending:
                await vectorizer.aembed(pending, strict=strict)
        self._indexer.wake(len(kept))
        return kept

    def _telling(self, background: bool) -> AbstractContextManager[Told[Sequence[Message]]]:
        space = None if self._vectorizer is None else self._vectorizer.space
        return self._settings.telemetry.remember(space, background=background)

    def _commit(
        self,
        messages: Incoming | Iterable[Incoming],
        thread_id: str | None,
        resource_id: str | None,
        at_once: Vectorizer | None = None,
    ) -> tuple[list[Message], list[PendingMessage]]:
        kept = as_messages(messages, thread_id=thread_id, resource_id=resource_id)
        if self._settings.before_store is not None:
            kept = list(self._settings.before_store(kept))
        if not kept:
            return [], []
        records = [as_record(message, self._settings.embed_roles) for message in kept]
        embedded = None if at_once is None else at_once.embed_at_once(records)
        stored = self._store.add(records, embedded)
        # A dict: of the same message twice in one batch only the last is embedded.
        pending = {
            item.key: PendingMessage(item.key, record.digest, record.message, 0)
            for record, item in zip(records, stored, strict=True)
            if item.changed and not item.embedded and record.part is Part.SEARCHABLE
        }
        return kept, list(pending.values())
