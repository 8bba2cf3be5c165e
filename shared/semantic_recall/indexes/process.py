"""An embedded Chroma index in a process of its own.

Chroma's calls hold the GIL, 20 to 40 ms for a small write, and an event loop stands still for as
long; and a fault of its native code ends the process. Both stay in the other process.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from semantic_recall.errors import VectorIndexError
from semantic_recall.forks import IMPORTING
from semantic_recall.indexes._chroma_lock import check_free
from semantic_recall.indexes._index_child import SERVER, IndexChild
from semantic_recall.indexes._interpreter import command
from semantic_recall.types import Hit, Scope, Vector, VectorRecord, VectorSpace

CALL_SECONDS = 300.0
"""How long a call may take before the process counts as hung ..."""
LONG_SECONDS = 3600.0
"""... and one that may read or write everything: opening, `drop` and `scrub`."""
CLOSE_SECONDS = 30.0
"""How long closing may take. The process is killed then, which loses nothing: the store has it."""


def can_start_processes() -> bool:
    """Tell whether there is a Python to start: there is none in a frozen application."""
    return command(SERVER) is not None


class ProcessVectorIndex:
    """A `VectorIndex` in a folder, as `ChromaVectorIndex.embedded`, run by a child process.

    The child owns the folder. It ends when the index is closed or forgotten, and when this process
    ends, however that happens. If the child ends first, calls raise `VectorIndexError` and `lost`
    is set: close the index and open a new one.

    Args:
        path: The folder.
        shards: Collections per vector space; fixed when the space is first written.
        prefix: Begins the names of the collections.
        keep: What an index has written in the folder for any other space is removed; None: keep
            all.
        timeout: Seconds that a call may take before the child is killed; opening, `drop` and
            `scrub` may take an hour, `close` at most 30.

    Raises:
        IndexLockedError: Another process owns the folder; raised at once.
        VectorIndexError: The child cannot be started, or not open the folder.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        shards: int = 16,
        prefix: str = "memory",
        keep: Sequence[VectorSpace] | None = None,
        timeout: float = CALL_SECONDS,
    ) -> None:
        folder = Path(os.path.realpath(path))
        self._timeout = timeout
        self._closed = False
        self._process = os.getpid()
        with IMPORTING:  # a child that is forked meanwhile would inherit the lock
            check_free(folder)  # here, as starting a process only to be refused is dear
        self._child = IndexChild(folder)
        self._end = weakref.finalize(self, self._child.end)
        try:
            self._child.call("open", folder, shards, prefix, keep, seconds=LONG_SECONDS)
        except BaseException:
            self._end()
            raise

    @property
    def lost(self) -> bool:
        """Whether the child has ended, so that the index is of no use any more."""
        return self._child.over is not None

    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        """Write vectors; of the same id twice the last wins."""
        self._call("upsert", space, list(records))

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        """Delete vectors by id; a missing id is fine."""
        self._call("delete", space, dict(ids))

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        """Return the nearest vectors of the scope, best first; [] when there are none."""
        return cast("list[Hit]", self._call("search", space, vector, scope, top_k=top_k))

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        """Yield every id of the space, one shard after the other."""
        for shard in range(cast("int", self._call("shards", space))):
            yield from cast("list[str]", self._call("ids_in", space, shard))

    def drop(self, space: VectorSpace, /) -> None:
        """Remove everything of the space; works when its collections cannot be read."""
        self._call("drop", space, seconds=LONG_SECONDS)

    def scrub(self) -> None:
        """Rewrite what holds bytes of deleted vectors; searches wait meanwhile."""
        self._call("scrub", seconds=LONG_SECONDS)

    def close(self) -> None:
        """Close the index and end the child; closing twice is fine.

        Raises:
            VectorIndexError: The child did not close it in time and was killed.
        """
        if os.getpid() != self._process or self._closed:
            return
        self._closed = True
        try:
            if not self.lost:
                self._child.call("close", seconds=min(self._timeout, CLOSE_SECONDS))
        finally:
            self._end()

    def _call(
        self, method: str, *arguments: object, seconds: float | None = None, **options: object
    ) -> object:
        if self._closed:
            raise VectorIndexError("the vector index is closed")
        return self._child.call(method, *arguments, seconds=seconds or self._timeout, **options)
