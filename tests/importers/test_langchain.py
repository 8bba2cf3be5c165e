"""LangChain's messages as JSON become messages, and stay whole."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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

from langchain_semantic_recall.messages import to_langchain
from semantic_recall.importers import (
    BadRecord,
    LangChainImporter,
    detect,
    read,
)
from tests.importers.support import (
    ANY_JSON,
    DEFAULTS,
    good,
    said,
)

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


def without_ids(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [one.model_copy(update={"id": None}) for one in messages]


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


_data = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "id", "name", "role"), ANY_JSON)
)


@given(st.lists(st.fixed_dictionaries({"type": ANY_JSON, "data": _data}) | ANY_JSON))
def test_any_langchain_json_gives_one_item_per_record(records: list[Any]) -> None:
    data = io.BytesIO(json.dumps(records).encode())
    assert len(list(LangChainImporter().read(data, DEFAULTS))) == len(records)
