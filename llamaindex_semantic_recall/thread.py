"""One stored conversation as chat messages: read in front of a model, written beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage

from llamaindex_semantic_recall.history import difference
from llamaindex_semantic_recall.messages import to_message
from llamaindex_semantic_recall.prompt import without_recalled
from semantic_recall import SemanticRecall
from semantic_recall.errors import StoreError
from semantic_recall.turn import aguarded, guarded
from semantic_recall.types import Message, check_id

_SYSTEM = ("system", "developer")
_MAX_UNSAVED = 1000
_NOTHING: tuple[list[Message], bool] = ([], False)


class Thread:
    """A thread of a memory.

    What cannot be stored because the database fails is kept here and stored with what comes
    next, so that the conversation goes on.

    Args:
        recall: The memory.
        thread_id: The thread.
        resource_id: Its owner.

    Raises:
        InvalidIdError: An id cannot be used.
    """

    def __init__(self, recall: SemanticRecall, thread_id: str, resource_id: str | None) -> None:
        self.recall = recall
        self.thread_id = check_id(thread_id, "thread_id")
        self.resource_id = None if resource_id is None else check_id(resource_id, "resource_id")
        self._lock = threading.Lock()
        self._unsaved: list[Message] = []
        self._systems: list[Message] | None = None

    def recent(self, last: int) -> tuple[list[Message], bool]:
        """Return the last messages and, however old, all system messages; [] when that fails.

        Returns:
            The messages, oldest first, and whether older ones were left out.

        Raises:
            AbortTurn: A hook stopped the turn.
        """
        settings = self.recall.settings
        rows, more = guarded(
            lambda: self._read(last),
            timeout=settings.timeout,
            logger=settings.logger,
            otherwise=_NOTHING,
        )
        return [*rows, *self._unsaved], more

    async def arecent(self, last: int) -> tuple[list[Message], bool]:
        """Do what `recent` does, without blocking the event loop."""
        settings = self.recall.settings
        rows, more = await aguarded(
            asyncio.to_thread(self._read, last),
            timeout=settings.timeout,
            logger=settings.logger,
            otherwise=_NOTHING,
        )
        return [*rows, *self._unsaved], more

    def _read(self, last: int) -> tuple[list[Message], bool]:
        rows = self.recall.history(self.thread_id, self.resource_id, last=last)
        if len(rows) < last:
            return rows, False
        if self._systems is None:
            thread = self.recall.messages(thread_id=self.thread_id, resource_id=self.resource_id)
            self._systems = [message for message in thread if message.role in _SYSTEM]
        recent = {message.id for message in rows}
        return [*(message for message in self._systems if message.id not in recent), *rows], True

    def everything(self) -> list[Message]:
        """Return all messages, oldest first.

        Raises:
            StoreError: The database failed.
        """
        stored = self.recall.history(self.thread_id, self.resource_id, last=None)
        return [*stored, *self._unsaved]

    def append(self, chats: Sequence[ChatMessage]) -> None:
        """Store chat messages in one transaction; they are embedded in the background.

        Raises:
            AbortTurn: The hook `before_store` stopped it.
        """
        new = self._as_messages(chats)
        if not new:
            return
        with self._lock:
            batch = [*self._unsaved, *new]
            try:
                self.recall.remember(batch, background=True)
            except StoreError as error:
                self._unsaved = batch[-_MAX_UNSAVED:]
                self.recall.settings.logger.warning(
                    "messages were not stored; they are kept in memory until the next put: %s",
                    error,
                )
            else:
                self._unsaved = []
            if any(message.role in _SYSTEM for message in new):
                self._systems = None

    def replace(self, chats: Sequence[ChatMessage]) -> bool:
        """Make chat messages the thread, see `difference`; True when something was deleted.

        Raises:
            StoreError: The database failed.
            AbortTurn: The hook `before_store` stopped it.
        """
        wanted = [left for chat in chats if (left := without_recalled(chat)) is not None]
        with self._lock:
            stored = self.recall.history(self.thread_id, self.resource_id, last=None)
            change = difference(stored, wanted)
            new = self._as_messages(change.add)
            if new:
                self.recall.remember(new, background=True)
            if change.forget:
                self.recall.forget(
                    ids=change.forget, thread_id=self.thread_id, resource_id=self.resource_id
                )
            self._unsaved = []
            self._systems = None
        return bool(change.forget)

    def clear(self) -> None:
        """Delete the thread.

        Raises:
            StoreError: The database failed.
        """
        with self._lock:
            self.recall.forget(thread_id=self.thread_id, resource_id=self.resource_id)
            self._unsaved = []
            self._systems = None

    def _as_messages(self, chats: Sequence[ChatMessage]) -> list[Message]:
        return [
            to_message(left, thread_id=self.thread_id, resource_id=self.resource_id)
            for chat in chats
            if (left := without_recalled(chat)) is not None
        ]
