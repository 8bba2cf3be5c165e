"""An embedder that counts, waits and fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np

from semantic_recall.types import Vector, VectorSpace


class CountingEmbedder:
    """Embeds a text as what letters it has; waits or fails when told to."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.failing = False
        self.queries: list[str] = []
        self.threads: set[int] = set()

    @property
    def space(self) -> VectorSpace:
        return VectorSpace("letters", 26)

    @property
    def max_characters(self) -> int | None:
        return None

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        return [self._letters(text) for text in texts]

    def embed_query(self, text: str, /) -> Vector:
        self.queries.append(text)
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
        if self.failing:
            raise ConnectionError("no route to host")
        return self._letters(text)

    @staticmethod
    def _letters(text: str) -> Vector:
        letters = [text.lower().count(chr(ord("a") + i)) + 0.01 for i in range(26)]
        return np.asarray(letters, dtype=np.float32)
