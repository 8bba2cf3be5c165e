"""The store in PostgreSQL beside others: processes, threads, forks, transactions in the way."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import psycopg
import pytest

from semantic_recall.records import MessageRecord, MessageVectors, Part
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message, Scope, VectorSpace
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

SPACE = VectorSpace("one", 3)

WRITER = """
import sys
import numpy as np
from semantic_recall.records import MessageRecord, Part
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message

url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
store = SQLMessageStore.connect(url)
for n in range(count):
    records = [
        MessageRecord(
            message=Message(
                id=f"{name}{n}", role="user", text="hi", thread_id=f"t{n % 3}", resource_id=owner
            ),
            part=Part.SEARCHABLE, terms=np.array([1], np.uint32), digest=b"0" * 16,
        )
        for owner in ("anna", f"r{n % 5}")
    ]
    store.add(records)
store.close()
"""


def record(id: str, owner: str = "anna", thread: str = "t1") -> MessageRecord:
    message = Message(id=id, role="user", text="hi", thread_id=thread, resource_id=owner)
    terms = np.array([1], dtype=np.uint32)
    return MessageRecord(message=message, part=Part.SEARCHABLE, terms=terms, digest=b"0" * 16)


@pytest.fixture
def store(postgres_url: str) -> Iterator[SQLMessageStore]:
    with SQLMessageStore.connect(postgres_url) as store:
        yield store


@pytest.fixture
def other(store: SQLMessageStore, postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that has nothing to do with the store, on its schema."""
    with psycopg.connect(postgres_url) as connection:
        yield connection


