"""How many tokens a text takes: counted where the vocabulary is on disk, estimated elsewhere."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

TokenCounter: TypeAlias = Callable[[str], int]
"""Takes a text and returns how many tokens a model reads for it."""

# The encoding o200k_base as tiktoken defines it (tiktoken_ext/openai_public.py). It is built here
# from its parts because tiktoken's own loader goes to the network when the file is missing.
_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"  # SHA-1 of its address: tiktoken's file name
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

_DIRECTORY_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")

# Packages that ship the file, by top-level name; they are looked up but never imported.
_CARRIERS = (
    ("llama_index", Path("core", "_static", "tiktoken_cache")),
    ("litellm", Path("litellm_core_utils", "tokenizers")),
)

# Longer texts are estimated. Counted in slices, because the time for a run without breaks grows
# faster than its length; each cut adds at most a token or two.
_LONGEST = 200_000  # characters
_SLICE = 10_000


def estimate_tokens(text: str) -> int:
    """Return the UTF-8 bytes of the text divided by 3, rounded up.

    That is more than what English takes (4 to 5 bytes a token) and about twice what plain
    Chinese does; only random characters (base64) take more.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def vocabulary_directories() -> Iterator[Path]:
    """Yield where the vocabulary of o200k_base may lie on this machine."""
    for variable in _DIRECTORY_VARIABLES:
        value = os.environ.get(variable)
        if value:
            yield Path(value)
    yield Path(tempfile.gettempdir(), "data-gym-cache")
    for package, inside in _CARRIERS:
        try:
            spec = find_spec(package)
        except ValueError:  # something without a spec was put into sys.modules under that name
            continue
        if spec is not None:
            yield from (Path(home, inside) for home in spec.submodule_search_locations or ())


def _read_vocabulary(directories: Sequence[Path]) -> bytes | None:
    """Return the first copy of the vocabulary that is intact."""
    for directory in directories:
        path = directory / _FILE
        try:
            data = path.read_bytes()
        except OSError:  # not there, or not for us to read: the next one
            continue
        if hashlib.sha256(data).hexdigest() == _SHA256:
            return data
    return None


def _o200k_base(data: bytes) -> TokenCounter:
    import tiktoken  # noqa: PLC0415 - only when it is used: it takes 50 ms

    # Lines of "base64 rank".
    pairs = (line.split() for line in data.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    encoding = tiktoken.Encoding(
        "o200k_base",
        pat_str=_PATTERN,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    )

    def count(text: str) -> int:
        # Ordinary: "<|endoftext|>" in a message is text like any other.
        return len(encoding.encode_ordinary(text))

    return count


class LocalTokenCounter:
    """Counts tokens of o200k_base without ever using the network; safe for many threads.

    The vocabulary is looked for once, on the first call. Without it, and for texts longer than
    200,000 characters, the count is `estimate_tokens`.

    Args:
        directories: Where to look; by default `vocabulary_directories()`.
        logger: Told once when there is no vocabulary; by default the logger `semantic_recall`.
    """

    def __init__(
        self, directories: Sequence[Path] | None = None, *, logger: logging.Logger | None = None
    ) -> None:
        self._directories = directories
        self._logger = logger or logging.getLogger("semantic_recall")
        self._lock = threading.Lock()
        self._count: TokenCounter | None = None

    def __call__(self, text: str) -> int:
        """Return how many tokens `text` takes."""
        if len(text) > _LONGEST:
            return estimate_tokens(text)
        count = self._count or self._load()
        if len(text) <= _SLICE:
            return count(text)
        return sum(count(text[at : at + _SLICE]) for at in range(0, len(text), _SLICE))

    def _load(self) -> TokenCounter:
        with self._lock:
            if self._count is None:
                data = _read_vocabulary(
                    tuple(vocabulary_directories())
                    if self._directories is None
                    else self._directories
                )
                if data is None:
                    self._logger.info(
                        "token counts are estimates (UTF-8 bytes / 3): the vocabulary of "
                        "tiktoken's o200k_base is not on this machine; set TIKTOKEN_CACHE_DIR "
                        "to a directory that has it for exact counts"
                    )
                self._count = estimate_tokens if data is None else _o200k_base(data)
            return self._count


_shared = LocalTokenCounter()


def count_tokens(text: str) -> int:
    """Return how many tokens `text` takes: of o200k_base if its file is on disk, else estimated.

    See `LocalTokenCounter`; this is the one that the process shares.
    """
    return _shared(text)
