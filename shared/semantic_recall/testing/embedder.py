"""What every embedder must do, as a pytest suite.

```python
from semantic_recall.testing.embedder import EmbedderSuite


class TestMyEmbedder(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return MyEmbedder()
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import ClassVar

import numpy as np
import pytest

from semantic_recall.protocols import Embedder
from semantic_recall.types import Vector

TEXTS = (
    "user: My sister Anna moved to Lisbon in March and works at a bakery there.",
    "assistant: The train to Hamburg leaves at a quarter past nine from platform four.",
    "user: 我对花生过敏, 请记住.",
    "user: How do I undo the last commit without losing my changes?",
    "assistant: Water the basil every other day and keep it away from the window in winter.",
)

ODD_TEXTS = {
    "empty": "",
    "blank": " \t\r\n ",
    "one letter": "a",
    "emoji": "👩‍👩‍👧 🎉🎉",
    "Chinese": "明天下午三点在上海见面",
    "Korean": "내일 오후 세 시에 만나요",
    "Arabic": "أراك غدا في الثالثة بعد الظهر",
    "NUL": "before\0after",
    "only NUL": "\0",
    "lone surrogate": "before \ud83d after",
    "combining marks": "a" + "\u0301" * 50,
    "punctuation": "!?!?!? ... ---",
    "special token": "<|endoftext|> <s> [CLS]",
    "without breaks": "aGVsbG8gd29ybGQ" * 200,
    "100 kB": "word after word " * 6_400,
}


class EmbedderSuite(ABC):
    """Derive a test class, make your embedder in `make_embedder`, and let pytest run it."""

    tolerance: ClassVar[float] = 1e-5
    """How far two vectors of the same text may be apart (cosine distance)."""

    @abstractmethod
    def make_embedder(self) -> Embedder:
        """Return a new embedder with the same settings every time."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        return self.make_embedder()

    def test_the_space_does_not_change(self, embedder: Embedder) -> None:
        """Same fingerprint before and after use, and in another instance."""
        before = embedder.space
        embedder.embed_documents(TEXTS[:1])
        assert embedder.space == before
        assert self.make_embedder().space == before
        assert before.name
        assert before.dimensions >= 1

    def test_another_instance_gives_the_same_vectors(self, embedder: Embedder) -> None:
        """Equal fingerprints mean equal vectors."""
        self._assert_same(
            embedder.embed_documents(TEXTS), self.make_embedder().embed_documents(TEXTS)
        )

    def test_max_characters_is_a_length(self, embedder: Embedder) -> None:
        """None, or room for at least a sentence."""
        assert embedder.max_characters is None or embedder.max_characters >= 100

    def test_no_texts(self, embedder: Embedder) -> None:
        """An empty batch has no vectors."""
        assert len(embedder.embed_documents([])) == 0

    def test_vectors_have_the_dimensions_of_the_space(self, embedder: Embedder) -> None:
        """Documents and queries alike."""
        for vector in (*embedder.embed_documents(TEXTS), embedder.embed_query(TEXTS[0])):
            self._assert_usable(vector, embedder)

    def test_the_same_texts_have_the_same_vectors(self, embedder: Embedder) -> None:
        """Deterministic on both sides."""
        self._assert_same(embedder.embed_documents(TEXTS), embedder.embed_documents(TEXTS))
        self._assert_same(
            [embedder.embed_query(text) for text in TEXTS],
            [embedder.embed_query(text) for text in TEXTS],
        )

    def test_order_is_kept(self, embedder: Embedder) -> None:
        """The vectors of the reversed batch are the reversed vectors."""
        forwards = embedder.embed_documents(TEXTS)
        backwards = embedder.embed_documents(TEXTS[::-1])
        self._assert_same(forwards, list(backwards)[::-1])
        assert _distance(forwards[0], forwards[1]) > self.tolerance

    def test_a_batch_is_its_texts_one_by_one(self, embedder: Embedder) -> None:
        """Neither neighbours nor the length of the batch matter."""
        batch = [*TEXTS, *ODD_TEXTS.values()][:12] * 8  # longer than a usual batch
        singly = [embedder.embed_documents([text])[0] for text in batch[:12]]
        self._assert_same(embedder.embed_documents(batch), singly * 8)

    def test_the_batch_may_be_a_tuple(self, embedder: Embedder) -> None:
        """Any sequence will do."""
        self._assert_same(embedder.embed_documents(list(TEXTS)), embedder.embed_documents(TEXTS))

    def test_a_query_is_nearest_to_the_same_text(self, embedder: Embedder) -> None:
        """Queries and documents are in one space."""
        documents = embedder.embed_documents(TEXTS)
        for number, text in enumerate(TEXTS):
            query = embedder.embed_query(text)
            distances = [_distance(query, document) for document in documents]
            assert distances.index(min(distances)) == number

    @pytest.mark.parametrize("name", ODD_TEXTS)
    def test_odd_texts(self, embedder: Embedder, name: str) -> None:
        """No text is refused, alone or among others, and none becomes zeros."""
        text = ODD_TEXTS[name]
        self._assert_usable(embedder.embed_query(text), embedder)
        first, odd, last = embedder.embed_documents([TEXTS[0], text, TEXTS[1]])
        self._assert_usable(odd, embedder)
        self._assert_same([first, last], embedder.embed_documents(TEXTS[:2]))

    def test_what_follows_a_nul_is_read(self, embedder: Embedder) -> None:
        """A NUL does not end the text."""
        one, other = embedder.embed_documents(["see\0the train", "see\0a bakery in Lisbon"])
        assert _distance(one, other) > self.tolerance

    def test_eight_threads(self) -> None:
        """One instance, used for the first time by eight threads at once."""
        embedder = self.make_embedder()
        barrier = Barrier(8)

        def work(_: int) -> list[Vector]:
            barrier.wait()
            return [*embedder.embed_documents(TEXTS), embedder.embed_query(TEXTS[0])]

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(work, range(8)))
        alone = [*embedder.embed_documents(TEXTS), embedder.embed_query(TEXTS[0])]
        for result in results:
            self._assert_same(result, alone)

    def _assert_same(self, some: Sequence[Vector], others: Sequence[Vector]) -> None:
        assert len(some) == len(others)
        for one, other in zip(some, others, strict=True):
            assert _distance(one, other) <= self.tolerance

    @staticmethod
    def _assert_usable(vector: Vector, embedder: Embedder) -> None:
        array = np.asarray(vector, dtype=np.float32)
        assert array.shape == (embedder.space.dimensions,)
        assert np.isfinite(array).all()
        assert array.any()


def _distance(one: Vector, other: Vector) -> float:
    """Return 1 - cosine."""
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return float(1 - a @ b / np.sqrt((a @ a) * (b @ b)))
