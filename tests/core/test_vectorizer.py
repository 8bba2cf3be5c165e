"""Planning, checking, storing, retrying and caching of vectors, with the real SQL store."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.errors import (
    EmbedderError,
    InvalidOptionError,
    InvalidVectorError,
    VectorSpaceMismatchError,
)
from semantic_recall.indexed_text import digest, indexed_text
from semantic_recall.records import MessageRecord, Part, PendingMessage, SpaceInfo
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message, Scope, Vector, VectorSpace
from semantic_recall.vectorizer import Vectorizer, open_space, space_is_new

DIMENSIONS = 16
POISON = "poison"


class RecordingStore(SQLMessageStore):
    """The SQL store, writing down how long it was asked to wait."""

    delays: list[tuple[float, int]]

    def postpone(self, space: VectorSpace, keys: Sequence[int], /, *, seconds: float) -> None:
        self.delays.append((seconds, len(keys)))
        super().postpone(space, keys, seconds=seconds)


class Recorder(HashEmbedder):
    """The hash embedder, writing down what it is asked."""

    def __init__(self, max_characters: int | None = 200) -> None:
        super().__init__(DIMENSIONS, max_characters=max_characters)
        self.calls: list[list[str]] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.calls.append(list(texts))
        return super().embed_documents(texts)

    def embed_query(self, text: str, /) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


class Flaky(Recorder):
    """Refuses a batch with the poison in it, or everything while it is down."""

    down = False

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        vectors = super().embed_documents(texts)
        if self.down or any(POISON in text for text in texts):
            raise ConnectionError("no answer")
        return vectors


class BadVectors(Recorder):
    """Gives a certain vector for texts with the poison."""

    def __init__(self, bad: object) -> None:
        super().__init__()
        self.bad = bad

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        vectors: list[object] = [
            self.bad if POISON in text else HashEmbedder(DIMENSIONS).embed_query(text)
            for text in texts
        ]
        return vectors  # type: ignore[return-value] # what a broken embedder does

    def embed_query(self, text: str, /) -> Vector:
        return self.bad  # type: ignore[return-value] # what a broken embedder does


class NativeAsync(Flaky):
    """An embedder with coroutine methods, which must run on the event loop's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        await asyncio.sleep(0)
        self.threads.add(threading.get_ident())
        return self.embed_documents(texts)

    async def aembed_query(self, text: str, /) -> Vector:
        await asyncio.sleep(0)
        self.threads.add(threading.get_ident())
        return self.embed_query(text)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    with RecordingStore.open(tmp_path / "recall.sqlite3") as store:
        store.delays = []
        yield store


def add(store: SQLMessageStore, *texts: str, space: VectorSpace) -> list[PendingMessage]:
    """Store messages and return what is pending."""
    if not store.spaces():
        store.add_space(space, active=True)
    records = [record(text) for text in texts]
    store.add(records)
    return store.pending(space, limit=1_000, due_only=False)


def record(text: str) -> MessageRecord:
    message = Message(role="user", text=text, thread_id="t")
    return MessageRecord(
        message=message,
        part=Part.SEARCHABLE,
        terms=np.zeros(0, dtype=np.uint32),
        digest=digest(indexed_text(message)),
    )


def pending(store: SQLMessageStore, space: VectorSpace) -> list[PendingMessage]:
    return store.pending(space, limit=1_000, due_only=False)


def stored_vectors(store: SQLMessageStore, space: VectorSpace) -> int:
    return len(store.rows(Scope(None, "t"), space).vectors)


# -- embedding ------------------------------------------------------------------------------------
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


# -- bad vectors ----------------------------------------------------------------------------------
BAD = {
    "NaN": np.full(DIMENSIONS, np.nan, np.float32),
    "infinity": np.full(DIMENSIONS, np.inf, np.float32),
    "zeros": np.zeros(DIMENSIONS, np.float32),
    "zeros in single precision": np.full(DIMENSIONS, 1e-60),
    "too large for single precision": np.full(DIMENSIONS, 1e300),
    "too large to be squared": np.full(DIMENSIONS, 1e30, np.float32),
    "too short": np.ones(DIMENSIONS - 1, np.float32),
    "two-dimensional": np.ones((1, DIMENSIONS), np.float32),
    "words": ["a"] * DIMENSIONS,
    "None": None,
    "ragged": [[1.0], [1.0, 2.0]],
}


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


