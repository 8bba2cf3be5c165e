"""Spans of a memory, and what it costs not to want them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.trace import StatusCode

from semantic_recall import EmbedderError, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.telemetry import Telemetry
from semantic_recall.telemetry_otel import OpenTelemetry
from semantic_recall.types import Vector
from tests.core.recording import ASKED, SECRET, Recorded, everything, facts, recording, remember


@pytest.fixture
def recorded() -> Recorded:
    return recording()


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# -- without it ---------------------------------------------------------------------------------
def test_nothing_is_imported_unless_it_is_asked_for() -> None:
    code = "import sys, semantic_recall; print('opentelemetry' in sys.modules)"
    assert python(code) == "False"


def test_without_the_package_the_error_has_the_command() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import semantic_recall\n"
        "try:\n"
        "    import semantic_recall.telemetry_otel\n"
        "except semantic_recall.MissingDependencyError as error:\n"
        "    print(error)"
    )
    assert 'pip install "chat-semantic-recall[otel]"' in python(code)


def test_by_default_nobody_is_told() -> None:
    assert type(Settings().telemetry) is Telemetry


def test_without_an_sdk_a_memory_works(tmp_path: Path) -> None:
    settings = Settings(telemetry=OpenTelemetry())
    with SemanticRecall.open(tmp_path, embedder="hash", settings=settings) as memory:
        remember(memory, SECRET)
        assert len(memory.recall(ASKED, resource_id="ana@example.org").hits) == 1


# -- spans --------------------------------------------------------------------------------------
def test_each_operation_is_a_span(tmp_path: Path, recorded: Recorded) -> None:
    with SemanticRecall.open(
        tmp_path, embedder="hash", settings=recorded.settings(), message_range=0
    ) as memory:
        remember(memory, SECRET, "I like tea", "and coffee")
        assert memory.flush()
        memory.recall(ASKED, resource_id="ana@example.org", top_k=2)
        memory.forget(thread_id="thread-7", resource_id="ana@example.org")
        embedder = memory.stats().embedder
    stored = facts(recorded.only("semantic_recall.remember"))
    assert stored["semantic_recall.remember.messages"] == 3
    assert stored["semantic_recall.remember.background"] is False
    asked = facts(recorded.only("semantic_recall.recall"))
    assert asked["semantic_recall.scope"] == "resource"
    assert asked["semantic_recall.ranking"] == "hybrid"
    assert asked["semantic_recall.recall.top_k"] == 2
    assert asked["semantic_recall.recall.hits"] == 2
    assert asked["semantic_recall.recall.messages"] == 2
    assert asked["semantic_recall.embedder"] == stored["semantic_recall.embedder"] == embedder
    assert asked["semantic_recall.recall.search.duration"] > 0
    gone = facts(recorded.only("semantic_recall.forget"))
    assert gone["semantic_recall.scope"] == "thread"
    assert gone["semantic_recall.forget.messages"] == 3
    assert gone["semantic_recall.forget.vectors"] == 3
    written = recorded.named("semantic_recall.index")
    assert sum(facts(span)["semantic_recall.index.changes"] for span in written) == 6
    assert all(span.status.status_code is StatusCode.UNSET for span in written)


def test_neither_text_nor_ids_are_recorded(tmp_path: Path, recorded: Recorded) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash", settings=recorded.settings()) as memory:
        remember(memory, SECRET)
        memory.flush()
        (hit,) = memory.recall(ASKED, resource_id="ana@example.org").hits
        memory.recall_for_turn(ASKED, thread_id="thread-7", resource_id="ana@example.org")
        memory.forget(resource_id="ana@example.org")
        told = everything(recorded)
    assert "semantic_recall.recall" in told
    assert not [
        word for word in ("safe", "4711", "thread-7", "ana@", hit.message.id) if word in told
    ]


def test_text_is_recorded_on_request(tmp_path: Path, recorded: Recorded) -> None:
    settings = Settings(telemetry=recorded.telemetry(record_text=True))
    with SemanticRecall.open(tmp_path, embedder="hash", settings=settings) as memory:
        remember(memory, SECRET)
        memory.recall(ASKED, resource_id="ana@example.org")
    assert facts(recorded.only("semantic_recall.remember"))["semantic_recall.remember.texts"] == (
        SECRET,
    )
    asked = facts(recorded.only("semantic_recall.recall"))
    assert asked["semantic_recall.recall.query"] == ASKED
    assert asked["semantic_recall.recall.texts"] == (SECRET,)


class Quoting(HashEmbedder):
    """Fails, and says what it was given."""

    def embed_query(self, text: str, /) -> Vector:
        raise ConnectionError(f"could not embed {text!r}")


@pytest.mark.parametrize("record_text", [False, True])
def test_an_error_is_recorded_without_its_text(
    tmp_path: Path, recorded: Recorded, record_text: bool
) -> None:
    settings = Settings(telemetry=recorded.telemetry(record_text=record_text))
    with SemanticRecall.open(tmp_path, embedder=Quoting(64), settings=settings) as memory:
        with pytest.raises(EmbedderError):
            memory.recall(ASKED, resource_id="ana@example.org")
        told = everything(recorded)
    span = recorded.only("semantic_recall.recall")
    assert span.status.status_code is StatusCode.ERROR
    assert facts(span)["error.type"] == "semantic_recall.errors.EmbedderError"
    (event,) = span.events
    assert (event.attributes or {})["exception.type"] == "semantic_recall.errors.EmbedderError"
    assert ("ConnectionError" in told, "secret code" in told) == (True, record_text)


class Awaiting(HashEmbedder):
    """Has coroutine methods, and takes as long as it is told to."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(64)
        self.seconds = seconds

    async def aembed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        await asyncio.sleep(self.seconds)
        return list(super().embed_documents(texts))

    async def aembed_query(self, text: str, /) -> Vector:
        await asyncio.sleep(self.seconds)
        return super().embed_query(text)


