"""A set of conversations and questions of our own: `python -m benchmarks.own FILE` writes it.

The format is LoCoMo's (see `benchmarks/_locomo.py`) with more keys. README.md tells how it was
made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.own._filler import Patterns, Writer, pick
from benchmarks.own._texts import Asked, Line, Script, Thread, read_script

FOLDER = Path(__file__).parent
MESSAGES_PER_SAMPLE = 445
_SEED = "own-1"


def build() -> list[dict[str, Any]]:
    """Return all samples, in the same order and with the same bytes every time."""
    return [sample for sample, _ in marked_samples()]


def marked_samples() -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Return all samples, each with the ids of the messages that are marked in its file."""
    writer = Writer()
    return [_sample(script, writer) for script in scripts()]


def scripts() -> list[Script]:
    """Return what was written by hand, by name."""
    paths = sorted((FOLDER / "data").glob("*.txt"))
    return [read_script(path) for path in paths if not path.stem.endswith(".questions")]


def split_of(name: str) -> str:
    """Return "tune" or "report" for a question: half each, by a hash that nobody chose."""
    return ("tune", "report")[hashlib.sha256(name.encode()).digest()[0] % 2]


def question_id(sample: str, text: str) -> str:
    """Return what names a question: its sample and a digest of both."""
    digest = hashlib.sha256(f"{sample}\n{text}".encode()).hexdigest()
    return f"{sample}-{digest[:8]}"


def _sample(script: Script, writer: Writer) -> tuple[dict[str, Any], dict[str, str]]:
    threads = _with_filler(script, writer)
    conversation: dict[str, Any] = dict(
        zip(("speaker_a", "speaker_b"), script.speakers.values(), strict=True)
    )
    ids: dict[str, str] = {}
    for number, thread in enumerate(threads, 1):
        turns = []
        for place, line in enumerate(thread.lines, 1):
            turns.append({
                "dia_id": f"D{number}:{place}",
                "speaker": line.speaker,
                "text": line.text,
            })  # fmt: skip
            if line.mark in ids:
                raise ValueError(f"{script.name}: #{line.mark} stands twice")
            if line.mark:
                ids[line.mark] = f"D{number}:{place}"
        conversation[f"session_{number}_date_time"] = _spoken(thread.start)
        conversation[f"session_{number}"] = turns
    asked_at = threads[-1].start + timedelta(days=2)
    sample = {
        "sample_id": script.name,
        "conversation": conversation,
        "qa": [_question(script.name, asked, ids, asked_at) for asked in script.questions],
    }
    return sample, ids


def _question(sample: str, asked: Asked, ids: dict[str, str], asked_at: datetime) -> dict[str, Any]:
    name = question_id(sample, asked.text)
    language, _, aspect = asked.kind.rpartition("-")
    return {
        "question_id": name,
        "question": asked.text,
        "answer": asked.answer,
        "evidence": [ids[mark] for mark in asked.marks],
        "category": language or aspect,
        "aspect": aspect,
        "split": split_of(name),
        "asked_at": asked_at.isoformat(timespec="minutes"),
    }


def _spoken(moment: datetime) -> str:
    """Return a moment as LoCoMo writes it: "7:20 pm on 4 March, 2025"."""
    hour = f"{moment.hour % 12 or 12}:{moment:%M} {'pm' if moment.hour >= 12 else 'am'}"
    return f"{hour} on {moment.day} {moment:%B}, {moment.year}"


def _with_filler(script: Script, writer: Writer) -> list[Thread]:
    """Return the threads with filler in threads of its own, and around the hand-written ones."""
    random = Random(f"{_SEED} {script.name}")
    patterns = Patterns(
        [FOLDER / "filler" / f"{name}.txt" for name in script.filler], _told(script)
    )
    threads = [Thread(thread.start, list(thread.lines)) for thread in script.threads]
    left = MESSAGES_PER_SAMPLE - sum(len(thread.lines) for thread in threads)
    starts = _free_moments(threads, random)
    written = list(threads)
    while left > 0:
        lines: list[Line] = []
        for _ in range(pick(random, (1, 1, 2, 2, 3))):
            lines += writer.dialogue(patterns, script.speakers, random)
        left -= len(lines)
        place = random.random()
        if written and place < 0.35:
            thread = written.pop(int(random.random() * len(written)))
            # Threads drift away from their subject more often than towards it.
            thread.lines = thread.lines + lines if place < 0.25 else lines + thread.lines
        else:
            threads.append(Thread(starts.pop(), lines))
    return sorted(threads, key=lambda thread: thread.start)


def _told(script: Script) -> str:
    said = [line.text for thread in script.threads for line in thread.lines]
    asked = [f"{question.text} {question.answer}" for question in script.questions]
    return "\n".join((*said, *asked))


def _free_moments(threads: Sequence[Thread], random: Random) -> list[datetime]:
    """Return moments on days without a thread, in random order, between the first and the last."""
    first, last = threads[0].start, threads[-1].start
    taken = {thread.start.date() for thread in threads}
    moments = []
    for day in range(1, (last - first).days):
        moment = (first + timedelta(days=day)).replace(
            hour=pick(random, (7, 8, 12, 13, 17, 18, 19, 20, 21)), minute=int(random.random() * 60)
        )
        if moment.date() not in taken:
            moments.append((random.random(), moment))
    return [moment for _, moment in sorted(moments)]
