"""One subject in a process of its own, so that its memory is its own, told what to do next."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks._stock import Stock
from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import NotRunnableError, Options, Peer, Subject, content
from semantic_recall.embedders.hash import HashEmbedder

TOP_K = 4
_COLD = 100


class RemoteError(Exception):
    """The subject failed; the message is its error."""


class Work:
    """What can be asked of a subject."""

    def __init__(self, peer: Peer, folder: Path, stock: Stock, options: Options) -> None:
        self._peer = peer
        self._folder = folder
        self._stock = stock
        self._options = options
        self._embedder = MemoEmbedder(HashEmbedder())
        self._subject: Subject | None = None

    @property
    def subject(self) -> Subject:
        """The open subject."""
        if self._subject is None:
            self._subject = self._peer.open(self._folder, self._embedder, self._options)
        return self._subject

    def fill(self, limit: float) -> dict[str, Any]:
        """Store the corpus, as far as it gets in `limit` seconds."""
        subject = self.subject
        stored, spent, size = 0, 0.0, self._peer.batch
        for batch in self._stock.batches():
            self._embedder.give([content(message) for message in batch.messages], batch.vectors)
            for first in range(0, len(batch.messages), size):
                some = batch.messages[first : first + size]
                started = time.perf_counter()
                subject.remember(some)
                spent += time.perf_counter() - started
                stored += len(some)
                if spent > limit:
                    return {"stored": stored, "seconds": spent, "finished": False}
        return {"stored": stored, "seconds": spent, "finished": True}

    def settle(self) -> float:
        """Wait for work in the background; returns the seconds."""
        started = time.perf_counter()
        self.subject.settle()
        return time.perf_counter() - started

    def ask(self, first: int, count: int, thread: bool) -> list[float]:
        """Recall some questions; returns the seconds of each."""
        queries = self._stock.queries()
        self._embedder.give([query.text for query in queries], [query.vector for query in queries])
        times = []
        for query in queries[first : first + count]:
            scope = query.thread_id if thread else None
            started = time.perf_counter()
            self.subject.recall(query.text, TOP_K, resource_id=query.resource_id, thread_id=scope)
            times.append(time.perf_counter() - started)
        return times

    def cpu(self) -> list[float]:
        """Recall every question; returns the seconds of processor time that each took here.

        Unlike other times it does not grow when the machine has more to do; a server's or another
        process's part is not in it.
        """
        queries = self._stock.queries()
        self._embedder.give([query.text for query in queries], [query.vector for query in queries])
        times = []
        for query in queries:
            started = time.process_time()
            self.subject.recall(query.text, TOP_K, resource_id=query.resource_id)
            times.append(time.process_time() - started)
        return times

    def remember(self, first: int, count: int) -> list[float]:
        """Store some turns; returns the seconds of each."""
        times = []
        for turn in self._stock.turns()[first : first + count]:
            self._embedder.give([content(message) for message in turn.messages], turn.vectors)
            started = time.perf_counter()
            self.subject.remember(turn.messages)
            times.append(time.perf_counter() - started)
        return times

    def memory(self) -> int:
        """Return the bytes that the process and those it started hold."""
        process = psutil.Process()
        parts = [process, *process.children(recursive=True)]
        return sum(part.memory_info().rss for part in parts)

    def disk(self) -> int:
        """Return the bytes of the folder's files."""
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def reopen(self) -> float:
        """Close the subject and open it again; returns the seconds that opening took."""
        self.close()
        started = time.perf_counter()
        _ = self.subject
        return time.perf_counter() - started

    def cold(self) -> list[float]:
        """Ask users for the first time since it was opened; returns the seconds of each."""
        places: dict[str, int] = {}
        for place, query in enumerate(self._stock.queries()):
            places.setdefault(query.resource_id, place)
        # The first of all also pays for what is loaded once, whichever user it asks.
        chosen = list(places.values())[: _COLD + 1]
        return [self.ask(place, 1, False)[0] for place in chosen][1:]

    def close(self) -> None:
        """Close the subject."""
        if self._subject is not None:
            self._subject.close()
            self._subject = None


def _serve(pipe: Connection, peer: Peer, folder: Path, stock: Stock, options: Options) -> None:
    work = Work(peer, folder, stock, options)
    while True:
        method, arguments = pipe.recv()
        try:
            pipe.send((None, getattr(work, method)(*arguments)))
        except (ImportError, NotRunnableError) as error:
            pipe.send((f"not run: {error}", None))
        except Exception as error:  # noqa: BLE001 - whatever a library raises is a result here
            pipe.send((f"failed: {type(error).__name__}: {str(error)[:200]}", None))
        if method == "close":
            return


class Remote:
    """A subject in another process."""

    def __init__(self, peer: Peer, folder: Path, stock: Stock, options: Options) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, peer, folder, stock, options), daemon=False
        )
        self._process.start()
        theirs.close()

    def call(self, method: str, *arguments: object, timeout: float = 600) -> Any:  # noqa: ANN401
        """Let the subject do something and return what came of it.

        Raises:
            RemoteError: It failed, ended, or took longer than `timeout` seconds.
        """
        try:
            self._pipe.send((method, arguments))
            if not self._pipe.poll(timeout):
                raise RemoteError(f"{method} took more than {timeout:.0f} s")
            error, result = self._pipe.recv()
        except (EOFError, OSError) as broken:
            raise RemoteError(f"{method}: the process ended") from broken
        if error:
            raise RemoteError(error)
        return result

    def end(self) -> None:
        """Close the subject and end its process, by force if it does not answer."""
        if self._process.is_alive():
            try:
                self.call("close", timeout=30)
            except RemoteError:
                self.kill()
        self._process.join()
        self._pipe.close()

    def kill(self) -> None:
        """End the process at once, with those that it started."""
        if self._process.is_alive():
            for child in psutil.Process(self._process.pid).children(recursive=True):
                child.kill()
            self._process.kill()
            self._process.join()
