"""SemanticRecallMemory under real chat engines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import SemanticRecall
from tests.llamaindex.conftest import QUESTION, CountingEmbedder
from tests.llamaindex.scripted import ScriptedLLM, shown

Ask: TypeAlias = Callable[[BaseChatEngine, str], Awaitable[str]]


class Documents(BaseRetriever):
    """Always the same document, or none."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.texts = texts

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in self.texts]


class Answers(BaseQueryEngine):
    """Answers every question with itself."""

    def __init__(self) -> None:
        super().__init__(callback_manager=None)
        self.questions: list[str] = []

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    def _query(self, query_bundle: QueryBundle) -> Response:
        self.questions.append(query_bundle.query_str)
        return Response(f"about {query_bundle.query_str}")

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        return self._query(query_bundle)


async def _chat(engine: BaseChatEngine, text: str) -> str:
    return str(engine.chat(text))


async def _achat(engine: BaseChatEngine, text: str) -> str:
    return str(await engine.achat(text))


async def _stream(engine: BaseChatEngine, text: str) -> str:
    response = engine.stream_chat(text)
    told = "".join(response.response_gen)
    deadline = time.monotonic() + 20
    while not response.is_done and time.monotonic() < deadline:  # a thread stores the answer
        await asyncio.sleep(0.01)
    return told


async def _astream(engine: BaseChatEngine, text: str) -> str:
    response = await engine.astream_chat(text)
    return "".join([piece async for piece in response.async_response_gen()])


@pytest.fixture(params=[_chat, _achat, _stream, _astream], ids=lambda ask: ask.__name__.strip("_"))
def ask(request: pytest.FixtureRequest) -> Ask:
    chosen: Ask = request.param
    return chosen


def simple(llm: ScriptedLLM, memory: SemanticRecallMemory) -> BaseChatEngine:
    return SimpleChatEngine.from_defaults(llm=llm, memory=memory, system_prompt="Be brief.")


def context(llm: ScriptedLLM, memory: SemanticRecallMemory) -> BaseChatEngine:
    return ContextChatEngine.from_defaults(
        retriever=Documents("Cats sleep a lot."), llm=llm, memory=memory, system_prompt="Be brief."
    )


def condense_plus(llm: ScriptedLLM, memory: SemanticRecallMemory) -> BaseChatEngine:
    return CondensePlusContextChatEngine.from_defaults(
        retriever=Documents("Cats sleep a lot."), llm=llm, memory=memory, skip_condense=True
    )


MakeEngine: TypeAlias = Callable[[ScriptedLLM, SemanticRecallMemory], BaseChatEngine]


@pytest.fixture(params=[simple, context, condense_plus], ids=lambda make: make.__name__)
def make(request: pytest.FixtureRequest) -> MakeEngine:
    chosen: MakeEngine = request.param
    return chosen


async def test_another_conversation_is_recalled_once_and_everything_is_stored(
    past: SemanticRecall, embedder: CountingEmbedder, make: MakeEngine, ask: Ask
) -> None:
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    llm = ScriptedLLM("It is called Mochi.", "You are welcome.")
    engine = make(llm, memory)
    assert await ask(engine, QUESTION) == "It is called Mochi."
    prompt = llm.prompts[-1]
    assert shown(prompt).count("My cat is called Mochi") == 1
    assert "Pixel" not in shown(prompt)
    assert (prompt[-1].role, prompt[-1].content) == (MessageRole.USER, QUESTION)
    assert shown(prompt).count(QUESTION) == 1
    assert embedder.queries == [QUESTION]
    assert await ask(engine, "Thank you.") == "You are welcome."
    assert [m.content for m in llm.prompts[-1]][-3:] == [
        QUESTION,
        "It is called Mochi.",
        "Thank you.",
    ]
    assert [m.content for m in memory.get_all()] == [
        QUESTION,
        "It is called Mochi.",
        "Thank you.",
        "You are welcome.",
    ]
    assert embedder.queries == [QUESTION, "Thank you."]


async def test_report_1_the_query_is_the_present_message(
    past: SemanticRecall, embedder: CountingEmbedder, make: MakeEngine, ask: Ask
) -> None:
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    engine = make(ScriptedLLM("It rains."), memory)
    await ask(engine, "How is the weather?")
    await ask(engine, QUESTION)
    assert embedder.queries == ["How is the weather?", QUESTION]


async def test_report_21_and_22_there_is_one_recall_message_and_the_users_message_stays(
    past: SemanticRecall, make: MakeEngine, ask: Ask
) -> None:
    for i in range(5):
        past.remember(
            {"role": "user", "content": f"My cat is called Mochi, part {i}"},
            thread_id=f"other-{i}",
            resource_id="anna",
        )
    llm = ScriptedLLM("Mochi.")
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    await ask(make(llm, memory), QUESTION)
    blocks = [m for m in llm.prompts[-1] if "record of earlier conversations" in (m.content or "")]
    assert len(blocks) == 1
    assert llm.prompts[-1][-1].content == QUESTION


