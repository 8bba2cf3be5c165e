"""What is set once for a memory, as against `RecallOptions`, which a call may override."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import InvalidOptionError
from semantic_recall.result import Recall
from semantic_recall.telemetry import Telemetry
from semantic_recall.types import Message

BeforeStore = Callable[[Sequence[Message]], Sequence[Message]]
"""May change, drop or add messages before they are stored, or raise `AbortTurn`."""
BeforeInject = Callable[[Recall], Recall]
"""May change or empty what was recalled before it reaches a prompt, or raise `AbortTurn`."""
Scores: TypeAlias = Sequence[float] | NDArray[np.floating]
Reranker: TypeAlias = Callable[[str, Sequence[str]], Scores | Awaitable[Scores]]
"""Takes the query and the candidates as "speaker: text", and returns a number for each, higher for
better, on any scale; sync or async. Several threads may call it at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one memory works.

    Raises:
        InvalidOptionError: A number is out of its range.
    """

    exact_limit: int = 100_000
    """Scopes of up to this many messages are searched exactly; 0 always asks the vector index."""
    cache_bytes: int = 256 * 2**20
    """How much memory the vectors and terms of hot scopes may take."""
    index_process: bool = False
    """Run the Chroma of a folder in a process of its own: for services with an event loop, which
    its writes would stop for 20 to 40 ms each, and so that a crash of its native code ends only
    that process. Without effect for other indexes, and where there is no Python to start."""
    embed_roles: frozenset[str] = frozenset({"user", "assistant"})
    """Messages with these roles are embedded and searched."""
    timeout: float = 5.0
    """Seconds that a recall in front of a model may take before the turn goes on without it."""
    before_store: BeforeStore | None = None
    """May change, drop or add messages before they are stored, or raise `AbortTurn`."""
    before_inject: BeforeInject | None = None
    """May change or empty what was recalled before it reaches a prompt, or raise `AbortTurn`."""
    reranker: Reranker | None = None
    """Orders the best candidates anew, before neighbours are added. If it fails or takes more than
    half of `timeout` in front of a model, the order stays as it was."""
    rerank_candidates: int = 50
    """How many of the best the reranker reads; at least `top_k` of a recall are."""
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("semantic_recall"))
    """Gets the warnings; the default is the logger "semantic_recall"."""
    telemetry: Telemetry = field(default_factory=Telemetry)
    """Is told what the memory does; the default does nothing with it."""

    def __post_init__(self) -> None:
        if self.exact_limit < 0 or self.cache_bytes < 0:
            raise InvalidOptionError("exact_limit and cache_bytes must be 0 or more")
        if not self.timeout > 0:
            raise InvalidOptionError(f"timeout must be a number of seconds > 0, not {self.timeout}")
        if self.rerank_candidates < 1:
            raise InvalidOptionError(
                f"rerank_candidates must be 1 or more, not {self.rerank_candidates}"
            )
