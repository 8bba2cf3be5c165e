"""Which words of a message are shown as words of the query."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings

from semantic_recall.inspector.documents import merged, parts
from semantic_recall.terms import text_terms
from tests.core.blocks import HOSTILE


def marked(query: str, text: str) -> list[str]:
    terms = frozenset(text_terms(query).tolist())
    return [part for part, mark in merged(parts(text, terms)) if mark]


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("Which hotel did I book?", "Booked: Hotel A, hotels!", ["Booked", "Hotel", "hotels"]),
        ("the a is", "the a is", []),
        ("error in snake_case", "See SNAKE-CASE, snake_case.", ["SNAKE-CASE", "snake_case"]),
        ("老师的猫", "林老师养了一只橘猫", ["老师"]),
        ("猫", "橘猫", []),
        ("1,000 kronor", "1000 kronor", ["1000", "kronor"]),
        ("", "anything", []),
    ],
)  # fmt: skip
def test_what_a_search_matches_is_marked(query: str, text: str, expected: list[str]) -> None:
    assert marked(query, text) == expected


@settings(max_examples=30)
@given(HOSTILE, HOSTILE)
def test_no_character_is_lost(query: str, text: str) -> None:
    terms = frozenset(text_terms(query).tolist())
    shown = merged(parts(text, terms))
    assert "".join(part for part, _ in shown) == text
    assert all(part for part, _ in shown)
    assert all(one[1] != next_[1] for one, next_ in pairwise(shown))
