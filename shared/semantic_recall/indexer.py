"""The background writer: makes everything derived catch up with the store.

It embeds the messages that wait for vectors and replays in the vector index what the store has
queued for it. Both can be late or fail without harm: recall reads the store.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable

from semantic_recall.index_worker import IndexWorker
from semantic_recall.protocols import MessageStore, VectorIndex
from semantic_recall.telemetry import Telemetry
from semantic_recall.types import VectorSpace


class Indexer:
    """Catches up in one daemon thread, or in the caller's thread with `flush`.

    The thread starts with the first `wake` and ends with `close`, when the indexer is garbage
    collected, or with the process. A forked child starts its own and leaves the parent's index
    alone.

    Args:
        store: The truth.
        open_index: Opens the vector index, which is closed with the indexer. It raises
            `IndexLockedError` while another process owns it; that one then indexes for all.
            None: there is no index, and what the store queues for one is dropped.
        embed_pending: Embeds up to so many due pending messages; returns how many it finished.
            Postpones what fails instead of raising `EmbedderError`. None: nothing is embedded.
        logger: Told once when something begins to fail, with the cause, and once when it ends.
        telemetry: Is told of every batch for the index; by default nobody is.
    """

    def __init__(
        self,
        store: MessageStore,
        open_index: Callable[[], VectorIndex] | None,
        embed_pending: Callable[[int], int] | None,
        *,
        logger: logging.Logger,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._worker = IndexWorker(
            store, open_index, embed_pending, logger, telemetry or Telemetry()
        )
        # The thread knows only the worker, so that it does not keep the indexer alive.
        weakref.finalize(self, self._worker.abandon).atexit = False

    def wake(self, messages: int = 0) -> None:
        """Tell the thread that there may be work; cheap, from any thread.

        Args:
            messages: How many were just stored together: after many it waits for more.
        """
        self._worker.wake(messages)

    def flush(
        self, timeout: float | None = None, *, bulk: bool = False, embed: bool = True
    ) -> bool:
        """Do all the work in the calling thread, without waiting for a retry to become due.

        Args:
            timeout: Seconds; checked between batches. None: as long as it takes.
            bulk: Use large batches, which block other threads for longer, and open the index
                even when there is nothing to write.
            embed: False only brings the index up to date, and waits for no embedder.

        Returns:
            True when no due message waits for vectors and, if this process owns the index,
            nothing is queued for it. What the index of another process has to catch up on is
            left to that process. False when time ran out, the index failed (logged) or the
            indexer is closed.

        Raises:
            StoreError: The store failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        return self._worker.flush(deadline, bulk=bulk, embed=embed)

    def index(self) -> VectorIndex | None:
        """Return the index if this process owns it; else None, and the thread tries to open it."""
        return self._worker.wanted_index()

    @property
    def owns_index(self) -> bool:
        """Whether this process has the index open."""
        return self._worker.index is not None

    @property
    def has_index(self) -> bool:
        """Whether there is an index at all, owned by this process or by another."""
        return self._worker.has_index

    def rebuild(self, space: VectorSpace) -> None:
        """Drop a space from the index, readable or not, and write it anew from the store.

        The writing is queued and done by the thread or by `flush`. If another process owns the
        index, it only writes every vector again.

        Raises:
            VectorIndexError: The index cannot be opened, or the space not dropped.
            StoreError: The store failed.
        """
        self._worker.rebuild(space)

    def close(self, timeout: float = 10.0) -> None:
        """Stop the thread and close the index; what is left to do stays queued in the store.

        Closing twice is fine. If a batch takes longer than `timeout` seconds, the thread closes
        the index when it is done.
        """
        self._worker.close(timeout)
