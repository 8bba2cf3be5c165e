"""The half of the suite about what is derived from messages: vectors, queues and their end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from semantic_recall.errors import StoreClosedError
from semantic_recall.protocols import MessageStore
from semantic_recall.records import Part, vector_id
from semantic_recall.testing._message_store_data import (
    ANNA,
    OTHER_SPACE,
    SPACE,
    T1,
    digest,
    put,
    queue,
    record,
    term,
    texts,
    vectors,
)
from semantic_recall.types import Scope


class MessageStoreWork:
    """Tests of `MessageStore` that use the fixture `store` of `MessageStoreSuite`."""

    # -- pending work ---------------------------------------------------------------------------
    def test_pending_until_vectors_come(self, store: MessageStore) -> None:
        """SEARCHABLE messages wait in each space, oldest first, and no others."""
        first = put(store, record("1", "a"))[0]
        store.add_space(SPACE, active=True)
        store.add_space(OTHER_SPACE, active=False)
        second = put(store, record("2", "b"), record("3", part=Part.CONTEXT))[0]
        assert [item.key for item in store.pending(SPACE, limit=9)] == [first, second]
        assert [item.key for item in store.pending(SPACE, limit=1)] == [first]
        waiting = store.pending(OTHER_SPACE, limit=9)[1]
        assert (waiting.digest, waiting.message.text, waiting.attempts) == (digest("b"), "b", 0)
        store.set_vectors(SPACE, [vectors(first, "a")])
        assert [item.key for item in store.pending(SPACE, limit=9)] == [second]
        assert [item.key for item in store.pending(OTHER_SPACE, limit=9)] == [first, second]

    def test_postponed_work_waits(self, store: MessageStore) -> None:
        """A failure counts, and the message is due again only when its time has come."""
        store.add_space(SPACE, active=True)
        first, second = put(store, record("1"), record("2"))
        store.postpone(SPACE, [first], seconds=3600)
        assert [item.key for item in store.pending(SPACE, limit=9)] == [second]
        both = store.pending(SPACE, limit=9, due_only=False)
        assert [(item.key, item.attempts) for item in both] == [(first, 1), (second, 0)]
        store.postpone(SPACE, [first], seconds=0)
        assert [item.attempts for item in store.pending(SPACE, limit=9)] == [2, 0]

    # -- the queue of the vector index ----------------------------------------------------------
    def test_operations_in_order(self, store: MessageStore) -> None:
        """Each message waits once, at the place of its last change, until acknowledged."""
        store.add_space(SPACE, active=True)
        a, b = put(store, record("1"), record("2"))
        store.set_vectors(SPACE, [vectors(a, chunks=3), vectors(b)])
        taken = store.operations(limit=10)
        assert [item.key for item in store.operations(limit=1)] == [a]
        assert (taken[0].space, taken[0].scope, taken[0].vectors.shape) == (SPACE, T1, (3, 4))
        store.set_vectors(SPACE, [vectors(a)])
        assert queue(store) == [("upsert", b, 1, 1), ("upsert", a, 1, 3)]
        store.acknowledge(taken)
        assert queue(store) == [("upsert", a, 1, 3)]
        store.acknowledge(store.operations(limit=10, durable=True))
        assert queue(store) == []

    def test_replacing_and_deleting_are_queued(self, store: MessageStore) -> None:
        """The index is told how many vectors to remove, also after the thread is gone."""
        store.add_space(SPACE, active=True)
        a, b = put(store, record("1"), record("2"))
        store.set_vectors(SPACE, [vectors(a, chunks=2), vectors(b)])
        store.acknowledge(store.operations(limit=10))
        put(store, record("1", "other"))
        assert queue(store) == [("delete", a, 0, 2)]
        store.set_vectors(SPACE, [vectors(a, "other")])
        assert queue(store) == [("upsert", a, 1, 2)]
        store.delete(ANNA)
        assert sorted(queue(store)) == [("delete", a, 0, 2), ("delete", b, 0, 1)]
        assert {item.scope for item in store.operations(limit=10)} == {T1}

    def test_queue_all(self, store: MessageStore) -> None:
        """Every stored vector is queued again; an older acknowledgement does not undo it."""
        store.add_space(SPACE, active=True)
        a, b = put(store, record("1"), record("2"))
        store.set_vectors(SPACE, [vectors(a, chunks=2), vectors(b)])
        taken = store.operations(limit=10)
        assert store.queue_all(SPACE) == 2
        store.acknowledge(taken)
        assert queue(store) == [("upsert", a, 2, 2), ("upsert", b, 1, 1)]
        ids = [(vector_id(a, 0), T1), (vector_id(a, 1), T1), (vector_id(b, 0), T1)]
        assert list(store.vector_ids(SPACE)) == ids

    # -- spaces ---------------------------------------------------------------------------------
    def test_spaces(self, store: MessageStore) -> None:
        """One space is active; vectors of two never mix; a dropped one leaves nothing."""
        store.add_space(SPACE, active=True)
        key = put(store, record("1"))[0]
        store.set_vectors(SPACE, [vectors(key)])
        store.add_space(OTHER_SPACE, active=False)
        listed = [(info.space, info.active, info.vectors, info.pending) for info in store.spaces()]
        assert listed == [(SPACE, True, 1, 0), (OTHER_SPACE, False, 0, 1)]
        assert store.rows(T1, OTHER_SPACE).vectors.shape == (0, 8)
        store.add_space(OTHER_SPACE, active=True)
        assert [info.active for info in store.spaces()] == [False, True]
        store.drop_space(SPACE)
        assert [info.space for info in store.spaces()] == [OTHER_SPACE]
        assert store.rows(T1, SPACE).vectors.shape == (0, 4)
        assert (store.size()["vectors"], queue(store)) == (0, [])
        assert store.check() == []

    # -- deletion -------------------------------------------------------------------------------
    def test_nothing_remains(self, store: MessageStore) -> None:
        """After a deletion and its way through the index every place is empty."""
        store.add_space(SPACE, active=True)
        a, b = put(store, record("1", "secret"), record("2", "secret"))
        store.set_vectors(SPACE, [vectors(a, "secret", chunks=2)])
        removal = store.delete(T1)
        assert (removal.messages, removal.threads, removal.vectors) == (2, 1, 2)
        assert sorted(removal.keys) == [a, b]
        store.acknowledge(store.operations(limit=10))
        places = ["full_text", "messages", "outbox", "pending", "terms", "vectors"]
        assert dict(store.remains(removal.keys)) == dict.fromkeys(places, 0)
        assert store.lexical_candidates(ANNA, [term("secret")], limit=9)[0] == []
        assert store.find_vectors(SPACE, [digest("secret")]) == {}
        assert (store.history(T1), store.threads(), store.resources()) == ([], [], [])
        store.scrub()
        assert store.check() == []

    def test_remains_sees_what_is_there(self, store: MessageStore) -> None:
        """The count is a look at each place: of a stored message it is not zero."""
        store.add_space(SPACE, active=True)
        a, b = put(store, record("1"), record("2"))
        store.set_vectors(SPACE, [vectors(a)])
        places = {"messages": 2, "terms": 2, "full_text": 2}
        assert dict(store.remains([a, b])) == {**places, "vectors": 1, "pending": 1, "outbox": 1}

    def test_deleting_some(self, store: MessageStore) -> None:
        """Ids delete in their scope only; a thread ends with its last message."""
        other = Scope("anna", "t2")
        put(store, record("1"), record("2"), record("1", scope=other))
        put(store, record("1", scope=Scope("ben", "t1")))
        version = store.rows(T1, None).version
        assert store.delete(T1, ids=["1", "nope"]).messages == 1
        assert store.deleted_since(T1, version)
        assert store.deleted_since(ANNA, version)
        assert not store.deleted_since(other, version)
        assert (texts(store.history(T1)), len(texts(store.history(other)))) == (["hello"], 1)
        assert store.delete(ANNA, ids=["1", "2"]).threads == 2
        assert store.delete(ANNA).messages == 0
        assert [info.resource_id for info in store.resources()] == ["ben"]

    def test_deleted_since(self, store: MessageStore) -> None:
        """Deleting and hiding show after a version, adding does not; a new start never hides it."""
        put(store, record("1"), record("2"), record("1", scope=Scope("anna", "t2")))
        version = store.rows(T1, None).version
        put(store, record("3"), record("1", "new"))
        assert not store.deleted_since(T1, version)
        put(store, record("3", part=Part.HIDDEN))
        assert store.deleted_since(T1, version)
        assert store.deleted_since(ANNA, version)
        hidden = store.rows(T1, None).version
        assert not store.deleted_since(T1, hidden)
        store.delete(T1)
        ended = store.state(T1)
        assert ended is not None
        assert (ended.version > hidden, ended.messages) == (True, 0)
        assert store.deleted_since(T1, hidden)
        assert not store.deleted_since(Scope("anna", "t2"), version)
        store.delete(ANNA)
        put(store, record("1"))
        again = store.state(T1)
        assert again is not None
        assert again.version > ended.version
        assert store.deleted_since(T1, hidden)
        assert not store.deleted_since(T1, again.version)

    # -- full text ------------------------------------------------------------------------------
    def test_lexical_candidates(self, store: MessageStore) -> None:
        """The rarest words weigh most, counts are of the scope, the limit comes after it."""
        put(store, *[record(f"b{n}", "tea rare", Scope("ben", "t1")) for n in range(20)])
        tea, both, _ = put(store, record("1", "tea tea"), record("2", "tea rare"), record("3", "x"))
        words = [term("tea"), term("rare"), term("never")]
        keys, counts = store.lexical_candidates(ANNA, words, limit=5)
        assert keys == [both, tea]
        assert counts == {words[0]: 2, words[1]: 1, words[2]: 0}
        assert store.lexical_candidates(T1, words, limit=1)[0] == [both]
        put(store, record("2", "coffee"))
        assert store.lexical_candidates(T1, words, limit=5)[1][words[1]] == 0
        assert store.lexical_candidates(Scope("nobody"), words, limit=5)[0] == []

    # -- the whole ------------------------------------------------------------------------------
    def test_metadata_settings_and_sizes(self, store: MessageStore) -> None:
        """Metadata comes where it is; a setting keeps its first value; sizes count."""
        key, _ = put(store, record("1", metadata={"tag": "x"}), record("2"))
        assert store.metadata(T1) == {key: {"tag": "x"}}
        assert [store.setting("name", value) for value in ("first", "second")] == ["first"] * 2
        size = dict(store.size())
        assert size.pop("bytes") > 0
        counts = {"messages": 2, "threads": 1, "resources": 1}
        assert size == {**counts, "vectors": 0, "pending": 0, "outbox": 0}

    def test_eight_threads(self, store: MessageStore) -> None:
        """Writers and readers in threads lose nothing and see whole transactions."""
        store.add_space(SPACE, active=True)

        def work(n: int) -> None:
            for turn in range(25):
                pair = [record(f"{n}.{turn}.{side}", scope=Scope("anna", f"t{n}")) for side in "ab"]
                keys = put(store, *pair)
                store.set_vectors(SPACE, [vectors(key) for key in keys])
                assert len(store.rows(ANNA, SPACE).keys) % 2 == 0

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert store.size()["messages"] == 400
        assert len(store.rows(ANNA, SPACE).vector_keys) == 400
        assert store.check() == []

    def test_closed_store(self, store: MessageStore) -> None:
        """Closing twice is fine; using it afterwards is an error of its own."""
        put(store, record("1"))
        store.close()
        store.close()
        with pytest.raises(StoreClosedError):
            store.state(ANNA)
        with pytest.raises(StoreClosedError):
            put(store, record("2"))
