"""Recalling and storing in real agents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver

from langchain_semantic_recall import SemanticRecallMiddleware
from langchain_semantic_recall.messages import is_recalled
from langchain_semantic_recall.turn_cache import TurnCache
from semantic_recall import SemanticRecall
from semantic_recall.errors import InvalidOptionError
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel, calling

CAT = "My cat is called Mimi and she is afraid of thunder."
QUESTION = "What is the name of my cat?"


def said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def run_in(thread: object, resource: object = "ann") -> Any:
    return {"configurable": {"thread_id": thread, "resource_id": resource}}


def told(memory: SemanticRecall, text: str, thread: str, resource: str | None = "ann") -> None:
    memory.remember(
        [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}],
        thread_id=thread,
        resource_id=resource,
    )


def texts(memory: SemanticRecall, thread: str, resource: str | None = "ann") -> list[str]:
    return [message.text for message in memory.history(thread, resource, last=None)]


def system_of(request: list[BaseMessage]) -> str:
    assert isinstance(request[0], SystemMessage)
    return str(request[0].text)


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


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


async def test_concurrent_runs_on_one_thread_keep_everything(memory: SemanticRecall) -> None:
    agent = create_agent(ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)])
    asked = [f"question {i}" for i in range(8)]
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
