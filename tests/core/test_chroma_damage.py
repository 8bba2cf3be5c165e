"""Damaged files of, and erasure from, an embedded Chroma index."""

import logging
import shutil
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from semantic_recall.errors import VectorIndexError
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.types import Scope, VectorRecord, VectorSpace

SPACE = VectorSpace("model", 4)
ANNA = Scope("anna", "t1")
QUERY = np.array([1, 0, 0, 0], dtype=np.float32)


def records(count: int, scope: Scope = ANNA, start: int = 0) -> list[VectorRecord]:
    rows = np.random.default_rng(start).normal(size=(count, 4)).astype(np.float32)
    return [
        VectorRecord(id=f"{start + i}.0", scope=scope, vector=row) for i, row in enumerate(rows)
    ]


def break_file(file: Path, how: str) -> None:
    if how == "deleted":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 if how == "half" else 0])


def lead_astray(segment: Path) -> None:
    """Let every element of a graph have neighbours that do not exist."""
    head = (segment / "header.bin").read_bytes()
    _, links, _, count, size = struct.unpack_from("<i4Q", head)
    data = bytearray((segment / "data_level0.bin").read_bytes())
    for start in range(links, count * size, size):
        (neighbours,) = struct.unpack_from("<H", data, start)
        struct.pack_into(f"<{neighbours}I", data, start + 4, *[0x7FFF_FFF0] * neighbours)
    (segment / "data_level0.bin").write_bytes(data)


def ends_with_a_crash(path: Path) -> bool:
    """Tell whether a process that searches the folder is ended by a signal."""
    code = "import sys, pathlib, semantic_recall.indexes._chroma_probe as probe; "
    code += "probe.read(pathlib.Path(sys.argv[1]))"
    return subprocess.run([sys.executable, "-c", code, path], capture_output=True).returncode < 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


