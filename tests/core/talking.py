"""Talking to a memory in the tests."""

from __future__ import annotations

from typing import Any

from semantic_recall import (
    Message,
    Recall,
    SemanticRecall,
)


def say(memory: SemanticRecall, *texts: str, thread: str = "t", **more: Any) -> list[Message]:
    roles = ("user", "assistant")
    return memory.remember(
        [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)],
        thread_id=thread,
        **{"resource_id": "ana", **more},
    )


def texts(recall: Recall) -> list[str]:
    return [recalled.message.text for recalled in recall]
