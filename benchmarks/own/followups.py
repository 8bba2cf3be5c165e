"""Questions that lean on what was just said: `data/followups/*.txt`, one file for each sample.

A file is a list of current threads, each with the question that is asked after it:

    speakers U=user A=assistant
    ##
    U: A message.
    A: An answer.
    ? question | followup | #mark | answer

The kind is `followup` where the question leaves out what it is about, and `change` where it is
whole and about something else than the thread. Marks are those of the sample's own file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.own import FOLDER, marked_samples, question_id, split_of
from benchmarks.own._texts import Asked, Line, asked_in, entries, line_in, speakers_in

FOLLOW_UP, CHANGE = "followup", "change"


@dataclass(frozen=True, slots=True)
class AskedNow:
    """A question and the current thread before it."""

    sample: str
    before: tuple[Line, ...]
    """The thread so far, oldest first; none of it is in the sample."""
    asked: Asked
    evidence: tuple[str, ...]
    """Ids of messages of the sample."""

    @property
    def split(self) -> str:
        """The half of the set: "tune" or "report"."""
        return split_of(question_id(self.sample, self.asked.text))


def asked_now() -> list[AskedNow]:
    """Return the questions, sample by sample, in the same order every time.

    Raises:
        OSError: A file cannot be read.
        ValueError: A line is not in the format, or a mark is not in the sample.
    """
    questions = []
    for sample, ids in marked_samples():
        name = sample["sample_id"]
        for before, asked in read_threads(FOLDER / "data" / "followups" / f"{name}.txt"):
            missing = set(asked.marks) - ids.keys()
            if missing:
                raise ValueError(f"{name}: no message is marked {missing}")
            evidence = tuple(ids[mark] for mark in asked.marks)
            questions.append(AskedNow(name, before, asked, evidence))
    return questions


def read_threads(path: Path) -> Iterator[tuple[tuple[Line, ...], Asked]]:
    """Yield each thread of a file and the question after it.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is not in the format.
    """
    speakers: dict[str, str] = {}
    before: list[Line] = []
    for entry in entries(path):
        if entry.startswith("speakers "):
            speakers = speakers_in(entry.removeprefix("speakers "))
        elif entry == "##":
            before = []
        elif entry.startswith("? "):
            yield tuple(before), asked_in(entry, path)
        else:
            before.append(line_in(entry, speakers, path))
