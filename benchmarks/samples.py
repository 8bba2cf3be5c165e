"""The sample chats of the library in the LoCoMo format, for `quality.py`: a first impression.

`python -m benchmarks.samples FILE` writes them. A dozen questions tell how the parts work
together, not which of two methods is better: for that, take LoCoMo itself or data of your own.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from semantic_recall.samples import RESOURCE_ID, conversations, questions

_MAIN_CATEGORY = 1


def samples() -> list[dict[str, Any]]:
    """Return one sample: the threads of the main person as sessions, and the questions."""
    with conversations() as path:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    own = [line for line in lines if line["resource_id"] == RESOURCE_ID]
    own.sort(key=lambda line: line["thread_id"])
    names: dict[str, str] = {}
    conversation: dict[str, Any] = {}
    for number, (_, group) in enumerate(groupby(own, lambda line: line["thread_id"]), 1):
        turns = []
        for place, line in enumerate(group, 1):
            names[line["id"]] = f"D{number}:{place}"
            turns.append({
                "dia_id": names[line["id"]],
                "speaker": line["role"],
                "text": line["content"],
            })  # fmt: skip
        conversation[f"session_{number}"] = turns
    asked = [
        {
            "question": question.question,
            "evidence": [names[answer] for answer in question.answers],
            "category": _MAIN_CATEGORY,
        }
        for question in questions()
        if question.resource_id == RESOURCE_ID
    ]
    return [{"sample_id": RESOURCE_ID, "conversation": conversation, "qa": asked}]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(samples(), ensure_ascii=False), encoding="utf-8")
