"""Recalling: from a query to a `Recall`, step by step, with the time each step took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic_recall.assembling import Plan, assembled, planned
from semantic_recall.cues import role_asked_about
from semantic_recall.errors import ConfigurationError, EmbedderError, InvalidVectorError
from semantic_recall.followups import is_follow_up
from semantic_recall.formatting import format_message
from semantic_recall.indexed_text import digest_number, indexed_text, spoken
from semantic_recall.periods import time_asked_about
from semantic_recall.protocols import MessageStore
from semantic_recall.question import Question
from semantic_recall.reranking import Reranking, best_by
from semantic_recall.result import Recall
from semantic_recall.scoring import Query
from semantic_recall.searching import Found, Searcher
from semantic_recall.settings import Settings
from semantic_recall.telemetry import Telemetry, Told
from semantic_recall.terms import text_terms
from semantic_recall.tokens import count_tokens
from semantic_recall.types import Message, MessageRange, RecalledMessage, Scope, Vector
from semantic_recall.vector_space import checked_vector
from semantic_recall.vectorizer import Vectorizer

_ATTEMPTS = 2
"""A message that is deleted between the search and its fetch costs one more search."""


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What a reranker has to read before the recall can go on."""

    reranking: Reranking
    texts: list[str]


_Steps: TypeAlias = Generator[_Candidates, "NDArray[np.float32] | None", Recall]
"""Is sent the scores of the candidates (None: the order stays), and ends with the recall. So sync
and async recall share everything but the call of the reranker."""


