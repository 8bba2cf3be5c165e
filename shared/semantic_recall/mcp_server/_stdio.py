"""Serving over standard input and output, which belong to the protocol alone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError as FutureCancelledError
from contextlib import contextmanager
from types import FrameType
from typing import Any, BinaryIO, cast

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from semantic_recall.mcp_server._server import RecallServer

_LINES_AHEAD = 64


def serve_stdio(server: RecallServer) -> None:
    """Serve one client until it closes standard input, or SIGTERM comes.

    While it lasts, what anything else in this process prints goes to standard error.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    with _streams() as (source, sink):
        asyncio.run(_serve(server, source, sink))


async def _serve(server: RecallServer, source: BinaryIO, sink: BinaryIO) -> None:
    loop, serving = asyncio.get_running_loop(), asyncio.current_task()
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        if serving is not None:
            loop.call_soon_threadsafe(serving.cancel)

    before = signal.signal(signal.SIGTERM, stop)
    lines, out = cast("Any", _Lines(source)), cast("Any", _Out(sink))
    try:
        async with stdio_server(lines, out) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except asyncio.CancelledError:
        if not stopped:
            raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield the two streams of the protocol, out of reach of everybody else."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        # Left open: a thread may still be reading.
        yield os.fdopen(source, "rb", closefd=False), os.fdopen(sink, "wb", closefd=False)
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


class _Lines:
    """The lines of a stream, read by a thread that nobody waits for.

    The SDK's own reader waits for a whole line before it lets a server stop.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(_LINES_AHEAD)
        threading.Thread(target=self._read, name="semantic-recall-mcp", daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                line = self._stream.readline()
            except OSError:  # the other end is gone
                line = b""
            text = line.decode("utf-8", "replace") if line else None
            put = self._lines.put(text)
            try:
                asyncio.run_coroutine_threadsafe(put, self._loop).result()
            except (RuntimeError, FutureCancelledError):  # the loop was stopped meanwhile
                put.close()
                return
            if text is None:
                return

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line


class _Out:
    """What the SDK writes to; a client that has gone is no error of the server."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    async def write(self, text: str) -> None:
        await anyio.to_thread.run_sync(self._write, text.encode("utf-8"), abandon_on_cancel=True)

    async def flush(self) -> None:
        """Do nothing: each line is flushed when it is written."""

    def _write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except OSError:
            # Standard input ends next, and with it the server.
            return
