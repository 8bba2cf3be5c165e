"""Reads the hand-written files: conversations (`*.txt`) and questions (`*.questions.txt`).

A conversation names its speakers and the filler it takes, then gives threads in order of time:

    speakers U=user A=assistant
    filler en-companion en-shared
    ## 2025-03-04 19:20
    U: A message. [#mark]
      An indented line goes on with it.

A question is `? question | kind | #mark #mark | answer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

_TURN = re.compile(r"([A-Z]): (.*?)(?: \[#([a-z0-9]+)\])?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """One message. `mark` names it in the questions, "" if no question is about it."""

    speaker: str
    text: str
    mark: str = ""


@dataclass(slots=True)
class Thread:
    """What was said from one moment on."""

    start: datetime
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question; its evidence is what the marks name."""

    text: str
    kind: str
    marks: tuple[str, ...]
    answer: str


@dataclass(slots=True)
class Script:
    """What was written by hand for one sample."""

    name: str
    speakers: dict[str, str]
    filler: list[str]
    threads: list[Thread]
    questions: list[Asked]


def entries(path: Path) -> Iterator[str]:
    """Yield the lines of a file, joined with the indented ones that follow."""
    entry = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            entry += "\n" + line[2:]
            continue
        if entry:
            yield entry
        entry = line
    if entry:
        yield entry


def read_script(path: Path) -> Script:
    """Read a conversation and the questions beside it.

    Raises:
        OSError: A file cannot be read.
        ValueError: A line is not in the format.
    """
    script = Script(path.stem, {}, [], [], [])
    for entry in entries(path):
        head, _, rest = entry.partition(" ")
        if head == "speakers":
            script.speakers = speakers_in(rest)
        elif head == "filler":
            script.filler = rest.split()
        elif head == "##":
            script.threads.append(Thread(datetime.strptime(rest, "%Y-%m-%d %H:%M")))
        else:
            script.threads[-1].lines.append(line_in(entry, script.speakers, path))
    script.questions = [
        asked_in(entry, path) for entry in entries(path.with_suffix(".questions.txt"))
    ]
    return script


def speakers_in(rest: str) -> dict[str, str]:
    """Read "U=user A=assistant"."""
    return dict(pair.split("=") for pair in rest.split())


def line_in(entry: str, speakers: Mapping[str, str], path: Path) -> Line:
    """Read one message.

    Raises:
        ValueError: It is none, or of nobody that the file names.
    """
    match = _TURN.match(entry)
    if not match or match[1] not in speakers:
        raise ValueError(f"{path.name}: {entry!r} is no line of a conversation")
    return Line(speakers[match[1]], match[2], match[3] or "")


def asked_in(entry: str, path: Path) -> Asked:
    """Read one question.

    Raises:
        ValueError: It is none.
    """
    parts = entry.removeprefix("? ").split(" | ")
    if not entry.startswith("? ") or len(parts) != 4:
        raise ValueError(f"{path.name}: {entry!r} is no question")
    text, kind, marks, answer = parts
    return Asked(text, kind, tuple(mark.removeprefix("#") for mark in marks.split()), answer)
