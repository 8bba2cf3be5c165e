"""The default embedder: WordLlama's static token vectors, from the files inside its wheel."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from semantic_recall.adapting import encodable
from semantic_recall.embedders._shared_model import SharedModel
from semantic_recall.embedders._support import check_file
from semantic_recall.embedders._word_sums import Tokenize, WordSums
from semantic_recall.errors import InvalidOptionError, MissingDependencyError
from semantic_recall.types import Vector, VectorSpace

_PACKAGE = "wordllama"
_REMEDY = 'run: pip install --force-reinstall "wordllama>=0.4,<0.5"'
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
_TENSOR = "embedding.weight"
_UNKNOWN = 0  # the token <unk>

# The model was trained so that its first 64 or 128 numbers are a smaller model by themselves.
_DIMENSIONS = (64, 128, 256)

_BATCH = 64  # texts at once; bounds the memory that their tokens take
_LONGEST = 100_000  # characters; the tokenizer takes 14 s and 3 GB for a text of 9 million


@dataclass(frozen=True, slots=True)
class _Model:
    tokenize: Tokenize
    words: WordSums
    """Over 256 numbers a token."""
    unknown: NDArray[np.float32]
    """The vector of the token <unk>."""
    bytes: frozenset[int | None]
    """The tokens that stand for a byte of a character that is not in the vocabulary."""
    space: int | None
    """The token of a space that belongs to no word."""

    def embed(self, texts: Sequence[str], dimensions: int) -> list[Vector]:
        """Return the mean direction of each text's tokens, a unit vector."""
        sums = self.words.of([_readable(text) for text in texts])
        return [self._direction(total[:dimensions]) for total in sums]

    def _direction(self, total: NDArray[np.float32]) -> Vector:
        norm = math.sqrt(total @ total)
        if norm == 0.0:  # no tokens, or such that cancel out exactly; zeros have no direction
            total = self.unknown[: len(total)]
            norm = math.sqrt(total @ total)
        vector: Vector = total / np.float32(norm)
        return vector


def _readable(text: str) -> str:
    return encodable(text[:_LONGEST])


def _package_directory() -> Path:
    # The package is found but never imported: on import it configures the root logger of the
    # application, and its loader looks for the tokenizer in a cache and on the network.
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(f"the package {_PACKAGE!r} is not installed; {_REMEDY}")
    return Path(spec.submodule_search_locations[0])


def _tensor(data: bytes, name: str) -> NDArray[np.float32]:
    """Read a half-precision tensor of the safetensors format.

    The format: 8 bytes with the header's length, the header as JSON, the numbers
    (https://huggingface.co/docs/safetensors).
    """
    start = 8 + int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:start])[name]
    first, last = entry["data_offsets"]
    halves = np.frombuffer(data[start + first : start + last], dtype="<f2")
    tokens: NDArray[np.float32] = halves.reshape(entry["shape"]).astype(np.float32)
    return tokens


def _load() -> _Model:
    directory = _package_directory()
    weights, config = directory / _WEIGHTS, directory / _TOKENIZER
    check_file(weights, _WEIGHTS_SHA256, remedy=_REMEDY)
    check_file(config, _TOKENIZER_SHA256, remedy=_REMEDY)
    tokenizer = Tokenizer.from_file(str(config))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    spelt = frozenset(tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256))
    tokens = _tensor(weights.read_bytes(), _TENSOR)

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    return _Model(
        tokenize,
        WordSums(tokenize, tokens),
        tokens[_UNKNOWN],
        spelt,
        tokenizer.token_to_id("\u2581"),
    )


_shared = SharedModel(_load)


class WordLlamaEmbedder:
    """WordLlama `l2_supercat`: the mean of static token vectors; no download, no neural network.

    For English and other languages with spaces; for Chinese, Japanese and Korean the
    multilingual embedder is much better. The files come from the wheel `wordllama` and are
    checked against their SHA-256 once per process; model and tokenizer are loaded on first use
    (about 0.25 s, 40 MB) and shared by all instances. The tokenizer works without the GIL.

    A text without tokens (the empty text) gets the vector of the unknown token, never zeros.

    Args:
        dimensions: 256, 128 or 64; fewer are faster and less exact.
        max_characters: Longer texts are cut into chunks. The model reads any length, but the
            mean over a long text is near to everything and so finds nothing. Of a text given to
            this class directly the first 100,000 characters are read.

    Raises:
        InvalidOptionError: An argument has a value that it cannot have.
    """

    def __init__(self, dimensions: int = 256, *, max_characters: int | None = 2_000) -> None:
        if dimensions not in _DIMENSIONS:
            raise InvalidOptionError(
                f"WordLlama has {', '.join(map(str, _DIMENSIONS))} dimensions, not {dimensions!r}"
            )
        self._space = VectorSpace(
            f"wordllama-l2_supercat-{_WEIGHTS_SHA256[:8]}-{dimensions}", dimensions
        )
        self._max_characters = max_characters

    @property
    def space(self) -> VectorSpace:
        """The fingerprint (model, digest of the weights, dimensions) and dimensions."""
        return self._space

    @property
    def max_characters(self) -> int | None:
        """The longest text it reads whole."""
        return self._max_characters

    @property
    def immediate(self) -> bool:
        """Whether the model is in memory: it takes 25 microseconds for a message of 130 letters."""
        return _shared.loaded

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one unit vector per text, in order.

        Raises:
            EmbedderError: The model files are missing or damaged.
            MissingDependencyError: The package wordllama is not installed.
        """
        model = _shared.get()
        dimensions = self._space.dimensions
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            vectors.extend(model.embed(texts[start : start + _BATCH], dimensions))
        return vectors

    def embed_query(self, text: str, /) -> Vector:
        """Return the text's unit vector; a query and a document are treated alike.

        Raises:
            EmbedderError: The model files are missing or damaged.
            MissingDependencyError: The package wordllama is not installed.
        """
        return self.embed_documents([text])[0]

    def coverage(self, text: str, /) -> float:
        """Return which share of a text has vectors of its own, 0 to 1; ranking goes by it.

        What is not in the vocabulary (half of the characters of a Chinese or Korean text) is
        spelt in bytes, three to a character, and the vectors of bytes mean nothing.

        Raises:
            EmbedderError: The model files are missing or damaged.
            MissingDependencyError: The package wordllama is not installed.
        """
        if text.isascii():
            return 1.0
        model = _shared.get()
        (ids,) = model.tokenize([_readable(text)])
        spelt = sum(token in model.bytes for token in ids) / 3
        read = sum(token not in model.bytes and token != model.space for token in ids)
        return read / (read + spelt) if spelt else 1.0
