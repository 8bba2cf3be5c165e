"""Planning, embedding, storing and caching of vectors, with the real SQL store."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from semantic_recall.errors import EmbedderError
from semantic_recall.types import Scope, Vector
from semantic_recall.vectorizer import Vectorizer
from tests.core.vectorizing import (
    DIMENSIONS,
    Recorder,
    RecordingStore,
    add,
    pending,
    record,
    stored_vectors,
)


def test_one_call_for_the_batch_and_the_vectors_are_stored(store: RecordingStore) -> None:
    embedder = Recorder()
    items = add(store, "one", "two", "three", space=embedder.space)
    assert Vectorizer(store, embedder).embed(items) == 3
    assert embedder.calls == [["user: one", "user: two", "user: three"]]
    assert pending(store, embedder.space) == []
    rows = store.rows(Scope(None, "t"), embedder.space)
    for vector, text in zip(rows.vectors, embedder.calls[0], strict=True):
        np.testing.assert_allclose(vector, embedder.embed_query(text), rtol=1e-6)


def test_nothing_to_do_calls_nobody(store: RecordingStore) -> None:
    embedder = Recorder()
    assert Vectorizer(store, embedder).embed([]) == 0
    assert embedder.calls == []


def test_equal_texts_are_embedded_once(store: RecordingStore) -> None:
    embedder = Recorder()
    vectorizer = Vectorizer(store, embedder)
    assert vectorizer.embed(add(store, "same", "same", "other", space=embedder.space)) == 3
    assert embedder.calls == [["user: same", "user: other"]]
    assert vectorizer.embed(add(store, "other", space=embedder.space)) == 1
    assert len(embedder.calls) == 1  # from memory
    fresh = Vectorizer(store, embedder)
    assert fresh.embed(add(store, "same", space=embedder.space)) == 1
    assert len(embedder.calls) == 1  # from the store
    assert stored_vectors(store, embedder.space) == 5


def test_a_text_deleted_since_is_embedded_again_after_clear(store: RecordingStore) -> None:
    embedder = Recorder()
    vectorizer = Vectorizer(store, embedder)
    vectorizer.embed(add(store, "secret", space=embedder.space))
    store.delete(Scope(None, "t"))
    vectorizer.clear()
    vectorizer.embed(add(store, "secret", space=embedder.space))
    assert len(embedder.calls) == 2


def test_a_message_deleted_while_it_is_embedded_stays_deleted(store: RecordingStore) -> None:
    class Deleting(Recorder):
        def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            store.delete(Scope(None, "t"))
            return super().embed_documents(texts)

    embedder = Deleting()
    items = add(store, "one", space=embedder.space)
    assert Vectorizer(store, embedder).embed(items) == 0
    assert store.size()["vectors"] == 0


def test_a_long_text_has_a_vector_per_chunk(store: RecordingStore) -> None:
    embedder = Recorder(max_characters=200)
    items = add(store, "word " * 200, "short", space=embedder.space)
    assert Vectorizer(store, embedder).embed(items) == 2
    chunks = embedder.calls[0]
    assert len(chunks) > 5
    assert max(map(len, chunks)) <= 200
    assert stored_vectors(store, embedder.space) == len(chunks)


def test_many_texts_go_out_in_calls_of_bounded_size(store: RecordingStore) -> None:
    embedder = Recorder()
    items = add(store, *map(str, range(1_000)), space=embedder.space)
    store.add([record(str(number)) for number in range(1_000, 2_500)])
    items = store.pending(embedder.space, limit=10_000, due_only=False)
    assert Vectorizer(store, embedder).embed(items) == 2_500
    assert [len(call) for call in embedder.calls] == [1_024, 1_024, 452]


def test_plan_and_finish_can_be_used_apart(store: RecordingStore) -> None:
    embedder = Recorder()
    vectorizer = Vectorizer(store, embedder)
    vectorizer.embed(add(store, "known", space=embedder.space))
    plan = vectorizer.plan(add(store, "known", "new", space=embedder.space))
    assert len(plan.known) == 1
    assert plan.texts == ("user: new",)
    done = vectorizer.finish(plan, embedder.embed_documents(plan.texts))
    assert [vectors.vectors.shape for vectors in done] == [(1, DIMENSIONS)] * 2
    with pytest.raises(EmbedderError, match="2 vectors for 1 texts"):
        vectorizer.finish(plan, embedder.embed_documents(["a", "b"]))


def test_what_one_thread_embeds_the_background_leaves_to_it(store: RecordingStore) -> None:
    asked, answered = threading.Event(), threading.Event()

    class Slow(Recorder):
        def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            vectors = super().embed_documents(texts)
            if list(texts) == ["user: slow"]:
                asked.set()
                assert answered.wait(30)
            return vectors

    embedder = Slow()
    vectorizer = Vectorizer(store, embedder)
    items = add(store, "slow", space=embedder.space)
    with ThreadPoolExecutor(1) as pool:
        foreground = pool.submit(vectorizer.embed, items)
        assert asked.wait(30)
        add(store, "waiting", space=embedder.space)
        assert vectorizer.embed_pending(10) == 1
        assert vectorizer.embed_pending(10) == 0
        answered.set()
        assert foreground.result(30) == 1
    assert embedder.calls == [["user: slow"], ["user: waiting"]]
    assert pending(store, embedder.space) == []


def test_after_a_failure_the_background_takes_over(store: RecordingStore) -> None:
    class Moody(Recorder):
        def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            vectors = super().embed_documents(texts)
            if len(self.calls) == 1:
                raise ConnectionError("not now")
            return vectors

    embedder = Moody()
    vectorizer = Vectorizer(store, embedder)
    items = add(store, "text", space=embedder.space)
    assert vectorizer.embed(items) == 0
    store.postpone(embedder.space, [items[0].key], seconds=0)
    assert vectorizer.embed_pending(10) == 1
