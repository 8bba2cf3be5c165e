"""Bad input never crashes a turn and never loses the rest of a batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semantic_recall import ConfigurationError, InvalidIdError, Message, SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(tmp_path / "memory", embedder=HashEmbedder(64)) as memory:
        yield memory


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, "thread_id": "t", "resource_id": "r", **more}


GOOD = user("the rest of the batch")


def found(memory: SemanticRecall, query: str) -> list[str]:
    recalled = memory.recall(query, resource_id="r", message_range=0, top_k=1)
    return [hit.message.text for hit in recalled]


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", None, [], [{"type": "image_url"}]])
def test_blank_text_is_stored_and_not_embedded(memory: SemanticRecall, blank: Any) -> None:
    memory.remember([user(blank), GOOD])
    assert len(memory.history("t", "r")) == 2
    assert memory.stats().vectors == 1
    assert found(memory, "rest of the batch") == ["the rest of the batch"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (["a", {"text": "b"}, 7], "a\nb\n7"),
        (12, "12"),
        (b"bytes", "b'bytes'"),
    ],
)
def test_content_of_other_kinds_is_read_as_text(
    memory: SemanticRecall, content: Any, text: str
) -> None:
    memory.remember(user(content))
    assert memory.history("t", "r")[0].text == text


@pytest.mark.parametrize(
    "odd", ["nul \x00 inside", "lone \ud800 surrogate", "\udfff", "🦄" * 40, "\u202e\u200b", "\x1a"]
)
def test_odd_characters_come_back_as_they_were(memory: SemanticRecall, odd: str) -> None:
    memory.remember([user(odd, name=f"n{odd}"), GOOD])
    memory.flush()
    assert memory.history("t", "r")[0].text == odd
    recalled = memory.recall(odd + " rest", resource_id="r", thread_id="other")
    assert odd in [m.message.text for m in recalled]
    recalled.text.encode("utf-8")
    memory.process_input([user(odd)], thread_id="t", resource_id="r")


def test_a_text_of_10_mb_is_stored_found_and_shown(memory: SemanticRecall) -> None:
    huge = "the needle " + "haystack of many words " * 440_000
    memory.remember([user(huge), GOOD])
    assert memory.history("t", "r")[0].text == huge
    assert found(memory, "needle haystack") == [huge]
    assert found(memory, "rest of the batch") == ["the rest of the batch"]
    small = memory.recall("needle haystack", resource_id="r", max_tokens=500)
    assert small.tokens <= 500


class FaultyEmbedder(HashEmbedder):
    """Gives a bad vector for texts with the word "bad"."""

    def __init__(self, bad: Any) -> None:
        super().__init__(64)
        self._bad = bad

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        vectors: list[Any] = list(super().embed_documents(texts))
        return [self._bad if "bad" in t else v for t, v in zip(texts, vectors, strict=True)]


@pytest.mark.parametrize(
    "bad",
    [np.full(64, np.nan), np.zeros(64), np.ones(63), np.full(64, np.inf), np.ones((2, 64)), None],
    ids=["nan", "zero", "short", "infinite", "matrix", "none"],
)
def test_a_bad_vector_is_refused_for_its_message_alone(tmp_path: Path, bad: Any) -> None:
    with SemanticRecall.open(tmp_path, embedder=FaultyEmbedder(bad)) as memory:
        memory.remember([user("bad apple"), GOOD])
        stats = memory.stats()
        assert (stats.vectors, stats.pending) == (1, 1)
        assert found(memory, "apple") == ["bad apple"]
        assert found(memory, "rest of the batch") == ["the rest of the batch"]


def test_of_the_same_id_twice_in_a_batch_the_last_wins(memory: SemanticRecall) -> None:
    memory.remember([user("first", id="x"), GOOD, user("second", id="x")])
    assert sorted(m.text for m in memory.history("t", "r")) == ["second", "the rest of the batch"]
    assert found(memory, "second") == ["second"]
    assert memory.stats().pending == 0


def test_naive_times_are_utc_and_unreadable_ones_are_now(memory: SemanticRecall) -> None:
    memory.remember(
        [
            user("naive", created_at=datetime(2024, 5, 1, 12)),
            user("text", created_at="2024-05-01T12:00:00Z"),
            user("seconds", created_at=1714564800),
            user("nonsense", created_at="yesterday"),
            user("infinite", created_at=math.inf),
        ]
    )
    times = [m.created_at for m in memory.history("t", "r")]
    assert times[:3] == [datetime(2024, 5, 1, 12, tzinfo=timezone.utc)] * 3
    assert all((datetime.now(timezone.utc) - t).total_seconds() < 60 for t in times[3:])


def test_times_at_the_ends_of_the_calendar(memory: SemanticRecall) -> None:
    for moment in (datetime.min, datetime.max):
        memory.remember(user(f"at {moment.year}", created_at=moment))
    assert [m.created_at.year for m in memory.history("t", "r")] == [1, 9999]
    assert len(memory.recall("at", resource_id="r")) == 2


def test_unknown_roles_are_kept_and_come_as_neighbours(memory: SemanticRecall) -> None:
    memory.remember([user("an apple a day"), user("note", role="observer"), GOOD])
    recalled = memory.recall("apple", resource_id="r", top_k=1)
    assert [m.message.role for m in recalled] == ["user", "observer"]
    assert {"role": "user", "content": "observer: note"} in memory.process_input(
        [user("apple")], thread_id="t", resource_id="r", top_k=1
    )


def test_payloads_that_json_cannot_hold_are_degraded_and_not_fatal(memory: SemanticRecall) -> None:
    memory.remember([user("a", payload={"good": 1, "bad": object(), "nan": math.nan}), GOOD])
    payload = memory.history("t", "r")[0].payload
    assert payload is not None
    assert payload["good"] == 1
    assert "object" in payload["bad"]


@pytest.mark.parametrize("bad", ["", "x" * 1025, 7, b"x"])
def test_ids_that_cannot_be_ids_are_refused_before_anything_is_stored(
    memory: SemanticRecall, bad: Any
) -> None:
    for field in ("id", "thread_id", "resource_id"):
        with pytest.raises(InvalidIdError):
            memory.remember([GOOD, user("x", **{field: bad})])
    assert memory.stats().messages == 0


@pytest.mark.parametrize("bad", ["text", 7, None, ["x"]])
def test_what_is_no_message_is_refused(memory: SemanticRecall, bad: Any) -> None:
    with pytest.raises(ConfigurationError):
        memory.remember([bad])


def test_nothing_to_remember_is_fine(memory: SemanticRecall) -> None:
    assert memory.remember([]) == []
    assert memory.process_output([], thread_id="t", resource_id="r") == []


@pytest.mark.parametrize("query", ["", "   ", "\x00", "\ud800", "?!", "the", "x" * 200_000])
def test_odd_queries_never_crash(memory: SemanticRecall, query: str) -> None:
    memory.remember([GOOD])
    assert len(memory.recall(query, resource_id="r")) <= 1
    assert not memory.recall(query, resource_id="somebody else")


@pytest.mark.parametrize("top_k", [-1, 0, 1, 10**9])
def test_any_top_k(memory: SemanticRecall, top_k: int) -> None:
    memory.remember([Message(role="user", text=f"m{i}", thread_id="t", resource_id="r")
                     for i in range(3)])  # fmt: skip
    recalled = memory.recall("m1", resource_id="r", top_k=top_k, message_range=0)
    assert len(recalled.hits) == min(max(top_k, 0), 3)
