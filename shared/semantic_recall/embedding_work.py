"""The embedding of messages without the embedder's I/O.

`EmbeddingWork.run` is a generator that yields texts and is sent their vectors, or thrown the
embedder's error; `resume` takes its steps. So the sync and the async methods share all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic_recall.errors import EmbedderError, InvalidVectorError
from semantic_recall.indexed_text import indexed_chunks
from semantic_recall.protocols import Embedder, MessageStore
from semantic_recall.records import MessageVectors, PendingMessage
from semantic_recall.telemetry import Telemetry
from semantic_recall.types import Vector
from semantic_recall.vector_cache import Key, VectorCache
from semantic_recall.vector_space import checked_vector, checked_vectors

_TEXTS_PER_CALL = 1_024
_FIRST_DELAY = 1.0  # seconds
_LONGEST_DELAY = 600.0
_SERVICE_IS_DOWN = 3  # failures in a row, one text at a time

Steps: TypeAlias = Generator[tuple[str, ...], Sequence[Vector], int]
_Asking: TypeAlias = Generator[tuple[str, ...], Sequence[Vector], list[Vector]]
_TryingOne: TypeAlias = Generator[tuple[str, ...], Sequence[Vector], list[MessageVectors] | None]
_Trying: TypeAlias = Generator[
    tuple[str, ...], Sequence[Vector], tuple[list[MessageVectors], Sequence["MissingText"]]
]


@dataclass(frozen=True, slots=True)
class MissingText:
    """A text to embed, for all messages that have it."""

    items: tuple[PendingMessage, ...]
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to do for some messages."""

    known: tuple[MessageVectors, ...]
    """Vectors that need no embedder: the same text was embedded before."""
    missing: tuple[MissingText, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """What to give to the embedder, in the order that `Vectorizer.finish` expects."""
        return tuple(chunk for text in self.missing for chunk in text.chunks)


class EmbeddingWork:
    """Plans, checks and stores the vectors of messages; see `Vectorizer` for the promises.

    Args:
        store: Where vectors go to.
        embedder: Only its `space` and `max_characters` are used here.
        cache: Vectors in memory.
        logger: Gets the warnings.
        telemetry: Is told of the failures.
    """

    def __init__(
        self,
        store: MessageStore,
        embedder: Embedder,
        cache: VectorCache,
        logger: logging.Logger,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._cache = cache
        self._logger = logger
        self._telemetry = telemetry

    def plan(self, items: Sequence[PendingMessage], /) -> Plan:
        """Look up what is known already, and cut the texts that are not.

        Raises:
            StoreError: The store failed.
        """
        groups: dict[bytes, list[PendingMessage]] = {}
        for item in items:
            groups.setdefault(item.digest, []).append(item)
        found = self._find(list(groups))
        known: list[MessageVectors] = []
        missing: list[MissingText] = []
        for name, group in groups.items():
            if name in found:
                known.extend(MessageVectors(item.key, name, found[name]) for item in group)
            else:
                chunks = indexed_chunks(group[0].message, self._embedder.max_characters)
                missing.append(MissingText(tuple(group), tuple(chunks)))
        return Plan(tuple(known), tuple(missing))

    def finish(self, plan: Plan, vectors: Sequence[Vector], /) -> list[MessageVectors]:
        """Return the vectors of the plan's messages, the known ones included.

        A message with a vector that cannot be used is left out, with a warning.

        Args:
            plan: What `plan` returned.
            vectors: One per text of `plan.texts`, in order.

        Raises:
            EmbedderError: The number of vectors is not that of the texts.
        """
        return [*plan.known, *self._settle(plan.missing, vectors, [])]

    def run(self, items: Sequence[PendingMessage], /, *, strict: bool) -> Steps:
        """Yield texts, be sent their vectors; return for how many messages it was done."""
        plan = self.plan(items)
        problems: list[EmbedderError] = []
        untried: Sequence[MissingText] = ()
        made: list[MessageVectors] = []
        try:
            made = self._settle(plan.missing, (yield from _ask(plan.texts)), problems)
        except EmbedderError as error:
            if len(plan.missing) > 1 and any(i.attempts for t in plan.missing for i in t.items):
                made, untried = yield from self._singly(plan.missing, problems)
            else:
                problems.append(error)
                self._warn(len(items) - len(plan.known), error)
        done = [*plan.known, *made]
        stored = self._store.set_vectors(self._embedder.space, done) if done else 0
        self._postpone(items, {vectors.key for vectors in done}, untried)
        if strict and problems:
            raise problems[0]
        return stored

    def _singly(self, missing: Sequence[MissingText], problems: list[EmbedderError]) -> _Trying:
        """Embed text by text, so that one that the embedder cannot take stops no other.

        Returns what was made, and the texts that were not tried because nothing works.
        """
        made: list[MessageVectors] = []
        failures = 0
        for number, text in enumerate(missing, 1):
            vectors = yield from self._one(text, problems)
            failures = 0 if vectors is not None else failures + 1
            if failures == _SERVICE_IS_DOWN:
                return made, missing[number:]
            made += vectors or ()
        return made, ()

    def _one(self, text: MissingText, problems: list[EmbedderError]) -> _TryingOne:
        try:
            return self._settle([text], (yield from _ask(text.chunks)), problems)
        except EmbedderError as error:
            problems.append(error)
            self._warn(len(text.items), error)
            return None

    def _settle(
        self,
        missing: Sequence[MissingText],
        vectors: Sequence[Vector],
        problems: list[EmbedderError],
    ) -> list[MessageVectors]:
        """Check the vectors of texts, keep them in memory, and deal them to the messages."""
        expected = sum(len(text.chunks) for text in missing)
        if len(vectors) != expected:
            raise EmbedderError(f"the embedder gave {len(vectors)} vectors for {expected} texts")
        space = self._embedder.space
        usable = checked_vectors(vectors, space.dimensions)
        made: list[MessageVectors] = []
        kept: dict[Key, NDArray[np.float32]] = {}
        end = 0
        for text in missing:
            start, end = end, end + len(text.chunks)
            name = text.items[0].digest
            try:
                matrix = (
                    _checked(vectors[start:end], space.dimensions)
                    if usable is None
                    else usable[start:end].copy()  # a view would keep the whole batch alive
                )
            except InvalidVectorError as error:
                problems.append(error)
                self._warn(len(text.items), error)
                continue
            kept[space.name, "document", name] = matrix
            made.extend([MessageVectors(item.key, name, matrix) for item in text.items])
        self._cache.put_all(kept)
        return made

    def _postpone(
        self, items: Sequence[PendingMessage], done: set[int], untried: Sequence[MissingText]
    ) -> None:
        waiting = {item.key for text in untried for item in text.items}
        delays: dict[float, list[int]] = {}
        for item in items:
            if item.key in done:
                continue
            attempts = 0 if item.key in waiting else min(item.attempts, 32)
            delay = min(_FIRST_DELAY * 2**attempts, _LONGEST_DELAY)
            delays.setdefault(delay, []).append(item.key)
        for delay, keys in delays.items():
            self._store.postpone(self._embedder.space, keys, seconds=delay)

    def _find(self, digests: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors that are known, from memory or the store."""
        space = self._embedder.space
        cached = self._cache.get_all([(space.name, "document", name) for name in digests])
        found = {name: vectors for (_, _, name), vectors in cached.items()}
        unknown = [name for name in digests if name not in found]
        if unknown:
            stored = self._store.find_vectors(space, unknown)
            self._cache.put_all(
                {(space.name, "document", name): vectors for name, vectors in stored.items()}
            )
            found.update(stored)
        return found

    def _warn(self, messages: int, error: EmbedderError) -> None:
        self._telemetry.embedder_failed("document", error)
        refused = isinstance(error, InvalidVectorError)
        cause = error if refused else error.__cause__ or error
        self._logger.warning(
            "%d message(s) could not be embedded and will be tried again; they are stored and "
            "found by their words: %s: %s",
            messages,
            type(cause).__name__,
            cause,
        )


def _checked(vectors: Sequence[Vector], dimensions: int) -> NDArray[np.float32]:
    return np.stack([checked_vector(vector, dimensions) for vector in vectors])


@contextmanager
def failures_named(what: str) -> Iterator[None]:
    """Turn whatever an embedder raises into an `EmbedderError`."""
    try:
        yield
    except EmbedderError:
        raise
    except Exception as error:
        raise EmbedderError(f"the embedder failed to {what}: {error}") from error


def _ask(texts: Sequence[str]) -> _Asking:
    """Yield texts in calls of bounded size; return all their vectors.

    Raises:
        EmbedderError: The embedder raised something, or gave another number of vectors.
    """
    vectors: list[Vector] = []
    for start in range(0, len(texts), _TEXTS_PER_CALL):
        call = tuple(texts[start : start + _TEXTS_PER_CALL])
        with failures_named(f"embed {len(call)} text(s)"):
            answer = list((yield call))
        if len(answer) != len(call):
            raise EmbedderError(f"the embedder gave {len(answer)} vectors for {len(call)} texts")
        vectors += answer
    return vectors


def resume(work: Steps, outcome: Sequence[Vector] | Exception | None) -> tuple[str, ...] | int:
    """Take one step of the work: return the next texts, or at the end how many were done."""
    try:
        if outcome is None:
            return next(work)
        if isinstance(outcome, Exception):
            return work.throw(outcome)
        return work.send(outcome)
    except StopIteration as end:
        done: int = end.value
        return done
