"""Metrics of a memory, through the OpenTelemetry SDK."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from opentelemetry.trace import StatusCode

from semantic_recall import SemanticRecall, StoreClosedError, StoreError
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from tests.core.embedders import BrokenEmbedder
from tests.core.indexing import Failing, until
from tests.core.recording import ASKED, SECRET, Recorded, facts, recording, remember


@pytest.fixture
def recorded() -> Recorded:
    return recording()


# -- metrics ------------------------------------------------------------------------------------
def test_recalls_are_measured(tmp_path: Path, recorded: Recorded) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash", settings=recorded.settings()) as memory:
        remember(memory, SECRET, "the weather was fine")
        vector = np.ones(256, np.float32)
        for threshold in (None, 0.999):
            memory.recall(
                ASKED, resource_id="ana@example.org", query_vector=vector, threshold=threshold
            )
        points = recorded.points()
    (whole,) = points["semantic_recall.recall.duration"]
    assert (whole.count, dict(whole.attributes)) == (
        2,
        {"semantic_recall.scope": "resource", "semantic_recall.ranking": "hybrid"},
    )
    steps = points["semantic_recall.recall.step.duration"]
    assert {point.attributes["semantic_recall.recall.step"]: point.count for point in steps} == {
        "embed": 2,
        "search": 2,
        "fetch": 2,
    }
    assert sum(point.sum for point in steps) <= whole.sum < 60
    assert 0.001 in whole.explicit_bounds
    (hits,) = points["semantic_recall.recall.hits"]
    assert (hits.count, hits.sum) == (2, 2)
    (dropped,) = points["semantic_recall.recall.dropped"]
    assert dropped.value == 2
    assert dict(dropped.attributes) == {"semantic_recall.recall.reason": "below threshold"}
    (stored,) = points["semantic_recall.remember.messages"]
    assert stored.value == 2


def test_failures_of_the_embedder_are_counted(tmp_path: Path, recorded: Recorded) -> None:
    embedder = BrokenEmbedder()
    with SemanticRecall.open(tmp_path, embedder=embedder, settings=recorded.settings()) as memory:
        remember(memory, SECRET)
        found = memory.recall_for_turn(ASKED, resource_id="ana@example.org")
        assert len(found.hits) == 1  # by its words
        counted = recorded.numbers("semantic_recall.embedder.failures")
        assert counted["ConnectionError", "query"] == 1
        assert counted["ConnectionError", "document"] >= 1
        assert list(recorded.numbers("semantic_recall.pending").values()) == [1]
    assert recorded.only("semantic_recall.recall").status.status_code is StatusCode.UNSET


def test_a_failing_index_is_seen(tmp_path: Path, recorded: Recorded) -> None:
    index = Failing(failures=1)
    memory = SemanticRecall(
        SQLMessageStore.open(tmp_path / "recall.sqlite3"),
        lambda: index,
        HashEmbedder(64),
        settings=recorded.settings(),
    )
    with memory:
        remember(memory, SECRET)
        until(lambda: bool(recorded.named("semantic_recall.index")))
        failed = recorded.named("semantic_recall.index")[0]
        assert facts(failed)["error.type"] == "semantic_recall.errors.VectorIndexError"
        assert memory.flush()
        assert list(recorded.numbers("semantic_recall.index.lag").values()) == [0]
        assert recorded.numbers("semantic_recall.index.changes") == {(): 1}


def test_look_ups_are_counted_and_never_go_down(tmp_path: Path, recorded: Recorded) -> None:
    def ask() -> None:
        memory.recall(ASKED, resource_id="ana@example.org")

    with SemanticRecall.open(
        tmp_path, embedder=HashEmbedder(64), settings=recorded.settings()
    ) as memory:
        remember(memory, SECRET)
        for _ in range(3):
            ask()
        first = recorded.numbers("semantic_recall.cache.lookups")
        assert first["view", "hit"] == 2
        assert first["view", "miss"] == 1
        assert first["embedding", "hit"] == 2
        memory.reindex(HashEmbedder(32))  # its caches are new
        gc.collect()
        ask()
        second = recorded.numbers("semantic_recall.cache.lookups")
        assert all(second[key] >= first[key] for key in first)
        assert second["view", "miss"] == 2


# -- gauges -------------------------------------------------------------------------------------
def test_one_collection_is_one_look_into_the_database(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash", settings=recorded.settings()) as memory:
        remember(memory, SECRET)
        looks: list[None] = []
        size = memory._store.size

        def counted() -> Mapping[str, int]:
            looks.append(None)
            return size()

        monkeypatch.setattr(memory._store, "size", counted)
        assert list(recorded.numbers("semantic_recall.messages").values()) == [1]
        assert len(looks) == 1
        remember(memory, "more")
        assert list(recorded.numbers("semantic_recall.messages").values()) == [2]
        assert len(looks) == 2


@pytest.mark.parametrize("error", [StoreError("the disk is gone"), StoreClosedError("closed")])
def test_a_failing_database_leaves_a_gap(
    tmp_path: Path,
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: StoreError,
) -> None:
    def failing() -> Mapping[str, int]:
        raise error

    with SemanticRecall.open(tmp_path, embedder="hash", settings=recorded.settings()) as memory:
        remember(memory, SECRET)
        with monkeypatch.context() as patch:
            patch.setattr(memory._store, "size", failing)
            caplog.clear()
            points = recorded.points()
        assert not points.get("semantic_recall.messages")
        assert points["semantic_recall.remember.messages"]
        assert not [r for r in caplog.records if r.name.startswith("opentelemetry")]
        back = recorded.numbers("semantic_recall.messages")
        assert bool(back) is not isinstance(error, StoreClosedError)


def test_a_closed_memory_is_left_out(
    tmp_path: Path, recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    settings = recorded.settings()
    caplog.set_level(logging.WARNING)
    open_ = SemanticRecall.open
    with open_(tmp_path / "a", embedder="hash", settings=settings) as stays:
        with open_(tmp_path / "b", embedder="hash", settings=settings) as goes:
            ids = {stays.memory_id, goes.memory_id}
            assert {id for (id,) in recorded.numbers("semantic_recall.pending")} == ids
        assert {id for (id,) in recorded.numbers("semantic_recall.pending")} == {stays.memory_id}
    assert recorded.numbers("semantic_recall.pending") == {}
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


def test_a_folder_that_is_open_twice_is_reported_once(tmp_path: Path, recorded: Recorded) -> None:
    settings = recorded.settings()
    with (
        SemanticRecall.open(tmp_path, embedder="hash", settings=settings) as first,
        SemanticRecall.open(tmp_path, embedder="hash", settings=settings),
    ):
        remember(first, SECRET)
        assert recorded.numbers("semantic_recall.messages") == {(first.memory_id,): 1}


def test_no_memory_is_kept_alive(tmp_path: Path, recorded: Recorded) -> None:
    settings = recorded.settings()
    memory = SemanticRecall.open(tmp_path, embedder="hash", settings=settings)
    remember(memory, SECRET)
    kept = weakref.ref(memory._cache)
    memory.close()
    del memory
    gc.collect()
    assert kept() is None
    assert recorded.numbers("semantic_recall.messages") == {}
