"""One recall per turn, however often and from however many threads and loops it is asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Generic, TypeVar

T = TypeVar("T")


class _AbandonedError(Exception):
    """The caller that was at work was cancelled; another has to do it."""


class TurnCache(Generic[T]):
    """Holds the result for the latest key.

    Args:
        patience: Seconds that a caller waits for another one's work before it does its own.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._key: Hashable = None
        self._result: Future[T] | None = None

    def get(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return the result for `key`; `work` makes it when there is none yet."""
        result, mine = self._claim(key)
        if not mine:
            try:
                return result.result(self._patience)
            except (_AbandonedError, FutureTimeoutError):
                return work()
        try:
            value = work()
        except BaseException as error:
            self._fail(result, error)
            raise
        result.set_result(value)
        return value

    async def aget(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Do the same for work that is awaited."""
        result, mine = self._claim(key)
        if not mine:
            try:
                waiting = asyncio.shield(asyncio.wrap_future(result))
                return await asyncio.wait_for(waiting, self._patience)
            except (_AbandonedError, asyncio.TimeoutError):
                return await work()
        try:
            value = await work()
        except BaseException as error:
            self._fail(result, error)
            raise
        result.set_result(value)
        return value

    def clear(self) -> None:
        """Forget the result."""
        with self._lock:
            self._key, self._result = None, None

    def _claim(self, key: Hashable) -> tuple[Future[T], bool]:
        with self._lock:
            if self._result is not None and self._key == key:
                return self._result, False
            self._key, self._result = key, Future()
            return self._result, True

    def _fail(self, result: Future[T], error: BaseException) -> None:
        with self._lock:
            if self._result is result:
                self._key, self._result = None, None
        # A cancelled caller must not cancel the others.
        result.set_exception(error if isinstance(error, Exception) else _AbandonedError())