@pytest.mark.parametrize("field", ["context_str", "query_str", "anything"])
async def test_report_24_braces_in_recalled_text_and_history_are_not_filled_in(
    recall: SemanticRecall, make: MakeEngine, ask: Ask, field: str
) -> None:
    trap = f"My cat's JSON is {{'name': 'Mochi'}} and {{{field}}} and {{{{{field}}}}}"
    recall.remember({"role": "user", "content": trap}, thread_id="long-ago", resource_id="anna")
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    llm = ScriptedLLM(f"I see {{{field}}}.")
    engine = make(llm, memory)
    await ask(engine, "What is the name of my cat in JSON?")
    await ask(engine, "Really?")
    for prompt in llm.prompts:
        recalled = "".join(m.content or "" for m in prompt if "JSON is" in (m.content or ""))
        assert "{'name': 'Mochi'}" in recalled
    told = shown(llm.prompts[0])
    assert told.count("Cats sleep a lot.") <= 1  # the document stands in its own place only
    assert told.count("What is the name of my cat in JSON?") == 1
    assert shown(llm.prompts[1]).count("Really?") == 1
    assert [m.content for m in memory.get_all()][1] == f"I see {{{field}}}."


async def test_the_history_as_the_model_sees_it_is_exact_where_no_template_is_used(
    recall: SemanticRecall, ask: Ask
) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    llm = ScriptedLLM("ok")
    engine = simple(llm, memory)
    await ask(engine, "What does {context_str} mean?")
    await ask(engine, "And?")
    assert "What does {context_str} mean?" in shown(llm.prompts[-1])


async def test_condense_question(past: SemanticRecall, embedder: CountingEmbedder) -> None:
    llm = ScriptedLLM("What is the name of Anna's cat Mochi?")
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    answers = Answers()
    engine = CondenseQuestionChatEngine.from_defaults(query_engine=answers, llm=llm, memory=memory)
    engine.chat(QUESTION)
    assert "My cat is called Mochi" in shown(llm.prompts[0])
    assert embedder.queries == [QUESTION]
    await engine.achat("And how old?")
    assert answers.questions[-1] == "What is the name of Anna's cat Mochi?"
    assert [m.content for m in memory.get_all()][::2] == [QUESTION, "And how old?"]


async def test_condense_plus_context_asks_twice_and_recalls_once(
    past: SemanticRecall, embedder: CountingEmbedder, ask: Ask
) -> None:
    llm = ScriptedLLM("What is the cat called?", "Mochi.")
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    engine = CondensePlusContextChatEngine.from_defaults(
        retriever=Documents("Cats sleep."), llm=llm, memory=memory
    )
    await ask(engine, QUESTION)
    assert embedder.queries == [QUESTION]
    assert "Mochi" in shown(llm.prompts[-1])


async def test_report_10_an_abandoned_stream_is_stored(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    engine = simple(ScriptedLLM("one two three"), memory)
    response = engine.stream_chat("Count.")
    next(iter(response.response_gen))
    deadline = time.monotonic() + 10
    while len(memory.get_all()) < 2 and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert [m.content for m in memory.get_all()] == ["Count.", "one two three"]


async def test_an_answer_without_documents_is_kept_and_never_recalled(
    recall: SemanticRecall,
) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    engine = ContextChatEngine.from_defaults(
        retriever=Documents(), llm=ScriptedLLM("never"), memory=memory
    )
    assert str(engine.chat("Empty or not?")) == "Empty Response"
    assert [m.content for m in memory.get_all()] == ["Empty or not?", "Empty Response"]
    found = recall.recall("Empty Response", resource_id="anna")
    assert [m.message.text for m in found] == ["Empty or not?"]


async def test_report_5_and_8_a_long_system_prompt_is_no_error(past: SemanticRecall) -> None:
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna", token_limit=300)
    llm = ScriptedLLM("ok")
    engine = SimpleChatEngine.from_defaults(
        llm=llm, memory=memory, system_prompt="Be very brief. " * 500
    )
    for _ in range(3):
        engine.chat(QUESTION)
    prompt = llm.prompts[-1]
    assert [m.role for m in prompt] == [MessageRole.SYSTEM, MessageRole.USER]
    assert prompt[-1].content == QUESTION


async def test_reports_23_and_31_insert_user_puts_the_block_beside_the_question(
    past: SemanticRecall, make: MakeEngine, ask: Ask
) -> None:
    """Late in the prompt, for caching, and for models of one system message."""
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna", insert="user")
    llm = ScriptedLLM("Mochi.")
    engine = make(llm, memory)
    await ask(engine, "Hello.")
    await ask(engine, QUESTION)
    prompt = llm.prompts[-1]
    holding = [m.role for m in prompt if "cat is called Mochi" in (m.content or "")]
    assert holding == [MessageRole.USER]
    assert QUESTION in (prompt[-1].content or "")
    stored = [m.content for m in memory.get_all()]
    assert stored == ["Hello.", "Mochi.", QUESTION, "Mochi."]


async def test_chat_history_given_every_turn_is_embedded_once(
    recall: SemanticRecall, embedder: CountingEmbedder
) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    engine = simple(ScriptedLLM("a", "b", "c"), memory)
    history: list[ChatMessage] = []
    for text in ("one", "two", "three"):
        answer = str(engine.chat(text, chat_history=history))
        history += [ChatMessage(text), ChatMessage(role="assistant", content=answer)]
    recall.flush()
    assert [m.content for m in memory.get_all()] == ["one", "a", "two", "b", "three", "c"]
    assert sorted(embedder.documents) == sorted(set(embedder.documents))
    assert len(embedder.documents) == 6
