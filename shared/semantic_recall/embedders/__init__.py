"""Embedders: each file wraps one source of vectors and imports its packages only when used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from semantic_recall.errors import InvalidOptionError
from semantic_recall.protocols import Embedder

__all__ = ["EMBEDDER_NAMES", "embedder_named"]


def _wordllama() -> Embedder:
    from semantic_recall.embedders.wordllama import (  # noqa: PLC0415 - tokenizer library, on demand
        WordLlamaEmbedder,
    )

    return WordLlamaEmbedder()


def _multilingual() -> Embedder:
    from semantic_recall.embedders.multilingual import (  # noqa: PLC0415 - optional, on demand
        MultilingualEmbedder,
    )

    return MultilingualEmbedder()


def _hash() -> Embedder:
    from semantic_recall.embedders.hash import HashEmbedder  # noqa: PLC0415 - on demand

    return HashEmbedder()


_MAKERS: Mapping[str, Callable[[], Embedder]] = {
    "wordllama": _wordllama,
    "multilingual": _multilingual,
    "hash": _hash,
}

EMBEDDER_NAMES = tuple(_MAKERS)
"""The names that `embedder_named` knows."""


def embedder_named(name: str) -> Embedder:
    """Return a new embedder with its defaults.

    Args:
        name: "wordllama" (the default of the library; English and other languages with spaces),
            "multilingual" (about 100 languages; needs the extra `multilingual`) or "hash" (no
            model, for tests and benchmarks).

    Raises:
        InvalidOptionError: There is no embedder of that name.
        MissingDependencyError: The embedder's package is not installed.
    """
    maker = _MAKERS.get(name)
    if maker is None:
        known = ", ".join(repr(each) for each in EMBEDDER_NAMES)
        raise InvalidOptionError(
            f"there is no embedder named {name!r}; the names are {known}. "
            "For any other embedder pass an object instead of a name"
        )
    return maker()
