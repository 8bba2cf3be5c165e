"""Any Chroma embedding function as an embedder of the memory."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from semantic_recall.adapting import AdaptedEmbedder, encodable
from semantic_recall.errors import EmbedderError, InvalidOptionError
from semantic_recall.types import Vector

# Settings of Chroma's functions that say where and how the model runs, not which model it is.
_NOT_IDENTITY = frozenset(
    {"api_key_env_var", "default_headers", "device", "max_retries", "threads", "timeout"}
)


class EmbeddingFunction(Protocol):
    """What is used of `chromadb.EmbeddingFunction`: called with texts, gives vectors."""

    def __call__(self, input: list[str], /) -> Iterable[object]:
        """Return one vector per text."""
        ...


@runtime_checkable
class _WithQuerySide(Protocol):
    def embed_query(self, input: list[str], /) -> Iterable[object]: ...


@runtime_checkable
class _Described(Protocol):
    def name(self) -> object: ...

    def get_config(self) -> object: ...


class ChromaEmbedder(AdaptedEmbedder):
    """Lets a memory embed with any Chroma embedding function, its query side included.

    ```python
    from chromadb.utils.embedding_functions import OllamaEmbeddingFunction

    function = OllamaEmbeddingFunction(model_name="nomic-embed-text")
    memory = SemanticRecall.open("memory", embedder=ChromaEmbedder(function))
    ```

    Chroma's `DefaultEmbeddingFunction` downloads 80 MB on first use and knows English only.

    Args:
        embedding_function: The function; it must be safe to call from many threads.
        name: The fingerprint of the vectors: change it when the model changes. Made from the
            function's `name()` and `get_config()` when not given.
        dimensions: The length of the vectors; found by embedding one word when not given.
        max_characters: Longer texts are cut into chunks. The default of 1,000 fits the 256
            tokens that Chroma's default function reads. None: any length.

    Raises:
        InvalidOptionError: An argument has a value that it cannot have, or the function does not
            describe itself and no name was given.
    """

    def __init__(
        self,
        embedding_function: EmbeddingFunction,
        *,
        name: str | None = None,
        dimensions: int | None = None,
        max_characters: int | None = 1_000,
    ) -> None:
        fingerprint = _fingerprint(embedding_function) if name is None else name
        super().__init__(fingerprint, dimensions, max_characters)
        self._function = embedding_function
        self._query_side = (
            embedding_function if isinstance(embedding_function, _WithQuerySide) else None
        )

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one vector per text, in order; errors of the function come as they are."""
        if not texts:  # Chroma's functions refuse an empty list
            return []
        return _vectors(self._function([encodable(text) for text in texts]))

    def embed_query(self, text: str, /) -> Vector:
        """Return the text's vector from the function's query side, if it has one."""
        texts = [encodable(text)]
        side = self._query_side
        found = _vectors(self._function(texts) if side is None else side.embed_query(texts))
        if len(found) != 1:
            raise EmbedderError(f"{self._name!r} gave {len(found)} vectors for one query")
        return found[0]


def _vectors(answer: Iterable[object]) -> list[Vector]:
    return [np.asarray(vector, dtype=np.float32) for vector in answer]


def _fingerprint(function: EmbeddingFunction) -> str:
    """Return the function's name with its model and a digest of its settings.

    Raises:
        InvalidOptionError: The function has no name or settings.
    """
    name: object = None
    config: object = None
    if isinstance(function, _Described):
        with warnings.catch_warnings():
            # Chroma's base class warns that it has neither; that is answered below.
            warnings.simplefilter("ignore", DeprecationWarning)
            name, config = function.name(), function.get_config()
    if not isinstance(name, str) or not name or not isinstance(config, Mapping):
        raise InvalidOptionError(
            f"{type(function).__name__} has no name() and get_config() that tell which model it "
            "is; pass name= to ChromaEmbedder, and another one when the model changes"
        )
    identity = {key: value for key, value in config.items() if key not in _NOT_IDENTITY}
    settings = json.dumps(identity, sort_keys=True, default=lambda value: type(value).__name__)
    digest = hashlib.sha256(settings.encode()).hexdigest()[:8]
    model = identity.get("model_name")
    parts = ["chroma", name, *([model] if isinstance(model, str) else []), digest]
    return "-".join(parts)
