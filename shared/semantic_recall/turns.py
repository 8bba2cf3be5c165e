"""Turns of a memory: recall in front of a model, and storing what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from typing_extensions import Unpack

from semantic_recall import turn
from semantic_recall.core import RecallCore
from semantic_recall.options import RecallOverrides
from semantic_recall.question import Question
from semantic_recall.result import Recall
from semantic_recall.types import Message, Scope


class Turns(RecallCore):
    """A memory that does whole turns; see `RecallCore` for the rest."""

    def recall_for_turn(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        **overrides: Unpack[RecallOverrides],
    ) -> Recall:
        """Recall in front of a model: as `recall`, but the answer never waits or fails for it.

        If the embedder fails, words alone are searched; if anything else fails or more than
        `Settings.timeout` seconds pass, nothing is recalled. Either is a warning in the log. The
        hook `before_inject` has seen what is returned.

        Raises:
            ConfigurationError: An id or option is missing or wrong.
            AbortTurn: The hook `before_inject` stopped the turn.
        """
        question = self._turn_question(query, thread_id, resource_id, overrides)
        return turn.guarded(
            lambda: self._injectable(self._recaller.recall(question, None)),
            timeout=self._settings.timeout,
            logger=self._settings.logger,
            otherwise=_nothing(question),
        )

    async def arecall_for_turn(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        **overrides: Unpack[RecallOverrides],
    ) -> Recall:
        """Do what `recall_for_turn` does, without blocking the event loop."""
        question = self._turn_question(query, thread_id, resource_id, overrides)

        async def look_up() -> Recall:
            return self._injectable(await self._recaller.arecall(question, None))

        return await turn.aguarded(
            look_up(),
            timeout=self._settings.timeout,
            logger=self._settings.logger,
            otherwise=_nothing(question),
        )

    def is_current(self, recall: Recall) -> bool:
        """Tell whether a recall may still be shown: nothing of its resource was deleted since.

        For callers that keep a recall and show it again. One that found nothing is always
        current; one that was made by hand is not, as its age is unknown.

        Raises:
            StoreError: The database failed.
        """
        if not recall.messages:
            return True
        if recall.version is None:
            return False
        thread_id = None if recall.resource_id is not None else recall.thread_id
        return not self._store.deleted_since(Scope(recall.resource_id, thread_id), recall.version)

    async def ais_current(self, recall: Recall) -> bool:
        """Do what `is_current` does, without blocking the event loop."""
        return await asyncio.to_thread(self.is_current, recall)

    def process_input(
        self,
        messages: Sequence[turn.ChatMessage],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        last_messages: int = 0,
        insert: turn.Insert = "system",
        **overrides: Unpack[RecallOverrides],
    ) -> list[dict[str, Any]]:
        """Return the prompt for a turn: `messages` with what the memory adds.

        The last user message is the query. Messages of other threads come as one block in the
        system message (or a user message), those of this thread as messages before the live ones.
        It fails open, see `recall_for_turn`.

        Args:
            messages: Role/content dicts: the new ones, or the conversation so far. One with an
                "id" that is stored is not recalled again.
            thread_id: The current thread.
            resource_id: Its owner.
            last_messages: How many of the thread's last stored messages to put before the live
                ones; 0 (the default) when `messages` holds them already.
            insert: Where the block of other threads goes.
            **overrides: Any option of `RecallOptions`, for this call.

        Raises:
            ConfigurationError: An id or option is missing or wrong.
            AbortTurn: The hook `before_inject` stopped the turn.
        """
        own = turn.live(messages)
        stored = self._end_of_thread(own, thread_id, resource_id, last_messages)
        history = turn.without_live(stored, own)[-last_messages:] if last_messages > 0 else []
        recall = self.recall_for_turn(
            turn.query_text(own),
            thread_id=thread_id,
            resource_id=resource_id,
            **_with_excluded(overrides, own, stored, history),
        )
        return turn.prompt(own, recall, history, insert)

    async def aprocess_input(
        self,
        messages: Sequence[turn.ChatMessage],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        last_messages: int = 0,
        insert: turn.Insert = "system",
        **overrides: Unpack[RecallOverrides],
    ) -> list[dict[str, Any]]:
        """Do what `process_input` does, without blocking the event loop."""
        own = turn.live(messages)
        stored = await asyncio.to_thread(
            self._end_of_thread, own, thread_id, resource_id, last_messages
        )
        history = turn.without_live(stored, own)[-last_messages:] if last_messages > 0 else []
        recall = await self.arecall_for_turn(
            turn.query_text(own),
            thread_id=thread_id,
            resource_id=resource_id,
            **_with_excluded(overrides, own, stored, history),
        )
        return turn.prompt(own, recall, history, insert)

    def process_output(
        self,
        messages: Sequence[turn.ChatMessage],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
    ) -> list[Message]:
        """Store what is new of a turn: the user's message and the answer; returns it.

        System messages, what came out of the memory, and a beginning that repeats the end of
        the stored thread are left out, so the whole conversation may be handed over each time.

        Raises:
            ConfigurationError: The thread id is missing, or an id is invalid.
            StoreError: The database failed; nothing was stored.
        """
        new = self._new(messages, thread_id, resource_id)
        return self._writer.remember(
            new, thread_id=thread_id, resource_id=resource_id, background=False, strict=False
        )

    async def aprocess_output(
        self,
        messages: Sequence[turn.ChatMessage],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
    ) -> list[Message]:
        """Do what `process_output` does, without blocking the event loop."""
        new = await asyncio.to_thread(self._new, messages, thread_id, resource_id)
        return await self._writer.aremember(
            new, thread_id=thread_id, resource_id=resource_id, background=False, strict=False
        )

    def _turn_question(
        self,
        query: str,
        thread_id: str | None,
        resource_id: str | None,
        overrides: RecallOverrides,
    ) -> Question:
        question = self._question(query, thread_id, resource_id, overrides, words_suffice=True)
        _ = question.scope  # a missing id is an error of the call: it must not fail open
        return question

    def _injectable(self, recall: Recall) -> Recall:
        hook = self._settings.before_inject
        return recall if hook is None else hook(recall)

    def _end_of_thread(
        self,
        messages: Sequence[turn.ChatMessage],
        thread_id: str | None,
        resource_id: str | None,
        last: int,
    ) -> list[Message]:
        """Return the end of the stored thread: what is asked for, and what may be live."""
        if thread_id is None:
            return []
        nothing: list[Message] = []
        return turn.guarded(
            lambda: self.history(thread_id, resource_id, last=max(last, 0) + 2 * len(messages)),
            timeout=self._settings.timeout,
            logger=self._settings.logger,
            otherwise=nothing,
        )

    def _new(
        self,
        messages: Sequence[turn.ChatMessage],
        thread_id: str | None,
        resource_id: str | None,
    ) -> list[turn.ChatMessage]:
        history = []
        if thread_id is not None:
            history = self.history(thread_id, resource_id, last=len(messages))
        return turn.unseen(history, messages)


def _nothing(question: Question) -> Recall:
    return Recall(
        query=question.text, thread_id=question.thread_id, resource_id=question.resource_id
    )


def _with_excluded(
    overrides: RecallOverrides,
    messages: Sequence[turn.ChatMessage],
    stored: Sequence[Message],
    history: Sequence[Message],
) -> RecallOverrides:
    """Return the overrides with the ids of what the prompt holds already."""
    ids = turn.repeated_ids(stored, messages).union(message.id for message in history)
    return {**overrides, "exclude_ids": ids.union(overrides.get("exclude_ids", ()))}
