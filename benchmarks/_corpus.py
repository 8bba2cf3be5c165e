"""A made-up corpus for speed: skewed resources, short threads, words with natural frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import numpy as np

from semantic_recall import Message

_START = datetime(2024, 1, 1, tzinfo=timezone.utc)
_THREAD_LENGTH = 25
_TOPICS_PER_RESOURCE = 12


class Corpus:
    """Messages of many resources.

    Args:
        messages: How many in all.
        resources: Over how many resources; sizes are skewed (a Pareto tail) with at least 30.
        seed: Equal seeds give equal corpora.
    """

    def __init__(self, messages: int, resources: int, seed: int = 7) -> None:
        self._random = np.random.default_rng(seed)
        self._words = [f"{a}{b}{c}" for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES]
        self.sizes = self._sizes(messages, resources)

    def _sizes(self, messages: int, resources: int) -> list[int]:
        least = min(30, messages // resources)
        spare = messages - least * resources
        shares = self._random.pareto(1.3, resources)
        sizes = least + np.floor(spare * shares / shares.sum()).astype(int)
        sizes[0] += messages - int(sizes.sum())
        return [int(size) for size in sizes]

    def text(self, topic: int, length: int) -> str:
        """Return made-up words, half of them about a topic."""
        common = self._random.zipf(1.4, length) % len(self._words)
        special = (topic * 37 + self._random.integers(0, 40, length)) % len(self._words)
        chosen = np.where(self._random.random(length) < 0.5, common, special)
        return " ".join(self._words[number] for number in chosen)

    def messages(self) -> Iterator[Message]:
        """Yield every message, resource by resource and turn by turn."""
        for resource, size in enumerate(self.sizes):
            yield from self.of_resource(resource, size)

    def of_resource(self, resource: int, size: int) -> Iterator[Message]:
        """Yield the messages of one resource."""
        topics = self._random.integers(0, 400, _TOPICS_PER_RESOURCE)
        for number in range(size):
            thread = number // _THREAD_LENGTH
            topic = int(topics[thread % _TOPICS_PER_RESOURCE])
            yield Message(
                role="user" if number % 2 == 0 else "assistant",
                text=self.text(topic, int(self._random.integers(8, 32))),
                id=f"m{number}",
                thread_id=f"t{thread}",
                resource_id=f"r{resource}",
                created_at=_START + timedelta(minutes=number),
            )


_SYLLABLES = [
    consonant + vowel for consonant in "bdfgklmnprst" for vowel in ("a", "e", "i", "o", "u")
][:24]
