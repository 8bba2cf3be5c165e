"""What a memory tells about its work: the seam for tracing and metrics.

A memory calls the methods of `Settings.telemetry` around what it does. The default does nothing;
`semantic_recall.telemetry_otel.OpenTelemetry` makes spans and metrics of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

from semantic_recall.errors import EmbedderError
from semantic_recall.options import RecallOptions
from semantic_recall.protocols import MessageStore
from semantic_recall.result import Recall
from semantic_recall.types import Message, Scope, VectorSpace

T = TypeVar("T")

Told: TypeAlias = Callable[[T], None]
"""Called with the outcome of the work, if it has one; an error leaves the `with` block instead."""


@dataclass(frozen=True, slots=True)
class Removal:
    """How much a `forget` removed."""

    messages: int
    vectors: int


class LookUps(Protocol):
    """A cache that counts."""

    @property
    def hits(self) -> int:
        """Look-ups that were answered."""
        ...

    @property
    def misses(self) -> int:
        """Look-ups that were not."""
        ...


def _ignore(outcome: object) -> None:
    pass


# Made once and entered again and again, from any thread: a recall pays for two calls.
_QUIET = nullcontext(_ignore)
_SILENT = nullcontext(None)


class Telemetry:
    """Is told what a memory does, and does nothing with it; subclasses do.

    The methods are called from many threads, before and after the work and around its awaits.
    What they raise reaches the caller of the memory, so they should not raise.
    """

    def recall(
        self, query: str, options: RecallOptions, space: VectorSpace | None
    ) -> AbstractContextManager[Told[Recall]]:
        """Surround a recall.

        Args:
            query: What is searched for: text of the user.
            options: Of this call.
            space: The embedder's; None where words alone are searched.
        """
        return _QUIET

    def remember(
        self, space: VectorSpace | None, *, background: bool
    ) -> AbstractContextManager[Told[Sequence[Message]]]:
        """Surround the storing of messages and, without `background`, their embedding."""
        return _QUIET

    def forget(self, scope: Scope, *, secure: bool) -> AbstractContextManager[Told[Removal]]:
        """Surround a removal from a thread, or from all of a resource."""
        return _QUIET

    def index(self, changes: int) -> AbstractContextManager[None]:
        """Surround the writing of a batch into the vector index."""
        return _SILENT

    def embedder_failed(self, side: Literal["query", "document"], error: EmbedderError) -> None:
        """Count a failure of the embedder, also one that the memory gets over."""

    def watch(self, store: MessageStore, views: LookUps, vectors: LookUps | None) -> None:
        """Begin to report the state of a memory; again when its caches were replaced.

        Nothing of it should be kept alive by this.

        Args:
            store: Asked for its `size`, until it is closed.
            views: The cache of hot scopes.
            vectors: The cache of embeddings; None in a memory without embedder.
        """
