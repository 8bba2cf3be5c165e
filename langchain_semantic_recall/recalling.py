"""Recalling for a prompt: what to ask, what the prompt holds already, what may still be shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langchain_semantic_recall.ids import Ids
from langchain_semantic_recall.injecting import ids_in, query_message, repeated_ids
from langchain_semantic_recall.messages import text_of
from semantic_recall.options import RecallOverrides
from semantic_recall.recall import SemanticRecall
from semantic_recall.result import Recall
from semantic_recall.turn import aguarded, guarded
from semantic_recall.types import Message


@dataclass(frozen=True, slots=True)
class Question:
    """What one prompt asks of the memory."""

    ids: Ids
    text: str
    overrides: RecallOverrides
    messages: Sequence[BaseMessage]
    """The prompt."""

    def without(self, ids: frozenset[str]) -> RecallOverrides:
        """Return the overrides with more ids to leave out."""
        return {**self.overrides, "exclude_ids": ids.union(self.overrides["exclude_ids"])}


class PromptRecaller:
    """Finds what a prompt lacks; nothing here fails or waits long, see `recall_for_turn`.

    Args:
        memory: The memory.
        overrides: Options on top of the memory's.

    Raises:
        InvalidOptionError: An option has a value that it cannot have.
    """

    def __init__(self, memory: SemanticRecall, overrides: RecallOverrides) -> None:
        self._memory = memory
        self._overrides = overrides
        self.scope = memory.options.replace(**overrides).scope
        """What is searched if the ids allow it."""

    def question(
        self, ids: Ids, messages: Sequence[BaseMessage], held: Sequence[str] = ()
    ) -> Question | None:
        """Return what the prompt asks, or None when it asks nothing.

        Args:
            ids: The current thread and its owner.
            messages: The prompt; the last user message is the query.
            held: Ids of more stored messages that the prompt holds.
        """
        query = query_message(messages)
        text = "" if query is None else text_of(query)
        scope = ids.scope(self.scope)
        if not text.strip() or scope is None:
            return None
        excluded = ids_in(messages).union(held, self._overrides.get("exclude_ids", ()))
        overrides: RecallOverrides = {**self._overrides, "scope": scope, "exclude_ids": excluded}
        return Question(ids, text, overrides, messages)

    def recall(self, question: Question) -> Recall:
        """Return what the question brings back and the prompt does not hold already."""
        recall = self._recall(question, frozenset())
        if _repeated(recall, question):
            # A client that sends the whole conversation gives every message a new id.
            history = guarded(
                lambda: self._history(question),
                timeout=self._memory.settings.timeout,
                logger=self._memory.settings.logger,
                otherwise=list[Message](),
            )
            recall = self._recall(question, repeated_ids(history, question.messages))
        return recall

    async def arecall(self, question: Question) -> Recall:
        """Do the same without blocking the event loop."""
        recall = await self._arecall(question, frozenset())
        if _repeated(recall, question):
            history = await aguarded(
                asyncio.to_thread(self._history, question),
                timeout=self._memory.settings.timeout,
                logger=self._memory.settings.logger,
                otherwise=list[Message](),
            )
            recall = await self._arecall(question, repeated_ids(history, question.messages))
        return recall

    def still_holds(self, recall: Recall) -> bool:
        """Tell whether a recall may be shown again: what was deleted since must not be."""
        return guarded(
            lambda: self._memory.is_current(recall),
            timeout=self._memory.settings.timeout,
            logger=self._memory.settings.logger,
            otherwise=False,
        )

    async def astill_holds(self, recall: Recall) -> bool:
        """Do the same without blocking the event loop."""
        return await aguarded(
            self._memory.ais_current(recall),
            timeout=self._memory.settings.timeout,
            logger=self._memory.settings.logger,
            otherwise=False,
        )

    def _recall(self, question: Question, without: frozenset[str]) -> Recall:
        return self._memory.recall_for_turn(
            question.text,
            thread_id=question.ids.thread_id,
            resource_id=question.ids.resource_id,
            **question.without(without),
        )

    async def _arecall(self, question: Question, without: frozenset[str]) -> Recall:
        return await self._memory.arecall_for_turn(
            question.text,
            thread_id=question.ids.thread_id,
            resource_id=question.ids.resource_id,
            **question.without(without),
        )

    def _history(self, question: Question) -> list[Message]:
        ids = question.ids
        if ids.thread_id is None:
            return []
        # What a client sends again is the end of the thread, with what it does not show in between.
        last = 2 * len(question.messages) + 50
        return self._memory.history(ids.thread_id, ids.resource_id, last=last)


def _repeated(recall: Recall, question: Question) -> bool:
    stored = [found.message for found in recall.same_thread]
    return bool(repeated_ids(stored, question.messages))
