"""The whole way from a tiny measurement to the page, with our own library and the floor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import quality
from benchmarks._limits import limits
from benchmarks._rounds import Budget, Corpus, measure, percentiles, with_spread
from benchmarks.peers import FLOOR, OURS, PEERS, Peer
from benchmarks.report import draw, render
from benchmarks.speed import corpora, short
from tests.benchmarks.samples import write_set

MISSING = Peer(name="missing", module="is_not_there", packages=(), statement="", note="")
MACHINE = {
    "date": "2026-01-01 00:00 UTC",
    "processor": "made up",
    "cores": 2,
    "memory_gb": 8,
    "system": "Linux",
    "python": "3.11",
    "sqlite": "3.40",
    "load": 0.1,
}


@pytest.fixture(scope="module")
def speed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    measured = measure(
        Corpus("300", 300, 3),
        (OURS, FLOOR, MISSING),
        Budget(60),
        folder=tmp_path_factory.mktemp("bench") / "corpus",
        url=None,
        index=False,
    )
    return {
        "machine": MACHINE,
        "versions": {"numpy": "2"},
        "corpora": [measured],
        "import_ms": {OURS.name: 100.0, PEERS[0].name: None},
        "store_per_second": 12_000,
    }


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    out = tmp_path / "quality.json"
    file = write_set(tmp_path / "set.json")
    quality.main(["--file", f"Tiny={file}", "--embedder", "hash", "--out", str(out)])
    result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return {**result, "machine": MACHINE}


def test_every_subject_is_measured_or_says_why_not(speed: dict[str, Any]) -> None:
    subjects = speed["corpora"][0]["subjects"]
    for name in (OURS.name, FLOOR.name):
        assert 0 < subjects[name]["recall"]["p50"] <= subjects[name]["recall"]["p99"]
        assert subjects[name]["recall_thread"]["p50"] > 0
        assert subjects[name]["recall_cpu"]["p95"] > 0
        assert subjects[name]["remember_turn"]["p50"] > 0
        assert subjects[name]["import_per_second"] > 0
        assert subjects[name]["rss_mb"] > 0
    assert subjects[OURS.name]["recall_cold"]["p50"] > 0
    assert "recall_cold" not in subjects[FLOOR.name]  # it forgets everything
    assert subjects["missing"]["stopped"].startswith("not run: No module named")


def test_one_user_is_not_cold_twice(tmp_path: Path) -> None:
    measured = measure(
        Corpus("one scope of 60", 60, 1),
        (OURS,),
        Budget(60),
        folder=tmp_path / "corpus",
        url=None,
        index=False,
    )
    figures = measured["subjects"][OURS.name]
    assert figures["recall"]["p50"] > 0
    assert "recall_cold" not in figures


def test_the_page_has_the_figures(
    found: dict[str, Any], speed: dict[str, Any], tmp_path: Path
) -> None:
    page = render(found, speed, "## By hand\n\nSomething tried.\n")
    assert "### Tiny" in page
    assert "2 conversations, 12 messages, 7 questions; the figures are of the 3 questions" in page
    assert "| **SemanticRecall.recall** | hash | 1.000 (1.00–1.00) |" in page
    assert "| without vectors |" in page
    assert "### 300 messages of 3 users" in page
    assert "- missing stopped: not run: No module named" in page
    assert f"| {PEERS[0].name} | {PEERS[0].note} | not installed: {PEERS[0].install} |" in page
    assert "| store_per_second | 12,000.00 | >= 10000 | met |" in page
    assert page.endswith("## By hand\n\nSomething tried.\n")
    draw(found, speed, tmp_path)
    first = (tmp_path / "bench-evidence.svg").read_text(encoding="utf-8")
    assert "this library" in first
    assert OURS.name in (tmp_path / "bench-latency.svg").read_text(encoding="utf-8")
    draw(found, speed, tmp_path)
    assert (tmp_path / "bench-evidence.svg").read_text(encoding="utf-8") == first


def test_sets_that_are_not_measured_now_are_kept(found: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "quality.json"
    assert [file["file"] for file in quality.kept(path, {"Other"})] == ["Tiny"]
    assert quality.kept(path, {"Tiny"}) == []
    assert quality.kept(tmp_path / "none.json", {"Tiny"}) == []


def test_a_part_that_was_not_measured_is_left_out(found: dict[str, Any]) -> None:
    assert "## How fast it is" not in render(found, None, "")
    assert "## What is found" not in render(None, None, "")


def test_limits_are_checked_where_there_are_figures(speed: dict[str, Any]) -> None:
    (line,) = limits({**speed, "store_per_second": 9_000})
    assert line == ("store_per_second", 9_000.0, ">= 10000", False)
    _, line = limits({**speed, "import_package_ms": 30.5})
    assert line == ("import_package_ms", 30.5, "<= 150", True)


def test_growth_and_the_fastest_peer_have_limits_too() -> None:
    def corpus(name: str, **recall: float) -> dict[str, Any]:
        names = {
            "ours": OURS.name,
            "floor": FLOOR.name,
            "slow": PEERS[0].name,
            "fast": PEERS[1].name,
        }
        subjects = {names[who]: {"recall": {"p50": p50}} for who, p50 in recall.items()}
        return {"name": name, "subjects": {**subjects, PEERS[2].name: {"stopped": "too slow"}}}

    small = corpus("100k", ours=0.5, floor=0.1, slow=40.0, fast=4.0)
    assert limits({"corpora": [small]})[1:] == [
        (f"100k recall p50 of {PEERS[1].name} / ours", 8.0, ">= 10", False)
    ]
    large = corpus("1M", ours=0.6)
    assert limits({"corpora": [small, large]})[1] == (
        "1M recall p50 / that at 100k",
        1.2,
        "<= 1.2",
        True,
    )


def test_a_peer_has_its_seconds_and_ours_an_hour() -> None:
    budget = Budget(300)
    budget.charge(MISSING, 200)
    budget.charge(MISSING, 200)
    budget.charge(OURS, 5000)
    assert budget.left(MISSING) == 0
    assert budget.left(PEERS[0]) == 300
    assert budget.left(OURS) == 3600


def test_percentiles_are_milliseconds_that_were_measured() -> None:
    times = [number / 1000 for number in range(1, 101)]
    assert percentiles(times) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    spread = with_spread([[0.001, 0.002, 0.003], [0.004, 0.004, 0.004]])
    assert (spread["p50_low"], spread["p50_high"]) == (2.5, 3.5)


def test_corpora_are_named_by_their_size() -> None:
    assert [short(n) for n in (2_000, 1_000_000, 1_500, 400)] == ["2k", "1M", "1500", "400"]
    several = corpora([2_000], 10_000)
    assert [(c.name, c.resources) for c in several] == [("2k", 20), ("one scope of 10k", 1)]
