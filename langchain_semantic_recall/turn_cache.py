"""What a middleware knows about the turns that are running."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from langchain_semantic_recall.turns import Fingerprint
from semantic_recall.result import Recall

DEFAULT_SIZE: Final = 1024


@dataclass(slots=True)
class Turn:
    """One human message and what was done about it."""

    recall: Recall | None = None
    stored: set[Fingerprint] = field(default_factory=set)
    """The messages that are stored already."""


class TurnCache:
    """The last turns by key; safe for many threads.

    Args:
        size: How many turns are known at most; the one used longest ago is forgotten.
    """

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        self._size = size
        self._turns: OrderedDict[Hashable, Turn] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Turn:
        """Return the turn of that key, a new one if there is none."""
        with self._lock:
            turn = self._turns.pop(key, None) or Turn()
            self._turns[key] = turn
            while len(self._turns) > self._size:
                self._turns.popitem(last=False)
            return turn

    def end(self, key: Hashable) -> None:
        """Forget the turn."""
        with self._lock:
            self._turns.pop(key, None)
