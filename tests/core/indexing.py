"""A memory without its core, for the tests of the indexer."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from semantic_recall.errors import VectorIndexError
from semantic_recall.indexer import Indexer
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.protocols import VectorIndex
from semantic_recall.records import MessageRecord, MessageVectors, Part
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Hit, Message, Scope, Vector, VectorRecord, VectorSpace

SPACE = VectorSpace("test", 4)
LOGGER = logging.getLogger("semantic_recall.test_indexer")


def message(text: str, id: str, thread: str = "t1", resource: str = "anna") -> MessageRecord:
    return MessageRecord(
        message=Message(role="user", text=text, id=id, thread_id=thread, resource_id=resource),
        part=Part.SEARCHABLE,
        terms=np.zeros(0, dtype=np.uint32),
        digest=text.encode().ljust(16, b"\0")[:16],
    )


@dataclass
class Memory:
    """A store with a hash embedder, and an index that can be opened."""

    path: Path
    store: SQLMessageStore
    chunks: int = 1
    embedded: list[int] = field(default_factory=list)

    def embed(self, limit: int) -> int:
        self.embedded.append(limit)
        vectors = []
        for item in self.store.pending(SPACE, limit=limit):
            rows = np.random.default_rng(list(item.digest)).normal(size=(self.chunks, 4))
            vectors.append(MessageVectors(item.key, item.digest, rows.astype(np.float32)))
        return self.store.set_vectors(SPACE, vectors) if vectors else 0

    def open_index(self) -> ChromaVectorIndex:
        return ChromaVectorIndex.embedded(self.path / "chroma")

    def add(self, *texts: str) -> list[int]:
        records = [message(text, f"m-{text}") for text in texts]
        return [stored.key for stored in self.store.add(records)]

    def left(self) -> tuple[int, int]:
        size = self.store.size()
        return size["pending"], size["outbox"]

    def stored_ids(self) -> list[str]:
        return sorted(id for id, _ in self.store.vector_ids(SPACE))


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def owned(indexer: Indexer) -> VectorIndex:
    index = indexer.index()
    assert index is not None
    return index


class Failing:
    """A vector index that keeps vectors in a dict, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.calls: list[tuple[float, str]] = []
        self.kept: dict[str, VectorRecord] = {}
        self.closed = 0
        self.busy = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def _called(self, name: str) -> None:
        self.calls.append((time.monotonic(), name))
        self.busy.set()
        self.go_on.wait(20)
        if self.failures:
            self.failures -= 1
            raise VectorIndexError("the disk is full")

    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        self._called(f"upsert {len(records)}")
        self.kept.update({record.id: record for record in records})

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        self._called(f"delete {len(ids)}")
        for id in ids:
            self.kept.pop(id, None)

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        return []

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        yield from list(self.kept) or ["placeholder"]

    def drop(self, space: VectorSpace, /) -> None:
        self.kept.clear()

    def scrub(self) -> None:
        self._called("scrub")

    def close(self) -> None:
        self.closed += 1
