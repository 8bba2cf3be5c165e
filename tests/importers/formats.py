"""One small conversation in every format: two good messages, and one that cannot be read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, message_to_dict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START as BEGIN
from langgraph.graph import MessagesState, StateGraph

from tests.importers.support import conversation, node, query

ASKED = "What is the capital of Portugal?"
ANSWERED = "Lisbon, on the Tagus."
DATES = ("2024-05-01T10:00:00+00:00", "2024-05-01T10:01:00+00:00")
EPOCHS = (1714557600, 1714557660)
SAID = (("user", ASKED), ("assistant", ANSWERED))


def _said(number: int, **more: object) -> dict[str, Any]:
    role, content = SAID[number]
    return {"role": role, "content": content, "created_at": DATES[number], **more}


def jsonl(path: Path) -> str:
    records = [json.dumps(_said(0)), "{nope", json.dumps(_said(1))]
    # Empty lines at the end: reading ends behind the last message.
    path.write_text("\n".join(records) + "\n\n", encoding="utf-8")
    return "line 2"


def openai(path: Path) -> str:
    records = [json.dumps(_said(0)), '{"content": "nobody"}', json.dumps(_said(1))]
    path.write_text("[\n" + ",\n".join(records) + "\n]", encoding="utf-8")
    return "line 3"


def _chatgpt() -> str:
    said = conversation(
        node("q", None, "user", ASKED, create_time=EPOCHS[0]),
        node("x", "q", "user", "nobody", author={}),
        node("a", "x", "assistant", ANSWERED, create_time=EPOCHS[1]),
        current="a",
    )
    return json.dumps([said])


def chatgpt(path: Path) -> str:
    path.write_text(_chatgpt(), encoding="utf-8")
    return "message 'x' of conversation 'Trip to Porto', line 1"


def chatgpt_zip(path: Path) -> str:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("conversations.json", _chatgpt())
        made.writestr("user.json", "{}")
    return "conversations.json, message 'x' of conversation 'Trip to Porto', line 1"


def claude(path: Path) -> str:
    messages = [
        {"uuid": "q", "sender": "human", "text": ASKED, "created_at": DATES[0]},
        {"uuid": "x", "text": "nobody", "created_at": DATES[0]},
        {"uuid": "a", "sender": "assistant", "text": ANSWERED, "created_at": DATES[1]},
    ]
    path.write_text(json.dumps([{"uuid": "k", "name": "Trip", "chat_messages": messages}]))
    return "message 2 of conversation 'Trip', line 1"


def slack(path: Path) -> str:
    (path / "general").mkdir(parents=True)
    (path / "users.json").write_text(json.dumps([{"id": "B", "name": "bot", "is_bot": True}]))
    messages = [
        {"type": "message", "user": "U", "text": ASKED, "ts": f"{EPOCHS[0]}.0"},
        {"type": "message", "user": "U", "text": "never"},
        {"type": "message", "user": "B", "text": ANSWERED, "ts": f"{EPOCHS[1]}.0"},
    ]
    (path / "general" / "2024-05-01.json").write_text(json.dumps(messages), encoding="utf-8")
    return "general/2024-05-01.json, message 2, line 1"


def langchain(path: Path) -> str:
    records = [
        json.dumps(message_to_dict(HumanMessage(ASKED))),
        '{"type": "human"}',
        json.dumps(message_to_dict(AIMessage(ANSWERED))),
    ]
    path.write_text("[" + ",\n".join(records) + "]", encoding="utf-8")
    return "line 2"


def langchain_sql(path: Path) -> str:
    query(
        path,
        "CREATE TABLE message_store "
        "(id INTEGER PRIMARY KEY, session_id TEXT, message TEXT, created_at TEXT)",
    )
    messages = [message_to_dict(HumanMessage(ASKED)), 5, message_to_dict(AIMessage(ANSWERED))]
    for message, date in zip(messages, [DATES[0], *DATES], strict=True):
        query(
            path,
            "INSERT INTO message_store (session_id, message, created_at) VALUES ('s', ?, ?)",
            json.dumps(message),
            date,
        )
    return "row 2 of table message_store"


def langgraph(path: Path) -> str:
    graph_turns(path, "a", "b")
    query(path, "UPDATE checkpoints SET checkpoint = x'c1' WHERE thread_id = 'b'")
    return "newest checkpoint of thread 'b'"


def graph_turns(path: Path, *threads: str) -> None:
    """Let a small graph answer once in each thread, with LangGraph's own saver."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [AIMessage(ANSWERED)]})
    builder.add_edge(BEGIN, "answer")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = builder.compile(checkpointer=saver)
        for thread in threads:
            graph.invoke(
                {"messages": [HumanMessage(ASKED)]}, {"configurable": {"thread_id": thread}}
            )


def _llama(number: int) -> dict[str, Any]:
    role, text = SAID[number]
    return {"role": role, "blocks": [{"block_type": "text", "text": text}]}


def llamaindex(path: Path) -> str:
    records = [json.dumps(_llama(0)), "7", json.dumps(_llama(1))]
    path.write_text('{"store": {"k": [' + ",\n".join(records) + "]}}", encoding="utf-8")
    return "message 2 of key 'k', line 2"


def llamaindex_sql(path: Path) -> str:
    query(
        path,
        "CREATE TABLE chat (id INTEGER PRIMARY KEY, key, timestamp INTEGER, role, status, data)",
    )
    for number, data in enumerate([_llama(0), [], _llama(1)]):
        query(
            path,
            "INSERT INTO chat (key, timestamp, role, status, data) VALUES ('k', ?, '', '', ?)",
            (EPOCHS[0] + 30 * number) * 10**9,
            json.dumps(data),
        )
    return "row 2 of table chat"


DATED: Mapping[str, tuple[str, Callable[[Path], str]]] = {
    "jsonl": ("jsonl", jsonl),
    "openai": ("openai", openai),
    "chatgpt": ("chatgpt", chatgpt),
    "chatgpt.zip": ("chatgpt", chatgpt_zip),
    "claude": ("claude", claude),
    "slack": ("slack", slack),
    "langchain-sql": ("langchain-sql", langchain_sql),
    "llamaindex-sql": ("llamaindex-sql", llamaindex_sql),
}
"""The formats that have times of their own: name, and what writes a file and returns the place of
what cannot be read."""

UNDATED: Mapping[str, tuple[str, Callable[[Path], str]]] = {
    "langchain": ("langchain", langchain),
    "langgraph": ("langgraph", langgraph),
    "llamaindex": ("llamaindex", llamaindex),
}
"""The others: a message gets the time of the file or of the checkpoint."""

EVERY = {**DATED, **UNDATED}
