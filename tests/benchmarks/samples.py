"""A set of two tiny conversations in the LoCoMo format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_TEXTS = (
    (("user", "My cat is called Miso."), ("assistant", "Miso is a lovely name for a cat.")),
    (("user", "I moved to Lisbon in May."), ("assistant", "How do you like Portugal?")),
    (("user", "The boiler costs 900 euros."), ("assistant", "Ask for a second offer first.")),
)
_QUESTIONS = (
    ("What is my cat called?", ["D1:1"], "name"),
    ("Where did I move to?", ["D2:1"], "fact"),
    ("What does the boiler cost, and what did you advise?", ["D3:1", "D3:2"], "assistant"),
)


def conversation(name: str) -> dict[str, Any]:
    sessions = {
        f"session_{number}": [
            {"dia_id": f"D{number}:{place}", "speaker": speaker, "text": text}
            for place, (speaker, text) in enumerate(turns, 1)
        ]
        for number, turns in enumerate(_TEXTS, 1)
    }
    asked = [{"question": q, "evidence": e, "category": c} for q, e, c in _QUESTIONS]
    return {"sample_id": name, "conversation": sessions, "qa": asked}


def write_set(path: Path) -> Path:
    samples = [conversation("en-one"), conversation("ko-two")]
    # LoCoMo's own categories: one has a name, one is left out.
    samples[0]["qa"] += [
        {"question": "When did I move?", "evidence": ["D2:1"], "category": 2},
        {"question": "What is my dog called?", "evidence": ["D1:1"], "category": 5},
        {"question": "Whose turn is missing?", "evidence": ["D9:9"], "category": 1},
    ]
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path
