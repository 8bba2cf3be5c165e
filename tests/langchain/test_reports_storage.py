"""What users reported of stores and vector databases under LangChain, and must not happen here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from langchain_semantic_recall import (
    SemanticRecallChatMessageHistory,
    SemanticRecallMiddleware,
    SemanticRecallRetriever,
    from_langchain,
)
from semantic_recall import SemanticRecall
from tests.langchain.agents import CAT, QUESTION, run_in, said, system_of, texts, told
from tests.langchain.conftest import Ask
from tests.langchain.scripted import ScriptedModel

ANN: Any = {"configurable": {"resource_id": "ann"}}

SECOND_PROCESS = """
import sys
from langchain_semantic_recall import SemanticRecallChatMessageHistory
from semantic_recall import SemanticRecall

with SemanticRecall.open(sys.argv[1], embedder="hash") as memory:
    history = SemanticRecallChatMessageHistory(memory, "theirs", "ann")
    print("Mimi" in history.recall("What is the name of my cat?").text)
    history.add_user_message("My dog is called Rex.")
"""


def test_chroma_421_two_processes_use_one_folder(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as memory:
        told(memory, CAT, "old")
        assert memory.flush()
        done = subprocess.run(
            [sys.executable, "-c", SECOND_PROCESS, str(tmp_path / "memory")],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
        model = ScriptedModel.of("Rex.")
        agent = create_agent(model, middleware=[SemanticRecallMiddleware(memory)])
        agent.invoke(said("What is the name of my dog? Rex?"), run_in("new"))
        assert "My dog is called Rex." in system_of(model.requests[0])
        assert memory.flush()
        assert memory.verify().ok


def test_langgraph_2983_a_relative_folder_stays_where_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with SemanticRecall.open("memory", embedder="hash") as memory:
        monkeypatch.chdir(tmp_path / "elsewhere")
        agent = create_agent(ScriptedModel.of(), middleware=[SemanticRecallMiddleware(memory)])
        agent.invoke(said(CAT), run_in("old"))
        assert memory.flush()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with SemanticRecall.open(tmp_path / "here" / "memory", embedder="hash") as memory:
        assert texts(memory, "old") == [CAT, f"answer to {CAT}"]


@pytest.mark.parametrize("metadata", [None, {}, {"only": None}])
async def test_langchain_7633_messages_without_metadata_are_stored_and_found(
    memory: SemanticRecall, ask: Ask, metadata: Any
) -> None:
    memory.remember(
        from_langchain(HumanMessage(CAT), thread_id="old", resource_id="ann", metadata=metadata)
    )
    memory.remember({"role": "user", "content": "And a dog."}, thread_id="old", resource_id="ann")
    assert memory.flush()
    found = await ask(SemanticRecallRetriever(memory=memory), QUESTION, ANN)
    assert [document.metadata["metadata"] for document in found] == [metadata or {}, {}]


def test_langchain_8679_the_same_messages_again_are_stored_once(memory: SemanticRecall) -> None:
    history = SemanticRecallChatMessageHistory(memory, "old", "ann")
    same = [HumanMessage(CAT, id="1"), AIMessage("I see.", id="2")]
    for _ in range(3):
        history.add_messages([*same, *same])
        assert memory.flush()
    assert history.messages == same
    assert (memory.stats().messages, memory.stats().vectors) == (2, 2)
    assert memory.verify().ok
