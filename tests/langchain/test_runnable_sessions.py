"""Whose history a chain uses, and what happens when something is wrong."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import ConfigurableFieldSpec

from langchain_semantic_recall import (
    RunnableWithSemanticRecall,
    SemanticRecallChatMessageHistory,
)
from semantic_recall import ConfigurationError, InvalidOptionError, SemanticRecall
from tests.langchain.agents import CAT, QUESTION, run_in, texts, told
from tests.langchain.chains import Run, with_placeholder
from tests.langchain.scripted import ScriptedModel


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
    await chain.ainvoke("Hello", {"configurable": configurable})
    assert texts(memory, thread, resource) == ["Hello", "answer to Hello"]
    bound = chain.with_config(configurable=configurable)
    await bound.ainvoke("Hi", None)
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
        await chain.ainvoke("Hello", {"configurable": {"session_id": "s"}})


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
    await chain.ainvoke(QUESTION, run_in("sync"))
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
