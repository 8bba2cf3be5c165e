"""SemanticRecallMemory carried around: every copy is the same memory."""

from __future__ import annotations

import copy
import pickle
from datetime import datetime, timezone
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemory

from llamaindex_semantic_recall import SemanticRecallMemory, connect
from semantic_recall import RecallOptions, SemanticRecall
from semantic_recall.errors import ConfigurationError
from tests.llamaindex.conftest import chats, contents


def test_it_is_a_llamaindex_memory(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory.from_defaults(
        recall, thread_id="now", resource_id="anna", chat_history=chats("one", "two")
    )
    assert isinstance(memory, BaseMemory)
    assert bool(memory)
    assert contents(memory.get_all()) == ["one", "two"]
    assert len(SemanticRecallMemory(recall).thread_id) == 32


def test_the_public_fields_are_few() -> None:
    fields = ["thread_id", "resource_id", "token_limit", "insert", "options"]
    assert list(SemanticRecallMemory.model_fields) == fields


def test_every_copy_is_the_same_memory(recall: SemanticRecall) -> None:
    moment = datetime(2026, 1, 2, tzinfo=timezone.utc)
    options = RecallOptions(
        top_k=3, message_range=(2, 0), since=moment, roles=["user"], exclude_ids=["x"]
    )
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna", options=options)
    for again in (
        SemanticRecallMemory.from_dict(memory.to_dict()),
        SemanticRecallMemory.from_json(memory.to_json()),
        pickle.loads(pickle.dumps(memory)),
        copy.copy(memory),
        copy.deepcopy(memory),
    ):
        assert again is memory
    written = memory.to_json()
    del memory
    again = SemanticRecallMemory.from_json(written)
    assert (again.thread_id, again.resource_id, again.options) == ("now", "anna", options)
    assert SemanticRecallMemory.from_json(again.to_json()) is again


def test_a_memory_whose_store_is_not_open_says_what_to_do(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path / "gone", embedder="hash") as recall:
        written = SemanticRecallMemory(recall, thread_id="now").to_dict()
    written["instance_id"], written["memory_id"] = "unknown", "unknown"
    with pytest.raises(ConfigurationError, match="connect"):
        SemanticRecallMemory.from_dict(written)


def test_a_memory_of_a_closed_store_is_made_again_on_the_opened_one(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as recall:
        old = SemanticRecallMemory(recall, thread_id="now")
        old.put(ChatMessage("kept"))
        written = old.to_dict()
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as recall:
        connect(recall)
        again = SemanticRecallMemory.from_dict(written)
        assert again is not old
        assert contents(again.get_all()) == ["kept"]


def test_from_dict_does_not_lend_a_memory_to_another_thread(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    other = SemanticRecallMemory.from_dict({**memory.to_dict(), "resource_id": "bert"})
    assert other is not memory
    assert other.resource_id == "bert"
