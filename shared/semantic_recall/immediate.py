"""Vectors before the commit, where the embedder takes less time than a second commit does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from semantic_recall.indexed_text import indexed_chunks
from semantic_recall.protocols import Embedder
from semantic_recall.records import Embedded, MessageRecord, Part
from semantic_recall.types import Message
from semantic_recall.vector_cache import Key, VectorCache
from semantic_recall.vector_space import checked_vectors

_MOST = 1_024
"""Texts: what an immediate embedder does in about the time of their commit. More would keep the
first message from the disk for as long as the last takes."""


@runtime_checkable
class ImmediateEmbedder(Embedder, Protocol):
    """An embedder that can tell whether it needs less time for a text than a database for a row."""

    @property
    def immediate(self) -> bool:
        """Whether it is so now: a model in memory is, one that is still to be loaded is not."""
        ...


def embed_at_once(
    records: Sequence[MessageRecord], embedder: ImmediateEmbedder, cache: VectorCache
) -> Embedded | None:
    """Return the vectors of the messages' texts, if the embedder says that it is immediate.

    Returns:
        None where that is left for later, when messages can be pending and failures are told: the
        embedder is slow or failed, gave what cannot be used, or the texts are too many.
    """
    if not embedder.immediate:
        return None
    messages = {r.digest: r.message for r in records if r.part is Part.SEARCHABLE}
    space = embedder.space
    cached = cache.get_all([(space.name, "document", name) for name in messages])
    known = {name: vectors for (_, _, name), vectors in cached.items()}
    missing = {name: message for name, message in messages.items() if name not in known}
    made = _made(missing, embedder) if missing else {}
    if made is None:
        return None
    kept: dict[Key, NDArray[np.float32]] = {
        (space.name, "document", name): vectors for name, vectors in made.items()
    }
    cache.put_all(kept)
    return Embedded(space, {**known, **made})


def _made(
    messages: Mapping[bytes, Message], embedder: Embedder
) -> dict[bytes, NDArray[np.float32]] | None:
    chunks = [indexed_chunks(message, embedder.max_characters) for message in messages.values()]
    texts = [text for of_message in chunks for text in of_message]
    if len(texts) > _MOST:
        return None
    try:
        answer = list(embedder.embed_documents(texts))
    except Exception:  # noqa: BLE001 - foreign code may raise anything; it is tried again, and told
        return None
    vectors = checked_vectors(answer, embedder.space.dimensions)
    if vectors is None or len(vectors) != len(texts):
        return None
    ends = np.cumsum([len(of_message) for of_message in chunks]).tolist()
    starts = [0, *ends[:-1]]
    return {
        # A copy: a view would keep the whole batch alive.
        name: vectors[start:end].copy()
        for name, start, end in zip(messages, starts, ends, strict=True)
    }
