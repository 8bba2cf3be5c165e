"""What every message store must do, as tests for pytest.

A binding is a class with a fixture, in a file `test_*.py`:

    from collections.abc import Iterator
    import pytest
    from semantic_recall.testing.message_store import MessageStoreSuite

    class TestMyStore(MessageStoreSuite):
        @pytest.fixture
        def store(self) -> Iterator[MyStore]:
            store = MyStore()
            yield store
            store.close()
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from semantic_recall.protocols import MessageStore
from semantic_recall.records import Part, Stored
from semantic_recall.types import Scope

pytest.register_assert_rewrite("semantic_recall.testing._message_store_work")

from semantic_recall.testing._message_store_data import (  # noqa: E402 - after the registration
    ANNA,
    HARD_TEXTS,
    LOOK_ALIKES,
    NOON,
    SPACE,
    T1,
    digest,
    put,
    record,
    term,
    texts,
    vectors,
)
from semantic_recall.testing._message_store_vectors import MessageStoreVectors  # noqa: E402
from semantic_recall.testing._message_store_work import MessageStoreWork  # noqa: E402


class MessageStoreSuite(MessageStoreVectors, MessageStoreWork):
    """The contract of `MessageStore`; give it a fixture `store` with an empty one."""

    @pytest.fixture
    def store(self) -> Iterator[MessageStore]:
        """Yield an empty store and close it."""
        raise NotImplementedError("a binding gives the fixture `store`")

    # -- adding and reading ---------------------------------------------------------------------
    def test_messages_come_back_whole(self, store: MessageStore) -> None:
        """Every field survives, with times in UTC to the microsecond."""
        moment = NOON.replace(microsecond=123457)
        full = record(
            "1", "hi", name="Ann", role="critic", created_at=moment, metadata={"a": [1]}, payload={}
        )
        first, second = put(store, full, record("2", created_at=datetime(2024, 5, 1)))
        found = store.fetch(T1, [first, second, 999])
        assert found[first] == full.message
        assert found[second].created_at == datetime(2024, 5, 1, tzinfo=timezone.utc)
        assert found.keys() == {first, second}

    @pytest.mark.parametrize("text", HARD_TEXTS)
    def test_any_text_is_lossless(self, store: MessageStore, text: str) -> None:
        """NUL, lone surrogates and the like come back as they were, in text, names and ids."""
        scope = Scope(f"r{text}", f"t{text}")
        hard = record(f"i{text}", text, scope, role=f"r{text}", name=text, payload={text: text})
        key = put(store, hard)[0]
        assert store.fetch(scope, [key]) == {key: hard.message}
        assert store.keys(scope, [f"i{text}"]) == {f"i{text}": [key]}

    def test_ten_megabytes(self, store: MessageStore) -> None:
        """A text of 10 MB is stored like any other."""
        text = "0123456789" * 1_000_000
        assert texts(store.history(Scope("anna", "t1"))) == []
        put(store, record("1", text, part=Part.CONTEXT))
        assert store.history(T1)[0].text == text

    def test_unserialisable_values_become_their_repr(self, store: MessageStore) -> None:
        """What JSON cannot hold degrades in its place and loses nothing around it."""
        odd = {"set": {1}, "nan": float("nan"), "ok": 1, "deep": {"inf": float("-inf"), "ok": [2]}}
        put(store, record("1", metadata=odd, payload={"x": object(), ("k",): 1}))
        message = store.history(T1)[0]
        assert message.metadata == {
            "set": "{1}", "nan": "nan", "ok": 1, "deep": {"inf": "-inf", "ok": [2]},
        }  # fmt: skip
        assert message.payload is not None
        assert message.payload["('k',)"] == 1
        assert message.payload["x"].startswith("<object object")

    def test_order_is_insertion(self, store: MessageStore) -> None:
        """A clock that goes back changes nothing; keys only grow and are never used twice."""
        back = [record(str(n), str(n), created_at=NOON - timedelta(days=n)) for n in range(4)]
        keys = put(store, *back[:2]) + put(store, *back[2:])
        assert keys == sorted(set(keys))
        assert texts(store.history(T1)) == ["0", "1", "2", "3"]
        store.delete(T1, ids=["3"])
        assert put(store, record("5"))[0] > keys[-1]

    def test_the_last_of_the_same_id_wins(self, store: MessageStore) -> None:
        """Duplicates in one batch are one message, and each gets an answer."""
        stored = store.add([record("1", "old"), record("2"), record("1", "new")])
        assert [item.key for item in stored] == [stored[0].key, stored[1].key, stored[0].key]
        assert texts(store.history(T1)) == ["new", "hello"]

    def test_replacing_keeps_the_key(self, store: MessageStore) -> None:
        """The same id replaces in place; `changed` tells whether digest or part differ."""
        store.add_space(SPACE, active=True)
        first, _ = put(store, record("1"), record("2", "later"))
        store.set_vectors(SPACE, [vectors(first)])
        again = store.add([record("1", metadata={"a": 1})])
        assert again == [Stored(first, False)]
        assert store.rows(T1, SPACE).vector_keys.tolist() == [first]
        assert store.add([record("1", "other")]) == [Stored(first, True)]
        assert texts(store.history(T1)) == ["other", "later"]
        rows = store.rows(T1, SPACE)
        assert rows.vector_keys.tolist() == []
        assert rows.terms.tolist() == [term("other"), term("later")]
        assert store.pending(SPACE, limit=9)[0].key == first
        assert store.add([record("1", "other", part=Part.CONTEXT)]) == [Stored(first, True)]

    # -- scopes ---------------------------------------------------------------------------------
    def test_look_alike_ids_are_strangers(self, store: MessageStore) -> None:
        """Ids compare exactly, as resources, threads and messages, in every method."""
        scopes = [Scope(r, t) for r in [*LOOK_ALIKES, None] for t in LOOK_ALIKES]
        keys = {s: put(store, *[record(id, scope=s) for id in LOOK_ALIKES]) for s in scopes}
        everything = [key for some in keys.values() for key in some]
        for scope in scopes[:: len(LOOK_ALIKES) - 2]:
            mine = keys[scope]
            assert list(store.fetch(scope, everything)) == mine
            assert store.rows(scope, None).keys.tolist() == mine
            assert store.keys(scope, ["a_b", "U"]) == {"U": [mine[2]], "a_b": [mine[3]]}
            assert list(store.window(scope, everything, before=99, after=99)[mine[0]]) == mine
            assert [m.id for m in store.export(scope)] == LOOK_ALIKES
            best, counts = store.lexical_candidates(scope, [term("hello")], limit=500)
            assert (sorted(best), counts) == (mine, {term("hello"): len(mine)})
        before = store.size()["messages"]
        gone = store.delete(scopes[15])
        assert sorted(gone.keys) == keys[scopes[15]]
        assert store.size()["messages"] == before - len(LOOK_ALIKES)

    def test_a_resource_is_all_its_threads(self, store: MessageStore) -> None:
        """A resource sees its threads and not those of others or of nobody."""
        a, b = put(store, record("1"), record("1", scope=Scope("anna", "t2")))
        put(store, record("1", scope=Scope("ben", "t1")), record("1", scope=Scope(None, "t1")))
        assert store.keys(ANNA, ["1"]) == {"1": [a, b]}
        assert store.rows(ANNA, None).keys.tolist() == [a, b]
        assert [info.resource_id for info in store.resources()] == [None, "anna", "ben"]
        assert {info.thread_id for info in store.threads("anna")} == {"t1", "t2"}
        assert len(store.threads()) == 4

    def test_threads_newest_first(self, store: MessageStore) -> None:
        """The listing counts messages and spans their times."""
        late = NOON + timedelta(hours=1)
        put(store, record("1", scope=Scope("anna", "new"), created_at=late), record("1"))
        put(store, record("2", created_at=NOON - timedelta(hours=1), part=Part.HIDDEN))
        new, old = store.threads("anna")
        assert (new.thread_id, new.messages, new.last_at) == ("new", 1, late)
        assert (old.messages, old.first_at, old.last_at) == (2, NOON - timedelta(hours=1), NOON)

    def test_windows_step_over_hidden(self, store: MessageStore) -> None:
        """HIDDEN messages are neither counted nor returned; other threads do not mix in."""
        parts = [Part.CONTEXT, Part.HIDDEN, Part.SEARCHABLE, Part.HIDDEN, Part.HIDDEN, Part.CONTEXT]
        keys = []
        for n, part in enumerate(parts):
            keys += put(store, record(str(n), part=part))
            put(store, record(str(n), scope=Scope("anna", "t2")))
        window = {keys[2]: [keys[0], keys[2], keys[5]]}
        assert store.window(ANNA, [keys[2]], before=1, after=1) == window
        assert store.window(T1, [keys[2]], before=0, after=0) == {keys[2]: [keys[2]]}
        assert store.window(Scope("anna", "t2"), [keys[2]], before=1, after=1) == {}

    def test_history_and_export(self, store: MessageStore) -> None:
        """History ends with the last message, HIDDEN included; export yields everything."""
        put(store, *[record(str(n), str(n), part=Part(n % 3)) for n in range(7)])
        put(store, record("x", "x", Scope("anna", "t2")), record("y", "y", Scope(None, "t1")))
        assert texts(store.history(T1, last=3)) == ["4", "5", "6"]
        assert texts(store.history(ANNA, last=2)) == ["6", "x"]
        assert store.history(T1, last=0) == []
        assert texts(list(store.export(None))) == [*"0123456", "x", "y"]
        assert texts(list(store.export(ANNA))) == [*"0123456", "x"]

    # -- search ---------------------------------------------------------------------------------
    def test_state_and_rows(self, store: MessageStore) -> None:
        """Rows are the recallable messages with terms and vectors; `state` counts them."""
        store.add_space(SPACE, active=True)
        assert store.state(T1) is None
        keys = put(store, record("1", "a b a"), record("2", part=Part.HIDDEN))
        keys += put(store, record("3", "c", part=Part.CONTEXT, role="assistant"), record("4", "d"))
        store.set_vectors(SPACE, [vectors(keys[0], "a b a", chunks=2), vectors(keys[3], "d")])
        rows, state = store.rows(ANNA, SPACE), store.state(ANNA)
        assert state is not None
        assert (rows.version, rows.keys.tolist()) == (state.version, [keys[0], keys[2], keys[3]])
        assert state.messages == 3
        assert rows.searchable.tolist() == [True, False, True]
        assert list(rows.roles) == ["user", "assistant", "user"]
        assert rows.term_counts.tolist() == [3, 0, 1]
        assert rows.terms.tolist() == [term("a"), term("b"), term("a"), term("d")]
        assert rows.vector_keys.tolist() == [keys[0], keys[0], keys[3]]
        assert rows.vectors.shape == (3, 4)
        assert rows.digests[0] == int.from_bytes(digest("a b a")[:8], "little", signed=True)
        assert rows.created_at[0] == int(NOON.timestamp()) * 10**6
        assert store.rows(ANNA, SPACE, keys=[keys[3], keys[1]]).keys.tolist() == [keys[3]]
        assert store.rows(ANNA, None).vectors.shape == (0, 0)

    def test_versions_tell_what_changed(self, store: MessageStore) -> None:
        """Each change of a resource grows its version, and `since` brings just what changed."""
        store.add_space(SPACE, active=True)
        first, second = put(store, record("1"), record("2"))
        seen = store.rows(ANNA, SPACE).version
        put(store, record("1", scope=Scope("ben", "t1")))
        assert store.rows(ANNA, SPACE, since=seen).keys.tolist() == []
        store.set_vectors(SPACE, [vectors(second)])
        rows = store.rows(ANNA, SPACE, since=seen)
        assert rows.version > seen
        assert (rows.keys.tolist(), rows.vector_keys.tolist()) == ([second], [second])
        third = put(store, record("3"))
        assert store.rows(ANNA, SPACE, since=rows.version).keys.tolist() == third
        put(store, record("1", metadata={"a": 1}))
        assert store.rows(ANNA, SPACE, since=rows.version + 1).keys.tolist() == [first]
