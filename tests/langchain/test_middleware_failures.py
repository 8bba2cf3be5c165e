"""What fails costs no answer, and loses nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_semantic_recall import SemanticRecallMiddleware
from semantic_recall import AbortTurn, Message, Recall, SemanticRecall, Settings
from tests.langchain.agents import (
    CAT,
    QUESTION,
    clock,
    run_in,
    said,
    texts,
    told,
)
from tests.langchain.conftest import Ask
from tests.langchain.embedders import CountingEmbedder
from tests.langchain.scripted import ScriptedModel, calling


@pytest.mark.parametrize("ranking", ["dense", "hybrid"])
async def test_a_failing_embedder_costs_no_answer(
    tmp_path: Path, ask: Ask, caplog: pytest.LogCaptureFixture, ranking: Any
) -> None:
    embedder = CountingEmbedder()
    with SemanticRecall.open(tmp_path / "m", embedder=embedder) as memory:
        told(memory, CAT, "old")
        embedder.failing = True
        model = ScriptedModel.of("Who?")
        agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory, ranking=ranking)])
        result = await ask(agent, said(QUESTION), run_in("new"))
    assert result["messages"][-1].text == "Who?"
    assert "no route to host" in caplog.text
    assert ("Mimi" in repr(model.requests[0])) == (ranking == "hybrid")


@pytest.mark.alone
async def test_a_slow_recall_costs_no_answer(
    tmp_path: Path, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = CountingEmbedder(seconds=2.0)
    settings = Settings(timeout=0.2)
    with SemanticRecall.open(tmp_path / "m", embedder=embedder, settings=settings) as memory:
        told(memory, CAT, "old")
        model = ScriptedModel.of("Who?")
        agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
        started = time.perf_counter()
        await ask(agent, said(QUESTION), run_in("new"))
        assert time.perf_counter() - started < 0.9
        assert "took more than 0.2 s" in caplog.text
        assert "Mimi" not in repr(model.requests[0])
        await asyncio.sleep(2.0)  # the hanging thread ends before its memory is closed


async def test_a_closed_memory_costs_no_answer(
    memory: SemanticRecall, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    agent = create_agent(ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)])
    memory.close()
    result = await ask(agent, said("Hello"), run_in("new"))
    assert result["messages"][-1].text == "answer to Hello"
    assert "recall failed" in caplog.text
    assert "storing failed" in caplog.text


async def test_a_failing_model_has_the_question_stored(memory: SemanticRecall, ask: Ask) -> None:
    model = ScriptedModel.of(RuntimeError("500"), "Mimi.")
    agent = create_agent(
        model, middleware=[SemanticRecallMiddleware(memory)], checkpointer=InMemorySaver()
    )
    with pytest.raises(RuntimeError, match="500"):
        await ask(agent, said(QUESTION), run_in("new"))
    assert texts(memory, "new") == [QUESTION]
    await ask(agent, None, run_in("new"))
    assert texts(memory, "new") == [QUESTION, "Mimi."]


async def test_a_failing_tool_has_stored_the_tool_turns_so_far(
    memory: SemanticRecall, ask: Ask
) -> None:
    @tool
    def broken() -> str:
        """Fail."""
        raise RuntimeError("disk full")

    model = ScriptedModel.of(calling(("clock", {})), calling(("broken", {}), start=2))
    agent = create_agent(
        model,
        tools=[clock, broken],
        middleware=[SemanticRecallMiddleware(memory, store_tools=True)],
    )
    with pytest.raises(RuntimeError, match="disk full"):
        await ask(agent, said("Time?"), run_in("new"))
    stored = memory.history("new", "ann", last=None)
    assert [message.role for message in stored] == ["user", "assistant", "tool"]


async def test_hooks_can_stop_the_turn(tmp_path: Path, ask: Ask) -> None:
    def no_cats(messages: Sequence[Message]) -> Sequence[Message]:
        if any("cat" in message.text for message in messages):
            raise AbortTurn("no cats here")
        return messages

    with SemanticRecall.open(
        tmp_path / "m", embedder="hash", settings=Settings(before_store=no_cats)
    ) as memory:
        model = ScriptedModel.of()
        agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
        with pytest.raises(AbortTurn, match="no cats here"):
            await ask(agent, said(QUESTION), run_in("new"))
        assert model.requests == []
        await ask(agent, said("Hello"), run_in("new"))
        assert texts(memory, "new") == ["Hello", "answer to Hello"]


async def test_a_hook_can_empty_what_is_injected(tmp_path: Path, ask: Ask) -> None:
    settings = Settings(before_inject=lambda recall: Recall(query=recall.query))
    with SemanticRecall.open(tmp_path / "m", embedder="hash", settings=settings) as memory:
        told(memory, CAT, "old")
        model = ScriptedModel.of()
        agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
        await ask(agent, said(QUESTION), run_in("new"))
        assert "Mimi" not in repr(model.requests)


@pytest.mark.alone
async def test_langchain_33474_a_slow_embedder_does_not_block_the_event_loop(
    tmp_path: Path,
) -> None:
    embedder = CountingEmbedder(seconds=1.0)
    with SemanticRecall.open(tmp_path / "m", embedder=embedder) as memory:
        told(memory, CAT, "old")
        agent = create_agent(ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)])
        gaps: list[float] = []

        async def tick() -> None:
            last = time.perf_counter()
            while True:
                await asyncio.sleep(0.01)
                gaps.append(time.perf_counter() - last)
                last = time.perf_counter()

        ticker = asyncio.create_task(tick())
        await agent.ainvoke(said(QUESTION), run_in("new"))
        ticker.cancel()
    assert threading.get_ident() not in embedder.threads
    assert len(embedder.queries) == 1
    assert max(gaps) < 0.3
