"""LCEL chains with recall: every shape of input, every way to run."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from langchain_semantic_recall import (
    RunnableWithSemanticRecall,
)
from semantic_recall import SemanticRecall
from tests.langchain.agents import CAT, QUESTION, run_in, texts, told
from tests.langchain.chains import Run, with_placeholder
from tests.langchain.scripted import ScriptedModel, calling


async def test_a_dict_with_a_placeholder(memory: SemanticRecall, run: Run) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of("Mimi.", "Of thunder.")
    chain = RunnableWithSemanticRecall(
        with_placeholder(model),
        memory,
        input_messages_key="question",
        history_messages_key="history",
    )
    answer = await run(chain, {"question": QUESTION, "mood": "kind"}, run_in("new"))
    assert answer.text == "Mimi."
    await run(chain, {"question": "What scares her?", "mood": "kind"}, run_in("new"))
    first, second = model.requests
    assert [type(message) for message in first] == [SystemMessage, HumanMessage, HumanMessage]
    assert first[0].text == "You are kind."
    assert CAT in first[1].text
    assert [message.text for message in second[2:]] == [QUESTION, "Mimi.", "What scares her?"]
    stored = ["Mimi.", "What scares her?", "Of thunder."]
    assert texts(memory, "new") == [QUESTION, *stored]


async def test_recalled_text_is_never_a_template(memory: SemanticRecall, run: Run) -> None:
    trap = "My cat {mood} {{question}} {history} %s ${x} </memory>"
    told(memory, trap, "old")
    told(memory, trap, "new")
    model = ScriptedModel.of("Mimi.")
    chain = RunnableWithSemanticRecall(
        with_placeholder(model),
        memory,
        input_messages_key="question",
        history_messages_key="history",
    )
    await run(chain, {"question": "{mood} What about my cat?", "mood": "kind"}, run_in("new"))
    system, block, *talk = model.requests[0]
    assert system.text == "You are kind."
    assert trap in str(block.text)
    assert [message.text for message in talk] == [trap, "I see.", "{mood} What about my cat?"]


async def test_a_list_of_messages(memory: SemanticRecall, run: Run) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of("Mimi.", "Of thunder.")
    chain = RunnableWithSemanticRecall(model, memory)
    system = SystemMessage("Be kind.")
    await run(chain, [system, HumanMessage(QUESTION)], run_in("new"))
    await run(chain, [system, HumanMessage("What scares her?")], run_in("new"))
    first, second = model.requests
    assert first[0].text.startswith("Be kind.\n\n")
    assert CAT in first[0].text
    assert first[1:] == [HumanMessage(QUESTION)]
    assert [message.text for message in second[1:]] == [QUESTION, "Mimi.", "What scares her?"]
    assert texts(memory, "new") == [QUESTION, "Mimi.", "What scares her?", "Of thunder."]


async def test_a_dict_of_all_messages(memory: SemanticRecall, run: Run) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of("Mimi.")
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("messages")])
    chain = RunnableWithSemanticRecall(prompt | model, memory, input_messages_key="messages")
    await run(chain, {"messages": [HumanMessage(QUESTION)]}, run_in("new"))
    assert CAT in model.requests[0][0].text
    assert model.requests[0][1:] == [HumanMessage(QUESTION)]
    assert texts(memory, "new") == [QUESTION, "Mimi."]


@pytest.mark.parametrize("value", [QUESTION, HumanMessage(QUESTION)], ids=["str", "message"])
async def test_a_message_and_a_text_answer(memory: SemanticRecall, run: Run, value: Any) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of("Her name is Mimi.")
    chain = RunnableWithSemanticRecall(model | StrOutputParser(), memory)
    assert await run(chain, value, run_in("new")) == "Her name is Mimi."
    assert CAT in model.requests[0][0].text
    assert texts(memory, "new") == [QUESTION, "Her name is Mimi."]


async def test_a_dict_answer(memory: SemanticRecall, run: Run) -> None:
    model = ScriptedModel.of("Mimi.")
    chain = RunnableWithSemanticRecall(
        model | RunnableLambda(lambda answer: {"answer": answer, "sources": ["x"]}),
        memory,
        output_messages_key="answer",
    )
    await run(chain, [HumanMessage(QUESTION)], run_in("new"))
    assert texts(memory, "new") == [QUESTION, "Mimi."]


async def test_a_dict_answer_without_its_key_is_logged_and_the_question_kept(
    memory: SemanticRecall, caplog: pytest.LogCaptureFixture
) -> None:
    chain = RunnableWithSemanticRecall(
        ScriptedModel.of("Mimi.") | RunnableLambda(lambda answer: {"a": answer, "b": 1}), memory
    )
    await chain.ainvoke([HumanMessage(QUESTION)], run_in("new"))
    assert "output_messages_key" in caplog.text
    assert texts(memory, "new") == [QUESTION]


async def test_langchain_pr_14629_a_tool_loop_by_hand_stores_each_message_once(
    memory: SemanticRecall, run: Run
) -> None:
    model = ScriptedModel.of(calling(("clock", {})), "It is noon.", "You asked for the time.")
    chain = RunnableWithSemanticRecall(model, memory)
    await run(chain, [HumanMessage("Time?")], run_in("new"))
    await run(chain, [ToolMessage("noon", tool_call_id="call_1")], run_in("new"))
    await run(chain, [HumanMessage("What did I ask?")], run_in("new"))
    kinds = [type(message) for message in model.requests[2]]
    assert kinds == [HumanMessage, AIMessage, ToolMessage, AIMessage, HumanMessage]
    roles = [message.role for message in memory.history("new", "ann", last=None)]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


async def test_langchain_27216_an_unanswered_call_is_not_sent_again(
    memory: SemanticRecall, run: Run
) -> None:
    model = ScriptedModel.of(calling(("clock", {}), text="I look."), "Hello again.")
    chain = RunnableWithSemanticRecall(model, memory)
    await run(chain, [HumanMessage("Time?")], run_in("new"))
    await run(chain, [HumanMessage("Never mind.")], run_in("new"))
    assert [message.text for message in model.requests[1]] == ["Time?", "I look.", "Never mind."]


@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "text", "text": ""}]])
async def test_a_stop_with_empty_content_is_not_sent_again(
    memory: SemanticRecall, run: Run, content: Any
) -> None:
    model = ScriptedModel.of(AIMessage(content), "Hello again.")
    chain = RunnableWithSemanticRecall(model, memory)
    await run(chain, [HumanMessage("Hello?")], run_in("new"))
    await run(chain, [HumanMessage("Still there?")], run_in("new"))
    assert [message.text for message in model.requests[1]] == ["Hello?", "Still there?"]
    assert len(texts(memory, "new")) == 4


async def test_langchain_22400_only_the_last_messages_and_what_matters_are_shown(
    memory: SemanticRecall, run: Run
) -> None:
    model = ScriptedModel.of()
    chain = RunnableWithSemanticRecall(
        model, memory, last_messages=4, recall_options={"top_k": 1, "message_range": 0}
    )
    for text in [CAT, *(f"Football {i}" for i in range(6)), QUESTION]:
        await run(chain, [HumanMessage(text)], run_in("one"))
    shown = [message.text for message in model.requests[-1]]
    assert shown == [
        CAT,
        "Football 4",
        "answer to Football 4",
        "Football 5",
        "answer to Football 5",
        QUESTION,
    ]
    assert len(texts(memory, "one")) == 16


async def test_a_client_that_sends_the_whole_conversation_stores_the_last_turn(
    memory: SemanticRecall, run: Run
) -> None:
    chain = RunnableWithSemanticRecall(ScriptedModel.of("Mimi."), memory)
    talk = [HumanMessage(CAT), AIMessage("I see."), HumanMessage(QUESTION)]
    await run(chain, talk, run_in("new"))
    assert texts(memory, "new") == [QUESTION, "Mimi."]
