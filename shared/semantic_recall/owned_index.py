"""The vector index of this process: opened when wanted, and closed before the process ends."""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from semantic_recall.errors import IndexLockedError, SemanticRecallError, VectorIndexError
from semantic_recall.forks import IMPORTING
from semantic_recall.protocols import MessageStore, VectorIndex
from semantic_recall.types import VectorSpace


@runtime_checkable
class _CanBeLost(Protocol):
    @property
    def lost(self) -> bool: ...


LOCKED_SECONDS = 5.0
"""How often owning an index is tried that another process owns."""


class OwnedIndex:
    """Opens and closes the vector index; used by one thread at a time.

    Args:
        store: Fills an index that was found empty.
        open_index: Opens the index, or raises `IndexLockedError`; None: there is none.
        logger: Told when another process owns the index.
        at_exit: Called when the process ends with the index open.
    """

    def __init__(
        self,
        store: MessageStore,
        open_index: Callable[[], VectorIndex] | None,
        logger: logging.Logger,
        *,
        at_exit: Callable[[], None],
    ) -> None:
        self._store = store
        self._open_index = open_index
        self._logger = logger
        self._at_exit = at_exit
        self.renew()

    def renew(self) -> None:
        """Begin without an index; in a forked child, without touching the parent's."""
        self._index: VectorIndex | None = None
        self.retry_at = 0.0
        """When an index that another process owns is to be tried again."""
        self._locked = False

    @property
    def index(self) -> VectorIndex | None:
        """The index, if it is open and not lost."""
        index = self._index
        return None if isinstance(index, _CanBeLost) and index.lost else index

    @property
    def can_open(self) -> bool:
        """Whether there is an index to open."""
        return self._open_index is not None

    def opened(self) -> VectorIndex | None:
        """Return the index, opened if it can be; None while another process owns it.

        Raises:
            VectorIndexError: It cannot be opened.
        """
        if self.index is not None or self._open_index is None:
            return self.index
        self.close()  # what is left of one that was lost
        try:
            with IMPORTING:
                index = self._open_index()
        except IndexLockedError as error:
            if not self._locked:
                self._logger.info("%s", error)
            self._locked = True
            self.retry_at = time.monotonic() + LOCKED_SECONDS
            return None
        self._locked = False
        self.retry_at = 0.0
        try:
            drop_left_behind(self._store, index)
            for info in self._store.spaces():
                # Somebody deleted the index, or it was damaged and given up.
                if info.vectors and _is_empty(index, info.space):
                    self._store.queue_all(info.space)
        except BaseException:
            index.close()
            raise
        self._index = index
        # Registered after the index's own exit handlers, so it runs before them.
        atexit.register(self._at_exit)
        return index

    def refill(self) -> None:
        """Drop everything from the open index and queue it; a failure is logged."""
        index = self.index
        if index is None:
            return
        try:
            for info in self._store.spaces():
                index.drop(info.space)
                self._store.queue_all(info.space)
        except SemanticRecallError as error:
            self._logger.warning("the vector index cannot be written anew: %s", error)
        else:
            self._logger.warning("the vector index kept failing and is written anew")

    def close(self) -> None:
        """Close the index if it is open; a failure is logged."""
        self.forget_exit()
        index, self._index = self._index, None
        if index is not None:
            try:
                index.close()
            except SemanticRecallError as error:
                self._logger.warning("the vector index did not close: %s", error)

    def forget_exit(self) -> None:
        """Do nothing when the process ends."""
        atexit.unregister(self._at_exit)


def left_behind(store: MessageStore) -> list[VectorSpace]:
    """Return the spaces that recall has left for a newer one and that nothing wants any more.

    A reindex removes them after its switch, unless its process ends in between. A space that a
    reindex is still filling came after the active one, and is not among them.
    """
    spaces = store.spaces()
    active = next((place for place, info in enumerate(spaces) if info.active), 0)
    return [info.space for info in spaces[:active]]


def drop_left_behind(store: MessageStore, index: VectorIndex | None) -> None:
    """Remove these spaces, from the index first if it is given.

    Should the process end in between, the store still knows the space, and the next one goes on.

    Raises:
        VectorIndexError: A space could not be dropped from the index.
    """
    for space in left_behind(store):
        if index is not None:
            index.drop(space)
        store.drop_space(space)


def _is_empty(index: VectorIndex, space: VectorSpace) -> bool:
    try:
        return next(index.ids(space), None) is None
    except VectorIndexError:
        return False  # damaged: `rebuild` needs it open
