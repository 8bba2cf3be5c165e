"""What users of LangChain and its neighbours reported, and must not happen here.

Reports that belong to one surface are in that surface's tests, under the same kind of name.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_semantic_recall import (
    LangChainEmbedder,
    RunnableWithSemanticRecall,
    SemanticRecallChatMessageHistory,
    SemanticRecallMiddleware,
    SemanticRecallRetriever,
    from_langchain,
)
from semantic_recall import Message, SemanticRecall, VectorSpaceMismatchError
from semantic_recall.tokens import count_tokens
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
from tests.langchain.scripted import ScriptedModel, calling, refusals

ANN: Any = {"configurable": {"resource_id": "ann"}}


async def test_langchain_32641_making_a_history_does_no_io(memory: SemanticRecall) -> None:
    memory.close()
    history = SemanticRecallChatMessageHistory(memory, "one", "ann")
    RunnableWithSemanticRecall(ScriptedModel.of(), memory)
    assert repr(history)


def stored_tool_turns(memory: SemanticRecall, turns: int) -> None:
    history = SemanticRecallChatMessageHistory(memory, "one", "ann")
    for i in range(turns):
        call = calling(("clock", {}), ("weather", {"city": "Porto"}), start=2 * i)
        results = [ToolMessage("x", tool_call_id=str(c["id"])) for c in call.tool_calls]
        history.add_messages([HumanMessage(f"question {i}"), call, *results, AIMessage("done")])


@pytest.mark.parametrize("top_k", [0, 4])
@pytest.mark.parametrize("last", [1, 2, 3, 4, 5, 7, 8, 9, 12])
async def test_langchain_33245_a_cut_history_never_has_half_a_tool_turn(
    memory: SemanticRecall, ask: Ask, last: int, top_k: int
) -> None:
    stored_tool_turns(memory, 4)
    model = ScriptedModel.of()
    chain = RunnableWithSemanticRecall(
        model, memory, last_messages=last, recall_options={"top_k": top_k}
    )
    await ask(chain, "And now?", run_in("one"))
    assert refusals(model.requests[0]) == []


@pytest.mark.parametrize("size", [0, 1, 3, (0, 5), (5, 0)])
async def test_langchain_34282_recalled_windows_never_bring_tool_messages(
    memory: SemanticRecall, ask: Ask, size: Any
) -> None:
    stored_tool_turns(memory, 5)
    model = ScriptedModel.of(calling(("clock", {})), "done")
    agent = create_agent(
        model,
        tools=[clock],
        middleware=[SemanticRecallMiddleware(memory, message_range=size)],
    )
    for thread in ("one", "other"):
        await ask(agent, said("question 2"), run_in(thread))
    assert [refusals(request) for request in model.requests] == [[], [], []]
    first = model.requests[0]
    assert len(first) > 1
    assert not any(isinstance(message, ToolMessage) for message in first)


async def test_langchain_38352_long_tool_loops_with_summaries_stay_valid(
    memory: SemanticRecall, ask: Ask
) -> None:
    summarizer = ScriptedModel.of(*["Summary."] * 50, strict=False)
    model = ScriptedModel.of()
    agent = create_agent(
        model,
        tools=[clock, weather],
        middleware=[
            SummarizationMiddleware(summarizer, trigger=("messages", 6), keep=("messages", 3)),
            SemanticRecallMiddleware(memory, store_tools=True),
        ],
        checkpointer=InMemorySaver(),
    )
    for i in range(5):
        model.steps[:] = [
            calling(("clock", {}), ("weather", {"city": "Rome"}), start=10 * i),
            calling(("clock", {}), start=10 * i + 5),
            f"answer {i}",
        ]
        await ask(agent, said(f"question {i}"), run_in("one"))
    assert len(model.requests) == 15
    stored = memory.history("one", "ann", last=None)
    said_by = [message.text for message in stored if message.role in ("user", "assistant")]
    for i in range(5):
        assert f"question {i}" in said_by
        assert f"answer {i}" in said_by
    assert not any("Summary." in message.text for message in stored)


@pytest.mark.parametrize("limit", [40, 120, 400])
async def test_langchain_34664_what_is_recalled_has_its_own_token_budget(
    memory: SemanticRecall, ask: Ask, limit: int
) -> None:
    for i in range(12):
        told(memory, f"My cat {i} is called Mimi. " + "She likes to sleep. " * 20, f"t{i}")
    told(memory, "My cat in this thread is called Rex. " * 5, "now")
    model = ScriptedModel.of()
    agent = create_agent(
        model, middleware=[SemanticRecallMiddleware(memory, top_k=10, max_tokens=limit)]
    )
    await ask(agent, said(QUESTION), run_in("now"))
    added = [message for message in model.requests[0] if message.text != QUESTION]
    assert sum(count_tokens(str(message.text)) for message in added) <= limit
    assert added or limit == 40


async def test_langchain_10864_scores_are_cosines_and_fall(
    memory: SemanticRecall, ask: Ask
) -> None:
    for i, text in enumerate(["cat", "a cat", "a black cat sleeps", "stock market", "x" * 50]):
        memory.remember({"role": "user", "content": text}, thread_id=f"{i}", resource_id="ann")
    retriever = SemanticRecallRetriever(memory=memory, k=5, options={"ranking": "dense"})
    documents = await ask(retriever, "user: cat", ANN)
    scores = [document.metadata["score"] for document in documents]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    assert all(-1.0 <= score <= 1.0 + 1e-6 for score in scores)
    assert scores == [document.metadata["dense"] for document in documents]
    floor = (scores[1] + scores[2]) / 2
    assert len(await ask(retriever, "user: cat", ANN, threshold=floor)) == 2


async def test_langchain_8556_any_metadata_is_kept_and_found(
    memory: SemanticRecall, ask: Ask
) -> None:
    metadata = {"tags": ["a", "b"], "none": None, "deep": {"x": [1]}, "n": 2**40, "": "empty"}
    message = from_langchain(
        HumanMessage(CAT), thread_id="one", resource_id="ann", metadata=metadata
    )
    memory.remember(message)
    (found,) = await ask(SemanticRecallRetriever(memory=memory), QUESTION, ANN, k=1)
    assert found.metadata["metadata"] == metadata


async def test_langchain_28469_a_filter_may_have_any_number_of_keys(
    memory: SemanticRecall, ask: Ask
) -> None:
    for color, size in (("red", 1), ("red", 2), ("blue", 1)):
        memory.remember(
            from_langchain(
                HumanMessage(f"a {color} cat of size {size}"),
                thread_id="one",
                resource_id="ann",
                metadata={"color": color, "size": size},
            )
        )
    retriever = SemanticRecallRetriever(memory=memory, k=9)
    wanted: list[tuple[dict[str, Any], int]] = [
        ({}, 3),
        ({"color": "red"}, 2),
        ({"color": "red", "size": 1}, 1),
        ({"color": ["red", "blue"], "size": 1}, 2),
        ({"color": "green"}, 0),
    ]
    for filter_, count in wanted:
        assert len(await ask(retriever, "cat", ANN, filter=filter_)) == count


def test_chroma_1905_another_embedding_model_is_named_with_the_remedy(tmp_path: Path) -> None:
    small = LangChainEmbedder(DeterministicFakeEmbedding(size=8))
    large = LangChainEmbedder(DeterministicFakeEmbedding(size=16))
    with SemanticRecall.open(tmp_path, embedder=small) as memory:
        told(memory, CAT, "one")
    with pytest.raises(VectorSpaceMismatchError, match="reindex"):
        SemanticRecall.open(tmp_path, embedder=large)
    with SemanticRecall.open(tmp_path, embedder=small) as memory:
        memory.reindex(large)
        assert memory.stats().dimensions == 16


async def test_langgraph_8214_an_edited_message_is_found_by_its_new_text(
    memory: SemanticRecall, ask: Ask
) -> None:
    history = SemanticRecallChatMessageHistory(memory, "one", "ann")
    history.add_messages([HumanMessage("I live in Porto.", id="1")])
    history.add_messages([HumanMessage("My cat is called Mimi.", id="1")])
    retriever = SemanticRecallRetriever(memory=memory, options={"ranking": "dense"})
    (found,) = await ask(retriever, "user: My cat is called Mimi.!", ANN)
    assert found.page_content == "My cat is called Mimi."
    assert found.metadata["dense"] > 0.9


async def test_langmem_91_messages_of_other_writers_are_read(
    memory: SemanticRecall, ask: Ask
) -> None:
    rows = [
        Message(role="user", text=CAT, thread_id="old", resource_id="ann", payload={"x": [1]}),
        Message(role="assistant", text="I see.", thread_id="old", resource_id="ann"),
        Message(role="critic 7", text="Mimi is no cat.", thread_id="old", resource_id="ann"),
        Message(role="tool", text="raw", thread_id="old", resource_id="ann", name="Ann B."),
    ]
    memory.remember(rows)
    model = ScriptedModel.of()
    ours = SemanticRecallMiddleware(memory, read_only=True)
    agent = create_agent(model, middleware=[ours])
    await ask(agent, said(QUESTION), run_in("now"))
    assert CAT in system_of(model.requests[0])
    await ask(agent, said(QUESTION), run_in("old"))
    assert CAT in [message.text for message in model.requests[1]]
    history = SemanticRecallChatMessageHistory(memory, "old", "ann")
    assert [message.text for message in history.messages] == [row.text for row in rows]


async def test_google_adk_1019_other_users_never_take_the_places_of_ones_own(
    memory: SemanticRecall, ask: Ask
) -> None:
    for i in range(60):
        told(memory, QUESTION + " Mimi!", f"t{i}", f"other{i % 3}")
    told(memory, CAT, "old", "ann")
    retriever = SemanticRecallRetriever(memory=memory, k=2)
    documents = await ask(retriever, QUESTION, ANN)
    assert [document.page_content for document in documents] == [CAT, "I see."]


async def test_langgraph_js_2721_nothing_of_a_key_is_a_pattern(
    memory: SemanticRecall, ask: Ask
) -> None:
    owners = ["u", "u2", "a_b", "a-b", "a%b", "a:b", "a/b", "a|b", "a b", "A_B", "å", "a\u030a"]
    for owner in owners:
        told(memory, f"The word of <{owner}> is {QUESTION}", "old", owner)
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
    for owner in owners:
        await ask(agent, said(QUESTION), run_in("new", owner))
        request = system_of(model.requests[-1])
        assert [other for other in owners if f"<{other}>" in request] == [owner]


async def test_one_memory_serves_threads_and_event_loops_together(memory: SemanticRecall) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of()
    agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])

    def in_a_thread(i: int) -> None:
        if i % 2:
            asyncio.run(agent.ainvoke(said(QUESTION), run_in(f"thread {i}")))
        else:
            agent.invoke(said(QUESTION), run_in(f"thread {i}"))

    await asyncio.gather(
        *(asyncio.to_thread(in_a_thread, i) for i in range(8)),
        *(agent.ainvoke(said(QUESTION), run_in(f"loop {i}")) for i in range(4)),
    )
    assert len(model.requests) == 12
    for thread in [*(f"thread {i}" for i in range(8)), *(f"loop {i}" for i in range(4))]:
        assert texts(memory, thread) == [QUESTION, f"answer to {QUESTION}"]


async def test_deleting_while_agents_run_costs_no_answer(memory: SemanticRecall) -> None:
    agent = create_agent(ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)])

    async def forget() -> None:
        for _ in range(10):
            await memory.aforget(resource_id="ann")
            await asyncio.sleep(0.01)

    runs = [agent.ainvoke(said(CAT), run_in(f"t{i}")) for i in range(10)]
    results: list[Any] = await asyncio.gather(forget(), *runs)
    answers: list[BaseMessage] = [result["messages"][-1] for result in results[1:]]
    assert {message.text for message in answers} == {f"answer to {CAT}"}
