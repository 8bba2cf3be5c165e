"""`forget(secure=True)`: afterwards no file of the folder has a byte of what was forgotten."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from semantic_recall import Message, SemanticRecall, StoreError
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.indexed_text import indexed_text
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Vector
from tests.core.indexing import Failing

SECRET = "xylophonist Örtlund keeps 4711-0815 under the flowerpot 花盆下面"
OLDER = "zebrafish Öberg keeps 9321-7788 behind the samovar 茶炊后面"
OWNER = "mallory-the-owner-7f3a"
THREAD = "thread-of-mallory-55d1"
ID = "message-of-mallory-c0de"
NAME = "Mallory-the-speaker-e7"
METADATA = {"place": "metadata-of-mallory-91ab"}


def secret_message(text: str = SECRET) -> Message:
    return Message(
        role="user", text=text, id=ID, thread_id=THREAD, resource_id=OWNER, name=NAME,
        metadata=METADATA, payload={"content": text, "raw": "payload-of-mallory-44f0"},
    )  # fmt: skip


def vector_bytes(text: str) -> bytes:
    (vector,) = HashEmbedder(64).embed_documents([indexed_text(secret_message(text))])
    return np.asarray(vector, np.float32).tobytes()


def traces(*texts: str) -> Mapping[str, bytes]:
    """What must not be left: each text in two encodings and in parts, ids, and vectors."""
    found: dict[str, bytes] = {}
    for number, text in enumerate(texts):
        for word in (text, *text.split()):
            if len(word) > 5:
                found[f"{word!r} in UTF-8"] = word.encode()
                found[f"{word!r} in UTF-16"] = word.encode("utf-16-le")
                found[f"{word!r} in JSON"] = word.encode("unicode_escape")
        vector = vector_bytes(text)
        found[f"vector {number}"] = vector
        found[f"half of vector {number}"] = vector[: len(vector) // 2]
        found[f"other half of vector {number}"] = vector[len(vector) // 2 :]
    for word in (OWNER, THREAD, ID, NAME, "metadata-of-mallory", "payload-of-mallory"):
        found[word] = word.encode()
        found[f"{word} in UTF-16"] = word.encode("utf-16-le")
    return found


def left(folder: Path, wanted: Mapping[str, bytes]) -> set[tuple[str, str]]:
    """Return (file, trace) for everything that is still there."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {
        (file.name, name)
        for file in files
        for name, trace in wanted.items()
        if trace in file.read_bytes()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory with 60 messages of others, in one collection."""
    with SQLMessageStore.open(tmp_path / "recall.sqlite3") as store:
        store.setting("index_shards", "1")
    with opened(tmp_path) as memory:
        fill(memory, 60)
        assert memory.flush()
    return tmp_path


@pytest.fixture
def memory(folder: Path) -> Iterator[SemanticRecall]:
    with opened(folder) as memory:
        yield memory


def opened(folder: Path) -> SemanticRecall:
    return SemanticRecall.open(folder, embedder=HashEmbedder(64))


def fill(memory: SemanticRecall, count: int, owner: str = "anna") -> None:
    memory.remember(
        [{"role": "user", "content": f"harmless words number {n}"} for n in range(count)],
        thread_id="t",
        resource_id=owner,
    )


FORGET: dict[str, dict[str, object]] = {
    "by id": {"ids": [ID], "thread_id": THREAD, "resource_id": OWNER},
    "by thread": {"thread_id": THREAD, "resource_id": OWNER},
    "by resource": {"resource_id": OWNER},
}


@pytest.mark.parametrize("how", FORGET)
def test_no_byte_is_left(memory: SemanticRecall, folder: Path, how: str) -> None:
    memory.remember(secret_message())
    assert memory.flush()
    assert len(left(folder, traces(SECRET))) > 10, "the search finds what there is"
    receipt = memory.forget(secure=True, **FORGET[how])  # type: ignore[arg-type]
    assert (receipt.messages, receipt.threads, receipt.vectors) == (1, 1, 1)
    assert set(receipt.remaining.values()) == {0}
    assert {"messages", "terms", "full_text", "vectors", "pending", "outbox"} <= set(
        receipt.remaining
    )
    assert receipt.complete
    assert receipt.secure
    assert left(folder, traces(SECRET)) == set()
    assert memory.stats().messages == 60
    assert memory.verify().ok
    memory.close()
    assert left(folder, traces(SECRET)) == set()


def test_no_byte_of_an_older_text_is_left(memory: SemanticRecall, folder: Path) -> None:
    """The message was edited, in the index too, before it was forgotten."""
    for text in (OLDER, SECRET, OLDER, SECRET):
        memory.remember(secret_message(text))
        assert memory.flush()
    assert memory.forget(secure=True, resource_id=OWNER).secure
    assert left(folder, traces(SECRET, OLDER)) == set()
    assert memory.verify().ok


def test_no_byte_is_left_of_what_was_forgotten_before(memory: SemanticRecall, folder: Path) -> None:
    """A plain forget leaves bytes, and a secure one of anything afterwards scrubs them too."""
    memory.remember(secret_message())
    assert memory.flush()
    assert memory.forget(resource_id=OWNER).complete
    memory.remember({"role": "user", "content": "x", "id": "x"}, thread_id="t", resource_id="bert")
    assert memory.forget(secure=True, resource_id="bert").secure
    assert left(folder, traces(SECRET)) == set()


def test_no_byte_is_left_in_the_files_of_a_large_index(
    memory: SemanticRecall, folder: Path
) -> None:
    """Chroma moves vectors from its log to files of their own after a thousand."""
    memory.remember(secret_message())
    fill(memory, 1_500, "bert")
    assert memory.flush()
    assert list(folder.rglob("index_metadata.pickle"))
    assert ("data_level0.bin", "vector 0") in left(folder, traces(SECRET))
    assert memory.forget(secure=True, resource_id=OWNER).secure
    assert left(folder, traces(SECRET)) == set()
    report = memory.verify()
    assert (report.ok, report.indexed) == (True, 1_560)


def test_no_byte_is_left_of_vectors_of_an_embedder_used_before(
    memory: SemanticRecall, folder: Path
) -> None:
    memory.remember(secret_message())
    assert memory.flush()
    memory.reindex(HashEmbedder(32))
    assert memory.forget(secure=True, resource_id=OWNER).secure
    assert left(folder, traces(SECRET)) == set()


def test_what_was_never_embedded_or_indexed(memory: SemanticRecall, folder: Path) -> None:
    """Forgotten while it waited for everything."""
    memory.remember(secret_message(), background=True)
    receipt = memory.forget(secure=True, resource_id=OWNER)
    assert (receipt.messages, receipt.complete, receipt.secure) == (1, True, True)
    assert left(folder, traces(SECRET)) == set()


SECOND = """
import sys
from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
memory = SemanticRecall.open(sys.argv[1], embedder=HashEmbedder(64))
for line in sys.stdin:
    print(len(memory.recall("xylophonist", resource_id=sys.argv[2])), flush=True)