@pytest.mark.parametrize("embedder", [HashEmbedder(64), Awaiting()], ids=["sync", "async"])
async def test_a_span_is_below_the_callers_also_in_another_thread(
    tmp_path: Path, recorded: Recorded, embedder: HashEmbedder
) -> None:
    tracer = recorded.tracers.get_tracer("app")
    async with SemanticRecall.open(
        tmp_path, embedder=embedder, settings=recorded.settings()
    ) as memory:
        with tracer.start_as_current_span("request") as request:
            await memory.aremember(
                {"role": "user", "content": SECRET}, thread_id="t", resource_id="r"
            )
            await memory.arecall(ASKED, thread_id="t", resource_id="r")
            await memory.arecall_for_turn(ASKED, thread_id="t", resource_id="r")
            memory.recall_for_turn(ASKED, thread_id="t", resource_id="r")
            await memory.aforget(thread_id="t", resource_id="r")
    for name, times in (("remember", 1), ("recall", 3), ("forget", 1)):
        spans = recorded.named(f"semantic_recall.{name}")
        assert len(spans) == times
        parents = [span.parent.span_id if span.parent else 0 for span in spans]
        assert parents == [request.get_span_context().span_id] * times


async def test_two_recalls_at_once_are_siblings(tmp_path: Path, recorded: Recorded) -> None:
    async with SemanticRecall.open(
        tmp_path, embedder=Awaiting(0.05), settings=recorded.settings()
    ) as memory:
        await asyncio.gather(*(memory.arecall(f"{n}", resource_id="r") for n in range(2)))
    assert [span.parent for span in recorded.named("semantic_recall.recall")] == [None, None]


async def test_a_recall_that_is_given_up_is_an_error(tmp_path: Path, recorded: Recorded) -> None:
    settings = recorded.settings(timeout=0.05)
    async with SemanticRecall.open(tmp_path, embedder=Awaiting(30.0), settings=settings) as memory:
        assert not await memory.arecall_for_turn(ASKED, resource_id="r")
    span = recorded.only("semantic_recall.recall")
    assert facts(span)["error.type"].endswith("CancelledError")
    assert span.status.status_code is StatusCode.ERROR
