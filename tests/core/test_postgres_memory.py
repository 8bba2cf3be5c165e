"""A whole memory in PostgreSQL: no folder, no Chroma, nothing left after a secure forget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from semantic_recall import SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

SECRET = "Xylophonquartett"


@pytest.fixture(params=[100_000, 0], ids=["exact", "candidates"])
def memory(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[SemanticRecall]:
    settings = Settings(exact_limit=request.param)
    with SemanticRecall.open(postgres_url, embedder=HashEmbedder(), settings=settings) as memory:
        yield memory


def fill(memory: SemanticRecall) -> None:
    for owner in ("anna", "ben"):
        turns = [{"role": "user", "content": f"{owner} says {n} about tea"} for n in range(20)]
        turns[7]["content"] = f"{owner} plays in a {SECRET}"
        memory.remember(turns, thread_id="t1", resource_id=owner)
    assert memory.flush(30)


def test_remember_recall_and_verify(memory: SemanticRecall) -> None:
    """Nothing is ever queued for an index, and the index is always complete."""
    fill(memory)
    hit = memory.recall(SECRET, resource_id="anna", top_k=1).hits[0]
    assert hit.message.text == f"anna plays in a {SECRET}"
    stats = memory.stats()
    assert (stats.messages, stats.vectors, stats.pending, stats.index_lag) == (40, 40, 0, 0)
    report = memory.verify()
    assert (report.ok, report.indexed, report.missing, report.orphans) == (True, 40, 0, 0)


def test_another_embedder(memory: SemanticRecall) -> None:
    """Vectors of two lengths live side by side until the switch."""
    fill(memory)
    report = memory.reindex(HashEmbedder(48))
    assert (report.embedded, report.pending) == (40, 0)
    assert memory.stats().dimensions == 48
    assert memory.recall(SECRET, resource_id="ben", top_k=1).hits[0].message.resource_id == "ben"
    assert memory.verify().ok


def test_other_processes_see_everything(memory: SemanticRecall, postgres_url: str) -> None:
    """A second memory on the same URL recalls what the first has committed, and forgotten."""
    fill(memory)
    with SemanticRecall.open(postgres_url, embedder=HashEmbedder()) as second:
        assert second.recall(SECRET, resource_id="anna", top_k=1).hits[0].is_hit
        memory.forget(resource_id="anna", thread_id="t1")
        assert second.recall(SECRET, resource_id="anna").messages == ()
        second.remember({"role": "user", "content": "late"}, thread_id="t", resource_id="anna")
        assert memory.recall("late", resource_id="anna").hits[0].message.text == "late"


def test_secure_forget_leaves_no_bytes(memory: SemanticRecall, postgres_url: str) -> None:
    """The text, its id and its vector are in no file of any table or index."""
    fill(memory)
    (victim,) = memory.recall(SECRET, resource_id="anna", top_k=1).hits
    (vector,) = HashEmbedder().embed_documents([f"user: {victim.message.text}"])
    traces = [
        b"anna plays in a",
        victim.message.id.encode(),
        vector.astype("=f4").tobytes()[:64],  # as this machine writes numbers
    ]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert all(trace in files(connection) for trace in traces)
        receipt = memory.forget(ids=[victim.message.id], resource_id="anna", secure=True)
        assert (receipt.messages, receipt.vectors, receipt.secure) == (1, 1, True)
        assert receipt.complete
        left = files(connection)
    assert [trace for trace in traces if trace in left] == []
    assert b"ben plays in a" in left
    assert memory.stats().messages == 39
    assert memory.verify().ok


def files(connection: psycopg.Connection[Any]) -> bytes:
    """Return the bytes of every table, TOAST table and index of the schema, as on the disk."""
    connection.execute("CHECKPOINT")
    rows = connection.execute(
        "WITH mine AS (SELECT oid, reltoastrelid FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'i'))"
        " SELECT pg_read_binary_file(pg_relation_filepath(oid)) FROM"
        " (SELECT oid FROM mine UNION SELECT reltoastrelid FROM mine WHERE reltoastrelid > 0) o"
    ).fetchall()
    return b"".join(row[0] for row in rows)