memory.close()
"""


def test_beside_a_second_process(memory: SemanticRecall, folder: Path) -> None:
    """It had the text in memory and its connection open; it sees nothing and keeps no file."""
    memory.remember(secret_message())
    assert memory.flush()
    second = subprocess.Popen(
        [sys.executable, "-c", SECOND, str(folder), OWNER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert second.stdin is not None
    assert second.stdout is not None
    try:
        for expected in (1, 0):
            second.stdin.write("recall\n")
            second.stdin.flush()
            assert second.stdout.readline() == f"{expected}\n"
            if expected:
                assert memory.forget(secure=True, resource_id=OWNER).secure
                assert left(folder, traces(SECRET)) == set()
        assert left(folder, traces(SECRET)) == set()
    finally:
        second.communicate()
    assert left(folder, traces(SECRET)) == set()


def test_a_guest_says_that_the_owner_has_to_scrub(memory: SemanticRecall, folder: Path) -> None:
    """The receipt is honest where another memory owns the index; the owner then finishes."""
    memory.remember(secret_message())
    assert memory.flush()
    assert memory.stats().owns_index
    with opened(folder) as guest:
        receipt = guest.forget(secure=True, resource_id=OWNER)
        assert (receipt.messages, receipt.secure) == (1, False)
    assert memory.flush()
    assert memory.forget(secure=True, resource_id=OWNER).secure
    assert left(folder, traces(SECRET)) == set()


def test_a_reader_in_the_way_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot keeps the write-ahead log: said aloud, and done when it is asked for again."""
    monkeypatch.setattr("semantic_recall.stores._sqlite.BUSY_SECONDS", 1)
    with opened(folder) as memory:
        beside_a_reader(memory, folder)


