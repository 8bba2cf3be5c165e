"""Processes made by fork, from a parent that has loaded everything and opened nothing.

A forked child has the libraries in memory at once; a parent that had opened a memory could not
fork one that owns an index (see `semantic_recall.indexes`). So all that opens a memory is a child.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.chaos.journal import Journal

T = TypeVar("T")

PIPE_BYTES = 2**20
"""Room for what a child says until somebody reads it."""


@dataclass(slots=True)
class Child:
    """A process at work, and the reading end of its journal."""

    pid: int
    pipe: int
    ended: bool = False

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if not self.ended:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def wait(self, seconds: float | None = None) -> int | None:
        """Return the exit code; None when it has not ended in time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, 0 if deadline is None else os.WNOHANG)
            if pid:
                self.ended = True
                return os.waitstatus_to_exitcode(status)
            if deadline is not None and time.monotonic() > deadline:
                return None
            time.sleep(0.01)


def start(body: Callable[[Journal], object]) -> Child:
    """Run `body` in a child; what it says can be read from the pipe."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    os.close(reading)
    code = 1
    try:
        body(Journal(writing))
        code = 0
    except BaseException:  # noqa: BLE001 - the child must end here, whatever happens
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def result_of(body: Callable[[], T], seconds: float = 300) -> T:
    """Run `body` in a child and return what it returns.

    Raises:
        RuntimeError: It raised, died or did not end in time.
    """
    reading, writing = os.pipe()

    def send(_: Journal) -> None:
        data = pickle.dumps(body())
        with os.fdopen(writing, "wb") as stream:
            stream.write(data)

    child = start(send)
    os.close(writing)
    os.close(child.pipe)
    data = _read_all(reading, child, seconds)
    code = child.wait(max(5.0, seconds / 10))
    child.kill()
    if code != 0:
        raise RuntimeError(f"a process ended with {code} (None: it hung)")
    value: Any = pickle.loads(data)
    return value  # type: ignore[no-any-return]


def _read_all(pipe: int, child: Child, seconds: float) -> bytes:
    os.set_blocking(pipe, False)
    deadline = time.monotonic() + seconds
    parts = []
    with os.fdopen(pipe, "rb", buffering=0) as stream:
        while time.monotonic() < deadline:
            part = stream.read(65536)
            if part == b"":
                break
            if part is None:
                time.sleep(0.005)
            else:
                parts.append(part)
        else:
            child.kill()
    return b"".join(parts)
