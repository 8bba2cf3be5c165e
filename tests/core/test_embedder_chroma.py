"""Chroma embedding functions as embedders: sides, fingerprints, dimensions, errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from chromadb.api.types import Documents, EmbeddingFunction, Embeddings

from semantic_recall.embedders.chroma import ChromaEmbedder
from semantic_recall.errors import EmbedderError, InvalidOptionError


class Lengths(EmbeddingFunction[Documents]):
    """Vectors of a text's length; queries get another second number."""

    def __init__(self, config: dict[str, object] | None = None) -> None:
        self.config = config or {}
        self.calls: list[list[str]] = []

    def __call__(self, input: Documents) -> Embeddings:
        self.calls.append(list(input))
        return [np.array([len(text), 1, 1], dtype=np.float32) for text in input]

    def embed_query(self, input: Documents) -> Embeddings:
        return [np.array([len(text), 2, 1], dtype=np.float32) for text in input]

    @staticmethod
    def name() -> str:
        return "lengths"

    def get_config(self) -> dict[str, object]:
        return self.config

    @staticmethod
    def build_from_config(config: dict[str, object]) -> EmbeddingFunction[Documents]:
        return Lengths(config)


class Nameless(EmbeddingFunction[Documents]):
    """A function in the old style, without a name and settings."""

    def __init__(self) -> None:
        self.fails = False

    def __call__(self, input: Documents) -> Embeddings:
        if self.fails:
            raise ConnectionError("no answer")
        return [np.ones(2, dtype=np.float32) for _ in input]


def plain(texts: Sequence[str], /) -> list[list[float]]:
    """A function that only follows the call."""
    return [[float(len(text)), 1.0] for text in texts]


def test_documents_and_queries_use_their_sides() -> None:
    embedder = ChromaEmbedder(Lengths())
    (document,) = embedder.embed_documents(["abc"])
    np.testing.assert_array_equal(document, [3, 1, 1])
    np.testing.assert_array_equal(embedder.embed_query("abc"), [3, 2, 1])


def test_a_batch_is_one_call_and_an_empty_one_is_none() -> None:
    function = Lengths()
    embedder = ChromaEmbedder(function)
    embedder.embed_documents(["a", "b", "lone \ud83d"])
    assert embedder.embed_documents([]) == []
    assert function.calls == [["a", "b", "lone \ufffd"]]


def test_dimensions_are_found_once_or_taken_as_given() -> None:
    class Counting(Lengths):
        probes = 0

        def embed_query(self, input: Documents) -> Embeddings:
            Counting.probes += 1
            return super().embed_query(input)

    embedder = ChromaEmbedder(Counting())
    assert [embedder.space.dimensions, embedder.space.dimensions] == [3, 3]
    assert Counting.probes == 1
    assert ChromaEmbedder(Counting(), dimensions=3).space == embedder.space
    assert Counting.probes == 1


def test_the_fingerprint_follows_what_changes_vectors_and_nothing_else() -> None:
    def name(**config: object) -> str:
        return ChromaEmbedder(Lengths(config)).space.name

    base = name(model_name="small", normalize=True)
    assert base.startswith("chroma-lengths-small-")
    assert name(normalize=True, model_name="small") == base
    assert name(normalize=True, model_name="small", device="cpu", timeout=3) == base
    assert name(model_name="large", normalize=True) != base
    assert name(model_name="small", normalize=False) != base
    # Objects in the settings must not bring their address into it.
    assert name(session=object()) == name(session=object())


def test_a_name_of_your_own() -> None:
    assert ChromaEmbedder(Lengths(), name="mine").space.name == "mine"


@pytest.mark.parametrize("function", [Nameless(), plain])
def test_a_function_without_a_name_needs_one(function: Nameless) -> None:
    with pytest.raises(InvalidOptionError, match="pass name="):
        ChromaEmbedder(function)
    embedder = ChromaEmbedder(function, name="mine")
    assert embedder.space.dimensions == 2
    assert embedder.embed_query("abc").shape == (2,)


def test_what_the_function_raises_comes_through() -> None:
    function = Nameless()
    function.fails = True
    embedder = ChromaEmbedder(function, name="mine")
    with pytest.raises(EmbedderError, match="dimensions of 'mine'") as caught:
        _ = embedder.space
    assert isinstance(caught.value.__cause__, ConnectionError)
    with pytest.raises(ConnectionError):
        embedder.embed_documents(["a"])
    function.fails = False
    assert embedder.space.dimensions == 2


def test_a_query_without_its_one_vector_is_refused() -> None:
    def nothing(texts: Sequence[str], /) -> list[list[float]]:
        return []

    with pytest.raises(EmbedderError, match="0 vectors for one query"):
        ChromaEmbedder(nothing, name="none", dimensions=2).embed_query("a")


@pytest.mark.parametrize("options", [{"name": ""}, {"dimensions": 0}, {"max_characters": 0}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError):
        ChromaEmbedder(Lengths(), **options)  # type: ignore[arg-type] # on purpose
