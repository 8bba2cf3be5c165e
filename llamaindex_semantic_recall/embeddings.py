"""Any LlamaIndex embedding model as the core's embedder."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding

from semantic_recall.errors import EmbedderError
from semantic_recall.types import Vector, VectorSpace

_PROBE = "dimensions"


class LlamaIndexEmbedder:
    """A LlamaIndex `BaseEmbedding` (OpenAI, Hugging Face, Ollama, ...) as an embedder.

    Messages are embedded with the model's text side and queries with its query side; the async
    methods are the model's own.

        recall = SemanticRecall.open("./memory", embedder=LlamaIndexEmbedder(OpenAIEmbedding()))

    Args:
        model: The embedding model.
        name: The fingerprint of its vectors. Default: the model's class and `model_name`. Give
            one when another setting changes the vectors (an instruction, a revision): memories
            embedded under one name are searched under that name only.
        dimensions: The length of its vectors. Default: found out by embedding one word, once.
        max_characters: Longer messages are cut into chunks of at most this length; LlamaIndex does
            not say how much a model reads. The default suits models of 512 tokens.
    """

    def __init__(
        self,
        model: BaseEmbedding,
        *,
        name: str | None = None,
        dimensions: int | None = None,
        max_characters: int | None = 2000,
    ) -> None:
        self._model = model
        self._name = name or f"llamaindex/{type(model).__name__}/{model.model_name}"
        self._max_characters = max_characters
        self._space = VectorSpace(self._name, dimensions) if dimensions is not None else None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LlamaIndexEmbedder({self._name!r})"

    @property
    def space(self) -> VectorSpace:
        """The fingerprint and dimensions.

        Raises:
            EmbedderError: The dimensions were not given and the model failed to embed a word.
        """
        if self._space is None:
            with self._lock:
                if self._space is None:
                    probe = self.embed_documents([_PROBE])[0]
                    self._space = VectorSpace(self._name, len(probe))
        return self._space

    @property
    def max_characters(self) -> int | None:
        """The longest text that is embedded whole."""
        return self._max_characters

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one vector per message, in order.

        Raises:
            EmbedderError: The model failed.
        """
        if not texts:
            return []
        try:
            vectors = self._model.get_text_embedding_batch(list(texts))
        except Exception as error:  # a model may raise anything
            raise self._failure(error) from error
        return self._checked(vectors, len(texts))

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The model failed.
        """
        try:
            vector = self._model.get_query_embedding(text)
        except Exception as error:  # a model may raise anything
            raise self._failure(error) from error
        return np.asarray(vector, dtype=np.float32)

    async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one vector per message, in order.

        Raises:
            EmbedderError: The model failed.
        """
        if not texts:
            return []
        try:
            vectors = await self._model.aget_text_embedding_batch(list(texts))
        except Exception as error:  # a model may raise anything
            raise self._failure(error) from error
        return self._checked(vectors, len(texts))

    async def aembed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The model failed.
        """
        try:
            vector = await self._model.aget_query_embedding(text)
        except Exception as error:  # a model may raise anything
            raise self._failure(error) from error
        return np.asarray(vector, dtype=np.float32)

    def _failure(self, error: Exception) -> EmbedderError:
        return EmbedderError(f"the embedding model {self._name} failed: {error}")

    def _checked(self, vectors: Sequence[Sequence[float]], count: int) -> list[Vector]:
        if len(vectors) != count:
            raise EmbedderError(
                f"the embedding model {self._name} gave {len(vectors)} vectors for {count} texts"
            )
        return [np.asarray(vector, dtype=np.float32) for vector in vectors]
