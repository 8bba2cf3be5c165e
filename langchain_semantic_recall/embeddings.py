"""Any LangChain `Embeddings` as an embedder of the memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
from langchain_core.embeddings import Embeddings

from semantic_recall.errors import ConfigurationError, EmbedderError
from semantic_recall.types import Vector, VectorSpace

_IDENTITY: Final = (
    "model",
    "model_name",
    "model_id",
    "repo_id",
    "deployment",
    "dimensions",
    "output_dimensionality",
    "query_instruction",
    "embed_instruction",
)
"""What the integrations call the things that change the vectors."""

_PROBE = "dimensions"
DEFAULT_MAX_CHARACTERS: Final = 8_000


class LangChainEmbedder:
    """Lets a memory embed with any LangChain `Embeddings`; native async methods are awaited.

    ```python
    memory = SemanticRecall.open("memory", embedder=LangChainEmbedder(OpenAIEmbeddings()))
    ```

    Args:
        embeddings: The embeddings, for example `OpenAIEmbeddings(model="text-embedding-3-small")`.
        name: The fingerprint of the vectors: change it when the model changes. Made from the class
            and its model attributes (`model`, `model_name`, `dimensions` and the like) when not
            given; a class of your own that hides its model needs one.
        dimensions: The length of the vectors; found by embedding one word when not given.
        max_characters: The longest text that the model reads whole; longer texts are cut into
            chunks. None: any length. The default of 8,000 fits 8,191 tokens in any script.

    Raises:
        ConfigurationError: `embeddings` is not an `Embeddings`, or an argument is not usable.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        name: str | None = None,
        dimensions: int | None = None,
        max_characters: int | None = DEFAULT_MAX_CHARACTERS,
    ) -> None:
        if not isinstance(embeddings, Embeddings):
            raise ConfigurationError(
                f"embeddings must be a LangChain Embeddings, not {type(embeddings).__name__}"
            )
        if name is not None and not name:
            raise ConfigurationError("name is empty; give a name or leave it out")
        for value, what in ((dimensions, "dimensions"), (max_characters, "max_characters")):
            if value is not None and value < 1:
                raise ConfigurationError(f"{what} must be at least 1, not {value}")
        self._embeddings = embeddings
        self._name = _fingerprint(embeddings) if name is None else name
        self._dimensions = dimensions
        self._max_characters = max_characters
        self._probing = threading.Lock()

    @property
    def space(self) -> VectorSpace:
        """The fingerprint and dimensions; may embed one word the first time.

        Raises:
            EmbedderError: The embeddings failed.
        """
        with self._probing:
            if self._dimensions is None:
                self._dimensions = len(self.embed_query(_PROBE))
            return VectorSpace(self._name, self._dimensions)

    @property
    def max_characters(self) -> int | None:
        """The longest text that is embedded whole."""
        return self._max_characters

    def embed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """Return one vector per text, in order.

        Raises:
            EmbedderError: The embeddings failed or gave another number of vectors.
        """
        if not texts:
            return []
        try:
            found = self._embeddings.embed_documents(list(texts))
        except Exception as error:
            raise self._failed(error) from error
        return self._vectors(found, len(texts))

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The embeddings failed.
        """
        try:
            found = self._embeddings.embed_query(text)
        except Exception as error:
            raise self._failed(error) from error
        return self._vectors([found], 1)[0]

    async def aembed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """Return one vector per text, in order.

        Raises:
            EmbedderError: The embeddings failed or gave another number of vectors.
        """
        if not texts:
            return []
        try:
            found = await self._embeddings.aembed_documents(list(texts))
        except Exception as error:
            raise self._failed(error) from error
        return self._vectors(found, len(texts))

    async def aembed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The embeddings failed.
        """
        try:
            found = await self._embeddings.aembed_query(text)
        except Exception as error:
            raise self._failed(error) from error
        return self._vectors([found], 1)[0]

    def _vectors(self, found: Sequence[Sequence[float]], expected: int) -> list[Vector]:
        if len(found) != expected:
            raise EmbedderError(f"{self._name} gave {len(found)} vectors for {expected} texts")
        try:
            vectors = [np.asarray(vector, dtype=np.float32) for vector in found]
        except (TypeError, ValueError) as error:
            raise EmbedderError(f"{self._name} gave something that is no vector") from error
        if any(vector.ndim != 1 for vector in vectors):
            raise EmbedderError(f"{self._name} gave something that is no vector")
        return vectors

    def _failed(self, error: Exception) -> EmbedderError:
        return EmbedderError(f"{self._name} failed: {error}")

    def __repr__(self) -> str:
        return f"LangChainEmbedder({self._name!r})"


def _fingerprint(embeddings: Embeddings) -> str:
    kind = type(embeddings)
    parts = [f"langchain:{kind.__module__}.{kind.__qualname__}"]
    for attribute in _IDENTITY:
        # Embeddings has no attribute for its model: the integrations each chose a name.
        value = getattr(embeddings, attribute, None)
        if isinstance(value, (str, int)) and value != "":
            parts.append(f"{attribute}={value}")
    return " ".join(parts)
