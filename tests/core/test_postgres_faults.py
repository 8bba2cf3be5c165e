"""What can go wrong with a PostgreSQL server, and what the caller is told."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from semantic_recall import SemanticRecall
from semantic_recall.errors import StoreError, VectorIndexError
from semantic_recall.indexes.pgvector import PgVectorIndex
from semantic_recall.records import MessageRecord, Part
from semantic_recall.stores import _postgres
from semantic_recall.stores._schema import chunk_rows, metadata
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message, Scope, VectorSpace
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

T1 = Scope("anna", "t1")


def record(id: str, text: str = "hi") -> MessageRecord:
    message = Message(id=id, role="user", text=text, thread_id="t1", resource_id="anna")
    terms = np.array([1], dtype=np.uint32)
    return MessageRecord(message=message, part=Part.SEARCHABLE, terms=terms, digest=b"0" * 16)


@pytest.fixture
def store(postgres_url: str) -> Iterator[SQLMessageStore]:
    with SQLMessageStore.connect(f"{postgres_url}&application_name={uuid.uuid4().hex}") as store:
        yield store


@pytest.fixture
def server(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of an administrator."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection


def disconnect(store: SQLMessageStore, server: psycopg.Connection[Any]) -> None:
    """End every connection of the store, as a restart of the server does."""
    with store._db.glance() as tx:
        name = tx.sql("SELECT current_setting('application_name')")[0][0]
    server.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
        [name],
    )


def test_idle_connections_are_lost(store: SQLMessageStore, server: psycopg.Connection[Any]) -> None:
    """Nobody notices: a read and a write get a new connection."""
    store.add([record("1")])
    disconnect(store, server)
    assert len(store.history(T1)) == 1
    disconnect(store, server)
    store.add([record("2")])
    disconnect(store, server)
    assert len(store.fetch(T1, [1, 2])) == 2


def test_a_connection_is_lost_while_writing(
    store: SQLMessageStore, server: psycopg.Connection[Any]
) -> None:
    """An error, nothing half written, and the store goes on."""
    store.add([record("1")])

    def interrupted() -> None:
        with store._db.write() as tx:
            tx.many_sql(f"DELETE FROM {schema_of(store)}.terms", [()])
            pid = tx.sql("SELECT pg_backend_pid()")[0][0]
            server.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            tx.sql("SELECT 1")

    with pytest.raises(StoreError, match=r"terminating connection|closed the connection"):
        interrupted()
    assert store.check() == []
    store.add([record("2")])
    assert len(store.history(T1)) == 2


def schema_of(store: SQLMessageStore) -> str:
    with store._db.read() as tx:
        schema: str = tx.sql("SELECT quote_ident(current_setting('search_path'))")[0][0]
    return schema


def test_all_connections_are_busy(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool is bounded, and waiting for it is as well."""
    monkeypatch.setattr(_postgres, "POOL_SECONDS", 0.2)
    with SQLMessageStore.connect(f"{postgres_url}&pool_size=1") as store:
        with store._db.read(), pytest.raises(StoreError, match="raise pool_size in the URL"):
            store.state(T1)
        assert store.state(T1) is None


