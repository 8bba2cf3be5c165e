"""`forget(secure=True)`: afterwards no file of the folder has a byte of what was forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from tests.core.erasing import (
    ID,
    OLDER,
    OWNER,
    SECRET,
    THREAD,
    fill,
    left,
    secret_message,
    traces,
)
from tests.core.indexing import Failing

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
