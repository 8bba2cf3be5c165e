"""The same questions through a whole library: stored, embedded, recalled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from benchmarks._locomo import Question, Sample
from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Options, Peer
from semantic_recall import Message

MOST = 300
"""How many messages are asked for: more than any budget holds."""

_ROLES = ("user", "assistant")
_NO_TIME = datetime(2000, 1, 1, tzinfo=timezone.utc)
"""No question names it."""


class StoredSamples:
    """Samples in a subject, one user each.

    Args:
        peer: What stores them.
        folder: An empty one.
        samples: A set.
        embedder: What everybody uses.

    Raises:
        ImportError: The peer is not installed.
        NotRunnableError: It cannot run here.
    """

    def __init__(
        self, peer: Peer, folder: Path, samples: Sequence[Sample], embedder: MemoEmbedder
    ) -> None:
        options = Options(durable=False, neighbours=0, index=False)
        self._subject = peer.open(folder, embedder, options)
        for sample in samples:
            messages = messages_of(sample)
            for first in range(0, len(messages), peer.batch):
                self._subject.remember(messages[first : first + peer.batch])

    def rank(self, sample: Sample, question: Question) -> list[int]:
        """Return the positions that recall finds, best first."""
        found = self._subject.recall(question.text, MOST, resource_id=sample.id)
        return list(dict.fromkeys(int(each.id) for each in found))

    def close(self) -> None:
        """Close the subject."""
        self._subject.close()


def messages_of(sample: Sample) -> list[Message]:
    """Return a sample's turns as messages; their ids are their positions."""
    return [
        Message(
            id=str(position),
            role=turn.speaker if turn.speaker in _ROLES else "user",
            name=None if turn.speaker in _ROLES else turn.speaker,
            text=turn.text,
            thread_id=f"session-{turn.session}",
            resource_id=sample.id,
            created_at=turn.at or _NO_TIME,
        )
        for position, turn in enumerate(sample.turns)
    ]
