"""What the SQLite store promises beyond the contract: files, plans, faults and erased bytes."""

import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy.dialects import sqlite

from semantic_recall.errors import StoreError
from semantic_recall.records import MessageRecord, MessageVectors, Part
from semantic_recall.stores import _messages, _search, _windows
from semantic_recall.stores._statements import Statement
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message, Scope, VectorSpace

SPACE = VectorSpace("test", 4)
T1 = Scope("anna", "t1")


DAMAGED = b"SQLite format 3\x00" + b"\xff" * 4000


def record(id: str, text: str = "hello", scope: Scope = T1) -> MessageRecord:
    message = Message(
        id=id,
        role="user",
        text=text,
        thread_id=str(scope.thread_id),
        resource_id=scope.resource_id,
    )
    terms = np.array([len(word) for word in text.split()], dtype=np.uint32)
    return MessageRecord(
        message=message, part=Part.SEARCHABLE, terms=terms, digest=text.encode()[:16].ljust(16)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recall #1 ?.sqlite3"


def files(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_everything_is_there_after_reopening(path: Path) -> None:
    with SQLMessageStore.open(str(path)) as store:
        store.add_space(SPACE, active=True)
        key = store.add([record("1")])[0].key
        store.set_vectors(SPACE, [MessageVectors(key, b"hello".ljust(16), np.ones((1, 4), "f4"))])
        before = store.rows(T1, SPACE)
        store.delete(Scope("ben"))
    with SQLMessageStore.open(path) as store:
        after = store.rows(T1, SPACE)
        assert (after.version, after.keys.tolist()) == (before.version, [key])
        assert after.vectors.tolist() == [[1, 1, 1, 1]]
        assert store.add([record("2")])[0].key > key
        assert len(store.operations(limit=9)) == 1


def test_an_acknowledged_write_is_synced_and_what_can_be_made_anew_is_not(path: Path) -> None:
    settings = ("journal_mode", "synchronous", "busy_timeout", "secure_delete")
    full, normal = 2, 1
    with SQLMessageStore.open(path) as store:
        for lend, synced in (
            (store._db.write, full),
            (store._db.derive, normal),
            (store._db.write, full),  # of the same connection
            (lambda: store._db.write(alone=True), full),
        ):
            with lend() as tx:
                found = [tx.sql(f"PRAGMA {name}")[0][0] for name in settings]
            assert found == ["wal", synced, 30_000, 2]


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with SQLMessageStore.open(path) as store:
        assert store.add([record("1")])[0].changed


def test_a_store_of_a_newer_version_is_refused(path: Path) -> None:
    SQLMessageStore.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO migrations VALUES ('m999_future')")
    connection.close()
    with pytest.raises(StoreError, match=r"newer version.*m999_future.*upgrade"):
        SQLMessageStore.open(path)


def test_a_migration_that_fails_leaves_nothing(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE vectors (mine TEXT)")
    with pytest.raises(StoreError, match="already exists"):
        SQLMessageStore.open(path)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    connection.close()
    assert tables == [("vectors",)]


def test_two_processes_open_a_new_file_at_once(path: Path) -> None:
    code = (
        "import sys; from semantic_recall.stores.sql import SQLMessageStore;"
        "sys.stdin.read(1); SQLMessageStore.open(sys.argv[1]).close()"
    )
    command = [sys.executable, "-c", code, str(path)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "12"
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.flush()
    assert [process.communicate()[1] for process in running] == [b"", b""]
    with SQLMessageStore.open(path) as store:
        assert store.check() == []


@pytest.mark.parametrize("content", [b"not a database" * 100, DAMAGED])
def test_a_file_that_is_no_database_is_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(
        StoreError, match=r"recall #1 \?\.sqlite3.*(not a database|damaged)"
    ) as raised:
        SQLMessageStore.open(path)
    assert isinstance(raised.value.__cause__, sqlite3.Error)
    assert path.read_bytes() == content


def test_a_missing_folder_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="check that the folder exists"):
        SQLMessageStore.open(tmp_path / "missing" / "recall.sqlite3")


def test_a_full_disk_loses_nothing(path: Path) -> None:
    with SQLMessageStore.open(path) as store:
        store.add([record("1")])
        with store._db.bare() as tx:
            tx.sql("PRAGMA max_page_count = 60")
        with pytest.raises(StoreError, match="disk is full; free space"):
            store.add([record(str(n), "x" * 10_000) for n in range(100)])
        assert [message.id for message in store.history(T1)] == ["1"]
        assert store.check() == []


def test_check_finds_damage(path: Path) -> None:
    with SQLMessageStore.open(path) as store:
        store.add_space(SPACE, active=True)
        key = store.add([record("1"), record("2")])[0].key
        store.set_vectors(SPACE, [MessageVectors(key, b"hello".ljust(16), np.ones((1, 4), "f4"))])
        assert store.check() == []
        with store._db.write() as tx:
            tx.sql("DELETE FROM messages WHERE key = ?", key)
            tx.sql("DELETE FROM terms WHERE key <> ?", key)
            tx.sql("DELETE FROM pending")
        problems = "\n".join(store.check())
    for part in ("vectors without", "terms without", "number of messages", "full text", "neither"):
        assert part in problems


def test_deleted_bytes_are_gone_after_scrub(path: Path) -> None:
    secret = Scope("resource-of-mallory", "thread-of-mallory")
    values = np.array([[0.123, 4.56, 7.89, 0.5]], dtype=np.float32)
    with SQLMessageStore.open(path) as store:
        store.add_space(SPACE, active=True)
        store.add([record(str(n), f"filler {n}") for n in range(200)])
        key = store.add([record("id-of-mallory", "classified words", secret)])[0].key
        digest = b"classified words"
        store.set_vectors(SPACE, [MessageVectors(key, digest, values)])
        traces = [b"classified", b"of-mallory", values.tobytes()]
        assert all(trace in files(path) for trace in traces)
        store.delete(secret)
        store.acknowledge(store.operations(limit=10))
        store.scrub()
        assert [trace for trace in traces if trace in files(path)] == []
        assert len(store.history(T1)) == 200
        assert store.check() == []


def plan(store: SQLMessageStore, statement: object) -> str:
    """Return how SQLite means to run one of the store's statements."""
    assert isinstance(statement, Statement)
    sql, _ = statement.compiled(sqlite.dialect())
    with store._db.read() as tx:
        rows = tx.sql(f"EXPLAIN QUERY PLAN {sql}", *["[1]"] * sql.count("?"))
    return "\n".join(row[3] for row in rows)


def test_queries_use_indexes(path: Path) -> None:
    """No hot query walks a table or sorts a thread."""
    with SQLMessageStore.open(path) as store:
        for statement in (_windows._BEFORE, _windows._AFTER, _messages._LAST_OF_THREAD):
            steps = plan(store, statement)
            assert "COVERING INDEX messages_order (thread_key=?" in steps
            assert "TEMP B-TREE" not in steps
        for statement in (
            _messages._BY_KEYS,
            _search._ROWS[True, True],
            _search._BLOBS[False, True],
        ):
            steps = plan(store, statement)
            assert "(rowid=?)" in steps or "AND key=?" in steps
            assert "SCAN messages" not in steps
        assert "messages_changes (resource_key=? AND version>?)" in plan(
            store, _search._ROWS[False, False]
        )
        assert "SEARCH messages USING INDEX messages_order (thread_key=?)" in plan(
            store, _search._ROWS[True, False]
        )


def test_a_window_in_a_long_thread_is_quick(path: Path) -> None:
    """A window of a thread of 50,000 messages costs what one of a short thread costs."""
    short = Scope("anna", "short")
    with SQLMessageStore.open(path) as store:
        store.add([record(str(n), "x") for n in range(50_000)])
        few = [item.key for item in store.add([record(str(n), "x", short) for n in range(10)])]

        def took(scope: Scope, key: int) -> float:
            times = []
            for _ in range(20):
                start = time.perf_counter()
                assert len(store.window(scope, [key], before=2, after=2)[key]) == 5
                times.append(time.perf_counter() - start)
            return min(times)

        assert took(T1, 25_000) < 5 * took(short, few[5])


def test_large_lists(path: Path) -> None:
    """More keys and ids than SQLite takes variables."""
    with SQLMessageStore.open(path) as store:
        keys = [item.key for item in store.add([record(str(n), "x") for n in range(300)])]
        many = [*range(-300_000, 0), *keys]
        assert list(store.fetch(T1, many)) == keys
        assert len(store.keys(T1, [str(n) for n in range(300_000)])) == 300
        assert store.remains(keys)["messages"] == 300


def test_export_holds_no_lock_and_no_snapshot(path: Path) -> None:
    """Writers go on while an export is read slowly, and it sees what they add at the end."""
    with SQLMessageStore.open(path) as store:
        store.add([record(str(n), "x") for n in range(1500)])
        stream = store.export(T1)
        assert next(stream).id == "0"
        store.add([record("late", "x")])
        assert [message.id for message in stream][-1] == "late"


def test_a_copy_of_the_file_is_a_store(path: Path) -> None:
    with SQLMessageStore.open(path) as store:
        store.add([record("1")])
    shutil.copy(path, path.with_name("copy.sqlite3"))
    with SQLMessageStore.open(path.with_name("copy.sqlite3")) as store:
        assert [message.id for message in store.history(T1)] == ["1"]


def test_a_file_that_another_process_begins_just_now_is_waited_for(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    # A new file is no write-ahead log yet, and to make it one SQLite waits for no such lock.
    other.execute("BEGIN IMMEDIATE")
    leaving = threading.Timer(0.3, other.execute, ("ROLLBACK",))
    leaving.start()
    with SQLMessageStore.open(path) as store:
        assert store.size()["messages"] == 0
    leaving.join()
    other.close()
