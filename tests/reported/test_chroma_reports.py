"""What users of Chroma reported and cannot happen here; README.md has all rows."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from semantic_recall import Scope, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import VectorRecord, VectorSpace

MANY = 1_300
"""Chroma moves vectors into files after a thousand."""
SPACE = VectorSpace("model", 8)
ANNA = Scope("anna", "t1")


def records(start: int, end: int, seed: int = 0) -> list[VectorRecord]:
    rows = np.random.default_rng(seed).normal(size=(end, 8)).astype(np.float32)
    return [VectorRecord(id=f"{n}.0", scope=ANNA, vector=rows[n]) for n in range(start, end)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


@pytest.fixture
def index(path: Path) -> Iterator[ChromaVectorIndex]:
    """All vectors in one collection."""
    index = ChromaVectorIndex.embedded(path, shards=1)
    yield index
    index.close()


def one_shard(folder: Path) -> None:
    folder.mkdir()
    with SQLMessageStore.open(folder / "recall.sqlite3") as store:
        store.setting("index_shards", "1")


def asks_index(folder: Path) -> SemanticRecall:
    return SemanticRecall.open(
        folder, embedder=HashEmbedder(32), settings=Settings(exact_limit=0), top_k=3
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory whose vectors are in Chroma's files, to be copied."""
    folder = tmp_path_factory.mktemp("reported") / "memory"
    one_shard(folder)
    with asks_index(folder) as memory:
        for start in (0, MANY):
            memory.remember(
                [
                    {"role": "user", "content": f"apple n{n}", "id": f"m{n}"}
                    for n in range(start, start + MANY)
                ],
                thread_id="t",
                resource_id="anna",
            )
            assert memory.flush()
            if not start:
                memory.close()
                shutil.copytree(folder / "chroma", folder / "earlier")
                memory = asks_index(folder)
        memory.close()
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "memory"))


def segments(chroma: Path) -> list[Path]:
    return [entry for entry in chroma.iterdir() if entry.is_dir()]


def everything_is_found(memory: SemanticRecall) -> None:
    for n in range(0, 2 * MANY, 97):
        hits = memory.recall(f"apple n{n}", resource_id="anna").hits
        assert f"m{n}" in {hit.message.id for hit in hits}


def test_chroma_7032_ids_that_the_graph_has_lost(folder: Path) -> None:
    """chroma #7032, PR 7043: one missing id fails every filtered query. Recall goes on; it mends.

    The vector files are those of an earlier day, the database is not.
    """
    (now,) = segments(folder / "chroma")
    (earlier,) = segments(folder / "earlier")
    shutil.rmtree(now)
    shutil.copytree(earlier, now)
    with asks_index(folder) as memory:
        assert memory.flush()
        everything_is_found(memory)
        memory.verify(repair=True)
        everything_is_found(memory)


def test_chroma_7090_a_restart_beyond_a_thousand_vectors(folder: Path) -> None:
    """chroma #7090, #5925: "Error loading hnsw index" after a restart."""
    for _ in range(2):
        with asks_index(folder) as memory:
            assert memory.flush()
            everything_is_found(memory)
            report = memory.verify()
            assert (report.ok, report.indexed) == (True, 2 * MANY)


def test_chroma_5814_not_always_the_last_record(index: ChromaVectorIndex) -> None:
    """chroma #5814: above a thousand records every query gave the last one."""
    wanted = records(0, MANY)
    index.upsert(SPACE, wanted)
    for record in wanted[::100]:
        assert index.search(SPACE, record.vector, ANNA, top_k=1)[0].id == record.id


def test_chroma_6949_no_dimensions_in_the_pickle(folder: Path) -> None:
    """chroma #6949: None there ended the process. Nor does it matter when there is nothing."""
    for segment in segments(folder / "chroma"):
        file = segment / "index_metadata.pickle"
        content = pickle.loads(file.read_bytes())
        assert content.pop("dimensionality") is None  # as this Chroma writes it by itself
        file.write_bytes(pickle.dumps(content))
    (folder / "chroma" / "in-use").touch()
    with asks_index(folder) as memory:
        assert memory.flush()
        everything_is_found(memory)
        memory.verify(repair=True)
        assert memory.verify().indexed == 2 * MANY


