"""Any LlamaIndex embedding model as the core's embedder."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding

from semantic_recall.adapting import AdaptedEmbedder, encodable
from semantic_recall.errors import ConfigurationError
from semantic_recall.types import Vector


class LlamaIndexEmbedder(AdaptedEmbedder):
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

    Raises:
        ConfigurationError: `model` is not a `BaseEmbedding`, or an argument is not usable.
    """

    def __init__(
        self,
        model: BaseEmbedding,
        *,
        name: str | None = None,
        dimensions: int | None = None,
        max_characters: int | None = 2000,
    ) -> None:
        if not isinstance(model, BaseEmbedding):
            raise ConfigurationError(
                f"model must be a LlamaIndex BaseEmbedding, not {type(model).__name__}"
            )
        fingerprint = f"llamaindex/{type(model).__name__}/{model.model_name}"
        super().__init__(fingerprint if name is None else name, dimensions, max_characters)
        self._model = model

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one vector per message, in order.

        Raises:
            EmbedderError: The model failed.
        """
        if not texts:
            return []
        try:
            vectors = self._model.get_text_embedding_batch(list(map(encodable, texts)))
        except Exception as error:  # a model may raise anything
            raise self._failed(error) from error
        return self._checked(vectors, len(texts))

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The model failed.
        """
        try:
            vector = self._model.get_query_embedding(encodable(text))
        except Exception as error:  # a model may raise anything
            raise self._failed(error) from error
        return self._checked([vector], 1)[0]

    async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one vector per message, in order.

        Raises:
            EmbedderError: The model failed.
        """
        if not texts:
            return []
        try:
            vectors = await self._model.aget_text_embedding_batch(list(map(encodable, texts)))
        except Exception as error:  # a model may raise anything
            raise self._failed(error) from error
        return self._checked(vectors, len(texts))

    async def aembed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with.

        Raises:
            EmbedderError: The model failed.
        """
        try:
            vector = await self._model.aget_query_embedding(encodable(text))
        except Exception as error:  # a model may raise anything
            raise self._failed(error) from error
        return self._checked([vector], 1)[0]
