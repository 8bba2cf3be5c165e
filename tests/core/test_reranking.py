"""A reranker of the application's own: what it reads, what it decides, and what happens without."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from semantic_recall import InvalidOptionError, Recall, RerankerError, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.settings import Reranker
from semantic_recall.types import Vector

IDS: dict[str, Any] = {"resource_id": "ana"}
PETS = ["the cat sleeps", "the cat and the dog", "the cat eats fish", "a red car", "the cat purrs"]
QUERY = "what about the cat?"

Open = Callable[..., SemanticRecall]


class ByTable:
    """Gives each text the score of the first key that stands in it, and writes down its calls."""

    def __init__(self, table: dict[str, float], otherwise: float = 0.0) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        self._table = table
        self._otherwise = otherwise

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        self.calls.append((query, list(texts)))
        return [
            next((score for key, score in self._table.items() if key in text), self._otherwise)
            for text in texts
        ]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open a memory with five messages, with or without a reranker."""
    with ExitStack() as stack:

        def open_memory(reranker: Reranker | None = None, **settings: Any) -> SemanticRecall:
            embedder = settings.pop("embedder", HashEmbedder(64))
            memory = SemanticRecall.open(
                tmp_path / "memory",
                embedder=embedder,
                settings=Settings(reranker=reranker, **settings),
            )
            stack.enter_context(memory)
            messages = [{"role": "user", "content": t, "id": str(i)} for i, t in enumerate(PETS)]
            memory.remember(messages, thread_id="pets", **IDS)
            return memory

        yield open_memory


def texts(recall: Recall) -> list[str]:
    return [hit.message.text for hit in recall.hits]


@pytest.mark.parametrize("ranking", ["hybrid", "dense"])
@pytest.mark.parametrize("exact_limit", [100_000, 0])
def test_the_rerankers_order_and_scores_count(opened: Open, ranking: Any, exact_limit: int) -> None:
    reranker = ByTable({"fish": 7.5, "purrs": -2.0}, otherwise=-9.0)
    memory = opened(reranker, exact_limit=exact_limit)
    recall = memory.recall(QUERY, top_k=2, message_range=0, ranking=ranking, **IDS)
    assert texts(recall) == ["the cat eats fish", "the cat purrs"]
    assert [hit.score for hit in recall.hits] == [7.5, -2.0]
    ((query, read),) = reranker.calls
    assert query == QUERY
    assert sorted(read) == sorted(f"user: {text}" for text in PETS)
    assert recall.timings["rerank"] >= 0
    assert recall.timings["fetch"] >= 0


def test_neighbours_come_after_it_and_have_no_score(opened: Open) -> None:
    memory = opened(ByTable({"fish": 1.0}))
    recall = memory.recall(QUERY, top_k=1, message_range=1, **IDS)
    shown = [(m.message.text, m.is_hit, m.score) for m in recall.messages]
    assert shown == [
        ("the cat and the dog", False, None),
        ("the cat eats fish", True, 1.0),
        ("a red car", False, None),
    ]
    assert all(m.dense is not None and m.lexical is not None for m in recall.messages)


def test_it_reads_the_best_that_the_ranking_found(opened: Open) -> None:
    before = texts(opened().recall(QUERY, top_k=5, **IDS))
    reranker = ByTable({}, otherwise=1.0)
    memory = opened(reranker, rerank_candidates=2)
    assert texts(memory.recall(QUERY, top_k=1, **IDS)) == before[:1]  # equal scores keep the order
    assert texts(memory.recall(QUERY, top_k=4, **IDS)) == before[:4]
    read = [[text.removeprefix("user: ") for text in each] for _, each in reranker.calls]
    assert read == [before[:2], before[:4]]


def test_filters_come_before_it(opened: Open) -> None:
    reranker = ByTable({"fish": 1.0})
    recall = opened(reranker).recall(QUERY, exclude_ids=["2"], message_range=0, **IDS)
    assert "the cat eats fish" not in texts(recall)
    assert all("fish" not in text for _, read in reranker.calls for text in read)


def test_it_is_not_asked_for_nothing(opened: Open) -> None:
    reranker = ByTable({})
    memory = opened(reranker)
    assert not memory.recall("  ", **IDS)
    assert not memory.recall(QUERY, resource_id="nobody")
    assert not memory.recall(QUERY, top_k=0, **IDS)
    assert not memory.recall(QUERY, roles=["tool"], **IDS)
    assert reranker.calls == []


def broken(query: str, texts: Sequence[str]) -> list[float]:
    raise ConnectionError("no route to the model")


def too_few(query: str, texts: Sequence[str]) -> list[float]:
    return [1.0]


def not_a_number(query: str, texts: Sequence[str]) -> NDArray[np.float64]:
    return np.full(len(texts), np.nan)


def too_large(query: str, texts: Sequence[str]) -> list[float]:
    return [1e300] * len(texts)


def words(query: str, texts: Sequence[str]) -> Any:
    return ["good"] * len(texts)


async def broken_later(query: str, texts: Sequence[str]) -> list[float]:
    raise ConnectionError("no route to the model")


FAILURES = [
    (broken, "ConnectionError: no route to the model"),
    (broken_later, "ConnectionError: no route to the model"),
    (too_few, "one number for each of 5 texts"),
    (not_a_number, "NaN"),
    (too_large, "too large"),
    (words, "did not return numbers"),
]


