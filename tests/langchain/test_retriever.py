"""The memory as a retriever: LangChain's own suite, and what it does not ask."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from langchain_semantic_recall import SemanticRecallRetriever
from semantic_recall import InvalidOptionError, InvalidScopeError, SemanticRecall
from semantic_recall.errors import StoreClosedError
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel

PETS = [
    ("user", "My cat is called Mimi."),
    ("assistant", "A pretty name for a cat."),
    ("user", "My dog is called Rex."),
    ("assistant", "Rex is a strong name."),
    ("user", "Football is on tonight."),
    ("assistant", "Who plays?"),
]


def fill(memory: SemanticRecall, thread: str = "pets", resource: str | None = "ann") -> None:
    memory.remember(
        [{"role": role, "content": text} for role, text in PETS],
        thread_id=thread,
        resource_id=resource,
    )


@pytest.fixture
def pets(memory: SemanticRecall) -> SemanticRecall:
    fill(memory)
    return memory


class TestStandard(RetrieversIntegrationTests):
    """langchain-tests, with no overrides."""

    @pytest.fixture(autouse=True)
    def _memory(self) -> Iterator[None]:
        with (
            tempfile.TemporaryDirectory() as folder,
            SemanticRecall.open(folder, embedder="hash") as memory,
        ):
            fill(memory)
            type(self).memory = memory
            yield

    memory: SemanticRecall

    @property
    def retriever_constructor(self) -> type[SemanticRecallRetriever]:
        return SemanticRecallRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "resource_id": "ann"}

    @property
    def retriever_query_example(self) -> str:
        return "What is my cat called?"


IDS: Any = {"configurable": {"thread_id": "now", "resource_id": "ann"}}


async def test_documents_say_who_when_where_and_how_sure(pets: SemanticRecall, ask: Ask) -> None:
    retriever = SemanticRecallRetriever(memory=pets, k=2)
    best, _ = await ask(retriever, "What is my cat called?", IDS)
    assert best.page_content == "My cat is called Mimi."
    stored = pets.history("pets", "ann")[0]
    assert best.id == stored.id
    metadata = best.metadata
    assert metadata["thread_id"] == "pets"
    assert metadata["resource_id"] == "ann"
    assert metadata["role"] == "user"
    assert metadata["created_at"] == stored.created_at.isoformat()
    assert metadata["score"] > 0
    assert -1 <= metadata["dense"] <= 1
    assert metadata["lexical"] > 0
    assert metadata["source"] == "memory"


async def test_neighbours(pets: SemanticRecall, ask: Ask) -> None:
    question = "What is my dog called?"
    plain = SemanticRecallRetriever(memory=pets, k=1, options={"message_range": (1, 2)})
    (found,) = await ask(plain, question, IDS)
    around = [neighbour["text"] for neighbour in found.metadata["neighbours"]]
    assert around == [PETS[1][1], PETS[3][1], PETS[4][1]]
    page = SemanticRecallRetriever(
        memory=pets, k=1, neighbours="page", options={"message_range": (1, 2)}
    )
    (found,) = await ask(page, question, IDS)
    assert found.page_content == "\n".join(f"{role}: {text}" for role, text in PETS[1:5])
    none = SemanticRecallRetriever(memory=pets, k=1, neighbours="none")
    (found,) = await ask(none, question, IDS)
    assert found.page_content == PETS[2][1]
    assert "neighbours" not in found.metadata


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6, 60])
async def test_k_at_construction_and_per_call(pets: SemanticRecall, ask: Ask, k: int) -> None:
    expected = min(k, len(PETS))
    made = SemanticRecallRetriever(memory=pets, k=k)
    assert len(await ask(made, "cat", IDS)) == expected
    assert len(await ask(SemanticRecallRetriever(memory=pets, k=2), "cat", IDS, k=k)) == expected


@pytest.mark.parametrize("k", [0, -1])
async def test_no_documents_are_no_error(pets: SemanticRecall, ask: Ask, k: int) -> None:
    assert await ask(SemanticRecallRetriever(memory=pets), "cat", IDS, k=k) == []
    assert await ask(SemanticRecallRetriever(memory=pets), "   ", IDS) == []


async def test_ids_come_from_the_call_the_fields_or_the_config(
    pets: SemanticRecall, ask: Ask
) -> None:
    fill(pets, "other", "bob")
    free = SemanticRecallRetriever(memory=pets, k=9)
    fixed = SemanticRecallRetriever(memory=pets, k=9, resource_id="bob")

    async def owners(retriever: SemanticRecallRetriever, *args: Any, **kwargs: Any) -> set[str]:
        documents = await ask(retriever, "cat", *args, **kwargs)
        return {document.metadata["resource_id"] for document in documents}

    assert await owners(free, IDS) == {"ann"}
    assert await owners(free, {"configurable": {"user_id": "bob"}}) == {"bob"}
    assert await owners(fixed, IDS) == {"bob"}
    assert await owners(fixed, IDS, resource_id="ann") == {"ann"}
    assert await owners(free, {"configurable": {"user_id": "nobody"}}) == set()


async def test_langchain_13876_without_ids_it_raises_and_never_searches_everything(
    pets: SemanticRecall, ask: Ask
) -> None:
    with pytest.raises(InvalidScopeError, match="resource_id"):
        await ask(SemanticRecallRetriever(memory=pets), "cat")


async def test_with_a_thread_alone_only_that_thread_is_searched(
    pets: SemanticRecall, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    fill(pets, "mine", None)
    retriever = SemanticRecallRetriever(memory=pets, k=9)
    config = {"configurable": {"thread_id": "mine"}}
    for _ in range(2):
        documents = await ask(retriever, "cat", config)
        assert {document.metadata["resource_id"] for document in documents} == {None}
    assert caplog.text.count("only the thread itself") == 1


async def test_every_option_of_a_recall_can_be_given_per_call(
    pets: SemanticRecall, ask: Ask
) -> None:
    retriever = SemanticRecallRetriever(memory=pets, k=9)
    users = await ask(retriever, "cat", IDS, roles=["assistant"])
    assert {document.metadata["role"] for document in users} == {"assistant"}
    sure = await ask(retriever, "user: My cat is called Mimi.", IDS, ranking="dense", threshold=0.9)
    assert [document.page_content for document in sure] == ["My cat is called Mimi."]
    with pytest.raises(InvalidOptionError, match="did you mean top_k"):
        await ask(retriever, "cat", IDS, topk=1)


def test_wrong_options_fail_at_construction(memory: SemanticRecall) -> None:
    with pytest.raises(ValidationError, match="threshold takes"):
        SemanticRecallRetriever(memory=memory, options={"threshold": 7})
    with pytest.raises(ValidationError, match="topk"):
        SemanticRecallRetriever(memory=memory, options={"topk": 7})


async def test_a_failure_is_raised(memory: SemanticRecall, ask: Ask) -> None:
    memory.close()
    with pytest.raises(StoreClosedError):
        await ask(SemanticRecallRetriever(memory=memory), "cat", IDS)


class Recording(BaseCallbackHandler):
    """Keeps what a tracer would see."""

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.documents: list[Document] = []
        self.errors: list[BaseException] = []

    def on_retriever_start(self, *args: Any, metadata: Any = None, **kwargs: Any) -> None:
        self.metadata = dict(metadata or {})

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.documents = list(documents)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors.append(error)


async def test_tracing(pets: SemanticRecall, ask: Ask) -> None:
    seen = Recording()
    retriever = SemanticRecallRetriever(memory=pets, k=2, metadata={"mine": 1})
    documents = await ask(retriever, "cat", {**IDS, "callbacks": [seen]})
    assert seen.documents == documents
    assert seen.metadata["ls_retriever_name"] == "semanticrecall"
    assert seen.metadata["ls_vector_store_provider"] == "semantic-recall"
    assert seen.metadata["ls_embedding_provider"] == "hash"
    assert seen.metadata["ls_embedding_model"] == pets.embedder_name == "hash-1-256"
    assert seen.metadata["mine"] == 1
    with pytest.raises(InvalidScopeError):
        await ask(retriever, "cat", {"callbacks": [seen]})
    assert len(seen.errors) == 1


async def test_tracing_a_memory_without_an_embedder(tmp_path: Path) -> None:
    seen = Recording()
    with SemanticRecall.open(tmp_path, embedder=None) as memory:
        assert memory.embedder_name is None
        config: Any = {**IDS, "callbacks": [seen]}
        assert SemanticRecallRetriever(memory=memory).invoke("cat", config) == []
    assert not any(key.startswith("ls_embedding") for key in seen.metadata)


async def test_a_retrieval_chain(pets: SemanticRecall, ask: Ask) -> None:
    model = ScriptedModel.of("Mimi.")
    retriever = SemanticRecallRetriever(memory=pets, k=1, neighbours="page")
    chain: Any = (
        {
            "context": retriever | RunnableLambda(lambda found: found[0].page_content),
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("Notes:\n{context}\n\nQuestion: {question}")
        | model
        | StrOutputParser()
    )
    assert await ask(chain, "What is my cat called?", IDS) == "Mimi."
    assert "user: My cat is called Mimi.\nassistant: A pretty" in model.requests[0][0].text


async def test_batch_keeps_each_question_apart(pets: SemanticRecall) -> None:
    retriever = SemanticRecallRetriever(memory=pets, k=1)
    questions = ["cat called?", "dog called?", "football tonight?"]
    expected = [PETS[0][1], PETS[2][1], PETS[4][1]]
    configs = [IDS] * 3
    for found in (retriever.batch(questions, configs), await retriever.abatch(questions, configs)):
        assert [documents[0].page_content for documents in found] == expected


def test_the_logger_of_the_memory_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert logging.getLogger("semantic_recall").name == "semantic_recall"
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        SemanticRecallRetriever(memory=memory).invoke("x", {"configurable": {"thread_id": "t"}})
    assert [record.name for record in caplog.records] == ["semantic_recall"]
