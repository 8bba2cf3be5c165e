"""Reads conversations with labelled evidence in the format of LoCoMo.

LoCoMo: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (2024). A
file is a list of samples; a sample has a `conversation` of `session_N` lists of turns and `qa`,
questions with the ids of the turns that hold the answer. A sample becomes one resource and each
session one thread. Captions of photos (`blip_caption`) are left out: nobody said them.
LoCoMo's data is not part of this project: give the path of your own copy. `benchmarks/own` writes
this project's own set in the same format; its categories are names, and each question says which
half it belongs to (`split`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHARACTERS_PER_TOKEN = 4
LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single hop"}
ADVERSARIAL = 5
"""LoCoMo's questions that the conversation does not answer; left out of every figure."""
TUNE, REPORT = "tune", "report"
"""The halves of a set: weights may be chosen on one, figures are quoted from the other."""

_LANGUAGES = ("en", "ko", "zh")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SESSION = re.compile(r"session_(\d+)\Z")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a sample."""

    id: str
    speaker: str
    text: str
    session: int
    at: datetime | None = None
    """When its session began, if the set tells."""

    @property
    def indexed(self) -> str:
        """What is embedded and searched."""
        return f"{self.speaker}: {self.text}"

    @property
    def tokens(self) -> float:
        """The cost in a prompt, estimated as characters / 4 so that figures compare."""
        return len(self.indexed) / CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the positions of the turns that answer it."""

    text: str
    evidence: frozenset[int]
    kind: str
    """What it asks for, as the set names it."""
    half: str
    """`TUNE` or `REPORT`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One conversation."""

    id: str
    turns: Sequence[Turn]
    """In conversation order: by session, then as spoken."""
    questions: Sequence[Question]
    """Those that the conversation answers."""

    @property
    def language(self) -> str:
        """The prefix of the sample's id ("en-Emily"); English without one."""
        prefix = self.id.split("-")[0]
        return prefix if prefix in _LANGUAGES else "en"

    @property
    def starts(self) -> NDArray[np.int64]:
        """(T,) the position at which each session starts."""
        sessions = np.array([turn.session for turn in self.turns])
        return np.flatnonzero(np.diff(sessions, prepend=-1)).astype(np.int64)


def read_samples(path: Path) -> list[Sample]:
    """Read a file of samples.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON, or not of this format.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, list):
        raise ValueError(f"{path} is not a list of samples")
    try:
        # Without halves of its own a set is halved by conversation: the first is for tuning.
        return [_sample(item, (TUNE, REPORT)[i % 2]) for i, item in enumerate(data)]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not in the LoCoMo format: {error!r}") from error


def _moment(told: str | None) -> datetime | None:
    """Read "2025-03-04" or LoCoMo's way to write a time, "7:20 pm on 4 March, 2025", as UTC."""
    if not told:
        return None
    if _ISO_DATE.match(told):
        return datetime.fromisoformat(told).replace(tzinfo=timezone.utc)
    return datetime.strptime(told, "%I:%M %p on %d %B, %Y").replace(tzinfo=timezone.utc)


def _sample(item: Mapping[str, Any], half: str) -> Sample:
    conversation = item["conversation"]
    numbers = sorted(
        int(match[1])
        for name in conversation
        if (match := _SESSION.match(name)) and isinstance(conversation[name], list)
    )
    turns = [
        Turn(turn["dia_id"], turn["speaker"], str(turn["text"]), number, _moment(began))
        for number in numbers
        for began in [conversation.get(f"session_{number}_date_time")]
        for turn in conversation[f"session_{number}"]
    ]
    positions = {turn.id: position for position, turn in enumerate(turns)}
    questions = []
    for question in item["qa"]:
        # Some labels hold several ids in one string, some name turns that do not exist.
        labels = re.findall(r"D\d+:\d+", " ".join(question.get("evidence", ())))
        evidence = frozenset(positions[label] for label in labels if label in positions)
        category = question["category"]
        if evidence and category != ADVERSARIAL:
            kind = LOCOMO_KINDS.get(category, str(category))
            questions.append(
                Question(question["question"], evidence, kind, question.get("split", half))
            )
    return Sample(str(item["sample_id"]), turns, questions)
