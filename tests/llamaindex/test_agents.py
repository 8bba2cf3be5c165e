"""SemanticRecallMemory under real agents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.workflow import Context

from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import SemanticRecall
from tests.llamaindex.conftest import QUESTION, CountingEmbedder
from tests.llamaindex.scripted import ScriptedLLM, call, calls_in, shown

# The workflows package reads every attribute of an agent, deprecated ones of pydantic too.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def recalled_part(prompt: list[ChatMessage]) -> str:
    return "".join(m.content or "" for m in prompt if "earlier conversations" in (m.content or ""))


async def test_a_turn_with_two_tool_rounds_recalls_once_and_the_same(
    memory: SemanticRecallMemory, embedder: CountingEmbedder
) -> None:
    llm = ScriptedLLM(call("add", "c1", a=1, b=2), call("add", "c2", a=3, b=4), "Mochi, and 7.")
    agent = FunctionAgent(tools=[add], llm=llm, system_prompt="Be brief.")
    response = await agent.run(QUESTION, memory=memory)
    assert str(response) == "Mochi, and 7."
    assert embedder.queries == [QUESTION]
    parts = {recalled_part(prompt) for prompt in llm.prompts}
    assert len(llm.prompts) == 3
    assert len(parts) == 1
    assert "Mochi" in parts.pop()
    stored = memory.get_all()
    assert [m.role.value for m in stored] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert calls_in(stored[1]) == [("c1", "add", {"a": 1, "b": 2})]
    assert stored[2].additional_kwargs["tool_call_id"] == "c1"


async def test_the_next_run_sees_the_tool_calls_in_pairs(memory: SemanticRecallMemory) -> None:
    llm = ScriptedLLM(call("add", a=1, b=2), "3.", "Yes.")
    agent = FunctionAgent(tools=[add], llm=llm)
    await agent.run("Add one and two", memory=memory)
    await agent.run("Sure?", memory=memory)
    roles = [m.role for m in llm.prompts[-1] if m.role is not MessageRole.SYSTEM]
    assert [role.value for role in roles] == ["user", "assistant", "tool", "assistant", "user"]


async def test_reports_15_and_16_a_context_reused_for_three_runs_is_one_memory(
    memory: SemanticRecallMemory, embedder: CountingEmbedder
) -> None:
    llm = ScriptedLLM("Mochi.", "Grey.", "Bye.")
    agent = FunctionAgent(tools=[add], llm=llm)
    context = Context(agent)
    for text in (QUESTION, "Which colour?", "Thanks."):
        await agent.run(text, ctx=context, memory=memory)
    told = [QUESTION, "Mochi.", "Which colour?", "Grey.", "Thanks.", "Bye."]
    assert [m.content for m in memory.get_all()] == told
    assert await context.store.get("memory") is memory
    assert [m.content for m in llm.prompts[-1] if m.role is not MessageRole.SYSTEM] == told[:-1]
    assert len(embedder.queries) == 3


async def test_a_context_survives_to_dict_and_from_dict(memory: SemanticRecallMemory) -> None:
    llm = ScriptedLLM("Mochi.", "Grey.")
    agent = FunctionAgent(tools=[add], llm=llm)
    context = Context(agent)
    await agent.run(QUESTION, ctx=context, memory=memory)
    written = json.dumps(context.to_dict())
    assert "Mochi" not in memory.to_json()
    again = Context.from_dict(agent, json.loads(written))
    await agent.run("Which colour?", ctx=again)
    assert [m.content for m in memory.get_all()] == [QUESTION, "Mochi.", "Which colour?", "Grey."]


NEW_PROCESS = """
import asyncio, json, sys
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.workflow import Context
from llamaindex_semantic_recall import connect
from semantic_recall import SemanticRecall
from tests.llamaindex.scripted import ScriptedLLM, shown

async def main():
    agent = FunctionAgent(tools=[], llm=ScriptedLLM("Grey."))
    with SemanticRecall.open(sys.argv[1], embedder="hash") as recall:
        connect(recall)
        context = Context.from_dict(agent, json.load(sys.stdin))
        await agent.run("Which colour?", ctx=context)
        memory = await context.store.get("memory")
        assert memory.resource_id == "anna"
        assert memory.options.top_k == 2
        print(shown(agent.llm.prompts[-1]))

