"""The benchmark's own set: what its README says about it is true."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks import own
from benchmarks._locomo import read_samples
from benchmarks.own._filler import MAX_REPEATS, sentences
from benchmarks.own._texts import Line, Script, read_script
from semantic_recall.terms import tokenize

KINDS = {
    "fact", "update", "time", "name", "code", "paraphrase", "distractor", "first_person",
    "assistant", "multi", "identifier", "zh", "ko",
}  # fmt: skip
LEAST_OF_A_KIND = 25


@pytest.fixture(scope="module")
def samples() -> list[dict[str, Any]]:
    return own.build()


@pytest.fixture(scope="module")
def scripts() -> list[Script]:
    return own.scripts()


def turns_of(sample: dict[str, Any]) -> list[dict[str, str]]:
    sessions = [value for value in sample["conversation"].values() if isinstance(value, list)]
    return [turn for session in sessions for turn in session]


def questions_of(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [question for sample in samples for question in sample["qa"]]


def marked(script: Script) -> dict[str, Line]:
    return {line.mark: line for thread in script.threads for line in thread.lines if line.mark}


def test_it_is_the_same_every_time(samples: list[dict[str, Any]]) -> None:
    assert json.dumps(own.build()) == json.dumps(samples)


def test_it_is_as_large_as_promised(samples: list[dict[str, Any]], scripts: list[Script]) -> None:
    assert len(samples) == 12
    assert sum(len(turns_of(sample)) for sample in samples) >= 5200
    assert len(questions_of(samples)) >= 500
    assert sum(len(thread.lines) for script in scripts for thread in script.threads) >= 1100


def test_each_half_has_every_kind(samples: list[dict[str, Any]]) -> None:
    kinds = Counter(question["category"] for question in questions_of(samples))
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= LEAST_OF_A_KIND
    halves = Counter(
        (question["split"], question["category"]) for question in questions_of(samples)
    )
    assert set(halves) == {(half, kind) for half in ("tune", "report") for kind in KINDS}
    assert min(halves.values()) >= 12


def test_the_readme_counts_right(samples: list[dict[str, Any]]) -> None:
    text = (own.FOLDER / "README.md").read_text(encoding="utf-8")
    halves = Counter(
        (question["category"], question["split"]) for question in questions_of(samples)
    )
    for kind in KINDS:
        assert f"| {kind} | {halves[kind, 'tune']} | {halves[kind, 'report']} |" in text
    messages = sum(len(turns_of(sample)) for sample in samples)
    sessions = sum(isinstance(v, list) for one in samples for v in one["conversation"].values())
    by_hand = sum(len(thread.lines) for script in own.scripts() for thread in script.threads)
    assert f"{messages:,} messages in {sessions} threads. {by_hand:,} of them" in text


def test_every_question_points_at_messages(samples: list[dict[str, Any]]) -> None:
    for sample in samples:
        ids = [turn["dia_id"] for turn in turns_of(sample)]
        assert len(ids) == len(set(ids))
        for question in sample["qa"]:
            assert question["evidence"]
            assert set(question["evidence"]) <= set(ids)
            assert (len(question["evidence"]) > 1) >= (question["aspect"] == "multi")
    questions = questions_of(samples)
    assert len({question["question_id"] for question in questions}) == len(questions)


def test_the_evidence_is_what_was_marked(
    samples: list[dict[str, Any]], scripts: list[Script]
) -> None:
    for sample, script in zip(samples, scripts, strict=True):
        texts = {turn["dia_id"]: turn["text"] for turn in turns_of(sample)}
        lines = marked(script)
        for question, asked in zip(sample["qa"], script.questions, strict=True):
            found = [texts[id_] for id_ in question["evidence"]]
            assert found == [lines[mark].text for mark in asked.marks]


def test_paraphrases_share_no_word_with_their_evidence(scripts: list[Script]) -> None:
    asked = 0
    for script in scripts:
        lines = marked(script)
        for question in script.questions:
            if not question.kind.endswith("paraphrase"):
                continue
            asked += 1
            terms = set(tokenize(question.text))
            for line in (lines[mark] for mark in question.marks):
                shared = terms & set(tokenize(f"{line.speaker}: {line.text}"))
                # Single characters of Chinese and Korean are no words: every text shares some.
                words = {term for term in shared if term.isascii() or len(term) > 1}
                assert not words, (question.text, line.text)
    assert asked >= LEAST_OF_A_KIND


def test_no_sentence_comes_back_often(samples: list[dict[str, Any]]) -> None:
    said = Counter(
        part for sample in samples for turn in turns_of(sample) for part in sentences(turn["text"])
    )
    assert max(said.values()) <= MAX_REPEATS
    once = sum(1 for count in said.values() if count == 1)
    assert once / len(said) > 0.9


def test_nothing_of_a_pattern_is_left(samples: list[dict[str, Any]], scripts: list[Script]) -> None:
    by_hand = {line.text for script in scripts for t in script.threads for line in t.lines}
    for sample in samples:
        for turn in turns_of(sample):
            assert turn["text"].strip()
            assert turn["text"] in by_hand or not set(turn["text"]) & set("{}[]|")


def test_time_runs_forward(samples: list[dict[str, Any]]) -> None:
    for sample in samples:
        conversation = sample["conversation"]
        count = sum(isinstance(value, list) for value in conversation.values())
        said = [conversation[f"session_{n}_date_time"] for n in range(1, count + 1)]
        starts = [datetime.strptime(text, "%I:%M %p on %d %B, %Y") for text in said]
        assert all(before < after for before, after in pairwise(starts))
        asked = {question["asked_at"] for question in sample["qa"]}
        assert all(datetime.fromisoformat(text) > starts[-1] for text in asked)


def test_the_quality_benchmark_reads_it(samples: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(samples), encoding="utf-8")
    read = read_samples(path)
    assert [len(sample.questions) for sample in read] == [len(sample["qa"]) for sample in samples]
    assert [len(sample.turns) for sample in read] == [len(turns_of(sample)) for sample in samples]


@pytest.mark.parametrize(
    "line", ["X: nobody of this name", "no colon", "## 2025-13-40 10:00", "? a question"]
)
def test_a_mistake_in_a_file_is_told(line: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text(f"speakers U=user A=assistant\n## 2025-03-01 10:00\n{line}\n", encoding="utf-8")
    path.with_suffix(".questions.txt").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no line of a conversation|time data"):
        read_script(path)


@pytest.mark.parametrize(
    "line", ["no mark | fact | #a | b", "? too | few parts", "? a | b | #c | d | e"]
)
def test_a_mistake_in_a_question_is_told(line: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text("speakers U=user A=assistant\n", encoding="utf-8")
    path.with_suffix(".questions.txt").write_text(line, encoding="utf-8")
    with pytest.raises(ValueError, match="no question"):
        read_script(path)
