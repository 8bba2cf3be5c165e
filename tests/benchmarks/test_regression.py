from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import FLOOR, OURS
from benchmarks.regression import changes, main

Result = dict[str, Any]


def timed(p50: float, spread: float = 0.0) -> dict[str, float]:
    return {
        "p50": p50,
        "p95": 2 * p50,
        "p99": 3 * p50,
        "p50_low": p50 * (1 - spread),
        "p50_high": p50 * (1 + spread),
    }


def speed(spread: float = 0.0) -> Result:
    ours = {
        "import_per_second": 10_000,
        "recall": timed(0.5, spread),
        "remember_turn": timed(2.0),
        "recall_cold": {"p50": 3.0, "p95": 4.0, "p99": 5.0},
        "rss_mb": 100,
        "disk_mb": 50.0,
    }
    floor = {"import_per_second": 50_000, "recall": timed(0.1), "remember_turn": timed(0.5)}
    return {"corpora": [{"name": "2k", "subjects": {OURS.name: ours, FLOOR.name: floor}}]}


def quality(questions: int = 100) -> Result:
    figures = {
        "evidence": {"500": [0.8] * 5, "1000": [0.85] * 5},
        "languages": {"en": {"questions": questions, "found": [0.7] * 5}},
        "top_4": {"found": [0.75] * 5, "tokens": 300, "messages": 9.0},
    }
    pipelines = [
        {"name": name, "embedder": "wordllama", "group": group, "all": copy.deepcopy(figures)}
        for name, group in (("default", "ours"), ("BM25", "reference"))
    ]
    return {"files": [{"file": "Own set", "questions": questions, "pipelines": pipelines}]}


def losses(old: Result, new: Result) -> list[str]:
    return [change.what for change in changes(old, new) if change.is_loss]


def subject(result: Result, name: str = OURS.name) -> Result:
    found: Result = result["corpora"][0]["subjects"][name]
    return found


@pytest.mark.parametrize("result", [speed(), quality()], ids=["speed", "quality"])
def test_equal_results_lose_nothing(result: Result) -> None:
    assert losses(result, result) == []
    assert len(changes(result, result)) >= 4


def test_a_slower_recall_is_a_loss() -> None:
    new = speed()
    subject(new)["recall"] = timed(0.6)
    assert losses(speed(), new) == [f"2k {OURS.name} recall p50 (floor / ours)"]


def test_a_slower_machine_is_not() -> None:
    new = speed()
    for name in (OURS.name, FLOOR.name):
        figures = subject(new, name)
        figures["recall"], figures["remember_turn"] = timed(5.0), timed(20.0)
        figures["import_per_second"] /= 10
    subject(new)["recall_cold"]["p50"] = 30.0
    subject(new, FLOOR.name)["recall"] = timed(1.0)
    subject(new, FLOOR.name)["remember_turn"] = timed(5.0)
    assert losses(speed(), new) == []


def test_noise_excuses_what_it_can_explain() -> None:
    new = speed(spread=0.2)
    subject(new)["recall"] = timed(0.65, spread=0.2)
    assert losses(speed(spread=0.2), new) == []
    subject(new)["recall"] = timed(1.2, spread=0.2)
    assert len(losses(speed(spread=0.2), new)) == 1


def test_more_memory_and_a_slower_import_are_losses() -> None:
    new = speed()
    subject(new).update(rss_mb=120, import_per_second=4_000)
    assert len(losses(speed(), new)) == 2


def test_evidence_lost_by_ours_is_a_loss_and_by_others_is_not() -> None:
    new = quality()
    ours, other = new["files"][0]["pipelines"]
    other["all"]["evidence"]["500"][0] = 0.1
    ours["all"]["evidence"]["1000"][0] = 0.846
    assert losses(quality(), new) == []
    ours["all"]["evidence"]["1000"][0] = 0.84
    ours["all"]["languages"]["en"]["found"][0] = 0.69
    assert losses(quality(), new) == [
        "Own set default wordllama @1000",
        "Own set default wordllama R@5 en",
    ]


def test_other_questions_are_not_compared() -> None:
    assert changes(quality(100), quality(120)) == []


def test_without_a_floor_times_are_not_compared() -> None:
    new = speed()
    new["corpora"][0]["subjects"][FLOOR.name] = {"stopped": "failed"}
    assert changes(speed(), new) == []


def test_the_command_fails_on_a_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, worse = tmp_path / "old", tmp_path / "new", quality()
    old.write_text(json.dumps(quality()))
    worse["files"][0]["pipelines"][0]["all"]["top_4"]["found"][0] = 0.5
    new.write_text(json.dumps(worse))
    assert main([str(old), str(old)]) == 0
    assert main([str(old), str(new)]) == 1
    assert "LOSS  Own set default wordllama 4 best: 0.75 before, 0.5 now" in capsys.readouterr().out
    assert main([str(tmp_path / "none"), str(new)]) == 0
