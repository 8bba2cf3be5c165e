"""Questions that share no word with what answers them: vectors alone must not do better."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks._index import SampleIndex
from benchmarks._locomo import read_samples
from benchmarks._measures import Outcome, outcome
from benchmarks._pipelines import DEFAULT, PIPELINES, indexed
from benchmarks.own import build
from semantic_recall.embedders import embedder_named

DENSE = "dense, no neighbours"


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> list[SampleIndex]:
    path: Path = tmp_path_factory.mktemp("own") / "own.json"
    path.write_text(json.dumps(build()), encoding="utf-8")
    asked = [
        replace(sample, questions=[q for q in sample.questions if q.kind == "paraphrase"])
        for sample in read_samples(path)
    ]
    return indexed([s for s in asked if s.questions], embedder_named("wordllama"))


@pytest.mark.parametrize("neighbours", [0, 1])
def test_paraphrases_are_found_no_worse_than_by_vectors_alone(
    indexes: list[SampleIndex], neighbours: int
) -> None:
    by_name = {pipeline.name: pipeline for pipeline in PIPELINES}
    samples = [index.sample for index in indexes]

    def found(name: str) -> Outcome:
        return outcome(samples, by_name[name].over(indexes), neighbours=neighbours)

    ours, dense = found(DEFAULT).figures, found(DENSE).figures
    assert len(ours["top"]) == 49
    for figure in ("@500", "@1000", "@2000", "R@1", "R@5", "R@10", "top"):
        assert ours[figure].mean() >= dense[figure].mean(), figure
