"""What one call asks of a memory."""

from __future__ import annotations

from dataclasses import dataclass

from semantic_recall.options import RecallOptions
from semantic_recall.types import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What one call asks."""

    text: str
    options: RecallOptions
    thread_id: str | None
    resource_id: str | None
    words_suffice: bool = False
    """In front of a model: a failing embedder costs the vectors, a failing reranker its order, and
    neither the recall."""

    @property
    def scope(self) -> Scope:
        """What may be seen.

        Raises:
            InvalidScopeError: The id that the scope needs is missing.
        """
        return Scope.of(self.options.scope, resource_id=self.resource_id, thread_id=self.thread_id)

    @property
    def thread(self) -> Scope | None:
        """The current thread."""
        if self.thread_id is None:
            return None
        return Scope(self.resource_id, self.thread_id)

    @property
    def finds_something(self) -> bool:
        """False where the answer is empty without a search."""
        options = self.options
        room = options.max_tokens is None or options.max_tokens > 0
        return bool(self.text.strip()) and options.top_k > 0 and room
