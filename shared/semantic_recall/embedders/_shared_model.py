"""A model that all embedders of a process share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from semantic_recall.forks import renew_in_child

Model = TypeVar("Model")


class SharedModel(Generic[Model]):
    """The one model of this process, loaded when it is first needed; safe for many threads.

    Args:
        load: Loads it. What it raises, `get` raises; the next `get` tries again.
    """

    def __init__(self, load: Callable[[], Model]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._model: Model | None = None
        renew_in_child(self)

    def get(self) -> Model:
        """Return the model."""
        model = self._model
        if model is None:
            with self._lock:
                model = self._model
                if model is None:
                    model = self._model = self._load()
        return model

    @property
    def loaded(self) -> bool:
        """Whether `get` need not load it."""
        return self._model is not None

    def renew(self) -> None:
        """Begin with a lock that nobody holds; a model that is loaded stays."""
        self._lock = threading.Lock()
