"""The part of the suite about vectors: late ones, and those that come with their messages."""

from __future__ import annotations

import numpy as np
import pytest

from semantic_recall.errors import StoreError
from semantic_recall.protocols import MessageStore
from semantic_recall.records import Embedded, MessageVectors, Part, Stored
from semantic_recall.testing._message_store_data import (
    OTHER_SPACE,
    SPACE,
    T1,
    digest,
    put,
    queue,
    record,
    texts,
    vectors,
)
from semantic_recall.types import VectorSpace


class MessageStoreVectors:
    """Tests of `MessageStore` that use the fixture `store` of `MessageStoreSuite`."""

    def test_late_vectors_are_skipped(self, store: MessageStore) -> None:
        """Vectors in flight never bring back what was deleted, replaced or hidden meanwhile."""
        store.add_space(SPACE, active=True)
        gone, new, hidden, kept = put(store, *[record(str(n)) for n in range(4)])
        store.delete(T1, ids=["0"])
        put(store, record("1", "new text"), record("2", part=Part.HIDDEN))
        late = [vectors(key) for key in (gone, new, hidden, kept, 999)]
        assert store.set_vectors(SPACE, late) == 1
        assert store.rows(T1, SPACE).vector_keys.tolist() == [kept]
        assert [key for _, key, _, _ in queue(store)] == [kept]
        assert store.size()["vectors"] == 1

    def test_vectors_are_exact_and_replaced(self, store: MessageStore) -> None:
        """Float32 in, the same float32 out; the second time replaces all chunks of the first."""
        store.add_space(SPACE, active=True)
        key = put(store, record("1"))[0]
        store.set_vectors(SPACE, [vectors(key, chunks=3)])
        odd = np.array([[0.1, -1e-30, 3e38, 0]], dtype=np.float32)
        store.set_vectors(SPACE, [MessageVectors(key, digest("hello"), odd)])
        assert store.rows(T1, SPACE).vectors.tobytes() == odd.tobytes()
        found = store.find_vectors(SPACE, [digest("hello"), digest("x")])
        assert found.keys() == {digest("hello")}
        assert found[digest("hello")].tobytes() == odd.tobytes()
        assert store.find_vectors(OTHER_SPACE, [digest("hello")]) == {}

    def test_vectors_of_a_wrong_shape_are_refused(self, store: MessageStore) -> None:
        """A wrong length, no chunk or an unknown space is an error, and nothing is stored."""
        store.add_space(SPACE, active=True)
        key = put(store, record("1"))[0]
        for shape in ((1, 5), (0, 4), (4,)):
            bad = MessageVectors(key, digest("hello"), np.ones(shape, dtype=np.float32))
            with pytest.raises(StoreError):
                store.set_vectors(SPACE, [bad])
        with pytest.raises(StoreError):
            store.set_vectors(VectorSpace("unknown", 4), [vectors(key)])
        assert store.size()["vectors"] == 0

    def test_vectors_may_come_with_the_messages(self, store: MessageStore) -> None:
        """Stored, counted and queued with them; pending where they are not of the space."""
        store.add_space(SPACE, active=True)
        store.add_space(OTHER_SPACE, active=False)
        hello = np.full((2, 4), 3, dtype=np.float32)
        given = Embedded(SPACE, {digest("hello"): hello, digest("nobody's"): hello})
        records = [record("1"), record("2", "other"), record("3", part=Part.CONTEXT), record("4")]
        stored = store.add(records, given)
        assert [(item.changed, item.embedded) for item in stored] == [
            (True, True), (True, False), (True, False), (True, True)
        ]  # fmt: skip
        a, b, _, d = [item.key for item in stored]
        assert store.find_vectors(SPACE, [digest("hello")])[digest("hello")].tolist() == (
            hello.tolist()
        )
        rows = store.rows(T1, SPACE)
        assert (rows.vector_keys.tolist(), rows.vectors.tolist()) == ([a, a, d, d], [[3] * 4] * 4)
        assert store.size()["vectors"] == 4
        assert queue(store) == [("upsert", a, 2, 2), ("upsert", d, 2, 2)]
        assert [item.key for item in store.pending(SPACE, limit=9)] == [b]
        assert [item.key for item in store.pending(OTHER_SPACE, limit=9)] == [a, b, d]

    def test_vectors_that_come_with_a_message_again(self, store: MessageStore) -> None:
        """An unchanged message keeps its own; a changed one has the new ones only."""
        store.add_space(SPACE, active=True)
        one, two = np.full((3, 4), 1, np.float32), np.full((1, 4), 2, np.float32)
        key = store.add([record("1")], Embedded(SPACE, {digest("hello"): one}))[0].key
        again = store.add([record("1")], Embedded(SPACE, {digest("hello"): two}))
        assert again == [Stored(key, False)]
        assert store.rows(T1, SPACE).vectors.tolist() == one.tolist()
        store.acknowledge(store.operations(limit=9))
        version = store.rows(T1, SPACE).version
        new = store.add([record("1", "new")], Embedded(SPACE, {digest("new"): two}))
        assert new == [Stored(key, True, embedded=True)]
        rows = store.rows(T1, SPACE, since=version)
        assert (rows.vector_keys.tolist(), rows.vectors.tolist()) == ([key], two.tolist())
        assert queue(store) == [("upsert", key, 1, 3)]
        assert store.size()["vectors"] == 1

    def test_vectors_that_do_not_fit_come_with_messages(self, store: MessageStore) -> None:
        """Of an unknown space they are left out; of a wrong shape nothing is stored."""
        store.add_space(SPACE, active=True)
        unknown = Embedded(
            VectorSpace("unknown", 4), {digest("hello"): np.ones((1, 4), np.float32)}
        )
        (stored,) = store.add([record("1")], unknown)
        assert stored == Stored(stored.key, True)
        assert [item.key for item in store.pending(SPACE, limit=9)] == [stored.key]
        for shape in ((1, 5), (0, 4), (4,)):
            bad = Embedded(SPACE, {digest("x"): np.ones(shape, dtype=np.float32)})
            with pytest.raises(StoreError):
                store.add([record("2", "x")], bad)
        assert texts(store.history(T1)) == ["hello"]
