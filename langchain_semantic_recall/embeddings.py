"""Any LangChain `Embeddings` as an embedder of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_core.embeddings import Embeddings

from semantic_recall.adapting import AdaptedEmbedder, encodable
from semantic_recall.errors import ConfigurationError
from semantic_recall.types import Vector

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

DEFAULT_MAX_CHARACTERS: Final = 8_000


class LangChainEmbedder(AdaptedEmbedder):
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
        fingerprint = _fingerprint(embeddings) if name is None else name
        super().__init__(fingerprint, dimensions, max_characters)
        self._embeddings = embeddings

    def embed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """Return one vector per text, in order.

        Raises:
            EmbedderError: The embeddings failed or gave another number of vectors.
        """
        if not texts:
            return []
        try:
            found = self._embeddings.embed_documents(list(map(encodable, texts)))
        except Exception as error:
            raise self._failed(error) from error
        return self._checked(found, len(texts))

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The embeddings failed.
        """
        try:
            found = self._embeddings.embed_query(encodable(text))
        except Exception as error:
            raise self._failed(error) from error
        return self._checked([found], 1)[0]

    async def aembed_documents(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """Return one vector per text, in order.

        Raises:
            EmbedderError: The embeddings failed or gave another number of vectors.
        """
        if not texts:
            return []
        try:
            found = await self._embeddings.aembed_documents(list(map(encodable, texts)))
        except Exception as error:
            raise self._failed(error) from error
        return self._checked(found, len(texts))

    async def aembed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The embeddings failed.
        """
        try:
            found = await self._embeddings.aembed_query(encodable(text))
        except Exception as error:
            raise self._failed(error) from error
        return self._checked([found], 1)[0]


def _fingerprint(embeddings: Embeddings) -> str:
    kind = type(embeddings)
    parts = [f"langchain:{kind.__module__}.{kind.__qualname__}"]
    for attribute in _IDENTITY:
        # Embeddings has no attribute for its model: the integrations each chose a name.
        value = getattr(embeddings, attribute, None)
        if isinstance(value, (str, int)) and value != "":
            parts.append(f"{attribute}={value}")
    return " ".join(parts)
