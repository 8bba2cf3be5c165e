"""Saying something to a memory, and asking it."""

from __future__ import annotations

from semantic_recall import Message, SemanticRecall


def say(memory: SemanticRecall, *texts: str, user: str = "ann", thread: str = "t") -> list[Message]:
    return memory.remember(
        [{"role": "user", "content": text} for text in texts], thread_id=thread, resource_id=user
    )


def found(memory: SemanticRecall, query: str, user: str = "ann", **options: object) -> list[str]:
    """Return the texts that are recalled."""
    recalled = memory.recall(query, resource_id=user, **options)  # type: ignore[arg-type] # a test
    return [item.message.text for item in recalled]
