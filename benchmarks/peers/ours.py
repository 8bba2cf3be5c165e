"""This library, as `SemanticRecall.open` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Found, Options
from semantic_recall import SemanticRecall, Settings
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message, MessageRange

LARGE = 10_000_000


class OurSubject:
    """A memory.

    Args:
        memory: Open.
        embedder: What it was opened with.
        neighbours: How many come with each hit.
    """

    def __init__(self, memory: SemanticRecall, embedder: MemoEmbedder, neighbours: int) -> None:
        self.memory = memory
        self._embedder = embedder
        self._range = MessageRange(neighbours, neighbours)

    def remember(self, messages: Sequence[Message]) -> None:
        """Store messages."""
        self.memory.remember(messages)

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Return the hits, best first, then their neighbours."""
        recalled = self.memory.recall(
            query,
            resource_id=resource_id,
            thread_id=thread_id,
            scope="resource" if thread_id is None else "thread",
            query_vector=self._embedder.embed_query(query),
            top_k=k,
            message_range=self._range,
        )
        others = (each for each in recalled.messages if not each.is_hit)
        return [
            Found(each.message.id, each.message.text or "") for each in (*recalled.hits, *others)
        ]

    def settle(self) -> None:
        """Wait for the vector index."""
        self.memory.flush()

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()


def settings(options: Options) -> Settings:
    """Return the defaults, or with one large scope a limit that searches it exactly."""
    return Settings(exact_limit=LARGE) if options.large_scope else Settings()


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> OurSubject:
    """Open a memory in a folder."""
    if options.index:
        memory = SemanticRecall.open(
            folder / "memory", embedder=embedder, settings=settings(options)
        )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        store = SQLMessageStore.open(folder / "recall.sqlite3")
        memory = SemanticRecall(store, None, embedder, settings=settings(options))
    return OurSubject(memory, embedder, options.neighbours)
