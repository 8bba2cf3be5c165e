"""What a process that may be killed at any moment says that it does, and what must hold then.

A process writes one line before and one after each call. A line is a single write to a pipe, so it
arrives whole or not at all. Between the two lines nobody can say whether the call took effect.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Place: TypeAlias = "tuple[str, str]"
"""Resource and thread."""
Key: TypeAlias = "tuple[str, str, str]"
"""Resource, thread and message id."""


class Journal:
    """The writing end."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def say(self, **line: Any) -> None:
        """Write one line; at most 4,096 bytes are written as one."""
        data = json.dumps(line).encode() + b"\n"
        assert len(data) <= 4096, "a pipe would take the line in pieces"
        os.write(self._pipe, data)


@dataclass(slots=True)
class Expectations:
    """What a memory must hold: each message with the texts that it may have (None: absent)."""

    messages: dict[Key, set[str | None]] = field(default_factory=dict)

    def follow(self, lines: Iterable[dict[str, Any]]) -> set[Key]:
        """Take in what a process said; returns the messages that it was about."""
        begun: dict[int, dict[str, Any]] = {}
        touched: set[Key] = set()
        for line in lines:
            if "begin" in line:
                begun[line["begin"]] = line
                self._change(line, certain=False)
                touched.update((*line["place"], id) for id in line["messages"])
            elif "done" in line:
                self._change(begun.pop(line["done"]), certain=True)
        return touched

    def _change(self, line: dict[str, Any], *, certain: bool) -> None:
        resource, thread = line["place"]
        for id, text in line["messages"].items():
            key = (resource, thread, id)
            if certain:
                self.messages[key] = {text}
            else:
                self.messages.setdefault(key, {None}).add(text)

    @property
    def certain(self) -> dict[Key, str]:
        """Messages that must be there, with their texts."""
        return {
            key: text
            for key, texts in self.messages.items()
            if len(texts) == 1 and (text := next(iter(texts))) is not None
        }

    def settle(self, key: Key, text: str | None) -> None:
        """What was uncertain has been looked up: from now on it must stay like that."""
        self.messages[key] = {text}


def read_lines(pipe: int) -> list[dict[str, Any]]:
    """Read until every writer is gone, and close the pipe."""
    with os.fdopen(pipe, "rb") as stream:
        return [json.loads(line) for line in stream]
