"""`calibrate`: the counts are those of what recall finds and of all the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semantic_recall import SemanticRecall
from semantic_recall.cli.calibrate import Scores
from semantic_recall.samples import conversations
from tests.core.cli_support import run, run_json, said, write_lines

HASH = ("--embedder", "hash")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibrate") / "memory"
    with conversations() as file:
        run("import", file, "--path", path, *HASH)
    return path


def calibrate(path: Path, *options: str) -> dict[str, Any]:
    document = run_json("calibrate", "--path", path, *HASH, *options)
    assert isinstance(document, dict)
    return document


def test_every_message_of_the_scope_is_counted_once(samples: Path) -> None:
    with SemanticRecall.open(samples, embedder="hash") as memory:
        recall = memory.recall("plum cake tin", resource_id="mina", top_k=3, message_range=0)
        scores = sorted(hit.dense for hit in recall.hits if hit.dense is not None)
        messages = next(one.messages for one in memory.resources() if one.resource_id == "mina")
    document = calibrate(samples, "-q", "plum cake tin", "--resource", "mina", "-k", "3")
    assert (document["queries"], document["hits"]) == (1, 3)
    assert 3 + document["others"] == messages
    bars = document["histogram"]
    assert sum(bar["hits"] for bar in bars) == 3
    for score in scores:
        assert any(bar["from"] <= score <= bar["to"] and bar["hits"] for bar in bars)
    first, last = document["thresholds"][0], document["thresholds"][-1]
    assert (first["hits"], first["others"], first["queries"]) == (1, 1, 1)
    assert last["threshold"] <= scores[-1] + 0.05
    for name in ("hits", "others", "queries"):
        kept = [one[name] for one in document["thresholds"]]
        assert kept == sorted(kept, reverse=True)


def test_sampled_messages_do_not_find_themselves_and_are_the_same_each_time(samples: Path) -> None:
    document = calibrate(samples, "--samples", "20")
    assert (document["queries"], document["hits"]) == (20, 80)
    assert document == calibrate(samples, "--samples", "20")
    # A text and itself have cosine 1, up to rounding.
    assert document["histogram"][-1]["to"] < 1


def test_a_sample_larger_than_the_memory_takes_all_that_say_something(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    records = [
        said("a sentence that is long enough"),
        said("yes"),
        said("another sentence of some length", role="assistant"),
        said("and a last one of a third kind", resource_id=None),
    ]
    run("import", write_lines(tmp_path / "c.jsonl", *records), "--path", path, *HASH)
    document = calibrate(path)
    # One asks r and finds the two others there; one asks a thread where it is alone.
    assert (document["queries"], document["hits"], document["others"]) == (2, 2, 0)
    assert document["thresholds"][0]["queries"] == 0.5
    assert calibrate(path, "--resource", "r")["queries"] == 1


def test_what_people_see(samples: Path) -> None:
    shown = run("calibrate", "--path", samples, *HASH, "--samples", "10").stdout
    assert "threshold" in shown
    assert "keeps hits" in shown
    assert "█" in shown
    assert "░" in shown
    assert "10 queries, 40 hits" in shown


def test_what_cannot_be_calibrated_is_one_line(samples: Path, tmp_path: Path) -> None:
    run("calibrate", "--path", samples, "--embedder", "none", code=2)
    run("calibrate", "--path", samples, *HASH, "-q", "x", code=2)  # whose memory?
    other = run("calibrate", "--path", samples, "--embedder", "wordllama", code=1)
    assert "semantic-recall reindex" in other.stderr
    assert other.stderr.count("\n") == 1
    path = tmp_path / "memory"
    run("import", write_lines(tmp_path / "c.jsonl", said("short")), "--path", path, *HASH)
    assert "give a --query" in run("calibrate", "--path", path, *HASH, code=1).stderr
    assert "no memory" in run("calibrate", "--path", tmp_path / "no", *HASH, code=1).stderr


def test_scores_are_counted_by_bar() -> None:
    scores = Scores()
    scores.add([0.52, 0.31], np.array([0.52, 0.31, 0.12, 0.11, -0.2], np.float32))
    scores.add([], np.array([], np.float32))
    assert (scores.hits.sum(), scores.others.sum(), scores.queries) == (2, 3, 2)
    assert scores.kept(0.3) == {"threshold": 0.3, "hits": 1.0, "others": 0.0, "queries": 0.5}
    assert scores.kept(0.35)["hits"] == 0.5
    assert scores.kept(0.1)["others"] == pytest.approx(2 / 3, abs=1e-4)
    assert scores.kept(0.95) == {"threshold": 0.95, "hits": 0, "others": 0, "queries": 0}
