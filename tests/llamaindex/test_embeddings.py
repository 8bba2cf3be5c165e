"""LlamaIndexEmbedder over real embedding models."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings import MockEmbedding

from llamaindex_semantic_recall.embeddings import LlamaIndexEmbedder
from semantic_recall.errors import ConfigurationError, EmbedderError
from semantic_recall.protocols import AsyncEmbedder, Embedder
from semantic_recall.testing.embedder import EmbedderSuite
from semantic_recall.types import VectorSpace


class SidedEmbedding(BaseEmbedding):
    """Says by its vector which side and which method was asked, and counts its calls."""

    calls: list[str] = []  # noqa: RUF012 - pydantic copies the default

    def _vector(self, side: float, text: str) -> list[float]:
        self.calls.append(text)
        return [side, float(len(text)), 1.0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(1.0, query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vector(2.0, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(3.0, text)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._vector(4.0, text)


class BrokenEmbedding(MockEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        raise RuntimeError("no route to host")

    async def _aget_query_embedding(self, query: str) -> list[float]:
        raise RuntimeError("no route to host")

    def _get_text_embedding(self, text: str) -> list[float]:
        raise RuntimeError("no route to host")

    async def _aget_text_embedding(self, text: str) -> list[float]:
        raise RuntimeError("no route to host")


class ForgetfulEmbedding(MockEmbedding):
    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0]]


class BytesEmbedding(BaseEmbedding):
    """How often each byte comes, and a constant; like every HTTP client it wants UTF-8."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return [float(n) + 0.01 for n in np.bincount(list(query.encode()), minlength=256)]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)


class TestSuite(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        return LlamaIndexEmbedder(BytesEmbedding())


def as_protocol(embedder: AsyncEmbedder) -> AsyncEmbedder:
    return embedder


async def test_each_side_and_each_method_is_the_models_own() -> None:
    embedder = as_protocol(LlamaIndexEmbedder(SidedEmbedding(model_name="m")))
    assert embedder.embed_query("ab").tolist() == [1.0, 2.0, 1.0]
    assert (await embedder.aembed_query("ab")).tolist() == [2.0, 2.0, 1.0]
    assert [v.tolist() for v in embedder.embed_documents(["a", "bcd"])] == [
        [3.0, 1.0, 1.0],
        [3.0, 3.0, 1.0],
    ]
    assert [v.tolist() for v in await embedder.aembed_documents(["a", "bcd"])] == [
        [4.0, 1.0, 1.0],
        [4.0, 3.0, 1.0],
    ]
    assert embedder.embed_query("a").dtype == np.float32


def test_the_space_is_named_by_the_model_and_probed_once() -> None:
    model = SidedEmbedding(model_name="text-embedding-x")
    embedder = LlamaIndexEmbedder(model)
    assert model.calls == []
    threads = [threading.Thread(target=lambda: embedder.space) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert embedder.space == VectorSpace("llamaindex/SidedEmbedding/text-embedding-x", 3)
    assert len(model.calls) == 1


def test_a_given_name_and_dimensions_ask_nothing() -> None:
    model = SidedEmbedding()
    embedder = LlamaIndexEmbedder(model, name="mine-v2", dimensions=3, max_characters=None)
    assert embedder.space == VectorSpace("mine-v2", 3)
    assert embedder.max_characters is None
    assert model.calls == []


def test_no_texts_ask_nothing() -> None:
    model = SidedEmbedding()
    embedder = LlamaIndexEmbedder(model)
    assert embedder.embed_documents([]) == []
    assert asyncio.run(embedder.aembed_documents([])) == []
    assert model.calls == []


async def test_failures_name_the_model_and_keep_the_cause() -> None:
    embedder = LlamaIndexEmbedder(BrokenEmbedding(embed_dim=2, model_name="remote"))

    def read_space() -> Any:
        return embedder.space

    for call in (
        lambda: embedder.embed_query("x"),
        lambda: embedder.embed_documents(["x"]),
        read_space,
    ):
        with pytest.raises(EmbedderError, match="remote failed: no route to host") as caught:
            call()
        assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(EmbedderError, match="no route to host"):
        await embedder.aembed_query("x")
    with pytest.raises(EmbedderError, match="no route to host"):
        await embedder.aembed_documents(["x"])


def test_a_missing_vector_is_noticed() -> None:
    embedder = LlamaIndexEmbedder(ForgetfulEmbedding(embed_dim=2), name="m")
    with pytest.raises(EmbedderError, match="1 vectors for 2 texts"):
        embedder.embed_documents(["a", "b"])


@pytest.mark.parametrize("found", [None, ["x", "y"], [[[1.0]], [[2.0]]]])
def test_what_is_no_vector_is_refused(found: Any) -> None:
    class Odd(MockEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            result: list[list[float]] = found
            return result

    with pytest.raises(EmbedderError, match=r"mine (failed|gave something)"):
        LlamaIndexEmbedder(Odd(embed_dim=2), name="mine").embed_documents(["a", "b"])


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ConfigurationError, match="BaseEmbedding, not str"):
        LlamaIndexEmbedder("text-embedding-3-small")  # type: ignore[arg-type]
    model = MockEmbedding(embed_dim=2)
    for wrong in ({"name": ""}, {"dimensions": 0}, {"max_characters": 0}):
        options: Any = wrong
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            LlamaIndexEmbedder(model, **options)