class TestDamage:
    @pytest.fixture
    def segments(self, path: Path) -> list[Path]:
        """Fill one collection so far that its vectors are in files; returns their folders."""
        index = ChromaVectorIndex.embedded(path, shards=1)
        index.upsert(SPACE, records(1500))
        index.upsert(SPACE, records(500, Scope("bert", "t1"), start=1500))
        index.close()
        found = [entry for entry in path.iterdir() if entry.is_dir()]
        assert found
        return found

    def recovers(self, path: Path) -> None:
        """The space can be dropped and written anew."""
        index = ChromaVectorIndex.embedded(path, shards=1)
        index.drop(SPACE)
        index.upsert(SPACE, records(2000))
        assert len(list(index.ids(SPACE))) == 2000
        assert len(index.search(SPACE, QUERY, ANNA, top_k=5)) == 5
        index.close()

    @pytest.mark.parametrize("how", ["half", "empty", "deleted"])
    @pytest.mark.parametrize(
        "name",
        ["header.bin", "data_level0.bin", "length.bin", "link_lists.bin", "index_metadata.pickle"],
    )
    def test_damaged_file(
        self,
        path: Path,
        segments: list[Path],
        name: str,
        how: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Noticed when the index is opened: Chroma would fail later, answer wrongly or crash."""
        for folder in segments:
            break_file(folder / name, how)
        self.is_emptied(path, caplog, name)

    @pytest.mark.parametrize("how", ["half", "empty", "deleted"])
    def test_damaged_database(
        self, path: Path, segments: list[Path], how: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        break_file(path / "chroma.sqlite3", how)
        if how == "empty":  # an empty file is an empty database, for SQLite and for Chroma
            assert list(ChromaVectorIndex.embedded(path).ids(SPACE)) == []
        else:
            self.is_emptied(path, caplog, "chroma.sqlite3")

    def test_damage_inside_the_database(
        self, path: Path, segments: list[Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Not looked for on every opening: only when Chroma cannot read it."""
        data = bytearray((path / "chroma.sqlite3").read_bytes())
        data[8192:-8192] = b"\xa5" * (len(data) - 16384)
        (path / "chroma.sqlite3").write_bytes(data)
        self.is_emptied(path, caplog, "chroma.sqlite3")

    def test_deleted_segment_folder(
        self, path: Path, segments: list[Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        for folder in segments:
            shutil.rmtree(folder)
        self.is_emptied(path, caplog, "missing")

    def test_a_segment_that_ends_the_process_that_reads_it(
        self, path: Path, segments: list[Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Every size is right, and every neighbour in the graph is far outside the memory.

        (chroma #7238, #6949, #6979.) Only an owner that did not close the index gives a reason to
        look for that, since it takes a process of its own.
        """
        for folder in segments:
            lead_astray(folder)
        assert ends_with_a_crash(path)
        ChromaVectorIndex.embedded(path, shards=1).close()  # closed before: nobody looks, or reads
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            (path / "in-use").touch()  # as an owner leaves it that is killed
            self.is_emptied(path, caplog, "SIG")

    def test_a_sound_folder_after_a_kill_is_kept(self, path: Path, segments: list[Path]) -> None:
        (path / "in-use").touch()
        index = ChromaVectorIndex.embedded(path, shards=1)
        assert len(list(index.ids(SPACE))) == 2000
        assert (path / "in-use").exists()
        index.close()
        assert not (path / "in-use").exists()

    def is_emptied(self, path: Path, caplog: pytest.LogCaptureFixture, named: str) -> None:
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            index = ChromaVectorIndex.embedded(path)
        assert named in caplog.text
        assert list(index.ids(SPACE)) == []
        index.close()
        self.recovers(path)

    def test_sound_files_are_left_alone(
        self, path: Path, segments: list[Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            index = ChromaVectorIndex.embedded(path)
        assert len(list(index.ids(SPACE))) == 2000
        index.close()
        assert caplog.records == []

    @pytest.mark.parametrize("name", ["header.bin", "data_level0.bin", ""])
    def test_damaged_files_before_anything_is_in_them(self, path: Path, name: str) -> None:
        """Chroma does without them: there is nothing to empty."""
        index = ChromaVectorIndex.embedded(path, shards=1)
        index.upsert(SPACE, records(50))
        index.close()
        (folder,) = (entry for entry in path.iterdir() if entry.is_dir())
        if name:
            break_file(folder / name, "empty")
        else:
            shutil.rmtree(folder)
        index = ChromaVectorIndex.embedded(path, shards=1)
        assert len(index.search(SPACE, QUERY, ANNA, top_k=9)) == 9
        assert len(list(index.ids(SPACE))) == 50
        index.close()

    def test_calls_on_an_index_that_is_damaged_under_way(
        self, path: Path, segments: list[Path]
    ) -> None:
        index = ChromaVectorIndex.embedded(path, shards=1)
        (path / "chroma.sqlite3").write_bytes(b"not a database " * 1000)
        for call in (
            lambda: index.search(SPACE, QUERY, ANNA, top_k=1),
            lambda: index.upsert(SPACE, records(1)),
            lambda: list(index.ids(SPACE)),
        ):
            with pytest.raises(VectorIndexError, match="rebuild") as caught:
                call()
            assert caught.value.__cause__ is not None
        index.close()
        self.recovers(path)

    def test_other_spaces_and_names_are_removed(self, path: Path, segments: list[Path]) -> None:
        """What a reindex or a change of name left behind when the process ended."""
        index = ChromaVectorIndex.embedded(path, prefix="older")
        index.upsert(SPACE, records(5))
        index._collections.client.create_collection("of-the-user", embedding_function=None)
        index.close()
        other = VectorSpace("other", 4)
        index = ChromaVectorIndex.embedded(path, keep=[other, SPACE], prefix="older")
        assert len(list(index.ids(SPACE))) == 5
        index.upsert(other, records(7))
        names = {c.name for c in index._collections.client.list_collections()}
        assert {name.partition("-")[0] for name in names} == {"older", "of"}
        index.close()
        assert not any(folder.exists() for folder in segments)
        index = ChromaVectorIndex.embedded(path, keep=[other], prefix="older")
        assert list(index.ids(SPACE)) == []
        assert len(list(index.ids(other))) == 7
        index.close()

    def test_garbage_database(
        self, path: Path, segments: list[Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is emptied: everything in it is in the store too."""
        (path / "chroma.sqlite3").write_bytes(b"not a database " * 1000)
        (path / "notes.txt").write_text("not ours")
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            index = ChromaVectorIndex.embedded(path)
        assert "damaged" in caplog.text
        assert list(index.ids(SPACE)) == []
        index.close()
        assert not any(folder.exists() for folder in segments)
        assert (path / "notes.txt").exists()
        self.recovers(path)

    def test_folder_removed_under_an_open_index(self, path: Path) -> None:
        index = ChromaVectorIndex.embedded(path)
        index.upsert(SPACE, records(5))
        shutil.rmtree(path)
        with pytest.raises(VectorIndexError):
            index.upsert(SPACE, records(5))
        index.close()
        self.recovers(path)


class TestErasure:
    def test_drop_removes_the_files(self, path: Path) -> None:
        """Chroma leaves the vectors of a deleted collection on the disk (#5520)."""
        index = ChromaVectorIndex.embedded(path, shards=2)
        index.upsert(SPACE, records(1500))
        assert any(entry.is_dir() for entry in path.iterdir())
        index.drop(SPACE)
        assert {entry.name for entry in path.iterdir()} == {"chroma.sqlite3", "in-use"}
        index.close()

    @pytest.mark.parametrize("count", [50, 1500], ids=["in the log", "in files"])
    def test_scrub_leaves_no_byte(self, path: Path, count: int) -> None:
        """Neither vector nor id nor resource of what was deleted or replaced is in any file."""
        index = ChromaVectorIndex.embedded(path, shards=2)
        index.upsert(SPACE, records(count))
        secret = np.array([0.123456, 7.654321, -3.141592, 2.718281], dtype=np.float32)
        older = np.array([9.87654, -1.23456, 5.55555, 4.44444], dtype=np.float32)
        mallory = Scope("mallory-the-resource", "t")
        index.upsert(SPACE, [VectorRecord(id="secret-id.0", scope=mallory, vector=secret)])
        index.upsert(SPACE, [VectorRecord(id="0.0", scope=ANNA, vector=older)])
        index.upsert(SPACE, records(1))
        index.delete(SPACE, {"secret-id.0": mallory})
        traces = [secret.tobytes(), older.tobytes(), b"secret-id", b"mallory-the-resource"]
        index.scrub()
        assert sorted(index.ids(SPACE)) == sorted(f"{i}.0" for i in range(count))
        assert len(index.search(SPACE, QUERY, ANNA, top_k=7)) == 7
        index.close()
        files = [file for file in path.rglob("*") if file.is_file()]
        left = {
            (file.name, trace) for file in files for trace in traces if trace in file.read_bytes()
        }
        assert left == set()
        with sqlite3.connect(path / "chroma.sqlite3") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
