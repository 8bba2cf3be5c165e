from __future__ import annotations

import time

import pytest

from semantic_recall.cues import role_asked_about


@pytest.mark.parametrize(
    ("query", "role"),
    [
        ("What did you suggest for my back pain?", "assistant"),
        ("Which book have you recommended to me?", "assistant"),
        ("what was your advice about sleep", "assistant"),
        ("你给我推荐过哪一部电影？", "assistant"),
        ("你上次建议我怎么做？", "assistant"),
        ("Where do I work?", "user"),
        ("What is the name of my dog?", "user"),
        ("I told you about a trip. Where did I want to go?", "user"),
        ("我的狗叫什么名字？", "user"),
        ("我和你说过我的计划吗？", "user"),
        ("How do I install the package?", None),
        ("Should I buy it?", None),
        ("What is the capital of France?", None),
        ("我应该买哪个？", None),
        ("", None),
    ],
)
def test_role_asked_about(query: str, role: str | None) -> None:
    assert role_asked_about(query) == role


def test_a_long_query_takes_no_time() -> None:
    begin = time.perf_counter()
    assert role_asked_about("you " * 2_500_000) is None
    assert role_asked_about("x" * 3_000 + " my dog") is None
    assert time.perf_counter() - begin < 1
