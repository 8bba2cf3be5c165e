"""LlamaIndex's chat stores become messages, and stay whole."""

from __future__ import annotations

import io
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.llms import ChatMessage as LlamaMessage
from llama_index.core.llms import ImageBlock, TextBlock
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from llamaindex_semantic_recall.messages import to_chat_message
from semantic_recall import Message
from semantic_recall.importers import (
    BadRecord,
    LlamaIndexImporter,
    detect,
    read,
)
from tests.importers.support import (
    ANY_JSON,
    DEFAULTS,
    good,
    query,
    said,
)

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
    assert importer.name == "llamaindex-sql"
    messages = good(list(read(path)))
    assert said(messages) == [*CHATS_SAID, ("user", "Hi")]
    assert [one.id for one in messages] == [f"my chats-{n}" for n in range(1, 8)]
    assert 0 <= (messages[0].created_at - before).total_seconds() < 60
    assert list(map(to_chat_message, messages[:6])) == CHATS
    query(path, 'UPDATE "my chats" SET data = ? WHERE id = 2', "[")
    bad = [one for one in read(path) if isinstance(one, BadRecord)]
    assert [one.where for one in bad] == ["row 2 of table my chats"]


_chat = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("role", "content", "blocks", "additional_kwargs"), ANY_JSON)
)


@given(st.dictionaries(st.text(max_size=4), st.lists(_chat | ANY_JSON, max_size=3)))
def test_any_chat_store_gives_one_item_per_record(store: dict[str, Any]) -> None:
    data = io.BytesIO(json.dumps({"store": store}).encode())
    found = list(LlamaIndexImporter().read(data, DEFAULTS))
    assert len(found) == sum(map(len, store.values()))