class Recaller:
    """Answers questions over one memory.

    Args:
        store: The truth.
        vectorizer: Embeds questions; None searches by words alone.
        searcher: Finds positions.
        secret: Makes the fence of the prompt block unpredictable.
        settings: The reranker, the logger, and the telemetry, which is told of every recall.
    """

    def __init__(
        self,
        store: MessageStore,
        vectorizer: Vectorizer | None,
        searcher: Searcher,
        *,
        secret: bytes,
        settings: Settings,
    ) -> None:
        self._secret = secret
        self._store = store
        self._vectorizer = vectorizer
        self._searcher = searcher
        self._logger = settings.logger
        self._telemetry = settings.telemetry
        self._untold = type(settings.telemetry) is Telemetry
        reranker = settings.reranker
        self._reranking = None if reranker is None else Reranking(reranker, settings)

    def recall(self, question: Question, vector: Vector | None) -> Recall:
        """Return what the question brings back; `vector` is its embedding if it is known."""
        if self._untold:  # the one operation that is short enough to notice
            return self._recall(question, vector)
        with self._telling(question) as told:
            recall = self._recall(question, vector)
            told(recall)
        return recall

    async def arecall(self, question: Question, vector: Vector | None) -> Recall:
        """Do the same with one thread hop, and one more for each native async part awaited."""
        with self._telling(question) as told:
            recall = await self._arecall(question, vector)
            told(recall)
        return recall

    def _telling(self, question: Question) -> AbstractContextManager[Told[Recall]]:
        space = None if self._vectorizer is None else self._vectorizer.space
        return self._telemetry.recall(question.text, question.options, space)

    def _recall(self, question: Question, vector: Vector | None) -> Recall:
        scope = question.scope
        if not question.finds_something:
            return self._answer(question)
        started = time.perf_counter()
        if vector is not None:
            vector = self._checked(vector)
        elif self._vectorizer is not None:
            try:
                vector = self._vectorizer.query(question.text)
            except EmbedderError as error:
                self._go_on_without(error, question)
        return self._searched(question, scope, vector, {"embed": _milliseconds(started)})

    async def _arecall(self, question: Question, vector: Vector | None) -> Recall:
        reranking, vectorizer = self._reranking, self._vectorizer
        native = vectorizer is not None and vector is None and vectorizer.is_async
        if not native and not (reranking is not None and reranking.is_async):
            return await asyncio.to_thread(self._recall, question, vector)
        scope = question.scope
        if not question.finds_something:
            return self._answer(question)
        started = time.perf_counter()
        if vectorizer is not None and vector is None:
            try:
                vector = await vectorizer.aquery(question.text)
            except EmbedderError as error:
                self._go_on_without(error, question)
        elif vector is not None:
            vector = self._checked(vector)
        steps = self._steps(question, scope, vector, {"embed": _milliseconds(started)})
        step = await asyncio.to_thread(_advanced, steps, None)
        while isinstance(step, _Candidates):
            scores = await step.reranking.ascores(
                question.text, step.texts, fails_open=question.words_suffice
            )
            step = await asyncio.to_thread(_advanced, steps, scores)
        return step

    def _go_on_without(self, error: EmbedderError, question: Question) -> None:
        self._telemetry.embedder_failed("query", error)
        if not question.words_suffice or question.options.ranking == "dense":
            raise error
        self._logger.warning("recall goes on without vectors: %s", error)

    def _checked(self, vector: Vector) -> Vector:
        if self._vectorizer is None:
            raise ConfigurationError("query_vector needs a memory that was opened with an embedder")
        try:
            return checked_vector(vector, self._vectorizer.space.dimensions)
        except InvalidVectorError as error:
            raise InvalidVectorError(f"query_vector cannot be used: {error}") from error

    def _searched(
        self, question: Question, scope: Scope, vector: Vector | None, timings: dict[str, float]
    ) -> Recall:
        steps = self._steps(question, scope, vector, timings)
        step = _advanced(steps, None)
        while isinstance(step, _Candidates):
            scores = step.reranking.scores(
                question.text, step.texts, fails_open=question.words_suffice
            )
            step = _advanced(steps, scores)
        return step

    def _steps(
        self, question: Question, scope: Scope, vector: Vector | None, timings: dict[str, float]
    ) -> _Steps:
        started = time.perf_counter()
        options = wide = question.options
        if self._reranking is not None:
            wide = options.replace(top_k=max(options.top_k, self._reranking.candidates))
        understood = 1.0
        if self._vectorizer is not None and vector is not None:
            understood = self._vectorizer.coverage(question.text)
        in_thread = question.thread_id is not None
        query = Query(
            vector=vector,
            understood=understood,
            terms=text_terms(question.text),
            role=role_asked_about(question.text),
            time=time_asked_about(question.text),
            digest=digest_number(spoken("user", question.text)) if in_thread else 0,
            is_follow_up=in_thread and is_follow_up(question.text),
        )
        space = None if self._vectorizer is None else self._vectorizer.space
        recall = None
        for attempt in range(_ATTEMPTS):
            found = self._searcher.search(scope, space, query, wide, thread=question.thread)
            timings["search"] = _milliseconds(started) - timings.get("rerank", 0.0)
            if found is None:
                break
            if self._reranking is not None:
                before = time.perf_counter()
                found = yield from self._reranked(self._reranking, scope, found, options.top_k)
                timings["rerank"] = timings.get("rerank", 0.0) + _milliseconds(before)
            plan = planned(found, MessageRange.of(options.message_range))
            fetched = self._store.fetch(scope, plan.keys)
            if len(fetched) < len(plan.keys) and attempt + 1 < _ATTEMPTS:
                continue
            recall = self._within_budget(question, found, plan, fetched, timings)
            break
        if recall is None:
            recall = self._answer(question, timings=timings)
        known = timings["search"] + timings.get("rerank", 0.0)
        timings["fetch"] = _milliseconds(started) - known
        timings["total"] = timings["embed"] + _milliseconds(started)
        return recall

    def _reranked(
        self, reranking: Reranking, scope: Scope, found: Found, top_k: int
    ) -> Generator[_Candidates, NDArray[np.float32] | None, Found]:
        """Return what was found with its best hits in the reranker's order and by its scores."""
        keys = found.view.keys[found.hits].tolist()
        messages = self._store.fetch(scope, keys)
        there = [place for place, key in enumerate(keys) if key in messages]
        hits = [found.hits[place] for place in there]
        texts = [indexed_text(messages[keys[place]]) for place in there]
        scores = (yield _Candidates(reranking, texts)) if texts else None
        if scores is None:
            return found._replace(hits=hits[:top_k])
        order = best_by(scores, top_k)
        best = [hits[place] for place in order]
        theirs = np.full_like(found.scores, np.nan)
        theirs[best] = scores[order]
        return found._replace(hits=best, scores=theirs)

    def _within_budget(
        self,
        question: Question,
        found: Found,
        plan: Plan,
        fetched: Mapping[int, Message],
        timings: Mapping[str, float],
    ) -> Recall:
        """Return the recall whose size, with the block's own words, keeps to `max_tokens`."""
        limit = budget = question.options.max_tokens
        while True:
            messages, dropped = assembled(found, plan, fetched, max_tokens=budget, cost=_tokens)
            recall = self._answer(
                question,
                messages=tuple(messages),
                dropped=dropped,
                timings=timings,
                version=found.view.version,
            )
            if limit is None or budget is None or recall.tokens <= limit:
                return recall
            # The messages fit, but not with the fence and the labels around them.
            budget -= recall.tokens - limit

    def _answer(
        self,
        question: Question,
        *,
        messages: tuple[RecalledMessage, ...] = (),
        dropped: Mapping[str, int] | None = None,
        timings: Mapping[str, float] | None = None,
        version: int | None = None,
    ) -> Recall:
        return Recall(
            query=question.text,
            messages=messages,
            thread_id=question.thread_id,
            resource_id=question.resource_id,
            dropped=dropped or {},
            timings=timings or {},
            version=version,
            secret=self._secret,
        )


def _advanced(steps: _Steps, scores: NDArray[np.float32] | None) -> _Candidates | Recall:
    """Go on until the next candidates, or to the end."""
    try:
        return steps.send(scores)
    except StopIteration as end:  # which no future can hold
        recall: Recall = end.value
        return recall


def _tokens(recalled: RecalledMessage) -> int:
    return count_tokens(format_message(recalled))


def _milliseconds(since: float) -> float:
    return (time.perf_counter() - since) * 1e3
