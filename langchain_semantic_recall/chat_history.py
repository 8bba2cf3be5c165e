"""A thread of the memory as a LangChain chat message history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, RemoveMessage
from typing_extensions import Unpack

from langchain_semantic_recall.ids import resolve
from langchain_semantic_recall.messages import (
    from_langchain,
    is_recalled,
    stored_id,
    to_langchain,
)
from semantic_recall.errors import InvalidScopeError
from semantic_recall.options import RecallOverrides
from semantic_recall.recall import SemanticRecall
from semantic_recall.result import Recall
from semantic_recall.types import Message

_REMOVE_ALL: Final = "__remove_all__"
"""LangGraph's id of a `RemoveMessage` that means all messages."""


class SemanticRecallChatMessageHistory(BaseChatMessageHistory):
    """The whole history of one thread, lossless and in the order of insertion.

    What is added can be found by `recall`, here and by every other surface of the memory.
    `messages` never holds anything recalled: it is stable until something is added. A
    `RemoveMessage` removes the message that it names (or all, as in LangGraph).

    Args:
        memory: The memory; one for all threads.
        thread_id: The thread, also called session.
        resource_id: Its owner (user, tenant).

    Raises:
        InvalidScopeError: `thread_id` is missing.
        InvalidIdError: An id is of another type than string, whole number or UUID, or too long.
    """

    def __init__(
        self,
        memory: SemanticRecall,
        thread_id: str,
        resource_id: str | None = None,
    ) -> None:
        super().__init__()
        ids = resolve({}, thread_id=thread_id, resource_id=resource_id)
        if ids.thread_id is None:
            raise InvalidScopeError("a chat history needs a thread_id; pass the session's id")
        self.memory = memory
        self.thread_id = ids.thread_id
        self.resource_id = ids.resource_id

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages of the thread, oldest first."""
        return [to_langchain(message) for message in self.last(None)]

    @messages.setter
    def messages(self, messages: Sequence[BaseMessage]) -> None:
        self.clear()
        self.add_messages(messages)

    async def aget_messages(self) -> list[BaseMessage]:
        """Return all messages of the thread, oldest first."""
        return await asyncio.to_thread(lambda: self.messages)

    def last(self, count: int | None) -> list[Message]:
        """Return the last messages of the thread (all with None) as they are stored."""
        return self.memory.history(self.thread_id, self.resource_id, last=count)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages; those that recall put into a prompt are left out.

        A message with an id that is stored already replaces it in place.
        """
        for removing, group in _steps(messages):
            if removing:
                self._remove(group)
            else:
                self.memory.remember(self._as_stored(group))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages without blocking the event loop."""
        for removing, group in _steps(messages):
            if removing:
                await asyncio.to_thread(self._remove, group)
            else:
                await self.memory.aremember(self._as_stored(group))

    def clear(self) -> None:
        """Delete the thread, with everything made from its messages."""
        self.memory.forget(thread_id=self.thread_id, resource_id=self.resource_id)

    async def aclear(self) -> None:
        """Delete the thread without blocking the event loop."""
        await self.memory.aforget(thread_id=self.thread_id, resource_id=self.resource_id)

    def recall(self, query: str, **overrides: Unpack[RecallOverrides]) -> Recall:
        """Return past messages that matter for `query`, of all the owner's threads.

        Without an owner, of this thread alone; see `SemanticRecall.recall`.
        """
        return self.memory.recall(
            query,
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            **self._scoped(overrides),
        )

    async def arecall(self, query: str, **overrides: Unpack[RecallOverrides]) -> Recall:
        """Do what `recall` does, without blocking the event loop."""
        return await self.memory.arecall(
            query,
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            **self._scoped(overrides),
        )

    def _scoped(self, overrides: RecallOverrides) -> RecallOverrides:
        if self.resource_id is None and "scope" not in overrides:
            return {**overrides, "scope": "thread"}
        return overrides

    def _as_stored(self, messages: Sequence[BaseMessage]) -> list[Message]:
        return [
            from_langchain(message, thread_id=self.thread_id, resource_id=self.resource_id)
            for message in messages
        ]

    def _remove(self, messages: Sequence[BaseMessage]) -> None:
        ids = [id for message in messages if (id := stored_id(message)) is not None]
        self.memory.forget(
            ids=None if _REMOVE_ALL in ids else ids,
            thread_id=self.thread_id,
            resource_id=self.resource_id,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.thread_id!r}, {self.resource_id!r})"


def _steps(messages: Sequence[BaseMessage]) -> Iterator[tuple[bool, list[BaseMessage]]]:
    """Yield runs of messages to store (False) and to remove (True), in order."""
    own = (message for message in messages if not is_recalled(message))
    for removing, group in groupby(own, key=lambda message: isinstance(message, RemoveMessage)):
        yield removing, list(group)
