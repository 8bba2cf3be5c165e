"""What embedders over the models of other libraries share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np

from semantic_recall.errors import EmbedderError, InvalidOptionError
from semantic_recall.types import Vector, VectorSpace

_PROBE: Final = "dimensions"


def encodable(text: str) -> str:
    """Return `text` as UTF-8 can hold it: split surrogate pairs joined, lone ones U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class AdaptedEmbedder(ABC):
    """An embedder over a model that does not say how long its vectors are.

    Args:
        name: The fingerprint of the vectors.
        dimensions: Their length; found by embedding one word, once, when None.
        max_characters: The longest text that is embedded whole; None: any length.

    Raises:
        InvalidOptionError: An argument has a value that it cannot have.
    """

    def __init__(self, name: str, dimensions: int | None, max_characters: int | None) -> None:
        if not name:
            raise InvalidOptionError("name is empty; give a name or leave it out")
        for value, what in ((dimensions, "dimensions"), (max_characters, "max_characters")):
            if value is not None and value < 1:
                raise InvalidOptionError(f"{what} must be at least 1, not {value!r}")
        self._name = name
        self._dimensions = dimensions
        self._max_characters = max_characters
        self._probing = threading.Lock()

    @property
    def space(self) -> VectorSpace:
        """The fingerprint and dimensions; may embed one word the first time.

        Raises:
            EmbedderError: The model failed.
        """
        if self._dimensions is None:
            with self._probing:
                if self._dimensions is None:
                    self._dimensions = self._probed()
        return VectorSpace(self._name, self._dimensions)

    @property
    def max_characters(self) -> int | None:
        """The longest text that is embedded whole."""
        return self._max_characters

    @abstractmethod
    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a text to search with."""

    def _probed(self) -> int:
        try:
            return int(self.embed_query(_PROBE).shape[0])
        except EmbedderError:
            raise
        except Exception as error:  # foreign code may raise anything
            raise EmbedderError(
                f"cannot find the dimensions of {self._name!r}: {error}; make the model work, or "
                "pass dimensions="
            ) from error

    def _checked(self, found: Sequence[Sequence[float]], expected: int) -> list[Vector]:
        """Return what a model gave as vectors, one per text.

        Raises:
            EmbedderError: It is another number of vectors, or no vectors.
        """
        try:
            vectors = [np.asarray(vector, dtype=np.float32) for vector in found]
        except (TypeError, ValueError) as error:
            raise EmbedderError(f"{self._name} gave something that is no vector") from error
        if len(vectors) != expected:
            raise EmbedderError(f"{self._name} gave {len(vectors)} vectors for {expected} texts")
        if any(vector.ndim != 1 for vector in vectors):
            raise EmbedderError(f"{self._name} gave something that is no vector")
        return vectors

    def _failed(self, error: Exception) -> EmbedderError:
        return EmbedderError(f"{self._name} failed: {error}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"
