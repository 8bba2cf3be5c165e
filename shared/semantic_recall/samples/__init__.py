"""Sample conversations: 200 messages of a person's assistant chats over ten months.

Written for this library (MIT). Nearly all belong to the resource "mina": fourteen threads in
English, Chinese and Korean in which facts are told, changed and mixed with small talk. A second
person, "oskar", tells look-alike facts that must never come back for Mina. `questions()` asks
for what was told; some need an update, some share no word with the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

__all__ = ["RESOURCE_ID", "SampleQuestion", "conversations", "questions"]

RESOURCE_ID = "mina"
"""Whose memory the questions are about."""


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question to the sample conversations."""

    id: str
    language: str
    """"en", "zh" or "ko"."""
    resource_id: str
    question: str
    answers: tuple[str, ...]
    """Ids of the messages that answer it; each alone is enough."""
    note: str
    """What makes it worth asking; may be empty."""


@contextmanager
def conversations() -> Iterator[Path]:
    """Give the path of the conversations as JSON Lines, ready to import."""
    with resources.as_file(resources.files(__name__) / "conversations.jsonl") as path:
        yield path


def questions() -> list[SampleQuestion]:
    """Return the questions, in the order in which the demo asks them."""
    text = (resources.files(__name__) / "questions.json").read_text(encoding="utf-8")
    return [SampleQuestion(**{**one, "answers": tuple(one["answers"])}) for one in json.loads(text)]
