"""`doctor`: what is sound is called so, what is not is named with what to do."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.cli import _checks as checks
from semantic_recall.opening import DATABASE, INDEX_FOLDER
from tests.core.cli_support import run, run_json, said, write_lines

HASH = ("--embedder", "hash")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "memory"
    run(
        "import", write_lines(tmp_path / "c.jsonl", said("one"), said("two")), "--path", path, *HASH
    )
    return path


@pytest.fixture(autouse=True)
def installed_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranges that this checkout was installed with may not be those of another machine."""
    monkeypatch.setattr(checks, "requires", lambda name: ["numpy>=1"])


def doctor(path: Path, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    document = run_json("doctor", "--path", path, *(options or HASH), code=code)
    assert document["ok"] is (code == 0)
    found = {one["check"]: one for one in document["findings"]}
    assert document["problems"] == sum(one["status"] == "problem" for one in found.values())
    return found


def problem(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (one,) = [one for one in found.values() if one["status"] == "problem"]
    assert one["do"]
    return one


def test_a_sound_memory(memory: Path) -> None:
    found = doctor(memory)
    assert {one["status"] for one in found.values()} == {"ok"}
    assert {"Python", "numpy", "SQLite", "FTS5", "open files", "embedder", "folder"} < set(found)
    assert found["database"]["found"] == "sound, 2 messages"
    assert found["vector index"]["found"] == "2 vectors, up to date"
    assert "all is well" in run("doctor", "--path", memory, *HASH).stdout


def test_no_memory_yet_is_a_note_and_makes_none(tmp_path: Path) -> None:
    found = doctor(tmp_path / "a" / "b")
    assert found["database"]["status"] == "note"
    assert "semantic-recall import" in found["database"]["do"]
    assert list(tmp_path.iterdir()) == []
    assert doctor(tmp_path, "--embedder", "none")["embedder"]["status"] == "note"


def test_an_older_python_and_packages_out_of_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "numpy<2,>=1",
        "no-such-package>=3",
        "also-not-there>=1; extra == 'all'",
        "also-not-there>=1; extra == 'more'",
        "typer>=99; extra == 'more'",
    ]
    monkeypatch.setattr(checks, "requires", lambda name: lines)
    monkeypatch.setattr(checks, "metadata", lambda name: {"Requires-Python": ">=99.1"})
    result = run("doctor", "--path", tmp_path, *HASH, code=3).stdout
    assert "use Python >=99.1" in result
    assert "is outside <2,>=1" in result
    assert "pip install 'no-such-package>=3'" in result
    assert "is outside >=99" in result
    assert "pip install 'chat-semantic-recall[more]'" in result
    assert "extra all" not in result
    assert "4 problems" in result


@pytest.mark.parametrize(
    ("version", "bounds", "holds"),
    [
        ("1.5.9", ">=1.5.9,<1.6", True),
        ("1.6", "<1.6,>=1.5.9", False),
        ("1.6.0", "<1.6", False),
        ("1.5.10", ">=1.5.9", True),
        ("0.4.0.post1", "<0.5,>=0.4", True),
        ("2.0", "==2", True),
        ("2.0", "!=2.0.0", False),
        ("2.2", "~=2.1", True),
        ("3.0", "~=2.1", False),
        ("2.0", "<=2,>1", True),
        ("3", "", True),
    ],
)
def test_ranges(version: str, bounds: str, holds: bool) -> None:
    assert checks.fits(version, bounds) is holds


def test_the_real_requirements_are_all_understood() -> None:
    for line in metadata(checks.DISTRIBUTION).get_all("Requires-Dist") or []:
        match = checks._REQUIREMENT.match(line)
        assert match is not None
        bounds = match[2].strip()
        assert "".join(checks._BOUND.sub("", bounds).split()).strip(",()") == "", line


def test_an_old_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MIN_SQLITE", (99, 0))
    assert problem(doctor(tmp_path, code=3))["check"] == "SQLite"


def test_too_few_open_files(tmp_path: Path) -> None:
    # In a process of its own: this one may have more files open than the limit.
    command = (
        "import resource; from semantic_recall.cli import _checks, main;"
        "_checks.requires = lambda name: ['numpy>=1'];"  # see `installed_as_asked`
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE);"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", command, "doctor", "--path", str(tmp_path), *HASH, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    assert (document["ok"], document["problems"]) == (False, 1)
    found = {one["check"]: one for one in document["findings"]}
    assert "ulimit -n 512" in problem(found)["do"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_text("x")
    assert problem(doctor(path / "inner", code=3))["check"] == "folder"


def test_an_embedder_that_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError("no module named xyz")

    monkeypatch.setattr(checks, "embedder_named", fail)
    assert "xyz" in problem(doctor(tmp_path, code=3))["found"]


def test_another_embedder_than_the_memorys(memory: Path) -> None:
    found = problem(doctor(memory, "--embedder", "wordllama", code=3))
    assert "semantic-recall reindex" in found["do"]


@pytest.mark.parametrize("content", [b"not a database, only text" * 100, b""])
def test_a_database_that_is_none(content: bytes, memory: Path) -> None:
    for file in memory.glob(f"{DATABASE}*"):
        file.unlink()
    (memory / DATABASE).write_bytes(content)
    found = doctor(memory, code=3 if content else 0)
    if content:
        assert "backup" in problem(found)["do"]


def test_a_database_with_damage_inside(memory: Path) -> None:
    with sqlite3.connect(memory / DATABASE) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_master WHERE type = 'table' AND name LIKE 'vector%'")
    database.close()
    assert problem(doctor(memory, code=3))["check"] == "database"


def test_an_index_that_lost_its_vectors(memory: Path) -> None:
    from semantic_recall.embedders import embedder_named
    from semantic_recall.indexes.chroma import ChromaVectorIndex
    from semantic_recall.opening import DEFAULT_INDEX_NAME, DEFAULT_SHARDS
    from semantic_recall.records import vector_id
    from semantic_recall.types import Scope

    index = ChromaVectorIndex.embedded(
        memory / INDEX_FOLDER, shards=DEFAULT_SHARDS, prefix=DEFAULT_INDEX_NAME
    )
    index.delete(embedder_named("hash").space, {vector_id(1, 0): Scope("r", "t")})
    index.close()
    found = problem(doctor(memory, code=3))
    assert found["found"] == "1 vectors missing, 0 unknown to the database"
    assert "verify --repair" in found["do"]


def test_an_index_in_the_way(memory: Path) -> None:
    shutil.rmtree(memory / INDEX_FOLDER)
    (memory / INDEX_FOLDER).write_text("in the way")
    assert "verify --repair" in problem(doctor(memory, code=3))["do"]


def test_an_index_that_another_owns(memory: Path) -> None:
    with SemanticRecall.open(memory, embedder="hash") as owner:
        owner.remember({"role": "user", "content": "three", "thread_id": "t"})
        owner.flush()
        assert owner.stats().owns_index
        assert "another process owns it" in doctor(memory)["vector index"]["found"]


def test_a_folder_that_cannot_be_written(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**options: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    assert "free space" in problem(doctor(memory, code=3))["do"]
