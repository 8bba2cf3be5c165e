"""Runs an embedded Chroma index for the process that started this one, until that one ends.

`python -m semantic_recall.indexes._served`; calls come in through the standard input, answers go
out through the standard output.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import traceback
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO

from semantic_recall.errors import SemanticRecallError, VectorIndexError
from semantic_recall.indexes._chroma_collections import all_ids
from semantic_recall.indexes._messages import Answer, Failure, LogLine, Request, packed, read, write
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.types import VectorSpace

THREADS = 4
"""Calls at once; Chroma's writes are one at a time, and searches go on beside them."""
LEAVING_SECONDS = 1.0
"""How long closing may take when the other process has ended: the folder is wanted elsewhere."""
_METHODS = frozenset({"upsert", "delete", "search", "shards", "ids_in", "drop", "scrub", "close"})


class ServedIndex(ChromaVectorIndex):
    """Lists its ids in parts that fit into a message."""

    def shards(self, space: VectorSpace) -> int:
        """Return over how many collections the space is spread."""
        with self._using("list ids") as collections:
            return collections.shards(space)

    def ids_in(self, space: VectorSpace, shard: int) -> list[str]:
        """Return every id in one of them."""
        with self._using("list ids", writes=True) as collections:
            return collections.call(space, shard, all_ids) or []


class Server(logging.Handler):
    """Answers calls, and passes on what is logged.

    Args:
        answers: The pipe to the other process.
    """

    def __init__(self, answers: IO[bytes]) -> None:
        super().__init__(logging.WARNING)
        self._answers = answers
        self._sending = threading.Lock()
        self._index: ServedIndex | None = None

    def serve(self, requests: IO[bytes]) -> None:
        """Answer calls until the other process closes the pipe or ends."""
        pool = ThreadPoolExecutor(THREADS)
        while isinstance(request := read(requests), Request):
            pool.submit(self._answer, request)

    def leave(self) -> None:
        """Close the index, if that does not take long, and end the process."""
        hurry = threading.Timer(LEAVING_SECONDS, os._exit, [1])
        hurry.daemon = True
        hurry.start()
        if self._index is not None:
            with suppress(SemanticRecallError):
                self._index.close()
        os._exit(0)  # nothing is left to do, and Chroma's threads need not be waited for

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a line of the log."""
        self._send(packed(LogLine(record.name, record.levelno, self.format(record))))

    def _answer(self, request: Request) -> None:
        try:
            value = self._called(request)
        except SemanticRecallError as error:
            value = Failure(type(error).__name__, str(error), traceback.format_exc())
        # Whatever it is, somebody waits for the answer.
        except Exception as error:  # noqa: BLE001 - see above
            text = f"the vector index failed unexpectedly: {type(error).__name__}: {error}"
            value = Failure(VectorIndexError.__name__, text, traceback.format_exc())
        self._send(packed(Answer(request.number, value)))

    def _called(self, request: Request) -> object:
        if request.method == "open":
            self._open(*request.arguments)  # type: ignore[arg-type]
            return None
        if self._index is None or request.method not in _METHODS:
            raise VectorIndexError(f"the vector index cannot be asked for {request.method!r}")
        method = getattr(self._index, request.method)
        value: object = method(*request.arguments, **request.options)
        return value

    def _open(
        self, path: Path, shards: int, prefix: str, keep: Collection[VectorSpace] | None
    ) -> None:
        self._index = ServedIndex.embedded(path, shards=shards, prefix=prefix, keep=keep)

    def _send(self, message: bytes) -> None:
        # If it cannot be sent, the other process has ended, and `serve` is about to see it.
        with suppress(OSError), self._sending:
            write(self._answers, message)


def main() -> None:
    """Serve whoever started this process."""
    # It leaves when the other process does, which may need the index until then: Ctrl-C and the
    # signals of a service manager reach both at once.
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        if name in signal.Signals.__members__:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    # So that nothing else reads from the pipes or prints into them.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    server = Server(answers)
    logging.getLogger().addHandler(server)
    server.serve(requests)
    server.leave()


if __name__ == "__main__":
    main()
