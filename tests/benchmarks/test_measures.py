from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks._locomo import REPORT, TUNE, Question, Sample, Turn, read_samples
from benchmarks._measures import Asked, difference, outcome, share, summary, within
from benchmarks._pipelines import PIPELINES, indexed
from benchmarks._stored import StoredSamples, messages_of
from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import OURS
from semantic_recall.embedders.hash import HashEmbedder
from tests.benchmarks.samples import write_set


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return read_samples(write_set(tmp_path / "set.json"))


def test_a_set_is_read_with_kinds_halves_and_languages(samples: list[Sample]) -> None:
    first, second = samples
    assert [question.kind for question in first.questions] == [
        "name",
        "fact",
        "assistant",
        "temporal",
    ]
    assert {question.half for question in first.questions} == {TUNE}
    assert {question.half for question in second.questions} == {REPORT}
    assert (first.language, second.language) == ("en", "ko")
    assert first.starts.tolist() == [0, 2, 4]
    assert first.questions[2].evidence == {4, 5}


def test_a_budget_takes_the_best_until_the_next_does_not_fit() -> None:
    starts = np.array([0, 3])
    costs = [10.0, 10.0, 10.0, 10.0, 100.0, 1.0]
    assert within([1, 4, 5], costs, starts, 0, 50) == {1}
    assert within([1, 0, 3], costs, starts, 0, 25) == {1, 0}
    # Neighbours come along inside the thread, and nothing is paid for twice.
    assert within([2, 0], costs, starts, 1, 30) == {0, 1, 2}
    assert within([], costs, starts, 1, 30) == set()


def test_the_share_is_of_the_evidence() -> None:
    question = Question("?", frozenset({1, 2}), "fact", REPORT)
    assert share(question, [2, 7]) == 0.5


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "hash"])
def test_every_pipeline_ranks_every_message_once(
    samples: list[Sample], embedder: HashEmbedder | None
) -> None:
    indexes = indexed(samples, embedder)
    for pipeline in PIPELINES:
        if embedder is None and pipeline.needs_embedder:
            continue
        rank = pipeline.over(indexes)
        for sample in samples:
            for question in sample.questions:
                found = rank(sample, question)
                assert sorted(found) == list(range(len(sample.turns))), pipeline.name


def test_the_library_ranks_as_its_arrays_do(samples: list[Sample], tmp_path: Path) -> None:
    embedder = MemoEmbedder(HashEmbedder())
    (default,) = (pipeline for pipeline in PIPELINES if pipeline.group == "ours")
    rank = default.over(indexed(samples, embedder))
    stored = StoredSamples(OURS, tmp_path / "memory", samples, embedder)
    try:
        for sample in samples:
            for question in sample.questions:
                assert stored.rank(sample, question) == list(rank(sample, question))
    finally:
        stored.close()


def test_figures_of_a_perfect_ranking_and_of_none(samples: list[Sample]) -> None:
    asked = Asked.of(samples)
    perfect = outcome(samples, lambda sample, question: sorted(question.evidence))
    nothing = outcome(samples, lambda sample, question: [])
    everything = np.ones(7, dtype=np.bool_)
    figures = summary(asked, perfect, everything)
    assert figures["questions"] == 7
    assert figures["evidence"]["1000"] == [1.0] * 5
    assert figures["kinds"]["temporal"]["questions"] == 1
    assert figures["languages"]["ko"] == {"questions": 3, "found": [1.0] * 5}
    assert figures["top_4"]["found"][0] == 1.0
    assert summary(asked, nothing, asked.reported)["evidence"]["4000"] == [0.0] * 5
    assert difference(asked, perfect, nothing, everything) == [1.0] * 5


def test_messages_of_a_sample_keep_speakers_and_threads() -> None:
    turns = [Turn("D1:1", "Ann", "Hello", 1), Turn("D2:1", "assistant", "Hi", 2)]
    one, two = messages_of(Sample("conv", turns, []))
    assert (one.role, one.name, one.thread_id, one.id) == ("user", "Ann", "session-1", "0")
    assert (two.role, two.name, two.resource_id) == ("assistant", None, "conv")
