"""The middleware beside everything else an agent does: interrupts, streams, retries, failures."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

from langchain_semantic_recall import SemanticRecallMiddleware
from semantic_recall import AbortTurn, Message, Recall, SemanticRecall, Settings
from semantic_recall.types import Vector, VectorSpace
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel, calling
from tests.langchain.test_middleware import (
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

# -- human in the loop --------------------------------------------------------------------------
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
async def test_a_run_resumed_in_another_process_recalls_again(
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


# -- streaming ----------------------------------------------------------------------------------
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


# -- beside other middleware --------------------------------------------------------------------
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


# -- whose memory -------------------------------------------------------------------------------
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


# -- when something is wrong --------------------------------------------------------------------
class CountingEmbedder:
    """Embeds a text as what letters it has; waits or fails when told to."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.failing = False
        self.queries: list[str] = []
        self.threads: set[int] = set()

    @property
    def space(self) -> VectorSpace:
        return VectorSpace("letters", 26)

    @property
    def max_characters(self) -> int | None:
        return None

    def embed_documents(self, texts: Sequence[str], /) -> list[Vector]:
        return [self._letters(text) for text in texts]

    def embed_query(self, text: str, /) -> Vector:
        self.queries.append(text)
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
        if self.failing:
            raise ConnectionError("no route to host")
        return self._letters(text)

    @staticmethod
    def _letters(text: str) -> Vector:
        letters = [text.lower().count(chr(ord("a") + i)) + 0.01 for i in range(26)]
        return np.asarray(letters, dtype=np.float32)


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


async def test_a_slow_recall_costs_no_answer(
    tmp_path: Path, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = CountingEmbedder(seconds=1.0)
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
        await asyncio.sleep(1.0)  # the hanging thread ends before its memory is closed


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


async def test_langchain_33474_a_slow_embedder_does_not_block_the_event_loop(
    tmp_path: Path,
) -> None:
    embedder = CountingEmbedder(seconds=0.4)
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
