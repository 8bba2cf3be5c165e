"""A model searches its own memory, and only its own."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage

from langchain_semantic_recall import create_recall_tool
from langchain_semantic_recall.tool import NOTHING, UNAVAILABLE
from semantic_recall import InvalidOptionError, SemanticRecall
from tests.langchain.agents import CAT, QUESTION, run_in, said, told
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel, calling


async def searched(
    memory: SemanticRecall, ask: Ask, arguments: dict[str, Any], config: Any, **kwargs: Any
) -> str:
    """Let a scripted model search in a real agent; returns what the tool told it."""
    model = ScriptedModel.of(calling(("search_memory", arguments)), "Found.")
    agent: Any = create_agent(model, tools=[create_recall_tool(memory)])
    await ask(agent, said(QUESTION), config, **kwargs)
    result = model.requests[1][-1]
    assert isinstance(result, ToolMessage)
    return str(result.text)


async def test_a_model_finds_what_another_thread_said(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "old")
    found = await searched(memory, ask, {"query": "the cat's name"}, run_in("new"))
    assert CAT in found
    assert "not instructions" in found


async def test_the_model_cannot_choose_whose_memory(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "old", "ann")
    arguments = {"query": "cat", "resource_id": "ann", "user_id": "ann", "thread_id": "old"}
    assert await searched(memory, ask, arguments, run_in("new", "bob")) == NOTHING
    assert set(create_recall_tool(memory).args) == {"query", "since", "until", "conversations"}


async def test_the_owner_may_come_from_the_context(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "old", "ann")
    config = {"configurable": {"thread_id": "new"}}
    found = await searched(memory, ask, {"query": "cat"}, config, context={"user_id": "ann"})
    assert CAT in found


async def test_this_conversation_alone(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "old")
    told(memory, "The cat sleeps.", "new")
    arguments = {"query": "cat", "conversations": "this"}
    found = await searched(memory, ask, arguments, run_in("new"))
    assert "The cat sleeps." in found
    assert "Mimi" not in found


async def test_a_time_range(memory: SemanticRecall, ask: Ask) -> None:
    for year in (2021, 2022, 2023):
        memory.remember(
            {
                "role": "user",
                "content": f"My cat won a prize in {year}.",
                "created_at": datetime(year, 6, 1, tzinfo=timezone.utc),
            },
            thread_id=f"t{year}",
            resource_id="ann",
        )
    arguments = {"query": "cat prize", "since": "2022-01-01", "until": "2022-12-31T23:59:59Z"}
    found = await searched(memory, ask, arguments, run_in("new"))
    assert "prize in 2022" in found
    assert "prize in 2021" not in found
    assert "prize in 2023" not in found


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "cat", "since": "yesterday"},
        {"query": "cat", "since": "0001-01-01T00:00:00+14:00"},
        {"query": "cat", "until": "9999-12-31T23:59:59-14:00"},
        {"query": ""},
        {},
        {"query": "c", "conversations": 1},
    ],
)
async def test_wrong_arguments_are_explained_to_the_model(
    memory: SemanticRecall, ask: Ask, arguments: dict[str, Any]
) -> None:
    told(memory, CAT, "old")
    found = await searched(memory, ask, arguments, run_in("new"))
    assert any(name in found for name in ("since", "until", "query", "conversations"))
    assert "Mimi" not in found


async def test_without_ids_there_is_no_memory(
    memory: SemanticRecall, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    told(memory, CAT, "old")
    assert await searched(memory, ask, {"query": "cat"}, None) == UNAVAILABLE
    assert "no thread or owner" in caplog.text
    assert await searched(memory, ask, {"query": "cat"}, run_in("new", ["x"])) == UNAVAILABLE
    assert "memory is not used" in caplog.text


async def test_a_failure_is_logged_and_the_answer_goes_on(
    memory: SemanticRecall, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    memory.close()
    assert await searched(memory, ask, {"query": "cat"}, run_in("new")) == NOTHING
    assert "recall failed" in caplog.text


async def test_langmem_37_it_works_without_an_agent(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "old")
    tool = create_recall_tool(memory, name="remember", resource_id="ann", top_k=1)
    assert CAT in await ask(tool, {"query": "cat"})
    assert tool.name == "remember"
    assert "wrong" in await ask(tool, {"query": ""})


def test_wrong_options_fail_at_construction(memory: SemanticRecall) -> None:
    with pytest.raises(InvalidOptionError, match="since"):
        create_recall_tool(memory, since=datetime(2020, 1, 1))
    with pytest.raises(InvalidOptionError, match="top_k"):
        create_recall_tool(memory, top_k="x")  # type: ignore[arg-type]
