"""LangChain embeddings as the memory's embedder."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from langchain_semantic_recall.embeddings import LangChainEmbedder
from semantic_recall.errors import ConfigurationError, EmbedderError
from semantic_recall.protocols import AsyncEmbedder, Embedder
from semantic_recall.testing.embedder import EmbedderSuite


class Counting(Embeddings):
    """Embeds a text as its length and counts the calls."""

    def __init__(self, model: str | None = None) -> None:
        if model is not None:
            self.model = model
        self.calls: list[str] = []
        self.threads: set[int] = set()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append("documents")
        self.threads.add(threading.get_ident())
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.calls.append("query")
        return [float(len(text)), 2.0]


class AsyncOnly(Counting):
    """The sync methods must not be used in async code."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("sync method in async code")

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("sync method in async code")

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return [[float(len(text)), 1.0] for text in texts]

    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(0)
        return [float(len(text)), 2.0]


class Broken(Counting):
    """Gives what it was told to give, or raises it."""

    def __init__(self, outcome: object) -> None:
        super().__init__()
        self.outcome = outcome

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome  # type: ignore[return-value]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Bytes(Embeddings):
    """How often each byte comes, and a constant; like every HTTP client it wants UTF-8."""

    model = "bytes"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(n) + 0.01 for n in np.bincount(list(text.encode()), minlength=256)]


class TestSuite(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return LangChainEmbedder(Bytes())


def test_vectors_are_float32_in_order() -> None:
    embedder = LangChainEmbedder(Counting())
    vectors = embedder.embed_documents(["a", "bbb"])
    assert [vector.tolist() for vector in vectors] == [[1.0, 1.0], [3.0, 1.0]]
    assert {vector.dtype for vector in vectors} == {np.dtype(np.float32)}
    assert embedder.embed_query("bb").tolist() == [2.0, 2.0]


async def test_langchain_23716_async_code_uses_the_native_async_methods() -> None:
    embedder = LangChainEmbedder(AsyncOnly(), name="n", dimensions=2)
    assert [v.tolist() for v in await embedder.aembed_documents(["a"])] == [[1.0, 1.0]]
    assert (await embedder.aembed_query("aa")).tolist() == [2.0, 2.0]
    assert embedder.space.dimensions == 2


async def test_sync_embeddings_do_not_block_the_event_loop() -> None:
    counting = Counting()
    await LangChainEmbedder(counting).aembed_documents(["a"])
    assert counting.threads == counting.threads - {threading.get_ident()}
    assert counting.threads


def test_no_call_for_no_texts() -> None:
    counting = Counting()
    assert list(LangChainEmbedder(counting).embed_documents([])) == []
    assert counting.calls == []


def test_dimensions_cost_one_call() -> None:
    counting = Counting()
    embedder = LangChainEmbedder(counting)
    assert [embedder.space.dimensions for _ in range(3)] == [2, 2, 2]
    assert counting.calls == ["query"]


def test_given_dimensions_cost_no_call() -> None:
    counting = Counting()
    assert LangChainEmbedder(counting, dimensions=2).space.dimensions == 2
    assert counting.calls == []


def test_the_fingerprint_names_class_and_model() -> None:
    small, large, plain = (Counting("small"), Counting("large"), Counting())
    names = [LangChainEmbedder(each, dimensions=2).space.name for each in (small, large, plain)]
    assert len(set(names)) == 3
    assert "Counting" in names[0]
    assert "small" in names[0]
    assert LangChainEmbedder(Counting("small"), dimensions=2).space.name == names[0]


def test_the_fingerprint_can_be_given() -> None:
    assert LangChainEmbedder(Counting(), name="mine", dimensions=2).space.name == "mine"


def test_it_is_an_embedder() -> None:
    embedder: AsyncEmbedder = LangChainEmbedder(DeterministicFakeEmbedding(size=8))
    plain: Embedder = embedder
    assert plain.space.dimensions == 8
    assert plain.max_characters == 8_000


@pytest.mark.parametrize(
    "outcome",
    [RuntimeError("quota"), [], [[1.0], [2.0]], [["x"]], [[[1.0]]], [1.0], None],
    ids=["raises", "too few", "too many", "not numbers", "nested", "a number", "nothing"],
)
async def test_a_failure_names_the_embedder_and_its_cause(outcome: object) -> None:
    embedder = LangChainEmbedder(Broken(outcome), name="mine")
    with pytest.raises(EmbedderError, match="mine"):
        embedder.embed_documents(["a"])
    with pytest.raises(EmbedderError, match="mine") as caught:
        await embedder.aembed_documents(["a"])
    if isinstance(outcome, Exception):
        assert caught.value.__cause__ is outcome
        with pytest.raises(EmbedderError, match="quota"):
            await embedder.aembed_query("a")
        with pytest.raises(EmbedderError, match="quota"):
            _ = embedder.space


def test_langchain_16261_wrong_arguments_are_named() -> None:
    with pytest.raises(ConfigurationError, match="Embeddings, not str"):
        LangChainEmbedder("text-embedding-3-small")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="name"):
        LangChainEmbedder(Counting(), name="")
    with pytest.raises(ConfigurationError, match="dimensions"):
        LangChainEmbedder(Counting(), dimensions=0)
    with pytest.raises(ConfigurationError, match="max_characters"):
        LangChainEmbedder(Counting(), max_characters=0)
