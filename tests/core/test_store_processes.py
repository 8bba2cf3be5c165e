"""The store beside other processes: writing at once, killed in the middle, forked."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from semantic_recall.records import MessageRecord, Part
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message, Scope

T1 = Scope("anna", "t1")

WRITER = """
import sys
import numpy as np
from semantic_recall.records import MessageRecord, Part
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Message

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = SQLMessageStore.open(path)
print("ready", flush=True)
sys.stdin.readline()
for n in range(count):
    message = Message(id=f"{name}{n}", role="user", text="hi", thread_id="t1", resource_id="anna")
    record = MessageRecord(
        message=message, part=Part.SEARCHABLE, terms=np.array([1], np.uint32), digest=b"0" * 16
    )
    store.add([record])
    print(message.id, flush=True)
store.close()
"""


def record(id: str) -> MessageRecord:
    message = Message(id=id, role="user", text="hi", thread_id="t1", resource_id="anna")
    terms = np.array([1], dtype=np.uint32)
    return MessageRecord(message=message, part=Part.SEARCHABLE, terms=terms, digest=b"0" * 16)


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Start a process that adds messages one by one and prints the id of each stored one."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "recall.sqlite3"
    writers = [start(path, name, 500) for name in "ab"]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    results = [writer.communicate(timeout=120) for writer in writers]
    assert [errors for _, errors in results] == ["", ""]
    with SQLMessageStore.open(path) as store:
        written = [message.id for message in store.history(T1)]
        assert len(written) == len(set(written)) == 1000
        for name in "ab":
            mine = [id for id in written if id.startswith(name)]
            assert mine == [f"{name}{n}" for n in range(500)]
        state = store.state(T1)
        assert state is not None
        assert (state.version, state.messages) == (1000, 1000)
        assert store.check() == []


def test_another_process_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "recall.sqlite3"
    with SQLMessageStore.open(path) as store:
        store.add([record("mine")])
        version = store.rows(T1, None).version
        start(path, "b", 2).communicate("go\n", timeout=60)
        state = store.state(T1)
        assert state is not None
        assert (state.version, state.messages) == (version + 2, 3)
        assert len(store.rows(T1, None, since=version).keys) == 2


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "recall.sqlite3"
    writer = start(path, "a", 100_000)
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()
    stored = [writer.stdout.readline().strip() for _ in range(50)]
    writer.send_signal(signal.SIGKILL)
    stored += [line.strip() for line in writer.stdout.read().splitlines()]
    writer.communicate()
    with SQLMessageStore.open(path) as store:
        found = [message.id for message in store.history(T1)]
        assert found[: len(stored)] == stored
        assert len(found) - len(stored) <= 1
        assert store.check() == []


def in_child(work: Callable[[], object]) -> int:
    """Run `work` in a forked child; return its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - the child must end here, whatever happens
        print(error, file=sys.stderr)
        os._exit(1)
    os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_its_own_connections(tmp_path: Path) -> None:
    with SQLMessageStore.open(tmp_path / "recall.sqlite3") as store:
        store.add([record("parent")])
        with store._db.write() as tx:  # the lock is held and a transaction open: the worst moment
            tx.sql("UPDATE settings SET value = value")
            inherited = store._db

            def work() -> None:
                assert [message.id for message in store.history(T1)] == ["parent"]
                assert not inherited._lock.locked()

            assert in_child(work) == 0
        assert in_child(lambda: store.add([record("child")])) == 0
        assert in_child(store.close) == 0
        store.add([record("after")])
        assert [message.id for message in store.history(T1)] == ["parent", "child", "after"]
        assert store.check() == []
