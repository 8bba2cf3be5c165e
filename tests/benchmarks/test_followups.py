"""Follow-ups and changes of subject: the set is what its README says, and recall keeps its gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks import own
from benchmarks._locomo import REPORT, TUNE, Sample
from benchmarks.followups import Found, found, own_samples, stored
from benchmarks.own.followups import CHANGE, FOLLOW_UP, AskedNow, asked_now, read_threads
from semantic_recall import SemanticRecall
from semantic_recall.embedders import embedder_named
from semantic_recall.followups import is_follow_up


@pytest.fixture(scope="module")
def samples() -> dict[str, Sample]:
    return own_samples()


@pytest.fixture(scope="module")
def asked() -> list[AskedNow]:
    return asked_now()


@pytest.fixture(scope="module")
def memory(samples: dict[str, Sample]) -> Iterator[SemanticRecall]:
    with stored(samples, embedder_named("wordllama")) as memory:
        yield memory


def of_kind(asked: Sequence[AskedNow], kind: str) -> list[AskedNow]:
    return [question for question in asked if question.asked.kind == kind]


def figures(found: Found) -> tuple[float, float]:
    return float(found.best.mean()), float(found.in_tokens.mean())


def test_the_readme_counts_right(asked: list[AskedNow]) -> None:
    text = (own.FOLDER / "README.md").read_text(encoding="utf-8")
    counts = Counter((each.asked.kind, each.sample[:2], each.split) for each in asked)
    for kind in (FOLLOW_UP, CHANGE):
        for language in ("en", "zh", "ko"):
            halves = [counts[kind, language, half] for half in (TUNE, REPORT)]
            assert f"| {kind} | {language} | {halves[0]} | {halves[1]} |" in text
    assert len(asked) == counts.total()


def test_the_thread_is_short_and_does_not_answer(
    asked: list[AskedNow], samples: dict[str, Sample]
) -> None:
    for question in asked:
        assert 2 <= len(question.before) <= 4
        said = " ".join(line.text for line in question.before).lower()
        assert question.asked.answer.lower() not in said
        sample = samples[question.sample]
        assert {line.speaker for line in question.before} <= {t.speaker for t in sample.turns}
        assert set(question.evidence) <= {turn.id for turn in sample.turns}


def test_a_follow_up_in_the_set_is_found_by_what_its_thread_names(
    memory: SemanticRecall, samples: dict[str, Sample], asked: list[AskedNow]
) -> None:
    for half, least in ((TUNE, 0.3), (REPORT, 0.4)):
        chosen = [each for each in of_kind(asked, FOLLOW_UP) if each.split == half]
        alone = figures(found(memory, samples, chosen, knows_thread=False))
        best, in_tokens = figures(found(memory, samples, chosen))
        assert best >= alone[0] + least
        assert in_tokens >= alone[1] + 0.15


def test_a_change_of_subject_is_found_as_without_the_thread(
    memory: SemanticRecall, samples: dict[str, Sample], asked: list[AskedNow]
) -> None:
    chosen = of_kind(asked, CHANGE)
    for mine, alone in zip(
        found(memory, samples, chosen),
        found(memory, samples, chosen, knows_thread=False),
        strict=True,
    ):
        assert np.array_equal(mine, alone)


def test_whole_questions_are_hardly_ever_taken_for_follow_ups(samples: dict[str, Sample]) -> None:
    # Only those are asked otherwise than before, so this is the most that the set can lose.
    whole = [question for sample in samples.values() for question in sample.questions]
    taken = [question.text for question in whole if is_follow_up(question.text)]
    assert len(whole) == 560
    assert len(taken) <= 2, taken


def test_a_mistake_in_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text("speakers U=user\n##\nX: nobody\n? a | followup | #b | c\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no line of a conversation"):
        list(read_threads(path))