def test_processes_migrate_and_write_at_once(postgres_url: str) -> None:
    """Four processes find an empty schema at the same time, then write beside each other."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, postgres_url, name, "60"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "abcd"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=120)[1] for writer in writers] == [""] * 4
    with SQLMessageStore.connect(postgres_url) as store:
        state = store.state(Scope("anna"))
        assert state is not None
        assert (state.version, state.messages) == (240, 240)
        for thread in ("t0", "t1", "t2"):
            written = [message.id for message in store.history(Scope("anna", thread))]
            for name in "abcd":  # in the order in which each process wrote them
                mine = [int(id[1:]) for id in written if id.startswith(name)]
                assert mine == list(range(int(thread[1]), 60, 3))
        assert store.size()["messages"] == 480
        assert store.check() == []


def test_threads_write_to_the_same_resources(store: SQLMessageStore) -> None:
    """Batches over several resources in any order, vectors, deletions and new spaces at once."""
    store.add_space(SPACE, active=True)

    def work(number: int) -> None:
        chance = random.Random(number)
        for turn in range(25):
            owners = chance.sample(["a", "b", "c", "d"], 3)
            batch = [record(f"{number}.{turn}", owner, f"t{turn % 2}") for owner in owners]
            keys = [item.key for item in store.add(batch)]
            rows = [MessageVectors(key, b"0" * 16, np.ones((2, 3), np.float32)) for key in keys]
            store.set_vectors(SPACE, chance.sample(rows, 3))
            if turn % 5 == 4:
                store.delete(Scope(chance.choice(owners), "t0"))
            if turn == 12:
                store.add_space(VectorSpace(f"space {number}", 3), active=False)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert store.check() == []
    rows = store.rows(Scope("a"), SPACE)
    assert len(rows.vectors) == 2 * len(rows.keys)


def test_a_reader_sees_whole_transactions(store: SQLMessageStore) -> None:
    """What `rows` returns is one snapshot: messages, vectors and version belong together."""
    store.add_space(SPACE, active=True)
    stop = threading.Event()

    def write() -> None:
        for n in range(60):
            if n % 3:
                pair = [record(f"{n}{side}", thread=side) for side in "xy"]
                keys = [item.key for item in store.add(pair)]
                store.set_vectors(
                    SPACE,
                    [MessageVectors(k, b"0" * 16, np.ones((1, 3), np.float32)) for k in keys],
                )
            else:
                store.delete(Scope("anna"), ids=[f"{n - 1}x", f"{n - 1}y"])
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    versions = []
    while not stop.is_set():
        rows = store.rows(Scope("anna"), SPACE)
        versions.append(rows.version)
        assert len(rows.keys) % 2 == 0
        assert set(rows.vector_keys.tolist()) <= set(rows.keys.tolist())
        assert len(rows.vector_keys) in (len(rows.keys), len(rows.keys) - 2)
    writer.join()
    assert versions == sorted(versions)


def test_a_deadlock_is_repeated(store: SQLMessageStore, other: psycopg.Connection[Any]) -> None:
    """Of two transactions that wait for each other ours is ended, and comes again."""
    store.add([record("1", "a"), record("1", "b")])
    lock = "UPDATE resources SET recallable = recallable WHERE resource_id = %s"
    other.execute(lock, ["b"])
    writer = threading.Thread(target=store.add, args=([record("2", "a"), record("2", "b")],))
    writer.start()
    time.sleep(0.3)  # it has locked `a` and waits for `b`; PostgreSQL looks for deadlocks after 1 s
    other.execute(lock, ["a"])
    other.commit()
    writer.join(30)
    assert [len(store.history(Scope(owner, "t1"))) for owner in "ab"] == [2, 2]
    assert store.check() == []


def test_the_same_resource_made_by_another(
    store: SQLMessageStore, other: psycopg.Connection[Any]
) -> None:
    """The insert that comes second is repeated and finds the resource of the first."""
    other.execute(
        "INSERT INTO resources (version, deleted_version, recallable, resource_id)"
        " VALUES (7, 0, 0, 'anna')"
    )
    writer = threading.Thread(target=store.add, args=([record("1")],))
    writer.start()
    time.sleep(0.3)
    other.commit()
    writer.join(30)
    state = store.state(Scope("anna"))
    assert state is not None
    assert (state.version, state.messages) == (8, 1)


def test_a_write_that_loses_its_connection_before_the_commit(
    store: SQLMessageStore, other: psycopg.Connection[Any]
) -> None:
    """Nothing can have been committed, so it is repeated, once, on another connection."""
    store.add([record("1")])
    other.execute("SELECT 1 FROM resources FOR UPDATE")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(store.add, [record("2")])
        time.sleep(0.3)
        ended = other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND query LIKE '%' || current_schema() || '%'"
        ).fetchall()
        other.commit()
        assert (ended, len(writing.result(30))) == ([(True,)], 1)
    assert [message.id for message in store.history(Scope("anna", "t1"))] == ["1", "2"]
    assert store.check() == []


def test_vectors_in_flight_do_not_bring_back(
    store: SQLMessageStore, other: psycopg.Connection[Any]
) -> None:
    """A deletion that commits while `set_vectors` waits leaves nothing for it to write."""
    store.add_space(SPACE, active=True)
    (stored,) = store.add([record("1")])
    other.execute("SELECT 1 FROM resources FOR UPDATE")
    row = MessageVectors(stored.key, b"0" * 16, np.ones((1, 3), np.float32))
    with ThreadPoolExecutor(2) as pool:
        deletion = pool.submit(store.delete, Scope("anna"))
        time.sleep(0.3)
        vectors = pool.submit(store.set_vectors, SPACE, [row])
        time.sleep(0.3)
        other.commit()
        assert (deletion.result(30).messages, vectors.result(30)) == (1, 0)
    assert store.size()["vectors"] == 0
    assert store.check() == []


def test_a_forked_child_leaves_the_connections_alone(store: SQLMessageStore) -> None:
    """Parent and child both go on after a fork, each on its own connections."""
    store.add([record("1")])
    child = os.fork()
    if not child:
        try:
            store.add([record("2")])
            store.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    store.add([record("3")])
    assert [message.id for message in store.history(Scope("anna", "t1"))] == ["1", "2", "3"]