@pytest.mark.parametrize(("reranker", "told"), FAILURES)
async def test_a_failure_is_an_error_of_plain_recall(
    opened: Open, reranker: Reranker, told: str
) -> None:
    memory = opened(reranker)
    with pytest.raises(RerankerError, match=told):
        memory.recall(QUERY, **IDS)
    with pytest.raises(RerankerError, match=told):
        await memory.arecall(QUERY, **IDS)


@pytest.mark.parametrize(("reranker", "told"), FAILURES)
async def test_in_front_of_a_model_the_order_stays(
    opened: Open, reranker: Reranker, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = texts(opened().recall(QUERY, **IDS))
    memory = opened(reranker)
    with caplog.at_level(logging.WARNING, "semantic_recall"):
        assert texts(memory.recall_for_turn(QUERY, **IDS)) == expected
        assert texts(await memory.arecall_for_turn(QUERY, **IDS)) == expected
    assert len(caplog.records) == 2
    assert all("the reranker failed" in line and told in line for line in caplog.messages)


async def test_in_front_of_a_model_it_has_half_the_time(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()

    def hanging(query: str, texts: Sequence[str]) -> list[float]:
        release.wait(30)
        return [0.0] * len(texts)

    async def hanging_later(query: str, texts: Sequence[str]) -> list[float]:
        await asyncio.sleep(30)
        return [0.0] * len(texts)

    expected = texts(opened().recall(QUERY, **IDS))
    try:
        for reranker in (hanging, hanging_later):
            memory = opened(reranker, timeout=2.0)
            started = time.monotonic()
            assert texts(await memory.arecall_for_turn(QUERY, **IDS)) == expected
            assert time.monotonic() - started < 2.0
    finally:
        release.set()
    assert caplog.text.count("the reranker took more than 1.0 s") == 2


async def test_an_async_one_is_awaited_in_the_callers_loop(opened: Open) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    class Later:
        async def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return [1.0 if "fish" in text else 0.0 for text in texts]

    memory = opened(Later())
    assert texts(await memory.arecall(QUERY, top_k=1, **IDS)) == ["the cat eats fish"]
    assert texts(await memory.arecall_for_turn(QUERY, top_k=1, **IDS)) == ["the cat eats fish"]
    vector = HashEmbedder(64).embed_query(QUERY)
    given = await memory.arecall(QUERY, top_k=1, query_vector=vector, **IDS)
    assert texts(given) == ["the cat eats fish"]
    assert loops == [asyncio.get_running_loop()] * 3
    assert not await memory.arecall("", **IDS)


async def test_with_an_embedder_that_is_async_too(opened: Open) -> None:
    class Native(HashEmbedder):
        async def aembed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]:
            return self.embed_documents(texts)

        async def aembed_query(self, text: str, /) -> Vector:
            return self.embed_query(text)

    threads: list[str] = []

    def plain(query: str, texts: Sequence[str]) -> list[float]:
        threads.append(threading.current_thread().name)
        return [1.0 if "fish" in text else 0.0 for text in texts]

    async def later(query: str, texts: Sequence[str]) -> list[float]:
        return [1.0 if "purrs" in text else 0.0 for text in texts]

    memory = opened(plain, embedder=Native(64))
    assert texts(await memory.arecall(QUERY, top_k=1, **IDS)) == ["the cat eats fish"]
    assert threads != [threading.current_thread().name]  # the event loop goes on meanwhile
    memory = opened(later, embedder=Native(64))
    assert texts(await memory.arecall(QUERY, top_k=1, **IDS)) == ["the cat purrs"]


def test_an_async_one_works_in_sync_recall(opened: Open) -> None:
    async def later(query: str, texts: Sequence[str]) -> list[float]:
        return [1.0 if "fish" in text else 0.0 for text in texts]

    def wrapped(query: str, texts: Sequence[str]) -> Awaitable[list[float]]:
        return later(query, texts)

    async def sync_inside_a_coroutine(memory: SemanticRecall) -> list[str]:
        return texts(memory.recall(QUERY, top_k=1, **IDS))

    for reranker in (later, wrapped):
        memory = opened(reranker)
        assert texts(memory.recall(QUERY, top_k=1, **IDS)) == ["the cat eats fish"]
        assert texts(memory.recall_for_turn(QUERY, top_k=1, **IDS)) == ["the cat eats fish"]
        assert asyncio.run(sync_inside_a_coroutine(memory)) == ["the cat eats fish"]


def test_what_is_forgotten_while_it_reads_is_not_shown(opened: Open) -> None:
    memory: SemanticRecall
    rounds: list[int] = []

    def forgetful(query: str, texts: Sequence[str]) -> list[float]:
        rounds.append(len(texts))
        memory.forget(ids=["2"], thread_id="pets", **IDS)
        return [1.0 if "fish" in text else 0.0 for text in texts]

    memory = opened(forgetful)
    recall = memory.recall(QUERY, top_k=2, **IDS)
    assert rounds == [5, 4]  # it was searched again
    assert "fish" not in recall.block("all")
    assert len(recall.hits) == 2


def test_it_works_without_an_embedder(opened: Open) -> None:
    recall = opened(ByTable({"fish": 1.0}), embedder=None).recall(QUERY, top_k=1, **IDS)
    assert texts(recall) == ["the cat eats fish"]


def test_the_number_of_candidates_is_checked() -> None:
    assert Settings().rerank_candidates == 50
    with pytest.raises(InvalidOptionError, match="rerank_candidates must be 1 or more, not 0"):
        Settings(rerank_candidates=0)