def beside_a_reader(memory: SemanticRecall, folder: Path) -> None:
    memory.remember(secret_message())
    assert memory.flush()
    with SQLMessageStore.open(folder / "recall.sqlite3") as other, other._db.read() as tx:
        tx.sql("SELECT count(*) FROM messages")
        with pytest.raises(StoreError, match="scrub again later"):
            memory.forget(secure=True, resource_id=OWNER)
        assert not memory.recall("xylophonist", resource_id=OWNER)
    assert memory.forget(secure=True, resource_id=OWNER).secure
    assert left(folder, traces(SECRET)) == set()


def test_an_index_that_cannot_be_scrubbed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The messages are gone all the same, and the receipt says what is not."""
    index = Failing()
    store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
    with SemanticRecall(store, lambda: index, HashEmbedder(64)) as memory:
        memory.remember(secret_message())
        assert memory.flush()
        memory.forget(resource_id="nobody")
        index.failures = 1
        receipt = memory.forget(ids=["unknown"], resource_id=OWNER, secure=True)
        assert (receipt.messages, receipt.complete, receipt.secure) == (0, True, False)
        assert "was not scrubbed: the disk is full" in caplog.text
        assert memory.forget(resource_id=OWNER, secure=True).secure
        assert left(tmp_path, traces(SECRET)) == set()


class Gated(HashEmbedder):
    """Embeds when it is let."""

    def __init__(self) -> None:
        super().__init__(64)
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        self.asked.set()
        assert self.go_on.wait(20)
        return list(super().embed_documents(texts))


@pytest.mark.parametrize("background", [False, True], ids=["remember", "background"])
def test_an_embedding_in_flight_brings_nothing_back(tmp_path: Path, background: bool) -> None:
    """mastra#23177: the vector arrives after its message was forgotten."""
    embedder = Gated()
    with SemanticRecall.open(tmp_path, embedder=embedder) as memory:
        writer = threading.Thread(
            target=memory.remember, args=[secret_message()], kwargs={"background": background}
        )
        writer.start()
        assert embedder.asked.wait(20)
        forgotten: list[bool] = []

        def forget() -> None:
            forgotten.append(memory.forget(resource_id=OWNER).messages == 1)

        eraser = threading.Thread(target=forget)
        eraser.start()
        until_gone = time.monotonic() + 20
        while list(memory.messages()) and time.monotonic() < until_gone:
            time.sleep(0.01)
        assert not memory.recall(
            "xylophonist", resource_id=OWNER, query_vector=np.ones(64, np.float32)
        )
        embedder.go_on.set()
        writer.join(20)
        eraser.join(20)
        assert forgotten == [True]
        assert memory.flush()
        assert list(memory.messages()) == []
        assert (memory.stats().vectors, memory.stats().pending) == (0, 0)
        assert memory.verify().ok
        assert memory.forget(secure=True, resource_id=OWNER).secure
        assert left(tmp_path, traces(SECRET)) == set()


def test_writes_and_erasure_at_once(folder: Path) -> None:
    """Four threads write and forget their own; what was forgotten last stays forgotten."""
    with opened(folder) as memory:

        def churn(number: int) -> None:
            owner = f"churn-owner-{number}"
            for turn in range(12):
                texts = [f"churned-text-{number}-{turn}-{n}" for n in range(3)]
                memory.remember(
                    [{"role": "user", "content": text} for text in texts],
                    thread_id="t",
                    resource_id=owner,
                    background=turn % 2 == 0,
                )
                memory.forget(resource_id=owner)

        threads = [threading.Thread(target=churn, args=[n]) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert memory.flush()
        assert memory.stats().messages == memory.stats().vectors == 60
        assert memory.verify().ok
        assert memory.forget(secure=True, resource_id="churn-owner-0").secure
    assert left(folder, {"text": b"churned-text-", "owner": b"churn-owner-"}) == set()
