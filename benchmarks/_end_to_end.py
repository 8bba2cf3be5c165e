"""The same questions through the whole library: stored, embedded, recalled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks._locomo import Question, Sample
from semantic_recall import Message, SemanticRecall
from semantic_recall.protocols import Embedder

_ROLES = ("user", "assistant")


class StoredSamples:
    """Samples in a memory, one resource each.

    Args:
        directory: An empty directory for the memory.
        samples: What is stored.
        embedder: None searches by words alone.
    """

    def __init__(
        self, directory: Path, samples: Sequence[Sample], embedder: Embedder | None
    ) -> None:
        self._memory = SemanticRecall.open(directory, embedder=embedder)
        for sample in samples:
            self._memory.remember(_messages(sample))

    def ranking(self, sample: Sample, question: Question) -> list[int]:
        """Return the positions that recall finds, best first; of equal texts the newest only."""
        recalled = self._memory.recall(
            question.text,
            resource_id=sample.id,
            top_k=len(sample.turns),
            message_range=0,
        )
        return [int(hit.message.id) for hit in recalled.hits]

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()


def _messages(sample: Sample) -> list[Message]:
    return [
        Message(
            id=str(position),
            role=turn.speaker if turn.speaker in _ROLES else "user",
            name=None if turn.speaker in _ROLES else turn.speaker,
            text=turn.text,
            thread_id=f"session {turn.session}",
            resource_id=sample.id,
        )
        for position, turn in enumerate(sample.turns)
    ]
