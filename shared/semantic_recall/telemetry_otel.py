"""Spans and metrics of a memory through the OpenTelemetry API, listed in docs/telemetry.md.

The API alone does nothing: an application adds the SDK with an exporter, or its agent does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Literal, TypeAlias, TypeVar

from semantic_recall._gauges import Gauges
from semantic_recall.errors import EmbedderError, MissingDependencyError
from semantic_recall.options import RecallOptions
from semantic_recall.protocols import MessageStore
from semantic_recall.result import Recall
from semantic_recall.telemetry import LookUps, Removal, Telemetry, Told
from semantic_recall.types import Message, Scope, VectorSpace

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise MissingDependencyError(
        "telemetry needs the package 'opentelemetry-api'; run: "
        'pip install "chat-semantic-recall[otel]"'
    ) from error

__all__ = ["OpenTelemetry"]

T = TypeVar("T")

_Facts: TypeAlias = "Mapping[str, str | bool | int | float | Sequence[str]]"

_NAME = "semantic_recall"
# A recall takes from 0.1 ms to the time of a remote embedder; the SDK's default begins at 5 s.
_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
_STEPS = ("embed", "search", "fetch")
_GAUGES = {
    "semantic_recall.messages": ("messages", "{message}", "Stored messages"),
    "semantic_recall.pending": ("pending", "{message}", "Messages that wait for their vectors"),
    "semantic_recall.index.lag": ("outbox", "{change}", "Changes the vector index has not seen"),
}


class OpenTelemetry(Telemetry):
    """Makes spans and metrics of what memories do: `Settings(telemetry=OpenTelemetry())`.

    Make one for a process and share it between its memories. Resource, thread and message ids
    are never recorded; neither is text, unless `record_text` is set.

    Args:
        tracer_provider: None: the global one, also if it is set later.
        meter_provider: None: the global one, also if it is set later.
        record_text: Put queries, found and stored texts, and the messages of errors into spans.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        *,
        record_text: bool = False,
    ) -> None:
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        self._record_text = record_text
        self._gauges = Gauges()
        self._durations = {
            name: _seconds(meter, f"semantic_recall.{name}.duration", f"Duration of {what}")
            for name, what in _OPERATIONS.items()
        }
        self._steps = _seconds(
            meter, "semantic_recall.recall.step.duration", "Duration of a recall's steps"
        )
        self._hits = meter.create_histogram(
            "semantic_recall.recall.hits",
            unit="{message}",
            description="Hits of a recall",
            explicit_bucket_boundaries_advisory=(0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64),
        )
        count = partial(meter.create_counter, unit="{message}")
        self._dropped = count("semantic_recall.recall.dropped", description="Left out, by reason")
        self._remembered = count("semantic_recall.remember.messages", description="Stored")
        self._forgotten = count("semantic_recall.forget.messages", description="Removed")
        self._indexed = meter.create_counter(
            "semantic_recall.index.changes", unit="{change}", description="Written to the index"
        )
        self._failures = meter.create_counter(
            "semantic_recall.embedder.failures",
            unit="{failure}",
            description="Failed calls of the embedder, and vectors that cannot be used",
        )
        for name, (key, unit, description) in _GAUGES.items():
            callback = partial(_sizes, self._gauges, key)
            meter.create_observable_gauge(name, [callback], unit, description)
        meter.create_observable_counter(
            "semantic_recall.cache.lookups",
            [partial(_lookups, self._gauges)],
            "{lookup}",
            "Look-ups in the caches of hot scopes and of embeddings",
        )

    def recall(
        self, query: str, options: RecallOptions, space: VectorSpace | None
    ) -> AbstractContextManager[Told[Recall]]:
        """Make a span and metrics of a recall."""
        facts = {"semantic_recall.scope": options.scope, "semantic_recall.ranking": options.ranking}
        return self._operation(
            "recall",
            facts,
            {
                "semantic_recall.recall.top_k": options.top_k,
                **_embedder(space),
                **({"semantic_recall.recall.query": query} if self._record_text else {}),
            },
            partial(self._recalled, facts),
        )

    def remember(
        self, space: VectorSpace | None, *, background: bool
    ) -> AbstractContextManager[Told[Sequence[Message]]]:
        """Make a span and metrics of the storing of messages."""
        facts = {"semantic_recall.remember.background": background}
        return self._operation("remember", facts, _embedder(space), self._stored)

    def forget(self, scope: Scope, *, secure: bool) -> AbstractContextManager[Told[Removal]]:
        """Make a span and metrics of a removal."""
        kind = "resource" if scope.thread_id is None else "thread"
        facts: _Facts = {"semantic_recall.scope": kind, "semantic_recall.forget.secure": secure}
        return self._operation("forget", facts, {}, self._removed)

    @contextmanager
    def index(self, changes: int) -> Iterator[None]:
        """Make a span and metrics of a batch for the vector index."""
        facts = {"semantic_recall.index.changes": changes}
        with self._operation("index", {}, facts, _nothing) as done:
            yield
            self._indexed.add(changes)
            done(None)

    def embedder_failed(self, side: Literal["query", "document"], error: EmbedderError) -> None:
        """Count the failure, by side and by the class of its cause."""
        kind = _class(error.__cause__ or error)
        self._failures.add(1, {"semantic_recall.embedder.side": side, "error.type": kind})

    def watch(self, store: MessageStore, views: LookUps, vectors: LookUps | None) -> None:
        """Observe a memory when an exporter asks, until it is closed or collected."""
        caches = {"view": views} if vectors is None else {"view": views, "embedding": vectors}
        self._gauges.add(store, caches)

    @contextmanager
    def _operation(
        self,
        name: str,
        facts: _Facts,
        more: _Facts,
        finish: Callable[[trace.Span, T], None],
    ) -> Iterator[Told[T]]:
        """Surround work with a span; `facts` are on the duration too, so their values are few."""
        span = self._tracer.start_span(f"semantic_recall.{name}", attributes={**facts, **more})
        started = time.perf_counter()
        failure: dict[str, str] = {}
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield partial(finish, span)
        except BaseException as error:  # also a cancellation; it is raised again
            failure = {"error.type": _class(error)}
            self._record(span, error)
            raise
        finally:
            self._durations[name].record(
                time.perf_counter() - started,
                {**facts, **failure},
                context=trace.set_span_in_context(span),
            )
            span.end()

    def _record(self, span: trace.Span, error: BaseException) -> None:
        span.set_attribute("error.type", _class(error))
        if self._record_text:
            span.record_exception(error)
            span.set_status(trace.StatusCode.ERROR, str(error))
            return
        # Neither message nor stack trace: an embedder's error may quote what it was given.
        facts = {"exception.type": _class(error)}
        if error.__cause__ is not None:
            facts["semantic_recall.exception.cause"] = _class(error.__cause__)
        span.add_event("exception", facts)
        span.set_status(trace.StatusCode.ERROR)

    def _recalled(self, facts: _Facts, span: trace.Span, recall: Recall) -> None:
        context = trace.set_span_in_context(span)
        self._hits.record(len(recall.hits), facts, context=context)
        for reason, number in recall.dropped.items():
            self._dropped.add(number, {"semantic_recall.recall.reason": reason}, context=context)
        steps = {step: recall.timings[step] / 1e3 for step in _STEPS if step in recall.timings}
        for step, seconds in steps.items():
            self._steps.record(seconds, {"semantic_recall.recall.step": step}, context=context)
        if not span.is_recording():
            return
        known: dict[str, str | bool | int | float | Sequence[str]] = {
            "semantic_recall.recall.hits": len(recall.hits),
            "semantic_recall.recall.messages": len(recall.messages),
            "semantic_recall.recall.dropped": sum(recall.dropped.values()),
            **{f"semantic_recall.recall.{step}.duration": took for step, took in steps.items()},
        }
        if self._record_text:
            found = [recalled.message.text for recalled in recall.hits]
            known["semantic_recall.recall.texts"] = found
        span.set_attributes(known)

    def _stored(self, span: trace.Span, messages: Sequence[Message]) -> None:
        self._remembered.add(len(messages), context=trace.set_span_in_context(span))
        span.set_attribute("semantic_recall.remember.messages", len(messages))
        if self._record_text:
            texts = [message.text for message in messages]
            span.set_attribute("semantic_recall.remember.texts", texts)

    def _removed(self, span: trace.Span, removal: Removal) -> None:
        self._forgotten.add(removal.messages, context=trace.set_span_in_context(span))
        span.set_attribute("semantic_recall.forget.messages", removal.messages)
        span.set_attribute("semantic_recall.forget.vectors", removal.vectors)


_OPERATIONS = {
    "recall": "a recall",
    "remember": "storing and embedding messages",
    "forget": "a removal",
    "index": "writing a batch into the vector index",
}


def _seconds(meter: metrics.Meter, name: str, description: str) -> metrics.Histogram:
    return meter.create_histogram(
        name,
        unit="s",
        description=description,
        explicit_bucket_boundaries_advisory=_SECONDS,
    )


def _sizes(gauges: Gauges, name: str, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
    for memory, number in gauges.sizes(name):
        yield metrics.Observation(number, {"semantic_recall.memory.id": memory})


def _lookups(gauges: Gauges, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
    for cache, hit, number in gauges.lookups():
        result = "hit" if hit else "miss"
        facts = {"semantic_recall.cache": cache, "semantic_recall.cache.result": result}
        yield metrics.Observation(number, facts)


def _embedder(space: VectorSpace | None) -> _Facts:
    return {} if space is None else {"semantic_recall.embedder": space.name}


def _class(error: BaseException) -> str:
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _nothing(span: trace.Span, outcome: None) -> None:
    pass
