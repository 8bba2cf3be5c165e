"""`reindex`, `verify` and `forget`."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from semantic_recall.embedders import embedder_named
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.opening import DEFAULT_INDEX_NAME, DEFAULT_SHARDS, INDEX_FOLDER
from semantic_recall.records import vector_id
from semantic_recall.samples import conversations
from semantic_recall.types import Scope, VectorRecord
from tests.core.cli_support import run, run_json

HASH = ("--embedder", "hash")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("upkeep") / "memory"
    with conversations() as file:
        run("import", file, "--path", path, *HASH)
    return path


@pytest.fixture
def memory(samples: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(samples, tmp_path / "memory"))


def test_verify_a_sound_memory(samples: Path) -> None:
    document = run_json("verify", "--path", samples, *HASH)
    assert document["ok"] is True
    assert (document["vectors"], document["indexed"]) == (200, 200)
    assert "sound" in run("verify", "--path", samples, *HASH).stdout


def test_verify_finds_and_mends_a_broken_index(memory: Path) -> None:
    index = ChromaVectorIndex.embedded(
        memory / INDEX_FOLDER, shards=DEFAULT_SHARDS, prefix=DEFAULT_INDEX_NAME
    )
    space, thread = embedder_named("hash").space, Scope("mina", "lisbon-trip")
    index.delete(space, {vector_id(key, 0): thread for key in (1, 2, 3)})
    stray = np.ones(space.dimensions, dtype=np.float32)
    index.upsert(space, [VectorRecord(id=vector_id(10**6, 0), scope=thread, vector=stray)])
    index.close()
    document = run_json("verify", "--path", memory, *HASH, code=3)
    assert (document["ok"], document["missing"], document["orphans"]) == (False, 3, 1)
    text = run("verify", "--path", memory, *HASH, code=3).stdout
    assert "verify --repair" in text
    assert "repaired" in run("verify", "--path", memory, *HASH, "--repair").stdout
    document = run_json("verify", "--path", memory, *HASH)
    assert (document["missing"], document["orphans"]) == (0, 0)


def test_another_embedder_is_refused_and_reindex_switches(memory: Path) -> None:
    result = run("search", "cake", "--path", memory, "--resource", "mina", code=1)
    assert "semantic-recall reindex" in result.stderr
    assert result.stderr.count("\n") == 1
    document = run_json("reindex", "--path", memory, "--embedder", "wordllama")
    assert (document["embedded"], document["pending"]) == (200, 0)
    assert run_json("search", "cake", "--path", memory, "--resource", "mina")["hits"]
    assert run_json("verify", "--path", memory)["ok"] is True
    again = run("reindex", "--path", memory)
    assert "0 messages embedded with" in again.stdout
    run("reindex", "--path", memory, "--embedder", "none", code=2)


def test_forget_asks_first(memory: Path) -> None:
    for answer in ("", "n\n", "\n", "yesterday\n"):
        result = run("forget", "--thread", "gifts", "--path", memory, answer=answer, code=1)
        assert "Delete thread 'gifts' of 'mina', 10 messages? [y/N]" in result.stderr
        assert "nothing was deleted" in result.stderr
        assert result.stdout == ""
    assert run_json("stats", "--path", memory)["messages"] == 200
    result = run("forget", "--thread", "gifts", "--path", memory, answer="y\n")
    assert "nothing of it is left" in result.stdout
    assert run_json("stats", "--path", memory)["messages"] == 190


def test_forget_gives_a_receipt_of_zeros(memory: Path) -> None:
    receipt = run_json("forget", "--resource", "oskar", "--path", memory, "--yes", "--secure")
    assert receipt["complete"] is True
    assert (receipt["messages"], receipt["threads"], receipt["vectors"]) == (10, 2, 10)
    assert receipt["remaining"]
    assert set(receipt["remaining"].values()) == {0}
    assert run_json("threads", "--path", memory, "--resource", "oskar") == []
    assert run_json("verify", "--path", memory, *HASH)["indexed"] == 190
    for file in memory.rglob("*"):
        assert not file.is_file() or b"penicillin" not in file.read_bytes(), file


def test_forget_single_messages(memory: Path) -> None:
    receipt = run_json(
        "forget", "--thread", "gifts", "--id", "gifts-01", "--id", "gifts-02", "--yes",
        "--path", memory,
    )  # fmt: skip
    assert (receipt["messages"], receipt["threads"]) == (2, 0)
    shown = run_json("show", "gifts", "--path", memory)
    assert [one["id"] for one in shown] == [f"gifts-{i:02d}" for i in range(3, 11)]


def test_forget_needs_a_target_that_is_there(memory: Path) -> None:
    run("forget", "--path", memory, "--yes", code=2)
    run("forget", "--path", memory, "--yes", "--resource", "", code=2)
    for options in (("--thread", "nothing"), ("--resource", "nobody")):
        result = run("forget", "--path", memory, "--yes", *options, code=1)
        assert "there is no" in result.stderr
    assert run_json("stats", "--path", memory)["messages"] == 200
