"""Whose memory a run uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from langchain_semantic_recall import SemanticRecallMiddleware
from semantic_recall import SemanticRecall
from tests.langchain.agents import (
    CAT,
    QUESTION,
    run_in,
    said,
    system_of,
    texts,
    told,
)
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel, calling


@dataclass
class Context:
    user_id: str | None = None
    thread_id: str | None = None


UUID_ID = UUID(int=7)


@pytest.mark.parametrize(
    ("config", "context", "fixed", "thread", "resource"),
    [
        ({"thread_id": 7}, None, {}, "7", None),
        ({"thread_id": UUID_ID, "resource_id": UUID_ID}, None, {}, str(UUID_ID), str(UUID_ID)),
        ({"session_id": "s", "user_id": "u"}, None, {}, "s", "u"),
        ({"thread_id": "t", "resource_id": None}, None, {}, "t", None),
        ({"thread_id": "t", "resource_id": ""}, None, {}, "t", None),
        ({"thread_id": "t"}, {"resource_id": "r"}, {}, "t", "r"),
        ({"thread_id": "t", "user_id": "c"}, Context(user_id="u"), {}, "t", "u"),
        ({}, Context(user_id="u", thread_id="x"), {}, "x", "u"),
        ({"thread_id": "t", "user_id": "u"}, {"user_id": "v"}, {"resource_id": "me"}, "t", "me"),
        ({"thread_id": "t"}, None, {"thread_id": "mine"}, "mine", None),
        (
            {"thread_id": "t", "user_id": "evil", "langgraph_auth_user_id": "ann"},
            {"resource_id": "evil"},
            {},
            "t",
            "ann",
        ),
        ({"thread_id": "日本 🐈 '%_", "resource_id": "a/b:c"}, None, {}, "日本 🐈 '%_", "a/b:c"),
    ],
)
async def test_ids(
    memory: SemanticRecall,
    ask: Ask,
    config: dict[str, Any],
    context: Any,
    fixed: dict[str, str],
    thread: str,
    resource: str | None,
) -> None:
    ours = SemanticRecallMiddleware(
        memory, thread_id=fixed.get("thread_id"), resource_id=fixed.get("resource_id")
    )
    agent: Any = create_agent(ScriptedModel.of(), middleware=[ours])
    await ask(agent, said("Hello"), {"configurable": config}, context=context)
    assert texts(memory, thread, resource) == ["Hello", "answer to Hello"]


async def test_context_of_a_declared_class(memory: SemanticRecall, ask: Ask) -> None:
    agent = create_agent(
        ScriptedModel.of(),
        middleware=[SemanticRecallMiddleware(memory)],
        context_schema=Context,
    )
    await ask(agent, said("Hello"), {"configurable": {"thread_id": "t"}}, context={"user_id": "u"})
    assert texts(memory, "t", "u") == ["Hello", "answer to Hello"]


@pytest.mark.parametrize("bad", [["list"], 1.5, True, "x" * 2000])
async def test_an_unusable_id_is_logged_and_the_answer_goes_on(
    memory: SemanticRecall, ask: Ask, caplog: pytest.LogCaptureFixture, bad: object
) -> None:
    agent = create_agent(ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)])
    result = await ask(agent, said("Hello"), run_in("t", bad))
    assert result["messages"][-1].text == "answer to Hello"
    assert "resource_id" in caplog.text
    assert memory.stats().messages == 0


async def test_ruflo_1123_missing_ids_are_said_once_and_never_widen_anything(
    memory: SemanticRecall, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    told(memory, CAT, "old", "ann")
    told(memory, CAT, "old", None)
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    for _ in range(3):
        await ask(agent, said(QUESTION), {"configurable": {"thread_id": "new"}})
    assert caplog.text.count("no resource id was given") == 1
    for _ in range(2):
        await ask(agent, said(QUESTION))
    assert caplog.text.count("no thread or resource id was given") == 1
    assert "Mimi" not in repr(model.requests)
    await ask(agent, said(QUESTION), {"configurable": {"thread_id": "old"}})
    assert "Mimi" in repr(model.requests[-1])


async def test_an_owner_without_a_thread_is_recalled_from_and_stores_nothing(
    memory: SemanticRecall, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    told(memory, CAT, "old", "ann")
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    await ask(agent, said(QUESTION), {"configurable": {"resource_id": "ann"}})
    assert CAT in system_of(model.requests[0])
    assert memory.stats().messages == 2
    assert "no thread id was given: nothing is stored" in caplog.text


def subagent(memory: SemanticRecall, **options: Any) -> Any:
    return create_agent(
        ScriptedModel.of("inner answer"),
        middleware=[SemanticRecallMiddleware(memory, **options)],
    )


@pytest.mark.parametrize(("store_nested", "inner"), [(None, False), (False, False), (True, True)])
async def test_an_agent_called_by_a_tool_does_not_write_into_the_outer_thread(
    memory: SemanticRecall, ask: Ask, store_nested: bool | None, inner: bool
) -> None:
    nested = subagent(memory, store_nested=store_nested)

    @tool
    def research(topic: str) -> str:
        """Ask the researcher."""
        return str(nested.invoke(said(topic))["messages"][-1].text)

    @tool
    async def aresearch(topic: str) -> str:
        """Ask the researcher."""
        return str((await nested.ainvoke(said(topic)))["messages"][-1].text)

    chosen = aresearch if ask.__name__ == "_ainvoke" else research
    agent = create_agent(
        ScriptedModel.of(calling((chosen.name, {"topic": "inner question"})), "outer answer"),
        tools=[chosen],
        middleware=[SemanticRecallMiddleware(memory)],
    )
    await ask(agent, said("outer question"), run_in("one"))
    stored = texts(memory, "one")
    assert "outer question" in stored
    assert "outer answer" in stored
    assert ("inner question" in stored, "inner answer" in stored) == (inner, inner)


@pytest.mark.parametrize(("store_nested", "stored"), [(None, 2), (False, 0)])
async def test_an_agent_that_is_a_node_of_a_graph_owns_the_conversation(
    memory: SemanticRecall, ask: Ask, store_nested: bool | None, stored: int
) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("assistant", subagent(memory, store_nested=store_nested))
    graph.add_edge(START, "assistant")
    await ask(graph.compile(), said("question"), run_in("one"))
    assert len(texts(memory, "one")) == stored
