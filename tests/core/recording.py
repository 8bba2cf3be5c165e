"""The OpenTelemetry SDK with its exporters in memory, for the tests of the telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from semantic_recall import SemanticRecall, Settings
from semantic_recall.telemetry_otel import OpenTelemetry

SECRET = "the code of the safe is 4711"
ASKED = "what is the secret code of the safe"


@dataclass
class Recorded:
    """What the SDK was given."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader
    tracers: TracerProvider
    meters: MeterProvider

    def telemetry(self, *, record_text: bool = False) -> OpenTelemetry:
        return OpenTelemetry(self.tracers, self.meters, record_text=record_text)

    def settings(self, **more: Any) -> Settings:
        return Settings(telemetry=self.telemetry(), **more)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def only(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def points(self) -> dict[str, list[Any]]:
        """Collect: the data points of each metric."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def numbers(self, name: str) -> dict[tuple[Any, ...], int]:
        """Collect: the values of one metric by those of its attributes, sorted by their names."""
        return {
            tuple(value for _, value in sorted(point.attributes.items())): point.value
            for point in self.points().get(name, [])
        }


def recording() -> Recorded:
    """An SDK of its own for each test; nothing global is set."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    return Recorded(spans, reader, tracers, MeterProvider([reader]))


def remember(memory: SemanticRecall, *texts: str) -> None:
    memory.remember(
        [{"role": "user", "content": text} for text in texts],
        thread_id="thread-7",
        resource_id="ana@example.org",
    )


def facts(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


def everything(recorded: Recorded) -> str:
    spans = [span.to_json() for span in recorded.spans.get_finished_spans()]
    data = recorded.reader.get_metrics_data()
    return "\n".join([*spans, "" if data is None else data.to_json()])
