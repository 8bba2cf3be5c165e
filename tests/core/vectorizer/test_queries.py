"""Vectors of queries, and of many threads at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from semantic_recall.errors import (
    EmbedderError,
    InvalidVectorError,
)
from semantic_recall.types import Vector
from semantic_recall.vectorizer import Vectorizer
from tests.core.vectorizing import (
    BAD,
    DIMENSIONS,
    BadVectors,
    Recorder,
    RecordingStore,
    add,
    pending,
    stored_vectors,
)


def test_queries_are_cached_apart_from_documents(store: RecordingStore) -> None:
    embedder = Recorder()
    vectorizer = Vectorizer(store, embedder)
    vectorizer.embed(add(store, "one", space=embedder.space))
    first = vectorizer.query("user: one")
    assert embedder.queries == ["user: one"]
    np.testing.assert_array_equal(vectorizer.query("user: one"), first)
    assert len(embedder.queries) == 1
    assert first.shape == (DIMENSIONS,)


def test_a_cached_query_cannot_be_changed_by_its_user(store: RecordingStore) -> None:
    vectorizer = Vectorizer(store, Recorder())
    before = vectorizer.query("one").copy()
    with pytest.raises(ValueError, match="read-only"):
        vectorizer.query("one")[0] = 5
    np.testing.assert_array_equal(vectorizer.query("one"), before)


def test_a_long_query_is_read_at_both_ends(store: RecordingStore) -> None:
    embedder = Recorder(max_characters=200)
    Vectorizer(store, embedder).query("begin " + "x" * 1_000 + " end")
    (asked,) = embedder.queries
    assert asked.startswith("begin")
    assert asked.endswith("end")
    assert len(asked) <= 200


def test_errors_of_queries_are_embedder_errors(store: RecordingStore) -> None:
    class Down(Recorder):
        def embed_query(self, text: str, /) -> Vector:
            raise TimeoutError("too slow")

    with pytest.raises(EmbedderError, match="too slow") as caught:
        Vectorizer(store, Down()).query("one")
    assert isinstance(caught.value.__cause__, TimeoutError)
    with pytest.raises(InvalidVectorError, match="NaN"):
        Vectorizer(store, BadVectors(BAD["NaN"])).query("one")


def test_eight_threads_embed_and_ask_at_once(store: RecordingStore) -> None:
    embedder = Recorder()
    vectorizer = Vectorizer(store, embedder, cache_entries=5)
    items = add(store, *map(str, range(40)), space=embedder.space)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            vectorizer.embed(items[number * 5 :] + items[: number * 5])
            for text in range(10):
                vectorizer.query(str(text))
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert pending(store, embedder.space) == []
    assert stored_vectors(store, embedder.space) == 40
