"""LangGraph's checkpoints: each thread once, and nothing in them is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
)
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_semantic_recall.messages import to_langchain
from semantic_recall import Message
from semantic_recall.errors import MissingDependencyError
from semantic_recall.importers import (
    BadRecord,
    Position,
    detect,
    read,
    read_with,
)
from tests.importers.support import (
    DEFAULTS,
    WHEN,
    good,
    query,
    said,
)


def graph_file(path: Path, threads: Sequence[str]) -> list[BaseMessage]:
    """Run a small graph on every thread, twice, with LangGraph's own saver."""

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    state: dict[str, Any] = {}
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = builder.compile(checkpointer=saver)
        for thread in threads:
            for question in ("one", "two"):
                state = graph.invoke(
                    {"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": thread}}
                )
    return list(state["messages"])


def test_langgraph_checkpoints_give_each_thread_once(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    last = graph_file(path, ["t2", "t1"])
    importer, position = detect(path), Position()
    assert importer.name == "langgraph"
    messages = good(list(read_with(importer, path, DEFAULTS, position)))
    assert (position.done, position.total) == (2, 2)
    assert said(messages[:4]) == [
        ("user", "one"),
        ("assistant", "answer 1"),
        ("user", "two"),
        ("assistant", "answer 3"),
    ]
    assert [one.thread_id for one in messages] == ["t1"] * 4 + ["t2"] * 4
    assert list(map(to_langchain, messages[:4])) == last
    assert messages[0].created_at > WHEN
    assert [one.id for one in messages[:4]] == [one.id for one in last]


def test_langgraph_bad_checkpoints_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    graph_file(path, ["a", "b", "c"])
    newest = "checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?)"
    query(path, f"UPDATE checkpoints SET checkpoint = x'c1' WHERE {newest}", "a")
    query(path, f"UPDATE checkpoints SET type = 'pickle' WHERE {newest}", "b")
    items = list(read(path))
    bad = [one for one in items if isinstance(one, BadRecord)]
    assert [one.where for one in bad] == [f"newest checkpoint of thread '{t}'" for t in "ab"]
    assert "cannot be decoded" in bad[0].reason
    assert "pickle" in bad[1].reason
    assert [one.thread_id for one in items if isinstance(one, Message)] == ["c"] * 4


def test_a_checkpoint_cannot_run_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from ormsgpack import Ext, packb

    path, trace = tmp_path / "checkpoints.sqlite", tmp_path / "ran"
    graph_file(path, ["a"])
    harm = Ext(0, packb(("os", "mkdir", str(trace))))
    blob = packb({"ts": "2025-01-01", "channel_values": {"messages": [harm]}})
    query(path, "UPDATE checkpoints SET type = 'msgpack', checkpoint = ?", blob)
    (item,) = read(path)
    assert isinstance(item, BadRecord)
    assert "no list of messages" in item.reason
    assert not trace.exists()
    JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(("msgpack", blob))
    assert trace.exists()  # so the test can fail


def test_without_langgraph_the_pip_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoints.sqlite"
    graph_file(path, ["a"])
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.serde.jsonplus", None)
    with pytest.raises(MissingDependencyError, match="pip install -U langgraph-checkpoint"):
        list(read(path))