asyncio.run(main())
"""


async def test_a_context_goes_on_in_a_new_process(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    with SemanticRecall.open(path, embedder="hash") as recall:
        options = recall.options.replace(top_k=2)
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna", options=options)
        agent = FunctionAgent(tools=[], llm=ScriptedLLM("Mochi."))
        context = Context(agent)
        await agent.run(QUESTION, ctx=context, memory=memory)
        written = json.dumps(context.to_dict())
    done = subprocess.run(
        [sys.executable, "-c", NEW_PROCESS, str(path)],
        input=written,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for text in (QUESTION, "Mochi.", "Which colour?"):
        assert text in done.stdout


@pytest.mark.filterwarnings("ignore:is_running called:DeprecationWarning")  # by the agent
@pytest.mark.parametrize(("insert", "prompt"), [("user", None), ("system", "Be brief.")])
async def test_react_agent_stores_its_trace_and_is_found_by_its_answer(
    past: SemanticRecall, embedder: CountingEmbedder, insert: str, prompt: str | None
) -> None:
    """An agent without a system prompt throws memory's system message away: insert="user"."""
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna", insert=insert)
    llm = ScriptedLLM(
        'Thought: I need the sum.\nAction: add\nAction Input: {"a": 1, "b": 2}',
        "Thought: I can answer without using any more tools.\nAnswer: Three, says Mochi.",
        functions=False,
    )
    agent = ReActAgent(tools=[add], llm=llm, system_prompt=prompt)
    response = await agent.run(QUESTION, memory=memory)
    assert str(response) == "Three, says Mochi."
    assert embedder.queries == [QUESTION]
    assert all("cat is called Mochi" in shown(given) for given in llm.prompts)
    assert "Observation: 3" in (memory.get_all()[-1].content or "")
    past.flush()
    assert embedder.documents[-1].endswith("Three, says Mochi.")
    assert "Observation" not in embedder.documents[-1]


async def test_agent_workflow_hands_over_with_one_recall(
    memory: SemanticRecallMemory, embedder: CountingEmbedder
) -> None:
    first = ScriptedLLM(call("handoff", to_agent="second", reason="knows cats"))
    second = ScriptedLLM("Mochi.")
    workflow = AgentWorkflow(
        agents=[
            FunctionAgent(
                name="first", description="asks", llm=first, can_handoff_to=["second"], tools=[add]
            ),
            FunctionAgent(name="second", description="knows cats", llm=second, tools=[add]),
        ],
        root_agent="first",
    )
    response = await workflow.run(user_msg=QUESTION, memory=memory)
    assert str(response) == "Mochi."
    assert embedder.queries == [QUESTION]
    (prompt,) = second.prompts
    assert "cat is called Mochi" in recalled_part(prompt)
    assert shown(prompt).count(QUESTION) == 1


async def test_an_agent_may_get_the_whole_history_every_run(
    memory: SemanticRecallMemory, past: SemanticRecall, embedder: CountingEmbedder
) -> None:
    history: list[ChatMessage] = []
    agent = FunctionAgent(tools=[add], llm=ScriptedLLM("a", "b", "c"))
    for text in ("one", "two", "three"):
        response = await agent.run(text, chat_history=history, memory=memory)
        history += [ChatMessage(text), ChatMessage(role="assistant", content=str(response))]
    assert [m.content for m in memory.get_all()] == ["one", "a", "two", "b", "three", "c"]
    past.flush()
    assert len(embedder.documents) == 4 + 6


async def test_initial_state_does_not_change_what_is_stored(
    memory: SemanticRecallMemory,
) -> None:
    """Agents write their state into the message that memory gave them."""
    workflow = AgentWorkflow(
        agents=[FunctionAgent(name="a", description="d", llm=ScriptedLLM("ok"), tools=[add])],
        initial_state={"mood": "good"},
    )
    await workflow.run(user_msg="hello", memory=memory)
    assert [m.content for m in memory.get_all()] == ["hello", "ok"]
