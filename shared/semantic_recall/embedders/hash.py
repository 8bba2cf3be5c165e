"""An embedder without a model, for tests and benchmarks."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import InvalidOptionError
from semantic_recall.types import Vector, VectorSpace

# One character of Chinese, Japanese or Korean, or a run of other letters and digits.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    r"|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_BLOCK = 4096  # words summed at once: bounds the memory that a text of 10 MB takes


@lru_cache(maxsize=16_384)
def _signs(word: str, dimensions: int) -> NDArray[np.int8]:
    """Return the word's fixed random vector of -1 and 1, shape (dimensions,)."""
    data = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest((dimensions + 7) // 8)
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=dimensions)
    signs = bits.astype(np.int8) * 2 - 1
    signs.flags.writeable = False
    return signs


def _vector(text: str, dimensions: int) -> Vector:
    """Return the normalised sum of the vectors of the text's words."""
    # A text without words (empty, blank, emoji) counts as one word of its own.
    counts = Counter(_WORD.findall(text.lower())) or Counter([text])
    total = np.zeros(dimensions, dtype=np.int64)
    words = iter(counts.items())
    while block := tuple(islice(words, _BLOCK)):
        signs = np.array([_signs(word, dimensions) for word, _ in block], dtype=np.int32)
        total += np.array([count for _, count in block], dtype=np.int64) @ signs
    if not total.any():  # words that cancel out exactly; a zero vector has no direction
        total += _signs(text, dimensions)
    vector = total.astype(np.float64)
    vector /= np.sqrt(vector @ vector)
    return vector.astype(np.float32)


class HashEmbedder:
    """Vectors from hashed words: deterministic, without weights, equal in every process.

    Equal texts have equal vectors and texts that share words are near; it knows nothing of
    meaning. Made for tests and benchmarks; `embedder=None` (words only) is better for real use.

    Args:
        dimensions: Length of the vectors, at least 8.
        max_characters: Longer texts are cut into chunks.

    Raises:
        InvalidOptionError: An argument has a value that it cannot have.
    """

    def __init__(self, dimensions: int = 256, *, max_characters: int | None = 2_000) -> None:
        if dimensions < 8:
            raise InvalidOptionError(f"dimensions must be at least 8, not {dimensions!r}")
        self._space = VectorSpace(f"hash-1-{dimensions}", dimensions)
        self._max_characters = max_characters

    @property
    def space(self) -> VectorSpace:
        """The fingerprint and dimensions."""
        return self._space

    @property
    def max_characters(self) -> int | None:
        """The longest text it reads whole."""
        return self._max_characters

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one unit vector per text, in order."""
        return [_vector(text, self._space.dimensions) for text in texts]

    def embed_query(self, text: str, /) -> Vector:
        """Return the text's unit vector; a query and a document are treated alike."""
        return _vector(text, self._space.dimensions)