def test_chroma_7758_live_records_stay_reachable(index: ChromaVectorIndex) -> None:
    """chroma #7758, #3580: after many deletions and upserts `query` missed what `get` had."""
    index.upsert(SPACE, records(0, MANY))
    for seed in range(1, 4):
        gone = {record.id: ANNA for record in records(0, MANY)[seed::3]}
        index.delete(SPACE, gone)
        index.upsert(SPACE, records(0, MANY, seed)[seed::3])
    live = {record.id: record for seed in range(4) for record in records(0, MANY, seed)[seed::3]}
    live = {**{r.id: r for r in records(0, MANY)[0::3]}, **live}
    found = index.ids(SPACE)
    assert set(found) == {f"{n}.0" for n in range(MANY)}
    for id in sorted(live)[::40]:
        (hit,) = index.search(SPACE, live[id].vector, ANNA, top_k=1)
        assert hit.id == id


def test_chroma_2594_scrubbed_files_are_small_again(index: ChromaVectorIndex, path: Path) -> None:
    """chroma #2594: a graph never shrinks by itself."""
    index.upsert(SPACE, records(0, 3 * MANY))
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    index.delete(SPACE, {record.id: ANNA for record in records(50, 3 * MANY)})
    index.scrub()
    assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) < size / 2
    assert len(list(index.ids(SPACE))) == 50


REOPEN = """
import os, resource, sys
from pathlib import Path
import numpy as np
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.types import Scope, VectorRecord, VectorSpace
space, scope = VectorSpace("model", 256), Scope("anna", "t1")
rows = np.random.default_rng(0).normal(size=(3000, 256)).astype(np.float32)

def turn(first):
    index = ChromaVectorIndex.embedded(sys.argv[1], shards=2)
    if first:
        ids = [f"{n}.0" for n in range(3000)]
        index.upsert(
            space,
            [VectorRecord(id=id, scope=scope, vector=row) for id, row in zip(ids, rows)],
        )
    index.search(space, rows[0], scope, top_k=4)
    index.close()

def state():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20, len(os.listdir("/proc/self/fd"))

for n in range(5):
    turn(n == 0)
before = state()
for _ in range(20):
    turn(False)
print(*before, *state())
"""


@pytest.fixture(scope="module")
def reopened(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, int, int, int]:
    """Megabytes and descriptors of a process before and after it opened an index 20 times."""
    folder = tmp_path_factory.mktemp("reopened")
    run = subprocess.run(
        [sys.executable, "-c", REOPEN, folder / "chroma"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    megabytes, descriptors, megabytes_after, descriptors_after = map(int, run.stdout.split())
    return megabytes, descriptors, megabytes_after, descriptors_after


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_chroma_5843_a_closed_index_gives_its_memory_back(
    reopened: tuple[int, int, int, int],
) -> None:
    """chroma #5843, #3336: each PersistentClient left its memory behind: 80 MB here."""
    assert reopened[2] - reopened[0] < 60


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_chroma_1379_a_closed_index_gives_its_files_back(
    reopened: tuple[int, int, int, int],
) -> None:
    """chroma #1379: too many open files."""
    assert reopened[3] <= reopened[1] + 2


def test_chroma_7375_a_space_is_dropped_while_it_is_written(index: ChromaVectorIndex) -> None:
    """chroma #7375: creating and deleting a collection at once both succeed, and one is lost."""
    errors: list[Exception] = []

    def repeatedly(action: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                for _ in range(20):
                    action()
            except Exception as error:  # noqa: BLE001 - shown by the main thread
                errors.append(error)

        return run

    written = records(0, 5)
    threads = [
        threading.Thread(target=repeatedly(lambda: index.upsert(SPACE, written))),
        threading.Thread(target=repeatedly(lambda: index.drop(SPACE))),
        threading.Thread(target=repeatedly(lambda: list(index.ids(SPACE)))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    index.upsert(SPACE, written)
    assert set(index.ids(SPACE)) == {record.id for record in written}
