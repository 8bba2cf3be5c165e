"""The work behind `Indexer`, and the thread that does it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable

from semantic_recall.errors import StoreClosedError, VectorIndexError
from semantic_recall.index_operations import apply
from semantic_recall.owned_index import OwnedIndex
from semantic_recall.protocols import MessageStore, VectorIndex
from semantic_recall.telemetry import Telemetry
from semantic_recall.types import VectorSpace

SERVING_BATCH = 16
"""Operations per turn beside other work: Chroma holds the GIL while it writes (about 20 ms)."""
BULK_BATCH = 512
"""Operations per turn of a bulk flush."""
EMBEDDING_BATCH = 256
QUIET_SECONDS = 0.1
"""How long nothing must be stored before the thread takes its turn ..."""
QUIET_SECONDS_PER_MESSAGE = 0.001
"""... and how much longer for each message stored last, as more of an import will come ..."""
MOST_QUIET_SECONDS = 2.0
"""... up to so long in all. Writing to Chroma beside an import halves its speed."""
LAG_PER_QUIET = 10.0
"""How many times as long it lets itself be put off by that."""
POLL_SECONDS = 2.0
"""How often it looks for what other processes have stored, and for retries that became due."""
FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 60.0
"""A failing index is tried again after 0.5, 1, 2, ... seconds, at most this."""
REOPEN_AFTER = 3
"""After so many failures in a row the index is opened again, which looks for damage ..."""
REBUILD_AFTER = 5
"""... and after so many, if it can be opened, it is written anew from the store, once."""


class IndexWorker:
    """What the thread and `flush` do, one of them at a time."""

    def __init__(
        self,
        store: MessageStore,
        open_index: Callable[[], VectorIndex] | None,
        embed_pending: Callable[[int], int] | None,
        logger: logging.Logger,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._owned = OwnedIndex(store, open_index, logger, at_exit=lambda: self.close(5.0))
        self._embed_pending = embed_pending
        self._logger = logger
        self._telemetry = telemetry
        self._closing = False
        self._renew()
        _workers.add(self)

    def _renew(self) -> None:
        """Begin without thread and index; in a forked child, without touching the parent's."""
        self._owned.renew()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._turn = threading.Lock()  # whoever holds it embeds and writes
        self._signal = threading.Event()
        self._woken_at = 0.0
        self._quiet = QUIET_SECONDS
        self._wanted = False
        self._failures = 0
        self._retry_at = 0.0

    @property
    def has_index(self) -> bool:
        """Whether there is an index to open."""
        return self._owned.can_open

    @property
    def index(self) -> VectorIndex | None:
        """The index, if it is open."""
        return self._owned.index

    def wake(self, messages: int = 0) -> None:
        """Start the thread if need be, and tell it that there may be work.

        Args:
            messages: How many were just stored together.
        """
        quiet = QUIET_SECONDS + QUIET_SECONDS_PER_MESSAGE * messages
        self._quiet = min(quiet, MOST_QUIET_SECONDS)
        self._woken_at = time.monotonic()
        self._signal.set()
        if self._thread is None and not self._closing:
            with self._starting:
                if self._thread is None:
                    thread = threading.Thread(
                        target=self._run, name="semantic-recall-indexer", daemon=True
                    )
                    try:
                        thread.start()
                    except RuntimeError:  # Python is ending; the work stays queued in the store
                        return
                    self._thread = thread

    def wanted_index(self) -> VectorIndex | None:
        """Return the index, or let the thread open it for the next time."""
        if self.index is None and self.has_index and not self._closing:
            self._wanted = True
            self.wake()
        return self.index

    def flush(self, deadline: float | None, *, bulk: bool, embed: bool) -> bool:
        """Work in this thread until nothing is left, the deadline, or a failure."""
        if not self._take_turn(deadline):
            return False
        try:
            self._wanted = self._wanted or bulk
            while not self._closing:
                if not self._step(BULK_BATCH if bulk else SERVING_BATCH, embed=embed):
                    return True
                if deadline is not None and time.monotonic() >= deadline:
                    return False
            return False
        except VectorIndexError as error:
            self._failed(error)
            return False
        finally:
            self._turn.release()

    def rebuild(self, space: VectorSpace) -> None:
        """Drop a space from the index and queue all of it."""
        with self._turn:
            index = self._owned.opened()
            if index is not None:
                index.drop(space)
            # After the drop: should the process end in between, the index is found empty.
            self._store.queue_all(space)
            self._retry_at = 0.0
        self.wake()

    def close(self, timeout: float) -> None:
        """Stop the thread and close the index, within about `timeout` seconds."""
        deadline = time.monotonic() + timeout
        self.abandon()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        if self._take_turn(deadline):
            try:
                self._owned.close()
            finally:
                self._turn.release()

    def abandon(self) -> None:
        """Let the thread end and close the index; waits for nothing, as the collector calls it."""
        self._closing = True
        self._signal.set()
        if self._thread is None:
            self._owned.forget_exit()

    def _take_turn(self, deadline: float | None) -> bool:
        if deadline is None:
            return self._turn.acquire()
        return self._turn.acquire(timeout=max(0.0, deadline - time.monotonic()))

    # -- the thread ---------------------------------------------------------------------------
    def _run(self) -> None:
        delay = 0.0
        while not self._closing:
            self._signal.wait(delay)
            self._signal.clear()
            self._wait_for_quiet()
            if self._closing:
                break
            with self._turn:
                began = time.monotonic()
                delay = self._attempt()
            if not delay:
                # Writing holds the GIL: leave the other threads as much time as was taken.
                time.sleep(min(time.monotonic() - began, QUIET_SECONDS))
        with self._turn:
            self._owned.close()

    def _wait_for_quiet(self) -> None:
        began = time.monotonic()
        while not self._closing:
            now = time.monotonic()
            left = self._woken_at + self._quiet - now
            if left <= 0 or now - began >= LAG_PER_QUIET * self._quiet:
                return
            time.sleep(min(left, QUIET_SECONDS))  # not longer, or closing would wait for it

    def _attempt(self) -> float:
        """Do one batch of everything; returns the seconds until the next attempt."""
        try:
            more = self._step(SERVING_BATCH, patient=True)
        except StoreClosedError:
            self._closing = True
            return POLL_SECONDS
        # User code runs below (embedder, index). Were the thread to end with an error of it,
        # nothing would be indexed any more, and nobody would be told.
        except Exception as error:  # noqa: BLE001 - see above; it is logged and tried again
            self._failed(error)
            return POLL_SECONDS
        return 0.0 if more else POLL_SECONDS

    # -- with the turn ------------------------------------------------------------------------
    def _step(self, limit: int, *, patient: bool = False, embed: bool = True) -> bool:
        """Embed a batch and replay up to `limit` operations; True when there may be more.

        `patient` waits until a failed or locked index is to be tried again.
        """
        more = embed and self._embed()
        if not self.has_index:
            return self._discard() or more
        if patient and time.monotonic() < max(self._retry_at, self._owned.retry_at):
            return more
        if self.index is None and not self._wanted and not self._store.operations(limit=1):
            return more  # nothing is worth opening the index for
        index = self._owned.opened()
        self._wanted = False
        if index is None:
            return more
        # Read once the index is open: opening may queue all of it.
        operations = self._store.operations(limit=limit, durable=True)
        if operations:
            with self._telemetry.index(len(operations)):
                apply(index, operations)
                self._store.acknowledge(operations)
        self._succeeded()
        return more or bool(operations)

    def _discard(self) -> bool:
        """Take off the queue what no index will ever want; True when there may be more."""
        operations = self._store.operations(limit=BULK_BATCH)
        if operations:
            self._store.acknowledge(operations)
        return bool(operations)

    def _embed(self) -> bool:
        """Embed a batch of what is due; True when there may be more.

        What failed is postponed, and a batch of which nothing succeeded waits for the next turn.
        """
        return self._embed_pending is not None and self._embed_pending(EMBEDDING_BATCH) > 0

    def _failed(self, error: Exception) -> None:
        if not self._failures:
            self._logger.warning(
                "the background indexer failed and will try again; recall goes on without it: %s",
                error,
                exc_info=error,
            )
        seconds = FIRST_RETRY_SECONDS * 2.0 ** min(self._failures, 10)
        self._retry_at = time.monotonic() + min(seconds, LAST_RETRY_SECONDS)
        self._failures += 1
        if not isinstance(error, VectorIndexError):
            return
        if self._failures == REOPEN_AFTER:
            self._owned.close()
        elif self._failures == REBUILD_AFTER:
            self._owned.refill()

    def _succeeded(self) -> None:
        if self._failures:
            self._logger.info("the background indexer works again")
        self._failures = 0
        self._retry_at = 0.0


_workers: weakref.WeakSet[IndexWorker] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for worker in list(_workers):
        worker._renew()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_in_child)
