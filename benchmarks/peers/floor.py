"""What no library can beat by much: a product with a matrix in memory and one fetch by key."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Found, Options, content
from semantic_recall.types import Message, Vector

Scope = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Keys and vectors."""


class FloorSubject:
    """Vectors by user in memory, texts in SQLite."""

    def __init__(self, folder: Path, embedder: MemoEmbedder, neighbours: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._neighbours = neighbours
        self._database = sqlite3.connect(folder / "texts.sqlite3")
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE texts (key INTEGER PRIMARY KEY, id TEXT, text TEXT)")
        self._stored = 0
        self._new: defaultdict[tuple[str, str | None], list[tuple[int, Vector]]] = defaultdict(list)
        self._scopes: dict[tuple[str, str | None], Scope] = {}

    def remember(self, messages: Sequence[Message]) -> None:
        """Store texts and keep vectors."""
        texts = [content(message) for message in messages]
        rows = []
        vectors = self._embedder.embed_documents(texts)
        for message, text, vector in zip(messages, texts, vectors, strict=True):
            self._stored += 1
            rows.append((self._stored, message.id, text))
            for thread in (None, message.thread_id):
                self._new[str(message.resource_id), thread].append((self._stored, vector))
        with self._database:
            self._database.executemany("INSERT INTO texts VALUES (?, ?, ?)", rows)

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Return the nearest messages and their neighbours."""
        keys, matrix = self._scope((resource_id, thread_id))
        similarities = matrix @ self._embedder.embed_query(query)
        k = min(k, len(keys))
        best = np.argpartition(similarities, -k)[-k:]
        hits = keys[best[np.argsort(-similarities[best])]].tolist()
        reach = sorted(range(-self._neighbours, self._neighbours + 1), key=abs)  # hits first
        wanted = list(dict.fromkeys(key + step for step in reach for key in hits))
        marks = ",".join("?" * len(wanted))
        rows = self._database.execute(
            f"SELECT key, id, text FROM texts WHERE key IN ({marks})", wanted
        )
        found = {key: Found(id_, text) for key, id_, text in rows}
        return [found[key] for key in wanted if key in found]

    def _scope(self, name: tuple[str, str | None]) -> Scope:
        new = self._new.pop(name, [])
        if new:
            keys = np.array([key for key, _ in new])
            matrix = np.stack([vector for _, vector in new])
            if name in self._scopes:
                old_keys, old_matrix = self._scopes[name]
                keys = np.concatenate([old_keys, keys])
                matrix = np.concatenate([old_matrix, matrix])
            self._scopes[name] = keys, matrix
        return self._scopes[name]

    def settle(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> FloorSubject:
    """Open an empty floor."""
    return FloorSubject(folder, embedder, options.neighbours)
