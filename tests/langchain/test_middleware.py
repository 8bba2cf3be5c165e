"""Recalling and storing in real agents."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver

from langchain_semantic_recall import SemanticRecallMiddleware
from langchain_semantic_recall.messages import is_recalled
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


async def test_the_first_turn_of_a_new_thread_recalls_another_thread(
    memory: SemanticRecall, ask: Ask
) -> None:
    model = ScriptedModel.of("Nice to meet her.", "Mimi.")
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    await ask(agent, said(CAT), run_in("monday"))
    await ask(agent, said(QUESTION), run_in("tuesday"))
    assert CAT in system_of(model.requests[1])
    assert [message.text for message in model.requests[1][1:]] == [QUESTION]
    assert texts(memory, "monday") == [CAT, "Nice to meet her."]
    assert texts(memory, "tuesday") == [QUESTION, "Mimi."]


async def test_another_resource_is_never_recalled(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "t", "ann")
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    for stranger in ("bob", "an", "ann2", "Ann", "ann ", "%", "ann%", "a_n", "ann:t", "ann/"):
        await ask(agent, said(QUESTION), run_in("x", stranger))
    await ask(agent, said(QUESTION), run_in("t2", None))
    assert "Mimi" not in repr(model.requests)
    await ask(agent, said(QUESTION), run_in("x", "ann"))
    assert CAT in system_of(model.requests[-1])


async def test_equal_message_ids_of_two_users_never_share_a_recall(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, CAT, "old", "ann")
    told(memory, "My cat is called Tom.", "old", "bob")
    model = ScriptedModel.of(RuntimeError("500"))
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    question = {"messages": [HumanMessage(QUESTION, id="1")]}
    with pytest.raises(RuntimeError, match="500"):
        await ask(agent, question, run_in("new", "ann"))
    await ask(agent, question, run_in("new", "bob"))
    assert "Mimi" in system_of(model.requests[0])
    assert "Mimi" not in system_of(model.requests[1])
    assert "Tom" in system_of(model.requests[1])


async def test_the_tool_loop_sees_the_same_bytes(
    memory: SemanticRecall, ask: Ask, saver: BaseCheckpointSaver[Any]
) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of(
        calling(("weather", {"city": "Porto"}), ("clock", {})),
        calling(("weather", {"city": "Rome"}), start=3),
        "Mimi stays in: it rains.",
    )
    agent = create_agent(
        model,
        tools=[weather, clock],
        system_prompt="Be kind.",
        middleware=[SemanticRecallMiddleware(memory)],
        checkpointer=saver,
    )
    await ask(agent, said(f"{QUESTION} And the weather?"), run_in("new"))
    first, second, third = model.requests
    assert system_of(first) == system_of(second) == system_of(third)
    assert system_of(first).startswith("Be kind.\n\n")
    assert CAT in system_of(first)
    assert (len(first), len(second), len(third)) == (2, 5, 7)
    assert texts(memory, "new") == [f"{QUESTION} And the weather?", "Mimi stays in: it rains."]


async def test_what_is_said_elsewhere_during_a_turn_waits_for_the_next(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, CAT, "old")

    @tool
    def learn() -> str:
        """Store something that matters for the question."""
        told(memory, "The name of my second cat is Tom.", "elsewhere")
        return "done"

    model = ScriptedModel.of(calling(("learn", {})), "Mimi.")
    agent = create_agent(model, tools=[learn], middleware=[SemanticRecallMiddleware(memory)])
    await ask(agent, said(QUESTION), run_in("new"))
    first, second = model.requests
    assert system_of(first) == system_of(second)
    await ask(agent, said("The names of my cats?"), run_in("new"))
    assert "Tom" in system_of(model.requests[2])


async def test_nothing_recalled_is_in_the_state_or_a_checkpoint(
    memory: SemanticRecall, ask: Ask, saver: BaseCheckpointSaver[Any]
) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of(calling(("clock", {})), "done")
    agent = create_agent(
        model, tools=[clock], middleware=[SemanticRecallMiddleware(memory)], checkpointer=saver
    )
    result = await ask(agent, said(QUESTION), run_in("new"))
    assert CAT in system_of(model.requests[0])
    config = {"configurable": {"thread_id": "new"}}
    if ask.__name__ == "_ainvoke":
        checkpoints = [each async for each in saver.alist(config)]  # type: ignore[arg-type]
    else:
        checkpoints = list(saver.list(config))  # type: ignore[arg-type]
    assert len(checkpoints) > 3
    assert "afraid of thunder" not in repr(checkpoints)
    assert "afraid of thunder" not in repr(result)
    assert set(result) == {"messages"}


async def test_a_long_thread_brings_back_its_own_messages_before_the_live_ones(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, CAT, "one", "ann")
    told(memory, "Football is boring.", "one", "ann")
    model = ScriptedModel.of("Mimi.")
    agent = create_agent(
        model, middleware=[SemanticRecallMiddleware(memory, top_k=1, message_range=(0, 1))]
    )
    await ask(agent, said(QUESTION), run_in("one"))
    request = model.requests[0]
    assert [(type(message), message.text) for message in request] == [
        (HumanMessage, CAT),
        (AIMessage, "I see."),
        (HumanMessage, QUESTION),
    ]
    assert [is_recalled(message) for message in request] == [True, True, False]


async def test_what_the_prompt_holds_is_not_recalled(
    memory: SemanticRecall, ask: Ask, saver: BaseCheckpointSaver[Any]
) -> None:
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)], checkpointer=saver)
    for text in (CAT, QUESTION, QUESTION):
        await ask(agent, said(text), run_in("one"))
    last = model.requests[-1]
    assert [message.text for message in last if isinstance(message, HumanMessage)] == [
        CAT,
        QUESTION,
        QUESTION,
    ]


async def test_an_edited_message_of_the_prompt_is_not_recalled_as_it_was(
    memory: SemanticRecall, ask: Ask
) -> None:
    memory.remember(
        {"role": "user", "content": CAT, "id": "m1"}, thread_id="one", resource_id="ann"
    )
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    edited = [HumanMessage("My cat is called M.", id="m1"), HumanMessage(QUESTION)]
    await ask(agent, {"messages": edited}, run_in("one"))
    assert [message.text for message in model.requests[0]] == ["My cat is called M.", QUESTION]


async def test_several_messages_of_the_user_in_one_turn_are_all_stored(
    memory: SemanticRecall, ask: Ask
) -> None:
    agent = create_agent(ScriptedModel.of("Yes."), middleware=[SemanticRecallMiddleware(memory)])
    await ask(
        agent, {"messages": [HumanMessage("Hi"), HumanMessage("Are you there?")]}, run_in("t")
    )
    assert texts(memory, "t") == ["Hi", "Are you there?", "Yes."]


async def test_words_beside_a_tool_call_are_no_answer(memory: SemanticRecall, ask: Ask) -> None:
    model = ScriptedModel.of(calling(("clock", {}), text="I look."), "Noon.")
    agent = create_agent(model, tools=[clock], middleware=[SemanticRecallMiddleware(memory)])
    await ask(agent, said("Time?"), run_in("t"))
    assert texts(memory, "t") == ["Time?", "Noon."]
