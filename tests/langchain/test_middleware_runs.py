"""Interrupted and streamed runs."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
)
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_semantic_recall import SemanticRecallMiddleware
from semantic_recall import SemanticRecall
from tests.langchain.agents import (
    CAT,
    QUESTION,
    clock,
    run_in,
    said,
    system_of,
    texts,
    told,
    weather,
)
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel, calling

# LangGraph cannot interrupt in async code on Python 3.10.
interruptible = pytest.mark.parametrize(
    "ask",
    ["invoke"] if sys.version_info < (3, 11) else ["invoke", "ainvoke"],
    indirect=True,
)


def approving(memory: SemanticRecall, model: ScriptedModel, saver: Any) -> Any:
    return create_agent(
        model,
        tools=[weather],
        middleware=[
            SemanticRecallMiddleware(memory),
            HumanInTheLoopMiddleware(interrupt_on={"weather": True}),
        ],
        checkpointer=saver,
    )


APPROVE: Any = Command(resume={"decisions": [{"type": "approve"}]})


@interruptible
async def test_an_interrupted_run_has_stored_the_question_and_resumes_with_the_same_bytes(
    memory: SemanticRecall, ask: Ask, saver: BaseCheckpointSaver[Any]
) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of(calling(("weather", {"city": "Porto"})), "Mimi stays in.")
    agent = approving(memory, model, saver)
    result = await ask(agent, said(QUESTION), run_in("new"))
    assert "__interrupt__" in result
    assert texts(memory, "new") == [QUESTION]
    await ask(agent, APPROVE, run_in("new"))
    assert texts(memory, "new") == [QUESTION, "Mimi stays in."]
    assert system_of(model.requests[0]) == system_of(model.requests[1])


@interruptible
async def test_langchainjs_10291_a_run_resumed_in_another_process_recalls_again(
    memory: SemanticRecall, ask: Ask, saver: BaseCheckpointSaver[Any]
) -> None:
    told(memory, CAT, "old")
    first = ScriptedModel.of(calling(("weather", {"city": "Porto"})))
    await ask(approving(memory, first, saver), said(QUESTION), run_in("new"))
    second = ScriptedModel.of("Mimi stays in.")
    await ask(approving(memory, second, saver), APPROVE, run_in("new"))
    assert system_of(first.requests[0]) == system_of(second.requests[0])
    assert texts(memory, "new") == [QUESTION, "Mimi stays in."]


@interruptible
async def test_what_is_forgotten_during_an_interrupt_is_not_shown_after_it(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of(calling(("weather", {"city": "Porto"})), "Which cat?")
    agent = approving(memory, model, InMemorySaver())
    await ask(agent, said(QUESTION), run_in("new"))
    assert CAT in system_of(model.requests[0])
    memory.forget(thread_id="old", resource_id="ann")
    await ask(agent, APPROVE, run_in("new"))
    assert "Mimi" not in repr(model.requests[1])


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "custom", "debug", "tasks"])
@pytest.mark.parametrize("is_async", [False, True], ids=["stream", "astream"])
async def test_streaming_shows_nothing_recalled_and_stores_whole_messages(
    memory: SemanticRecall, mode: Any, is_async: bool
) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of(calling(("clock", {})), "Her name is Mimi.")
    ours = SemanticRecallMiddleware(memory)
    agent: Any = create_agent(model, tools=[clock], middleware=[ours])
    if is_async:
        stream = agent.astream(said(QUESTION), run_in("new"), stream_mode=mode)
        parts = [part async for part in stream]
    else:
        parts = list(agent.stream(said(QUESTION), run_in("new"), stream_mode=mode))
    assert CAT in system_of(model.requests[0])
    assert "afraid of thunder" not in repr(parts)
    if mode == "messages":
        said_by = {str(part[1]["langgraph_node"]) for part in parts}
        assert said_by == {"model", "tools"}
        tokens = [part[0] for part in parts if isinstance(part[0], AIMessageChunk)]
        # On Python 3.10, LangGraph sees no tokens of a model in async code.
        blind = is_async and sys.version_info < (3, 11)
        assert "".join(str(token.text) for token in tokens) == (
            "" if blind else "Her name is Mimi."
        )
    stored = memory.history("new", "ann", last=None)
    assert [message.text for message in stored] == [QUESTION, "Her name is Mimi."]
    assert stored[1].payload is not None
    assert stored[1].payload["langchain"]["type"] == "ai"


async def test_a_stream_that_the_consumer_leaves_has_stored_the_question(
    memory: SemanticRecall,
) -> None:
    agent = create_agent(ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)])
    stream = agent.astream(said(CAT), run_in("new"), stream_mode="messages")
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    assert texts(memory, "new")[:1] == [CAT]
