"""The retriever and the tool, in a query engine and in an agent."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, QueryBundle

from llamaindex_semantic_recall import SemanticRecallRetriever, create_recall_tool
from semantic_recall import SemanticRecall
from semantic_recall.errors import InvalidOptionError, InvalidScopeError, SemanticRecallError
from tests.llamaindex.conftest import QUESTION
from tests.llamaindex.scripted import ScriptedLLM, call, shown


async def test_hits_come_first_then_neighbours_with_what_a_model_needs(
    past: SemanticRecall,
) -> None:
    retriever = SemanticRecallRetriever(past, resource_id="anna", top_k=1, message_range=1)
    found = retriever.retrieve(QUESTION)
    assert [n.node.metadata["is_hit"] for n in found] == [True, False]
    assert "Mochi" in found[0].text
    metadata = found[0].node.metadata
    assert (metadata["role"], metadata["thread_id"], metadata["resource_id"]) == (
        "user",
        "long-ago",
        "anna",
    )
    assert [n.node_id for n in await retriever.aretrieve(QUESTION)] == [n.node_id for n in found]
    told = found[0].node.get_content(MetadataMode.LLM)
    assert "role: user" in told
    assert "anna" not in told
    assert len({n.node_id for n in found}) == 2


async def test_another_retrievers_embedding_is_not_taken(past: SemanticRecall) -> None:
    retriever = SemanticRecallRetriever(past, resource_id="anna")
    bundle = QueryBundle(QUESTION, embedding=[0.5, 0.5])
    assert "Mochi" in (await retriever.aretrieve(bundle))[0].text


def test_a_query_engine_and_a_postprocessor(past: SemanticRecall) -> None:
    llm = ScriptedLLM("Mochi.")
    retriever = SemanticRecallRetriever(past, resource_id="anna")
    engine = RetrieverQueryEngine.from_args(
        retriever, llm=llm, node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.01)]
    )
    assert str(engine.query(QUESTION)) == "Mochi."
    assert "called Mochi" in shown(llm.prompts[-1])
    assert "Pixel" not in shown(llm.prompts[-1])


def test_without_resource_only_the_thread_is_searched(recall: SemanticRecall) -> None:
    recall.remember({"role": "user", "content": "cat one"}, thread_id="a")
    recall.remember({"role": "user", "content": "cat two"}, thread_id="b")
    found = SemanticRecallRetriever(recall, thread_id="a").retrieve("cat")
    assert [n.text for n in found] == ["cat one"]


def test_no_scope_is_an_error_where_it_is_made(recall: SemanticRecall) -> None:
    with pytest.raises(InvalidScopeError):
        SemanticRecallRetriever(recall)
    with pytest.raises(InvalidScopeError):
        create_recall_tool(recall)
    with pytest.raises(InvalidOptionError, match="ranking"):
        create_recall_tool(recall, resource_id="anna", ranking="best")  # type: ignore[arg-type]


def test_a_failing_retriever_raises(tmp_path: Path) -> None:
    recall = SemanticRecall.open(tmp_path / "memory", embedder="hash")
    retriever = SemanticRecallRetriever(recall, resource_id="anna")
    recall.close()
    with pytest.raises(SemanticRecallError):
        retriever.retrieve(QUESTION)


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
async def test_an_agent_searches_its_own_user_only(past: SemanticRecall) -> None:
    tool = create_recall_tool(past, resource_id="anna")
    llm = ScriptedLLM(call(tool.metadata.get_name(), query=QUESTION), "Mochi.")
    response = await FunctionAgent(tools=[tool], llm=llm).run(QUESTION)
    assert str(response) == "Mochi."
    assert "called Mochi" in shown(llm.prompts[-1])
    assert "Pixel" not in shown(llm.prompts[-1])


def test_the_models_only_choice_is_the_query(past: SemanticRecall) -> None:
    tool = create_recall_tool(past, resource_id="anna", name="look", description="d")
    assert list(tool.metadata.get_parameters_dict()["properties"]) == ["query"]
    assert "Mochi" in str(tool.call(query=QUESTION))
    assert "Nothing was found" in str(tool.call(query=" "))


async def test_a_failing_tool_answers_and_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recall = SemanticRecall.open(tmp_path / "memory", embedder="hash")
    tool = create_recall_tool(recall, resource_id="anna")
    recall.close()
    with caplog.at_level(logging.WARNING, logger="semantic_recall"):
        assert "Nothing was found" in str(await tool.acall(query=QUESTION))
    assert "recall failed" in caplog.text


def test_report_25_each_step_of_a_workflow_may_search_something_else(
    recall: SemanticRecall,
) -> None:
    for project in ("garden", "house"):
        recall.remember(
            {
                "role": "user",
                "content": f"The paint for the {project} is ordered.",
                "metadata": {"project": project},
            },
            thread_id="t",
            resource_id="anna",
        )
    for project in ("garden", "house"):
        retriever = SemanticRecallRetriever(
            recall, resource_id="anna", filter={"project": project}, message_range=0
        )
        (found,) = retriever.retrieve("Is the paint ordered?")
        assert project in found.text
