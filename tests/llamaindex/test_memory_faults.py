"""SemanticRecallMemory when something is wrong."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import Message, Recall, SemanticRecall, Settings
from semantic_recall.errors import AbortTurn, ConfigurationError, InvalidIdError, StoreError
from tests.llamaindex.conftest import QUESTION, SlowEmbedder, chats, contents


class Flaky(SemanticRecall):
    """A memory whose database fails when told to."""

    broken = False

    def remember(self, *args: Any, **kwargs: Any) -> list[Message]:
        if self.broken:
            raise StoreError("disk full")
        return super().remember(*args, **kwargs)

    def history(self, *args: Any, **kwargs: Any) -> list[Message]:
        if self.broken:
            raise StoreError("disk full")
        return super().history(*args, **kwargs)


@pytest.fixture
def flaky(tmp_path: Path) -> Iterator[Flaky]:
    with Flaky.open(tmp_path / "flaky", embedder="hash") as opened:
        yield opened


async def test_the_conversation_goes_on_without_its_database(
    flaky: Flaky, caplog: pytest.LogCaptureFixture
) -> None:
    memory = SemanticRecallMemory(flaky, thread_id="now", resource_id="anna")
    memory.put_messages(chats("one", "two"))
    flaky.broken = True
    with caplog.at_level(logging.WARNING, logger="semantic_recall"):
        memory.put(ChatMessage("three"))
        assert contents(await memory.aget())[-1] == "three"
        assert contents(memory.get())[-1] == "three"
    assert "disk full" in caplog.text
    flaky.broken = False
    memory.put(ChatMessage(role="assistant", content="four"))
    assert contents(memory.get_all()) == ["one", "two", "three", "four"]
    assert len(flaky.history("now", "anna")) == 4


@pytest.mark.parametrize("sync", [True, False])
async def test_a_slow_recall_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sync: bool
) -> None:
    settings = Settings(timeout=1.5)
    with SemanticRecall.open(
        tmp_path / "slow", embedder=SlowEmbedder(4.0), settings=settings
    ) as recall:
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        memory.put(ChatMessage(QUESTION))
        with caplog.at_level(logging.WARNING, logger="semantic_recall"):
            found = memory.get() if sync else await memory.aget()
        assert contents(found) == [QUESTION]
        assert "1.5 s" in caplog.text


@pytest.mark.parametrize("sync", [True, False])
async def test_a_hook_may_stop_the_turn(tmp_path: Path, sync: bool) -> None:
    def stop(_: Recall) -> Recall:
        raise AbortTurn("not allowed")

    settings = Settings(before_inject=stop)
    with SemanticRecall.open(tmp_path / "hook", embedder="hash", settings=settings) as recall:
        memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
        for _ in range(2):
            with pytest.raises(AbortTurn, match="not allowed"):
                memory.get(QUESTION) if sync else await memory.aget(QUESTION)


def test_wrong_arguments_fail_where_they_are_made(recall: SemanticRecall) -> None:
    with pytest.raises(InvalidIdError, match="empty"):
        SemanticRecallMemory(recall, thread_id="")
    with pytest.raises(InvalidIdError):
        SemanticRecallMemory(recall, thread_id="t", resource_id="x" * 2000)
    with pytest.raises(ValueError, match="insert"):
        SemanticRecallMemory(recall, insert="somewhere")
    with pytest.raises(ConfigurationError, match=r"SemanticRecall\.open"):
        SemanticRecallMemory.from_defaults()


OFFLINE = """
import sys
from llama_index.core.llms import ChatMessage
from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import SemanticRecall

with SemanticRecall.open(sys.argv[1], embedder="hash") as recall:
    old = SemanticRecallMemory(recall, thread_id="old", resource_id="anna")
    old.put(ChatMessage("My cat is called Mochi. <|endoftext|>"))
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    print("Mochi" in str(memory.get("What is my cat called?")))
"""


def test_report_29_counting_tokens_needs_no_network(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE, str(tmp_path / "memory")],
        env={**os.environ, "TIKTOKEN_CACHE_DIR": cache, "HTTPS_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"
