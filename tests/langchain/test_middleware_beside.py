"""The middleware beside others: summaries, retries, guardrails, structured answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langchain_semantic_recall import SemanticRecallMiddleware, to_langchain
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
)
from tests.langchain.conftest import Ask
from tests.langchain.embedders import CountingEmbedder
from tests.langchain.scripted import ScriptedModel, calling


@pytest.mark.parametrize("order", ["before", "after"])
async def test_langchain_38867_summarised_messages_stay_stored_and_come_back(
    memory: SemanticRecall, ask: Ask, order: str
) -> None:
    summarizer = ScriptedModel.of(*["They talked."] * 20)
    ours = SemanticRecallMiddleware(memory, top_k=1)
    theirs: AgentMiddleware[Any, Any] = SummarizationMiddleware(
        summarizer, trigger=("messages", 4), keep=("messages", 2)
    )
    model = ScriptedModel.of()
    agent = create_agent(
        model,
        tools=[clock],
        middleware=[ours, theirs] if order == "before" else [theirs, ours],
        checkpointer=InMemorySaver(),
    )
    asked = [CAT, "I like football.", "It rains today.", "I bought a red car.", QUESTION]
    for text in asked:
        await ask(agent, said(text), run_in("one"))
    stored = texts(memory, "one")
    assert stored == [word for text in asked for word in (text, f"answer to {text}")]
    last = model.requests[-1]
    assert any("They talked." in message.text for message in last)
    assert CAT in [message.text for message in last]
    assert not any("They talked." in text for text in stored)


async def test_langchain_39261_a_failing_summary_loses_nothing(
    memory: SemanticRecall, ask: Ask
) -> None:
    summarizer = ScriptedModel.of(*[RuntimeError("no quota") for _ in range(9)])
    agent = create_agent(
        ScriptedModel.of(),
        middleware=[
            SemanticRecallMiddleware(memory),
            SummarizationMiddleware(summarizer, trigger=("messages", 3), keep=("messages", 1)),
        ],
        checkpointer=InMemorySaver(),
    )
    await ask(agent, said(CAT), run_in("one"))
    try:
        await ask(agent, said(QUESTION), run_in("one"))
    except RuntimeError:
        assert texts(memory, "one") == [CAT, f"answer to {CAT}"]
    else:
        assert texts(memory, "one")[:3] == [CAT, f"answer to {CAT}", QUESTION]


async def test_each_attempt_of_a_retry_sees_the_same_bytes(tmp_path: Path, ask: Ask) -> None:
    embedder = CountingEmbedder()
    with SemanticRecall.open(tmp_path / "m", embedder=embedder) as memory:
        told(memory, CAT, "old")
        model = ScriptedModel.of(ConnectionError("reset"), ConnectionError("reset"), "Mimi.")
        agent = create_agent(
            model,
            middleware=[
                ModelRetryMiddleware(max_retries=3, initial_delay=0, jitter=False),
                SemanticRecallMiddleware(memory),
            ],
        )
        await ask(agent, said(QUESTION), run_in("new"))
        assert len({system_of(request) for request in model.requests}) == 1
        assert len(model.requests) == 3
        assert embedder.queries == [QUESTION]
        assert texts(memory, "new") == [QUESTION, "Mimi."]


class Redacting(AgentMiddleware[Any, Any]):
    """Replaces what the user wrote, under the same id, as PII middleware does."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [HumanMessage(last.text.replace("4111", "****"), id=last.id)]}

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return self.before_model(state, runtime)


async def test_what_a_guardrail_redacts_is_never_stored(memory: SemanticRecall, ask: Ask) -> None:
    agent = create_agent(
        ScriptedModel.of("Thanks."), middleware=[SemanticRecallMiddleware(memory), Redacting()]
    )
    await ask(agent, said("My card is 4111"), run_in("new"))
    assert texts(memory, "new") == ["My card is ****", "Thanks."]


class Weather(BaseModel):
    """The weather."""

    city: str
    degrees: int


async def test_a_structured_answer_given_as_a_tool_call_is_stored(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, "I live in Porto.", "old")
    model = ScriptedModel.of(calling(("Weather", {"city": "Porto", "degrees": 12})))
    agent = create_agent(
        model,
        tools=[clock],
        middleware=[SemanticRecallMiddleware(memory)],
        response_format=ToolStrategy(Weather),
    )
    result = await ask(agent, said("The weather where I live?"), run_in("new"))
    assert result["structured_response"] == Weather(city="Porto", degrees=12)
    assert "Porto" in system_of(model.requests[0])
    stored = memory.history("new", "ann", last=None)
    assert [(message.role, message.text) for message in stored] == [
        ("user", "The weather where I live?"),
        ("assistant", '{"city": "Porto", "degrees": 12}'),
    ]


@pytest.mark.parametrize("store_tools", [False, True])
async def test_a_structured_response_of_an_earlier_turn_is_not_taken_for_a_later_answer(
    memory: SemanticRecall, ask: Ask, store_tools: bool
) -> None:
    rome, bonn = {"city": "Rome", "degrees": 20}, {"city": "Bonn", "degrees": 9}
    model = ScriptedModel.of(
        calling(("Weather", rome)),
        calling(("clock", {}), start=2),
        calling(("Weather", bonn), start=3),
    )
    agent = create_agent(
        model,
        tools=[clock],
        middleware=[SemanticRecallMiddleware(memory, store_tools=store_tools)],
        response_format=ToolStrategy(Weather),
        checkpointer=InMemorySaver(),
    )
    for question in ("Rome?", "Bonn?"):
        await ask(agent, said(question), run_in("one"))
    stored = memory.history("one", "ann", last=None)
    answers = [message.text for message in stored if message.role == "assistant" and message.text]
    assert answers == ['{"city": "Rome", "degrees": 20}', '{"city": "Bonn", "degrees": 9}']
    assert len(stored) == (8 if store_tools else 4)
    calls = [call for m in map(to_langchain, stored) for call in getattr(m, "tool_calls", [])]
    names = ["Weather", "clock", "Weather"] if store_tools else []
    assert [call["name"] for call in calls] == names


async def test_a_message_with_an_empty_id_is_stored_once(memory: SemanticRecall, ask: Ask) -> None:
    agent = create_agent(
        ScriptedModel.of(calling(("clock", {})), "Noon."),
        tools=[clock],
        middleware=[SemanticRecallMiddleware(memory)],
    )
    await ask(agent, {"messages": [HumanMessage("Time?", id="")]}, run_in("one"))
    assert texts(memory, "one") == ["Time?", "Noon."]


async def test_a_structured_answer_given_as_text_is_stored(
    memory: SemanticRecall, ask: Ask
) -> None:
    agent = create_agent(
        ScriptedModel.of('{"city": "Porto", "degrees": 12}'),
        middleware=[SemanticRecallMiddleware(memory)],
        response_format=ProviderStrategy(Weather),
    )
    await ask(agent, said("Weather?"), run_in("new"))
    assert texts(memory, "new") == ["Weather?", '{"city": "Porto", "degrees": 12}']
