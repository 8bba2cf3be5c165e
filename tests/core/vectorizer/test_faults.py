"""Bad vectors and failing embedders: each costs what it must, and comes again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from semantic_recall.errors import (
    EmbedderError,
    InvalidVectorError,
)
from semantic_recall.types import Vector
from semantic_recall.vectorizer import Vectorizer
from tests.core.vectorizing import (
    BAD,
    POISON,
    BadVectors,
    Flaky,
    Recorder,
    RecordingStore,
    add,
    pending,
)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_vector_costs_only_its_own_message(
    store: RecordingStore, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    embedder = BadVectors(BAD[name])
    items = add(store, "one", POISON, "three", space=embedder.space)
    assert Vectorizer(store, embedder).embed(items) == 2
    (left,) = pending(store, embedder.space)
    assert (left.message.text, left.attempts) == (POISON, 1)
    assert store.delays == [(1.0, 1)]
    assert "InvalidVectorError" in caplog.text
    assert POISON not in caplog.text  # what people write does not go into logs


def test_strict_raises_for_a_bad_vector_after_storing_the_others(store: RecordingStore) -> None:
    embedder = BadVectors(BAD["zeros"])
    items = add(store, "one", POISON, space=embedder.space)
    with pytest.raises(InvalidVectorError, match="only zeros"):
        Vectorizer(store, embedder).embed(items, strict=True)
    assert [item.message.text for item in pending(store, embedder.space)] == [POISON]


def test_the_wrong_number_of_vectors_is_refused_as_a_whole(store: RecordingStore) -> None:
    class Forgetful(Recorder):
        def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            return super().embed_documents(texts)[:-1]

    embedder = Forgetful()
    items = add(store, "one", "two", space=embedder.space)
    assert Vectorizer(store, embedder).embed(items) == 0
    with pytest.raises(EmbedderError, match="1 vectors for 2 texts"):
        Vectorizer(store, embedder).embed(items, strict=True)


def test_a_failure_is_logged_once_and_the_messages_wait(
    store: RecordingStore, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Flaky()
    embedder.down = True
    vectorizer = Vectorizer(store, embedder, logger=logging.getLogger("mine"))
    assert vectorizer.embed(add(store, "one", "two", space=embedder.space)) == 0
    (entry,) = caplog.records
    assert (entry.name, entry.levelno) == ("mine", logging.WARNING)
    assert "2 message(s)" in entry.getMessage()
    assert "ConnectionError: no answer" in entry.getMessage()
    assert [item.attempts for item in pending(store, embedder.space)] == [1, 1]
    assert vectorizer.embed_pending(10) == 0  # not yet due
    embedder.down = False
    assert vectorizer.embed_pending(10, due_only=False) == 2


def test_strict_raises_with_the_cause_and_keeps_the_messages(store: RecordingStore) -> None:
    embedder = Flaky()
    embedder.down = True
    items = add(store, "one", space=embedder.space)
    with pytest.raises(EmbedderError, match="no answer") as caught:
        Vectorizer(store, embedder).embed(items, strict=True)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert [item.attempts for item in pending(store, embedder.space)] == [1]


def test_waits_grow_from_a_second_to_ten_minutes(store: RecordingStore) -> None:
    embedder = Flaky()
    embedder.down = True
    vectorizer = Vectorizer(store, embedder)
    add(store, "one", space=embedder.space)
    for _ in range(12):
        vectorizer.embed(pending(store, embedder.space))
    assert [delay for delay, _ in store.delays] == [
        *(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 600.0, 600.0)
    ]


def test_one_poisonous_text_does_not_stop_the_others(store: RecordingStore) -> None:
    embedder = Flaky()
    vectorizer = Vectorizer(store, embedder)
    add(store, "one", "two", POISON, "four", "five", space=embedder.space)
    assert vectorizer.embed(pending(store, embedder.space)) == 0
    assert vectorizer.embed(pending(store, embedder.space)) == 4
    (left,) = pending(store, embedder.space)
    assert (left.message.text, left.attempts) == (POISON, 2)


def test_one_by_one_gives_up_soon_when_nothing_works(store: RecordingStore) -> None:
    embedder = Flaky()
    embedder.down = True
    vectorizer = Vectorizer(store, embedder)
    add(store, *"abcdefgh", space=embedder.space)
    vectorizer.embed(pending(store, embedder.space))
    embedder.calls.clear()
    store.delays.clear()
    vectorizer.embed(pending(store, embedder.space))
    assert [len(call) for call in embedder.calls] == [8, 1, 1, 1]
    # What was not tried alone waits the shortest time, so that it comes without the others.
    assert sorted(store.delays) == [(1.0, 5), (2.0, 3)]


def test_known_vectors_are_stored_even_when_the_embedder_fails(store: RecordingStore) -> None:
    embedder = Flaky()
    vectorizer = Vectorizer(store, embedder)
    vectorizer.embed(add(store, "known", space=embedder.space))
    embedder.down = True
    assert vectorizer.embed(add(store, "known", "new", space=embedder.space)) == 1
