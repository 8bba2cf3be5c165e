"""What LangChain, LangGraph and LlamaIndex wrote themselves becomes messages, and stays whole."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
import tracemalloc
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_to_dict,
)
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from llama_index.core.llms import ChatMessage as LlamaMessage
from llama_index.core.llms import ImageBlock, TextBlock
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from langchain_semantic_recall.messages import to_langchain
from llamaindex_semantic_recall.messages import to_chat_message
from semantic_recall import Message
from semantic_recall.errors import ImportFormatError, MissingDependencyError
from semantic_recall.importers import (
    BadRecord,
    Defaults,
    LangChainImporter,
    LangChainTablesImporter,
    LlamaIndexImporter,
    LlamaIndexTablesImporter,
    Position,
    detect,
    read,
    read_with,
)
from tests.core.cli_support import run_json

WHEN = datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
DEFAULTS = Defaults(thread_id="file", resource_id="r", created_at=WHEN)
CALL: Any = {"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}
TURN: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage(
        [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": "u"}], id="h"
    ),
    AIMessage("", tool_calls=[CALL], id="ai-1"),
    ToolMessage("2", tool_call_id="c1", name="add"),
    AIMessage([{"type": "text", "text": "It is "}, {"type": "text", "text": "two."}], name="Bo"),
    ChatMessage(content="As you say", role="bot"),
]
SAID = [
    ("system", "Be brief."),
    ("user", "Look"),
    ("assistant", ""),
    ("tool", "2"),
    ("assistant", "It is two."),
    ("assistant", "As you say"),
]


def good(items: Sequence[Message | BadRecord]) -> list[Message]:
    assert all(isinstance(item, Message) for item in items), items
    return [item for item in items if isinstance(item, Message)]


def said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(one.role, one.text) for one in messages]


def without_ids(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [one.model_copy(update={"id": None}) for one in messages]


def query(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


def test_a_langchain_file_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(messages_to_dict(TURN)), encoding="utf-8")
    assert detect(path).name == "langchain"
    messages = good(list(read(path)))
    assert said(messages) == SAID
    assert [one.thread_id for one in messages] == ["session"] * 6
    assert (messages[1].id, messages[2].id, messages[4].name) == ("h", "ai-1", "Bo")
    assert [one.id for one in messages] == [one.id for one in good(list(read(path)))]
    assert without_ids(list(map(to_langchain, messages))) == without_ids(TURN)


def test_a_langchain_chunk_is_stored_as_the_message_it_stands_for() -> None:
    data = json.dumps([message_to_dict(AIMessageChunk(content="half", id="x"))]).encode()
    (message,) = good(list(LangChainImporter().read(io.BytesIO(data), DEFAULTS)))
    assert (message.role, message.text) == ("assistant", "half")
    assert isinstance(to_langchain(message), AIMessage)


def test_bad_langchain_records_are_named_by_line() -> None:
    data = (
        '[\n{"type":"human"},\n{"data":{"content":"a"}},\n{"type":"ai","data":{"content":7}},\n3,\n'
    )
    items = list(LangChainImporter().read(io.BytesIO((data + "{").encode()), DEFAULTS))
    found = [(one.line, one.reason) for one in items if isinstance(one, BadRecord)]
    assert len(found) == len(items) == 5
    assert found[:4] == [
        (2, 'expected {"type": ..., "data": {...}}'),
        (3, '"type" is missing'),
        (4, '"content" is 7; a text or a list of parts was expected'),
        (5, 'expected {"type": ..., "data": {...}}'),
    ]


def history(path: Path, messages: Sequence[BaseMessage], *, postgres: bool = False) -> None:
    """Write a table as SQLChatMessageHistory or PostgresChatMessageHistory lays it out."""
    more = ", created_at TEXT" if postgres else ""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT"
            f"{more})"
        )
        rows = [
            (
                f"s{number % 2}",
                json.dumps(message_to_dict(one)),
                *(["2024-05-01 10:00:00+02"] * postgres),
            )
            for number, one in enumerate(messages)
        ]
        names = "session_id, message" + (", created_at" if postgres else "")
        marks = ", ".join("?" * (2 + postgres))
        database.executemany(f"INSERT INTO message_store ({names}) VALUES ({marks})", rows)


@pytest.mark.parametrize("postgres", [False, True])
def test_langchain_tables(postgres: bool, tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, TURN, postgres=postgres)
    importer, position = detect(path), Position()
    assert importer.name == "langchain-sqlite"
    messages = good(list(read_with(importer, path, DEFAULTS, position)))
    assert (position.done, position.total) == (6, 6)
    assert said(messages) == SAID
    assert [one.thread_id for one in messages] == ["s0", "s1"] * 3
    assert [one.id for one in messages[:2]] == ["message_store-1", "h"]
    moment = datetime(2024, 5, 1, 8, tzinfo=timezone.utc) if postgres else WHEN
    assert {one.created_at for one in messages} == {moment}
    assert without_ids(list(map(to_langchain, messages))) == without_ids(TURN)


def test_bad_rows_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, [HumanMessage("a"), HumanMessage("b")])
    insert = "INSERT INTO message_store (session_id, message) VALUES (?, CAST(? AS TEXT))"
    for session, value in [("s", "{nope"), ("s", None), (None, "{}"), ("s", b'{"type":"\xff"}')]:
        query(path, insert, session, value)
    items = list(read(path))
    assert [one.text for one in items if isinstance(one, Message)] == ["a", "b"]
    found = [(one.where, one.reason) for one in items if isinstance(one, BadRecord)]
    assert [where for where, _ in found] == [
        f"row {n} of table message_store" for n in (3, 4, 5, 6)
    ]
    for (_, reason), part in zip(
        found, ["not JSON", "None", "session_id", "not UTF-8"], strict=True
    ):
        assert part in reason


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_database_is_only_read(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, TURN)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
    before = path.read_bytes()
    assert len(list(read(path))) == 6
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["chat.db"]


def test_a_database_in_use_is_read_with_what_is_only_in_its_log(tmp_path: Path) -> None:
    path = tmp_path / "a ?#%41.db"
    history(path, TURN)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(
            "INSERT INTO message_store (session_id, message) VALUES ('s', ?)",
            [json.dumps(message_to_dict(HumanMessage("fresh")))],
        )
        assert [one.text for one in good(list(read(path)))][-1] == "fresh"


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    query(path, "CREATE TABLE notes (id, session_id)")
    with pytest.raises(ImportFormatError, match="without tables of a known chat history"):
        detect(path)


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


CHATS = [
    LlamaMessage(role="system", content="Be brief."),
    LlamaMessage(role="user", content="Hello", additional_kwargs={"name": "Mina"}),
    LlamaMessage(
        role="user", blocks=[TextBlock(text="Look"), ImageBlock(image=b"aGk="), TextBlock(text="x")]
    ),
    LlamaMessage(role="assistant", content="Thought: hm\nAnswer: Two."),
    LlamaMessage(role="tool", content="2", additional_kwargs={"tool_call_id": "c1"}),
    LlamaMessage(role="assistant", content="Empty Response"),
]
CHATS_SAID = [
    ("system", "Be brief."),
    ("user", "Hello"),
    ("user", "Look\nx"),
    ("assistant", "Two."),
    ("tool", "2"),
    ("assistant", ""),
]


def test_a_simple_chat_store_comes_back_whole(tmp_path: Path) -> None:
    chats = {"mina": CHATS, "oskar": [LlamaMessage(role="user", content="Hi")]}
    # `persist` itself fails with pydantic 2.13: it calls a serializer with one argument too many.
    stored = {key: [one.model_dump(mode="json") for one in value] for key, value in chats.items()}
    path = tmp_path / "chat_store.json"
    path.write_text(json.dumps({"store": stored, "class_name": "SimpleChatStore"}))
    assert SimpleChatStore.from_persist_path(str(path)).store == chats
    assert detect(path).name == "llamaindex"
    messages = good(list(read(path)))
    assert said(messages) == [*CHATS_SAID, ("user", "Hi")]
    assert [one.thread_id for one in messages] == ["mina"] * 6 + ["oskar"]
    assert messages[1].name == "Mina"
    assert len({one.id for one in messages}) == 7
    assert list(map(to_chat_message, messages[:6])) == CHATS


def test_a_chat_store_from_before_there_were_blocks() -> None:
    old = {"role": "chatbot", "content": "hello", "additional_kwargs": {}}
    data = json.dumps({"class_name": "SimpleChatStore", "store": {"k": [old], "n": None}}).encode()
    first, last = LlamaIndexImporter().read(io.BytesIO(data), DEFAULTS)
    assert isinstance(first, Message)
    assert (first.role, first.text, first.thread_id) == ("assistant", "hello", "k")
    assert to_chat_message(first).content == "hello"
    assert last == BadRecord(1, "the messages of key 'n' are not a list")


def test_bad_chat_messages_are_named_and_the_rest_is_read() -> None:
    data = '{"store": {"k": [\n{"blocks": []},\n{"role":"user","content":"ok"},\n7], "l": [{"'
    items = list(LlamaIndexImporter().read(io.BytesIO(data.encode()), DEFAULTS))
    assert [one.text for one in items if isinstance(one, Message)] == ["ok"]
    bad = [(one.where, one.reason) for one in items if isinstance(one, BadRecord)]
    assert bad[:2] == [
        ("message 1 of key 'k', line 2", '"role" is missing'),
        ("message 3 of key 'k', line 4", "the message is not an object"),
    ]
    assert "not read any further" in bad[2][1]


async def test_a_sql_chat_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SQLAlchemyChatStore(
        table_name="my chats", async_database_uri=f"sqlite+aiosqlite:///{path}"
    )
    before = datetime.now(timezone.utc)
    await store.add_messages("mina", CHATS)
    await store.add_message("oskar", LlamaMessage(role="user", content="Hi"))
    await store.archive_oldest_messages("mina", 2)
    engine, _ = await store._setup_connections()
    await engine.dispose()
    importer = detect(path)
    assert importer.name == "llamaindex-sqlite"
    messages = good(list(read(path)))
    assert said(messages) == [*CHATS_SAID, ("user", "Hi")]
    assert [one.id for one in messages] == [f"my chats-{n}" for n in range(1, 8)]
    assert 0 <= (messages[0].created_at - before).total_seconds() < 60
    assert list(map(to_chat_message, messages[:6])) == CHATS
    query(path, 'UPDATE "my chats" SET data = ? WHERE id = 2', "[")
    bad = [one for one in read(path) if isinstance(one, BadRecord)]
    assert [one.where for one in bad] == ["row 2 of table my chats"]


def test_import_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, TURN)
    arguments = ("import", path, "--path", tmp_path / "memory", "--embedder", "hash")
    assert run_json(*arguments)["new"] == 6
    again = run_json(*arguments)
    assert (again["format"], again["messages"], again["new"]) == ("langchain-sqlite", 6, 0)


def test_memory_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, [HumanMessage("x" * 900)] * 8_000)
    query(path, "CREATE TABLE chats (id INTEGER PRIMARY KEY, key, timestamp, role, status, data)")
    chat = json.dumps({"role": "user", "blocks": [{"block_type": "text", "text": "y" * 900}]})
    with closing(sqlite3.connect(path)) as database, database:
        rows = ((f"k{n}", 10**18 - n, "user", "active", chat) for n in range(8_000))
        database.executemany(
            "INSERT INTO chats (key, timestamp, role, status, data) VALUES (?,?,?,?,?)", rows
        )
    tracemalloc.start()
    try:
        for importer in (LangChainTablesImporter(), LlamaIndexTablesImporter()):
            assert sum(isinstance(one, Message) for one in read(path, importer=importer)) == 8_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * 2**20  # the tables have 8 MB each


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
_data = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "id", "name", "role"), _values)
)
_chat = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("role", "content", "blocks", "additional_kwargs"), _values)
)


@given(st.lists(st.fixed_dictionaries({"type": _values, "data": _data}) | _values))
def test_any_langchain_json_gives_one_item_per_record(records: list[Any]) -> None:
    data = io.BytesIO(json.dumps(records).encode())
    assert len(list(LangChainImporter().read(data, DEFAULTS))) == len(records)


@given(st.dictionaries(st.text(max_size=4), st.lists(_chat | _values, max_size=3)))
def test_any_chat_store_gives_one_item_per_record(store: dict[str, Any]) -> None:
    data = io.BytesIO(json.dumps({"store": store}).encode())
    found = list(LlamaIndexImporter().read(data, DEFAULTS))
    assert len(found) == sum(map(len, store.values()))
