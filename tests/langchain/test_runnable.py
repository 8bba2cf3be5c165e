"""LCEL chains with recall: every shape of input, every way to run."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableFieldSpec, RunnableLambda

from langchain_semantic_recall import (
    RunnableWithSemanticRecall,
    SemanticRecallChatMessageHistory,
)
from semantic_recall import ConfigurationError, InvalidOptionError, SemanticRecall
from tests.langchain.scripted import ScriptedModel, calling
from tests.langchain.test_middleware import CAT, QUESTION, run_in, texts, told

Run = Callable[[Any, Any, Any], Any]


async def _invoke(chain: Any, value: Any, config: Any) -> Any:
    return await asyncio.to_thread(chain.invoke, value, config)


async def _ainvoke(chain: Any, value: Any, config: Any) -> Any:
    return await chain.ainvoke(value, config)


async def _stream(chain: Any, value: Any, config: Any) -> Any:
    return await asyncio.to_thread(lambda: _joined(list(chain.stream(value, config))))


async def _astream(chain: Any, value: Any, config: Any) -> Any:
    return _joined([part async for part in chain.astream(value, config)])


async def _batch(chain: Any, value: Any, config: Any) -> Any:
    return (await asyncio.to_thread(chain.batch, [value], config))[0]


async def _abatch(chain: Any, value: Any, config: Any) -> Any:
    return (await chain.abatch([value], config))[0]


def _joined(parts: list[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


@pytest.fixture(params=[_invoke, _ainvoke, _stream, _astream, _batch, _abatch])
def run(request: pytest.FixtureRequest) -> Run:
    way: Run = request.param
    return way


def with_placeholder(model: ScriptedModel) -> Any:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You are {mood}."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    return prompt | model


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
    await _ainvoke(chain, [HumanMessage(QUESTION)], run_in("new"))
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


async def test_a_batch_over_sessions_keeps_them_apart(memory: SemanticRecall) -> None:
    chain = RunnableWithSemanticRecall(ScriptedModel.of(), memory)
    users = [f"u{i}" for i in range(6)]
    inputs = [[HumanMessage(f"I am {user}")] for user in users]
    configs = [run_in("one", user) for user in users]
    await asyncio.to_thread(chain.batch, inputs, configs)
    await chain.abatch(inputs, configs)
    for user in users:
        assert texts(memory, "one", user) == [f"I am {user}", f"answer to I am {user}"] * 2


@pytest.mark.parametrize(
    ("configurable", "thread", "resource"),
    [
        ({"thread_id": "t"}, "t", None),
        ({"session_id": "s", "user_id": "u"}, "s", "u"),
        ({"thread_id": 7, "resource_id": ""}, "7", None),
    ],
)
async def test_ids(
    memory: SemanticRecall, configurable: Any, thread: str, resource: str | None
) -> None:
    chain = RunnableWithSemanticRecall(ScriptedModel.of(), memory)
    await _ainvoke(chain, "Hello", {"configurable": configurable})
    assert texts(memory, thread, resource) == ["Hello", "answer to Hello"]
    bound = chain.with_config(configurable=configurable)
    await _ainvoke(bound, "Hi", None)
    assert len(texts(memory, thread, resource)) == 4


async def test_a_missing_session_is_named(memory: SemanticRecall, run: Run) -> None:
    chain = RunnableWithSemanticRecall(ScriptedModel.of(), memory)
    with pytest.raises(ValueError, match="thread_id"):
        await run(chain, "Hello", {"configurable": {"resource_id": "ann"}})


async def test_a_function_that_makes_the_history(memory: SemanticRecall, run: Run) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of()

    def session(user: str, conversation: str) -> SemanticRecallChatMessageHistory:
        return SemanticRecallChatMessageHistory(memory, conversation, user)

    chain = RunnableWithSemanticRecall(
        model,
        session,
        history_factory_config=[
            ConfigurableFieldSpec(id="user", annotation=str),
            ConfigurableFieldSpec(id="conversation", annotation=str),
        ],
    )
    await run(chain, QUESTION, {"configurable": {"user": "ann", "conversation": "new"}})
    assert CAT in model.requests[0][0].text
    assert len(texts(memory, "new")) == 2


async def test_a_history_of_another_class_is_refused(memory: SemanticRecall) -> None:
    def session(session_id: str) -> Any:
        return [session_id]

    chain = RunnableWithSemanticRecall(ScriptedModel.of(), session)
    with pytest.raises(ConfigurationError, match="not list"):
        await _ainvoke(chain, "Hello", {"configurable": {"session_id": "s"}})


async def test_an_input_whose_messages_cannot_be_found_is_refused(
    memory: SemanticRecall, run: Run
) -> None:
    chain = RunnableWithSemanticRecall(
        with_placeholder(ScriptedModel.of()), memory, history_messages_key="history"
    )
    with pytest.raises(ConfigurationError, match="input_messages_key"):
        await run(chain, {"question": QUESTION, "mood": "kind"}, run_in("new"))


async def test_a_stream_that_the_consumer_leaves_stores_no_half_answer(
    memory: SemanticRecall,
) -> None:
    chain = RunnableWithSemanticRecall(ScriptedModel.of("one two", "three four"), memory)
    stream: Any = chain.stream(QUESTION, run_in("sync"))
    assert next(stream).text == "one"
    stream.close()
    parts: Any = chain.astream(QUESTION, run_in("async"))
    assert (await anext(parts)).text == "three"
    await parts.aclose()
    assert texts(memory, "sync") == texts(memory, "async") == []
    await _ainvoke(chain, QUESTION, run_in("sync"))
    assert texts(memory, "sync") == [QUESTION, f"answer to {QUESTION}"]


async def test_a_failing_memory_costs_no_answer(
    memory: SemanticRecall, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    class Unreachable(SemanticRecallChatMessageHistory):
        def last(self, count: int | None) -> Any:
            messages = super().last(count)
            self.memory.close()
            return messages

    def session(session_id: str) -> SemanticRecallChatMessageHistory:
        return Unreachable(memory, session_id)

    chain = RunnableWithSemanticRecall(ScriptedModel.of(), session)
    answer = await run(chain, "Hello", {"configurable": {"session_id": "s"}})
    assert answer.text == "answer to Hello"
    assert "recall failed" in caplog.text
    assert "storing failed" in caplog.text


def test_wrong_options_fail_at_construction(memory: SemanticRecall) -> None:
    options: Any = {"top_k": "x"}
    with pytest.raises(InvalidOptionError, match="top_k"):
        RunnableWithSemanticRecall(ScriptedModel.of(), memory, recall_options=options)


async def test_no_warning_of_a_deprecated_base_class(memory: SemanticRecall, run: Run) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        chain = RunnableWithSemanticRecall(ScriptedModel.of(), memory)
        await run(chain, "Hello", run_in("new"))
    assert [str(warning.message) for warning in seen] == []


async def test_nothing_recalled_is_stored_however_often_it_is_asked(
    memory: SemanticRecall, run: Run
) -> None:
    told(memory, CAT, "old")
    model = ScriptedModel.of()
    chain = RunnableWithSemanticRecall(model, memory, last_messages=2)
    for _ in range(4):
        await run(chain, QUESTION, run_in("new"))
    stored = memory.history("new", "ann", last=None)
    assert [message.text for message in stored] == [QUESTION, f"answer to {QUESTION}"] * 4
    assert all(isinstance(message, BaseMessage) for message in model.requests[-1])
