"""A process of its own that runs an index, and calls to it."""

from __future__ import annotations

import itertools
import logging
import signal
import subprocess
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswerError
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from semantic_recall import errors
from semantic_recall.errors import SemanticRecallError, VectorIndexError
from semantic_recall.forks import IMPORTING, renew_in_child
from semantic_recall.indexes._interpreter import command, environment
from semantic_recall.indexes._messages import Answer, Failure, LogLine, Request, packed, read, write

ENDING_SECONDS = 10.0
"""How long the process may take to end before it is killed."""
SERVER = "semantic_recall.indexes._served"


class RemoteTraceback(Exception):
    """Where in the other process an error was raised; the cause of the error raised here."""


class IndexChild:
    """Runs `_served` and calls it, from any number of threads at once.

    One thread writes calls and one reads answers, so that a caller can give up. Neither keeps the
    owner of this object alive.

    Args:
        path: The folder of the index, for messages.

    Raises:
        VectorIndexError: The process cannot be started.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[object]] = {}
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._inherited = False
        self.over: str | None = None
        """Why the process cannot be called any more."""
        # A fork waits, so that no child holds the pipe of a process that it does not know of.
        with IMPORTING:
            self._process = _started(path)
            renew_in_child(self)
        self._threads = [
            threading.Thread(target=work, args=[pipe], name=f"semantic-recall-{name}", daemon=True)
            for work, pipe, name in (
                (self._write, self._process.stdin, "calls"),
                (self._read, self._process.stdout, "answers"),
            )
        ]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:  # Python is ending
            self._process.kill()
            raise VectorIndexError(f"no thread can be started for {path}: {error}") from error

    def call(self, method: str, *arguments: object, seconds: float, **options: object) -> object:
        """Call a method of the index.

        Args:
            method: Its name.
            *arguments: What it is given.
            seconds: How long the answer may take; after that the process is killed.
            **options: What it is given by name.

        Raises:
            SemanticRecallError: What the method raised, with the traceback there as its cause.
            VectorIndexError: The process has ended or does not answer in time.
        """
        number, answer = next(self._numbers), Future[object]()
        request = packed(Request(number, method, arguments, options))
        with self._lock:
            if self.over is not None:
                raise VectorIndexError(self.over)
            self._waiting[number] = answer
        self._requests.put(request)
        try:
            value = answer.result(seconds)
        except NoAnswerError:
            self._process.kill()
            raise VectorIndexError(
                f"the process of the vector index {self._path} did not answer {method!r} within "
                f"{seconds:g} s and was killed; it is started again when it is wanted"
            ) from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if isinstance(value, Failure):
            raise _error(value)
        return value

    def end(self) -> None:
        """Let the process end, and wait for that; ending twice is fine."""
        if self._inherited:
            return
        self._requests.put(None)
        if threading.current_thread() in self._threads:
            return  # called by the garbage collector, in a thread that has to go on
        try:
            self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for thread in self._threads:
            thread.join(ENDING_SECONDS)

    def renew(self) -> None:
        """Leave the process to the parent of this forked child, and its pipes too.

        As long as anybody holds them it does not see that the parent has ended.
        """
        self._inherited = True
        self.over = (
            f"the vector index {self._path} belongs to the process that this one was forked from"
        )
        self._lock = threading.Lock()
        self._process.returncode = 0  # it is not ours to wait for
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    # -- the threads ----------------------------------------------------------------------------
    def _write(self, pipe: IO[bytes]) -> None:
        with pipe, suppress(OSError):  # when it has ended, the other thread tells the callers
            while (request := self._requests.get()) is not None:
                write(pipe, request)

    def _read(self, pipe: IO[bytes]) -> None:
        try:
            with pipe:
                while (message := read(pipe)) is not None:
                    self._heard(message)
        finally:
            self._process.kill()  # nobody would hear it any more
            self._ended(self._process.wait())

    def _heard(self, message: object) -> None:
        if isinstance(message, LogLine):
            logging.getLogger(message.logger).log(message.level, "%s", message.text)
        elif isinstance(message, Answer):
            with self._lock:
                answer = self._waiting.pop(message.number, None)
            if answer is not None:
                answer.set_result(message.value)

    def _ended(self, code: int) -> None:
        how = signal.Signals(-code).name if code < 0 else f"code {code}"
        self._requests.put(None)
        with self._lock:
            self.over = (
                f"the process of the vector index {self._path} has ended ({how}); it is started "
                "again when it is wanted"
            )
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for answer in waiting:
            answer.set_result(Failure(VectorIndexError.__name__, self.over, ""))


def _started(path: Path) -> subprocess.Popen[bytes]:
    run = command(SERVER)
    if run is None:
        raise VectorIndexError(f"there is no Python to run the vector index {path} with")
    try:
        return subprocess.Popen(
            run,
            bufsize=0,  # a buffer has a lock, which a forked child could find locked for ever
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            # Ctrl-C in a terminal is for the application, which ends the process when it is done.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    except OSError as error:
        raise VectorIndexError(f"no process can be started for {path}: {error}") from error


def _error(failure: Failure) -> SemanticRecallError:
    kind = getattr(errors, failure.kind, VectorIndexError)
    error: SemanticRecallError = kind(failure.text)
    error.__cause__ = RemoteTraceback(failure.trace) if failure.trace else None
    return error
