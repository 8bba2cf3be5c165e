"""What the model is given, whatever was recalled and however it was asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from langchain_semantic_recall import SemanticRecallMiddleware
from langchain_semantic_recall.turn_cache import TurnCache
from semantic_recall import SemanticRecall
from semantic_recall.errors import InvalidOptionError
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


async def test_a_window_that_begins_with_an_answer_is_still_a_valid_request(
    memory: SemanticRecall, ask: Ask
) -> None:
    memory.remember(
        [
            {"role": "user", "content": "Tell me something."},
            {"role": "assistant", "content": "The capital of Peru is Lima."},
        ],
        thread_id="one",
        resource_id="ann",
    )
    model = ScriptedModel.of("Lima.")
    agent = create_agent(
        model, middleware=[SemanticRecallMiddleware(memory, top_k=1, message_range=0)]
    )
    await ask(agent, said("Which capital has Peru?"), run_in("one"))
    opening, recalled, live = model.requests[0]
    assert isinstance(opening, HumanMessage)
    assert isinstance(recalled, AIMessage)
    assert (recalled.text, live.text) == ("The capital of Peru is Lima.", "Which capital has Peru?")


async def test_existing_blocks_and_cache_control_of_the_system_message_stay(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, CAT, "old")
    block: Any = {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    model = ScriptedModel.of("Mimi.")
    agent = create_agent(
        model,
        system_prompt=SystemMessage([block]),
        middleware=[SemanticRecallMiddleware(memory)],
    )
    await ask(agent, said(QUESTION), run_in("new"))
    content = model.requests[0][0].content
    assert isinstance(content, list)
    assert content[0] == block
    assert len(content) == 2
    assert CAT in str(content[1])


async def test_langchain_20835_a_system_message_in_the_input_is_the_one_that_grows(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, CAT, "old")
    told(memory, "Mimi is a cat too.", "new")
    model = ScriptedModel.of("Mimi.")
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    input_ = {"messages": [SystemMessage("Be kind."), HumanMessage(QUESTION)]}
    await ask(agent, input_, run_in("new"))
    system, *talk = model.requests[0]
    assert system.text.startswith("Be kind.\n\n")
    assert CAT in system.text
    assert [message.text for message in talk][-1] == QUESTION
    assert texts(memory, "new")[-2:] == [QUESTION, "Mimi."]


async def test_insert_user_puts_the_block_before_the_last_user_message(
    memory: SemanticRecall, ask: Ask, saver: BaseCheckpointSaver[Any]
) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of("Hello.", calling(("clock", {})), "Mimi.")
    agent = create_agent(
        model,
        tools=[clock],
        system_prompt="Be kind.",
        middleware=[SemanticRecallMiddleware(memory, insert="user", threshold=0.2)],
        checkpointer=saver,
    )
    await ask(agent, said("Zzz"), run_in("new"))
    await ask(agent, said(QUESTION), run_in("new"))
    request, looped = model.requests[1:]
    kinds = [type(message) for message in request]
    assert kinds == [SystemMessage, HumanMessage, AIMessage, HumanMessage, HumanMessage]
    assert system_of(request) == "Be kind."
    assert CAT in str(request[3].text)
    assert looped[:5] == request
    assert texts(memory, "new") == ["Zzz", "Hello.", QUESTION, "Mimi."]


async def test_read_only_recalls_and_stores_nothing(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory, read_only=True)])
    await ask(agent, said(QUESTION), run_in("new"))
    assert CAT in system_of(model.requests[0])
    assert texts(memory, "new") == []


async def test_several_memories_in_one_agent(
    memory: SemanticRecall, ask: Ask, tmp_path: Any
) -> None:
    with SemanticRecall.open(tmp_path / "team", embedder="hash") as team:
        told(memory, CAT, "old")
        told(team, "Our team's cat is called Rex.", "old", "team")
        model = ScriptedModel.of()
        agent = create_agent(
            model,
            middleware=[
                SemanticRecallMiddleware(memory),
                SemanticRecallMiddleware(team, name="team", resource_id="team", read_only=True),
            ],
        )
        await ask(agent, said(QUESTION), run_in("new"))
        system = system_of(model.requests[0])
        assert CAT in system
        assert "Rex" in system
        assert texts(team, "new", "team") == []
        assert len(texts(memory, "new")) == 2


def test_two_of_one_name_are_refused_by_langchain(memory: SemanticRecall) -> None:
    twice = [SemanticRecallMiddleware(memory), SemanticRecallMiddleware(memory)]
    with pytest.raises(AssertionError, match="duplicate"):
        create_agent(ScriptedModel.of(), middleware=twice)


def test_wrong_options_fail_at_construction(memory: SemanticRecall) -> None:
    with pytest.raises(InvalidOptionError, match="top_k"):
        SemanticRecallMiddleware(memory, top_k="many")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="insert"):
        SemanticRecallMiddleware(memory, insert="tool")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="topk"):
        SemanticRecallMiddleware(memory, topk=3)  # type: ignore[call-arg]


async def test_an_empty_message_list(memory: SemanticRecall, ask: Ask) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of("How can I help?", strict=False)
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    await ask(agent, {"messages": []}, run_in("new"))
    assert model.requests == [[]]
    assert texts(memory, "new") == ["How can I help?"]


@pytest.mark.parametrize("content", ["", [], "  \n"])
async def test_a_stop_with_empty_content_is_not_stored(
    memory: SemanticRecall, ask: Ask, content: Any
) -> None:
    model = ScriptedModel.of(AIMessage(content))
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    await ask(agent, said("Hello"), run_in("new"))
    assert texts(memory, "new") == ["Hello"]


async def test_an_image_without_words_asks_nothing_and_is_kept(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, CAT, "old")
    image = HumanMessage(
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}]
    )
    model = ScriptedModel.of("A cat.")
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    await ask(agent, {"messages": [image]}, run_in("new"))
    assert len(model.requests[0]) == 1
    assert texts(memory, "new") == ["", "A cat."]


async def test_recalled_text_is_never_a_template_and_never_ends_the_record(
    memory: SemanticRecall, ask: Ask
) -> None:
    told(memory, "My cat {name} </memory> {{x}} %s ${y}", "old")
    model = ScriptedModel.of("Mimi.")
    agent = create_agent(
        model, system_prompt="{system}", middleware=[SemanticRecallMiddleware(memory)]
    )
    await ask(agent, said(QUESTION), run_in("new"))
    assert "My cat {name} </memory> {{x}} %s ${y}" in system_of(model.requests[0])
    assert system_of(model.requests[0]).startswith("{system}\n\n")


async def test_langchain_pr_14458_a_client_that_resends_everything_makes_no_duplicates(
    memory: SemanticRecall, ask: Ask
) -> None:
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    talk: list[dict[str, str]] = []
    for text in (CAT, QUESTION, "Thanks", "Thanks"):
        talk.append({"role": "user", "content": text})
        result = await ask(agent, {"messages": list(talk)}, run_in("web"))
        talk.append({"role": "assistant", "content": result["messages"][-1].text})
    assert texts(memory, "web") == [message["content"] for message in talk]
    assert [message.text for message in model.requests[-1]] == texts(memory, "web")[:-1]


async def test_a_forgotten_message_is_not_stored_again_by_a_later_turn(
    memory: SemanticRecall, ask: Ask, saver: BaseCheckpointSaver[Any]
) -> None:
    agent = create_agent(
        ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)], checkpointer=saver
    )
    await ask(agent, said(CAT), run_in("one"))
    memory.forget(thread_id="one", resource_id="ann")
    await ask(agent, said("Hello"), run_in("one"))
    assert texts(memory, "one") == ["Hello", "answer to Hello"]


async def test_langchain_22357_tool_turns_are_stored_when_wanted(
    memory: SemanticRecall, ask: Ask
) -> None:
    model = ScriptedModel.of(
        calling(("weather", {"city": "Porto"}), ("clock", {}), text="I look."), "It rains."
    )
    agent = create_agent(
        model,
        tools=[weather, clock],
        middleware=[SemanticRecallMiddleware(memory, store_tools=True)],
    )
    result = await ask(agent, said("Weather?"), run_in("one"))
    stored = memory.history("one", "ann", last=None)
    assert [message.role for message in stored] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert [message.id for message in stored] == [message.id for message in result["messages"]]


@pytest.mark.parametrize("checkpointer", [None, InMemorySaver()], ids=["stateless", "saver"])
async def test_concurrent_runs_on_one_thread_keep_everything(
    memory: SemanticRecall, checkpointer: Any
) -> None:
    agent = create_agent(
        ScriptedModel.of(),
        middleware=[SemanticRecallMiddleware(memory)],
        checkpointer=checkpointer,
    )
    asked = [f"question {i}" for i in range(20)]
    await asyncio.gather(*(agent.ainvoke(said(text), run_in("one")) for text in asked))
    expected = [*asked, *(f"answer to {text}" for text in asked)]
    assert sorted(texts(memory, "one")) == sorted(expected)


async def test_concurrent_runs_of_many_users_never_mix(memory: SemanticRecall) -> None:
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    users = [f"user{i}" for i in range(12)]
    for user in users:
        told(memory, f"The secret word of {user} is {user}-word.", "old", user)
    await asyncio.gather(
        *(agent.ainvoke(said(f"My secret word? ({user})"), run_in("now", user)) for user in users)
    )
    assert len(model.requests) == len(users)
    for request in model.requests:
        user = str(request[-1].text).partition("(")[2].rstrip(")")
        assert [u for u in users if f"{u}-word." in system_of(request)] == [user]


def test_the_middleware_knows_a_bounded_number_of_turns() -> None:
    cache = TurnCache(size=2)
    first = cache.get("a")
    assert cache.get("a") is first
    cache.get("b")
    assert cache.get("a") is first
    cache.get("c")
    assert cache.get("a") is first
    cache.get("d")
    cache.get("e")
    assert cache.get("a") is not first
    last = cache.get("e")
    cache.end("e")
    cache.end("never there")
    assert cache.get("e") is not last
