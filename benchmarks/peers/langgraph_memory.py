"""LangGraph's store in memory, with its semantic index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Found, Options, content
from benchmarks.peers._langchain_embeddings import MemoEmbeddings
from semantic_recall.types import Message


class StoreSubject:
    """A store with a namespace per user and thread."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def remember(self, messages: Sequence[Message]) -> None:
        """Store messages in one batch, or in several if texts repeat."""
        batch: dict[str, PutOp] = {}
        for message in messages:
            text = content(message)
            if text in batch:  # InMemoryStore raises at equal texts in one batch
                self._store.batch(list(batch.values()))
                batch = {}
            batch[text] = PutOp(
                namespace=(str(message.resource_id), str(message.thread_id)),
                key=str(message.id),
                value={"role": message.role, "text": text},
            )
        self._store.batch(list(batch.values()))

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Search a namespace, or all below a user."""
        namespace = (resource_id,) if thread_id is None else (resource_id, thread_id)
        items = self._store.search(namespace, query=query, limit=k)
        return [Found(item.key, item.value["text"]) for item in items]

    def settle(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Do nothing: it has nothing to close."""


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> StoreSubject:
    """Open an empty store."""
    return StoreSubject(
        InMemoryStore(
            index={
                "dims": embedder.space.dimensions,
                "embed": MemoEmbeddings(embedder),
                "fields": ["text"],
            }
        )
    )