# -- failures -------------------------------------------------------------------------------------
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


# -- queries --------------------------------------------------------------------------------------
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


# -- async ----------------------------------------------------------------------------------------
async def test_native_coroutines_are_awaited_on_the_loop(store: RecordingStore) -> None:
    embedder = NativeAsync()
    vectorizer = Vectorizer(store, embedder)
    assert vectorizer.is_async
    assert await vectorizer.aembed(add(store, "one", "two", space=embedder.space)) == 2
    await vectorizer.aquery("one")
    await vectorizer.aquery("one")
    assert embedder.queries == ["one"]
    assert embedder.threads == {threading.get_ident()}


async def test_without_coroutines_the_loop_is_not_blocked(store: RecordingStore) -> None:
    class Threaded(Recorder):
        def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            assert threading.current_thread() is not threading.main_thread()
            return super().embed_documents(texts)

    embedder = Threaded()
    vectorizer = Vectorizer(store, embedder)
    assert not vectorizer.is_async
    assert await vectorizer.aembed(add(store, "one", space=embedder.space)) == 1
    assert (await vectorizer.aquery("one")).shape == (DIMENSIONS,)


async def test_async_failures_are_those_of_sync(store: RecordingStore) -> None:
    embedder = NativeAsync()
    vectorizer = Vectorizer(store, embedder)
    add(store, "one", POISON, "three", space=embedder.space)
    assert await vectorizer.aembed(pending(store, embedder.space)) == 0
    assert await vectorizer.aembed(pending(store, embedder.space)) == 2
    with pytest.raises(EmbedderError, match="no answer"):
        await vectorizer.aembed(pending(store, embedder.space), strict=True)


async def test_a_cancelled_embedding_leaves_the_messages_pending(store: RecordingStore) -> None:
    class Stuck(NativeAsync):
        async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
            await asyncio.Event().wait()
            return []

    embedder = Stuck()
    items = add(store, "one", space=embedder.space)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(Vectorizer(store, embedder).aembed(items), timeout=0.05)
    assert [item.attempts for item in pending(store, embedder.space)] == [0]


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


# -- spaces ---------------------------------------------------------------------------------------
A, B = VectorSpace("a", 4), VectorSpace("b", 8)


def info(space: VectorSpace, *, active: bool) -> SpaceInfo:
    return SpaceInfo(space, active, vectors=1, pending=0)


def test_a_store_takes_the_first_space_and_keeps_it() -> None:
    assert space_is_new([], A)
    assert space_is_new([info(A, active=False)], A)
    assert not space_is_new([info(A, active=True)], A)
    assert not space_is_new([info(B, active=False), info(A, active=True)], A)


@pytest.mark.parametrize("wanted", [B, VectorSpace("a", 5)])
def test_another_embedder_is_refused_with_the_remedy(wanted: VectorSpace) -> None:
    with pytest.raises(VectorSpaceMismatchError, match="semantic-recall reindex") as caught:
        space_is_new([info(A, active=True)], wanted)
    assert "'a' (4 dimensions)" in str(caught.value)
    assert f"{wanted.name!r} ({wanted.dimensions} dimensions)" in str(caught.value)


def test_open_space_in_a_real_store(store: RecordingStore) -> None:
    open_space(store, HashEmbedder(16))
    open_space(store, HashEmbedder(16))
    assert [space.active for space in store.spaces()] == [True]
    with pytest.raises(VectorSpaceMismatchError):
        open_space(store, HashEmbedder(32))
    assert len(store.spaces()) == 1


def test_a_negative_cache_is_refused(store: RecordingStore) -> None:
    with pytest.raises(InvalidOptionError, match="cache_entries"):
        Vectorizer(store, HashEmbedder(), cache_entries=-1)
