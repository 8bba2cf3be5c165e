"""Memories, agents and ways to run them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from semantic_recall import SemanticRecall
from tests.langchain.chains import WAYS, Run

Ask: TypeAlias = Callable[..., Awaitable[Any]]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as opened:
        yield opened


@pytest.fixture(params=["invoke", "ainvoke"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Run an agent or chain to its end, sync (in a thread) or async."""
    if request.param == "ainvoke":
        return _ainvoke
    return _invoke


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a chain: sync or async, whole, streamed or in a batch."""
    way: Run = request.param
    return way


async def _invoke(runnable: Any, *args: Any, **kwargs: Any) -> Any:
    return await asyncio.to_thread(runnable.invoke, *args, **kwargs)


async def _ainvoke(runnable: Any, *args: Any, **kwargs: Any) -> Any:
    return await runnable.ainvoke(*args, **kwargs)


@pytest.fixture(params=["memory", "sqlite"])
async def saver(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """A checkpointer that works with the way `ask` runs things."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    path = tmp_path / "checkpoints.sqlite3"
    if request.getfixturevalue("ask") is _ainvoke:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as opened:
            yield opened
        return
    connection = sqlite3.connect(path, check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()
