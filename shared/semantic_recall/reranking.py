"""A closer look at the best candidates, by a reranker of the application's own.

A cross-encoder reads query and message together, which tells more than comparing two vectors, and
is far too slow for a whole memory: it reads the few best that the ranking found.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import RerankerError
from semantic_recall.settings import Reranker, Scores, Settings
from semantic_recall.turn import aguarded, guarded

_SHARE_OF_TIMEOUT = 0.5
"""In front of a model: when half of the recall's time is gone, the order stays as it was."""


class Reranking:
    """Asks a reranker, and checks what it says.

    Args:
        reranker: See `settings.Reranker`.
        settings: How many candidates it reads, its time, and where its failures are reported.
    """

    def __init__(self, reranker: Reranker, settings: Settings) -> None:
        self._reranker = reranker
        self._timeout = _SHARE_OF_TIMEOUT * settings.timeout
        self._logger = settings.logger
        self.candidates = settings.rerank_candidates
        called = getattr(reranker, "__call__", None)  # noqa: B004 - the method of an object
        self.is_async = inspect.iscoroutinefunction(reranker) or inspect.iscoroutinefunction(called)
        """Whether it is awaited in the event loop of an async recall; else it gets a thread."""

    def scores(
        self, query: str, texts: Sequence[str], *, fails_open: bool
    ) -> NDArray[np.float32] | None:
        """Return the reranker's score of each text, shape (len(texts),).

        What an async one returns is awaited in an event loop of its own.

        Args:
            query: What is searched for.
            texts: The candidates.
            fails_open: Return None with a warning when it fails or takes too long.

        Raises:
            RerankerError: It failed, or its scores cannot be used, and `fails_open` is not set.
        """
        if not fails_open:
            return self._asked(query, texts)
        nothing: NDArray[np.float32] | None = None
        return guarded(
            lambda: self._asked(query, texts),
            timeout=self._timeout,
            logger=self._logger,
            otherwise=nothing,
            what="the reranker",
        )

    async def ascores(
        self, query: str, texts: Sequence[str], *, fails_open: bool
    ) -> NDArray[np.float32] | None:
        """Do what `scores` does without blocking the event loop."""
        if not self.is_async:
            return await asyncio.to_thread(self.scores, query, texts, fails_open=fails_open)
        if not fails_open:
            return await self._awaited(query, texts)
        nothing: NDArray[np.float32] | None = None
        return await aguarded(
            self._awaited(query, texts),
            timeout=self._timeout,
            logger=self._logger,
            otherwise=nothing,
            what="the reranker",
        )

    def _asked(self, query: str, texts: Sequence[str]) -> NDArray[np.float32] | None:
        try:
            answer = self._reranker(query, texts)
            if isinstance(answer, Awaitable):
                answer = _run(answer)
        except Exception as error:  # foreign code may raise anything
            raise _failed(error) from error
        return _checked(answer, len(texts))

    async def _awaited(self, query: str, texts: Sequence[str]) -> NDArray[np.float32] | None:
        try:
            answer = self._reranker(query, texts)
            if isinstance(answer, Awaitable):
                answer = await answer
        except Exception as error:  # foreign code may raise anything
            raise _failed(error) from error
        return _checked(answer, len(texts))


def best_by(scores: NDArray[np.float32], top_k: int) -> list[int]:
    """Return the places of the best scores, best first; equal ones stay in their order."""
    order: list[int] = np.argsort(-scores, kind="stable")[:top_k].tolist()
    return order


def _run(answer: Awaitable[Scores]) -> Scores:
    async def awaited() -> Scores:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(awaited())
    # Sync recall inside a coroutine: its loop cannot be entered again, another thread gets one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, awaited()).result()


def _failed(error: Exception) -> RerankerError:
    return RerankerError(
        f"the reranker failed with {type(error).__name__}: {error}; mend it, or open the memory "
        "without Settings(reranker=...)"
    )


def _checked(answer: Scores, count: int) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):  # what is too large for single precision is refused below
        try:
            scores: NDArray[np.float32] = np.asarray(answer, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise RerankerError(f"the reranker did not return numbers: {error}") from error
    if scores.shape != (count,):
        raise RerankerError(
            f"the reranker must return one number for each of {count} texts, and returned an "
            f"array of shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise RerankerError("the reranker returned NaN, infinity or too large a number")
    return scores
