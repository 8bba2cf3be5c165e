"""Many rows at once in PostgreSQL: any number, any size, and the same as one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import psycopg
import pytest

from semantic_recall import Message, Scope
from semantic_recall.records import MessageRecord, MessageVectors, Part
from semantic_recall.stores import _postgres_bulk, _postgres_fulltext, _postgres_vectors
from semantic_recall.stores._postgres_bulk import bounded
from semantic_recall.stores._postgres_types import (
    Register,
    from_int8s,
    to_byteas,
    to_floats,
    to_int8s,
    to_texts,
    to_vectors,
)
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import VectorSpace
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

SPACE = VectorSpace("bulk", 3)


@pytest.fixture
def store(postgres_url: str) -> Iterator[SQLMessageStore]:
    with SQLMessageStore.connect(postgres_url) as store:
        store.add_space(SPACE, active=True)
        yield store


def record(n: int, text: str, *, words: int = 5) -> MessageRecord:
    return MessageRecord(
        message=Message(
            role="user",
            text=text,
            id=f"m{n}",
            thread_id=f"t{n % 5}",
            resource_id=f"r{n % 3}",
            name=None if n % 2 else "Ännchen",
            metadata={"n": n} if n % 4 else {},
        ),
        part=Part.SEARCHABLE,
        terms=np.arange(n, n + words, dtype=np.uint32),
        digest=text.encode().ljust(16)[-16:],
    )


def written(store: SQLMessageStore, texts: list[str]) -> None:
    records = [record(n, text) for n, text in enumerate(texts)]
    stored = store.add(records)
    vectors = [np.full((n % 3 + 1, 3), n, np.float32) for n in range(len(texts))]
    for chunks in vectors:
        chunks[:, 0] = range(len(chunks))
    assert store.set_vectors(
        SPACE,
        [
            MessageVectors(item.key, record.digest, chunks)
            for item, record, chunks in zip(stored, records, vectors, strict=True)
        ],
    ) == len(texts)
    for resource in range(3):
        scope = Scope(f"r{resource}")
        mine = [n for n in range(len(texts)) if n % 3 == resource]
        assert [m.text for m in store.history(scope)] == [texts[n] for n in mine]
        assert [m.name for m in store.history(scope)] == [records[n].message.name for n in mine]
        rows = store.rows(scope, SPACE)
        assert rows.vectors.tolist() == [row.tolist() for n in mine for row in vectors[n]]
        assert rows.term_counts.tolist() == [5] * len(mine)
        _, counts = store.lexical_candidates(scope, [10], limit=10)
        assert counts == {10: sum(n <= 10 < n + 5 for n in mine)}
    assert store.check() == []
    assert store.size()["pending"] == 0


def test_any_number_of_rows(store: SQLMessageStore) -> None:
    for number in (1, 2, 40):
        written(store, [f"text {n} of {number}" for n in range(number)])


def test_more_than_goes_into_one_statement(
    store: SQLMessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits are made small, since a server takes a while to read a gigabyte."""
    monkeypatch.setattr(_postgres_bulk, "MOST_BYTES", 700)
    monkeypatch.setattr(_postgres_fulltext, "MOST_TERMS", 12)
    monkeypatch.setattr(_postgres_vectors, "MOST_FLOATS", 10)
    written(store, [f"first {n}" for n in range(40)])
    written(store, [f"second {n} {'x' * 800 * (n % 7 == 0)}" for n in range(40)])


def test_a_batch_of_new_threads_that_were_deleted_before(store: SQLMessageStore) -> None:
    """Each goes on from the version at which it ended, so that nobody takes it for the old one."""
    written(store, [f"text {n}" for n in range(30)])
    before = {n: store.state(Scope(f"r{n}")) for n in range(3)}
    for n in range(3):
        store.delete(Scope(f"r{n}"))
    written(store, [f"text {n}" for n in range(30)])
    for n, old in before.items():
        new = store.state(Scope(f"r{n}"))
        assert old is not None
        assert new is not None
        assert new.version > old.version
        assert store.deleted_since(Scope(f"r{n}"), old.version)


def test_bounded() -> None:
    assert list(bounded("abcdef", [1, 2, 3, 9, 1, 1], 4)) == ["ab", "c", "d", "ef"]
    assert list(bounded("", [], 4)) == []
    assert list(bounded("a", [9], 4)) == ["a"]


def test_arrays_are_those_of_the_server(postgres_server: str) -> None:
    texts = ["", "ü", None, "🙂" * 100, "'\"\\{},", "NULL"]
    blobs = [b"", b"\x00\xff", None]
    numbers = [0, -1, 2**63 - 1, -(2**63)]
    floats = [0.0, -1.5, float("inf"), 1e-300]
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        oid, array = connection.execute(
            "SELECT oid::bigint, typarray::bigint FROM pg_type WHERE typname = 'vector'"
        ).fetchall()[0]
        register = Register()
        register.know(oid, array)
        register(connection)
        for value, wanted in (
            (to_texts(texts), texts),
            (to_byteas(blobs), blobs),
            (to_int8s(numbers), numbers),
            (to_floats(floats), floats),
            (to_texts([]), []),
            (to_int8s([]), []),
        ):
            assert connection.execute("SELECT %s", [value]).fetchall()[0][0] == wanted
        matrix = np.array([[1, 2.5], [-3, 0]], dtype=np.float32)
        sent = connection.execute("SELECT (%s)::text", [to_vectors(matrix, oid)]).fetchall()
        assert sent == [('{"[1,2.5]","[-3,0]"}',)]
    assert from_int8s(to_int8s(numbers)).tolist() == numbers