def test_locked_for_too_long(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write gives up on a transaction that never ends, and says where to look."""
    monkeypatch.setattr(_postgres, "LOCK_SECONDS", 1)
    with SQLMessageStore.connect(postgres_url) as store:
        store.add([record("1")])
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT 1 FROM resources FOR UPDATE")
            with pytest.raises(StoreError, match="pg_stat_activity"):
                store.add([record("2")])
            assert len(store.history(T1)) == 1  # reading waits for nobody


def test_read_only_server(postgres_url: str) -> None:
    """On a replica everything can be read, and a write is told to go to the primary."""
    SQLMessageStore.connect(postgres_url).close()
    with SQLMessageStore.connect(postgres_url + "%20-cdefault_transaction_read_only=on") as store:
        assert store.history(T1) == []
        with pytest.raises(StoreError, match="URL of the primary"):
            store.add([record("1")])


def test_a_newer_version_was_here(postgres_url: str) -> None:
    SQLMessageStore.connect(postgres_url).close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO migrations VALUES ('m999_future')")
    with pytest.raises(StoreError, match="m999_future"):
        SQLMessageStore.connect(postgres_url)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://anna:s3cret@127.0.0.1:1/db", "cannot be reached"),
        ("postgresql://anna:s3cret@127.0.0.1:port/db", "cannot be read"),
        ("postgresql://anna:s3cret@127.0.0.1/db?nonsense=s3cret", "cannot be read"),
        ("postgresql://anna:s3cret/@127.0.0.1/db", "cannot be read"),
        ("postgresql://anna:@s3cret@127.0.0.1/db", "cannot be read"),
        ("postgresql://anna:s3cret@127.0.0.1/db?pool_size=0", "at least 1"),
    ],
)
def test_a_bad_url(url: str, told: str) -> None:
    """The error says what to do and never holds the password."""
    with pytest.raises(StoreError, match=told) as caught:
        SemanticRecall.open(url, embedder=None)
    texts = [str(caught.value), str(caught.value.__cause__), repr(caught.value)]
    assert not any("s3cret" in text for text in texts)


def test_no_such_database(postgres_server: str) -> None:
    url = postgres_server.replace("/postgres?", "/nowhere?")
    with pytest.raises(StoreError, match="does not exist"):
        SQLMessageStore.connect(url)


def test_pgvector_cannot_be_created(postgres_server: str, server: psycopg.Connection[Any]) -> None:
    """The error names the remedy, and the next attempt succeeds without a trace of this one."""
    name = f"r{uuid.uuid4().hex}"
    server.execute(f"CREATE DATABASE {name}")
    server.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    url = postgres_server.replace("/postgres?", f"/{name}?")
    as_role = f"postgresql://{name}:x@/{name}?{url.partition('?')[2]}"
    try:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"CREATE SCHEMA semantic_recall AUTHORIZATION {name}")
            with pytest.raises(StoreError, match="administrator run `CREATE EXTENSION vector`"):
                SQLMessageStore.connect(as_role)
            admin.execute("CREATE EXTENSION vector")
        with SQLMessageStore.connect(as_role) as store:
            store.add([record("1")])
            assert store.check() == []
    finally:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        server.execute(f"DROP ROLE {name}")


def test_psycopg_is_missing() -> None:
    """The error has the pip command, and importing the library needs no driver."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from semantic_recall import SemanticRecall\n"
        "from semantic_recall.errors import MissingDependencyError\n"
        "try: SemanticRecall.open('postgresql://localhost/x', embedder=None)\n"
        "except MissingDependencyError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "chat-semantic-recall[postgres]"' in done.stdout


def test_tables_are_those_of_the_schema(store: SQLMessageStore) -> None:
    """The columns that statements are written for are the columns that there are."""
    with store._db.read() as tx:
        rows = tx.sql(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = current_setting('search_path')"
        )
    there: dict[str, set[str]] = {}
    for table, column in rows:
        there.setdefault(table, set()).add(column)
    tables = {**metadata.tables, "vectors": chunk_rows}
    for name in tables.keys() - {"counters"}:  # a sequence here
        assert there[name] == {column.name for column in tables[name].columns}


def test_the_index_fails_with_the_store(store: SQLMessageStore) -> None:
    """What the database raises reaches the caller as an error of the index."""
    index = PgVectorIndex(store)
    space = VectorSpace("one", 2)
    assert index.search(space, np.ones(2, np.float32), T1, top_k=1) == []
    store.close()
    with pytest.raises(VectorIndexError, match="closed"):
        index.search(space, np.ones(2, np.float32), T1, top_k=1)
    with pytest.raises(VectorIndexError, match="closed"):
        list(index.ids(space))
