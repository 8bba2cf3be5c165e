"""The converter: nothing is lost, nothing raises, whatever a message holds."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)

from langchain_semantic_recall.messages import (
    from_langchain,
    is_conversation,
    role_of,
    stored_id,
    text_of,
    to_langchain,
)
from semantic_recall.types import Message


def stored_and_back(message: BaseMessage) -> BaseMessage:
    """Through the converter and through JSON text, as a store keeps it."""
    stored = from_langchain(message, thread_id="t", resource_id="u")
    text = json.dumps(stored.payload, allow_nan=False)
    return to_langchain(
        Message(
            role=stored.role,
            text=stored.text,
            thread_id="t",
            resource_id="u",
            id=stored.id,
            name=stored.name,
            payload=json.loads(text),
        )
    )


CALL = {"name": "weather", "args": {"city": "Zürich", "days": 2}, "id": "call_1"}
BAD_CALL = {"name": "weather", "args": '{"city":', "id": "call_2", "error": "not JSON"}
MOMENT = datetime(2026, 3, 29, 1, 30, tzinfo=timezone(timedelta(hours=2)))

WHOLE: dict[str, BaseMessage] = {
    "human": HumanMessage("hello", id="h1", name="Ann"),
    "human without id": HumanMessage("hello"),
    "empty": HumanMessage(""),
    "empty list": HumanMessage([]),
    "strings and blocks": HumanMessage(["a", {"type": "text", "text": "b"}, {"no": "type"}]),
    "image": HumanMessage(
        [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]
    ),
    "image bytes": HumanMessage([{"type": "image", "data": b"\x00\xff"}]),
    "ai": AIMessage(
        "answer",
        id="lc_run--1",
        response_metadata={"finish_reason": "stop", "created": MOMENT, "logprob": -math.inf},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    "tool calls": AIMessage("", tool_calls=[CALL], invalid_tool_calls=[BAD_CALL]),
    "reasoning": AIMessage(
        [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "x"}]
    ),
    "function call": AIMessage("", additional_kwargs={"function_call": {"name": "f"}}),
    "tool": ToolMessage("12 °C", tool_call_id="call_1", name="weather", status="error"),
    "tool artifact": ToolMessage("x", tool_call_id="c", artifact={"rows": [(1, {2, 3})], 4: None}),
    "function": FunctionMessage(name="f", content="c"),
    "chat": ChatMessage(role="critic", content="no"),
    "system": SystemMessage(
        [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]
    ),
    "remove": RemoveMessage(id="h1"),
    "extra fields": AIMessage("x", mood="calm", trace={"a": [1]}),
    "odd text": HumanMessage("\x00 \ud800 👩‍👩‍👧 שלום 日本語 {x} </memory>"),
    "key like a tag": AIMessage("x", additional_kwargs={"~type": "datetime", "value": "no"}),
    "huge number": AIMessage("x", additional_kwargs={"n": 2**80, "m": -(2**63)}),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_message_comes_back_as_it_was(name: str) -> None:
    assert stored_and_back(WHOLE[name]) == WHOLE[name]


CHUNKS: list[tuple[BaseMessage, BaseMessage]] = [
    (HumanMessageChunk(content="a", id="1"), HumanMessage("a", id="1")),
    (SystemMessageChunk(content="a"), SystemMessage("a")),
    (ChatMessageChunk(role="r", content="a"), ChatMessage(role="r", content="a")),
    (FunctionMessageChunk(name="f", content="a"), FunctionMessage(name="f", content="a")),
    (ToolMessageChunk(content="a", tool_call_id="c"), ToolMessage("a", tool_call_id="c")),
    (
        AIMessageChunk(
            content="a",
            id="run-1",
            tool_call_chunks=[
                {"name": "t", "args": '{"x": 1}', "id": "c", "index": 0, "type": "tool_call_chunk"}
            ],
            chunk_position="last",
        ),
        AIMessage("a", id="run-1", tool_calls=[{"name": "t", "args": {"x": 1}, "id": "c"}]),
    ),
]


@pytest.mark.parametrize(("chunk", "whole"), CHUNKS, ids=lambda value: value.type)
def test_langchain_14511_a_chunk_is_stored_as_the_whole_message(
    chunk: BaseMessage, whole: BaseMessage
) -> None:
    assert stored_and_back(chunk) == whole


def test_a_chunk_class_of_the_application_is_stored_as_a_whole_message() -> None:
    class OwnChunk(AIMessageChunk):
        pass

    assert stored_and_back(OwnChunk(content="a")) == AIMessage("a")


def test_langchain_14511_a_stored_chunk_of_another_writer_can_be_read() -> None:
    payload = {"langchain": {"type": "AIMessageChunk", "data": {"content": "half"}}}
    message = Message(role="assistant", text="half", thread_id="t", payload=payload)
    assert to_langchain(message) == AIMessageChunk(content="half")


def test_an_unknown_message_type_is_kept() -> None:
    class Sticker(BaseMessage):
        type: Literal["sticker"] = "sticker"
        pack: str

    back = stored_and_back(Sticker(content="👍", pack="thumbs", id="s1"))
    assert isinstance(back, ChatMessage)
    assert (back.role, back.content, back.id) == ("sticker", "👍", "s1")
    assert back.model_extra == {"pack": "thumbs"}


def test_a_subclass_comes_back_as_its_langchain_class_with_its_fields() -> None:
    class Signed(HumanMessage):
        signature: str

    back = stored_and_back(Signed(content="hi", signature="abc"))
    assert type(back) is HumanMessage
    assert back.model_extra == {"signature": "abc"}


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (HumanMessage([_block("one"), _block("two")]), "one\ntwo"),
        (AIMessage([_block("half a sen"), _block("tence")]), "half a sentence"),
        (HumanMessage([{"type": "image", "url": "x"}]), ""),
        (AIMessage("", tool_calls=[CALL]), ""),
        (AIMessage([{"type": "reasoning", "reasoning": "secret"}]), ""),
        (HumanMessage([{"type": "text", "text": None}, {"type": "text"}, "plain"]), "plain"),
        (HumanMessage([]), ""),
    ],
)
def test_only_text_is_embedded(message: BaseMessage, text: str) -> None:
    assert text_of(message) == text
    assert from_langchain(message, thread_id="t").text == text


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (HumanMessage("x"), "user"),
        (AIMessage("x"), "assistant"),
        (SystemMessage("x"), "system"),
        (ToolMessage("x", tool_call_id="c"), "tool"),
        (FunctionMessage(content="x", name="f"), "function"),
        (ChatMessage(role="critic", content="x"), "critic"),
        (ChatMessage(role="human", content="x"), "user"),
        (ChatMessage(role="", content="x"), "chat"),
        (ChatMessage(role="r" * 5000, content="x"), "r" * 1024),
    ],
    ids=lambda value: value.type if isinstance(value, BaseMessage) else value[:10],
)
def test_roles(message: BaseMessage, role: str) -> None:
    assert role_of(message) == role
    assert from_langchain(message, thread_id="t").role == role


def test_ids() -> None:
    assert from_langchain(HumanMessage("x", id="a"), thread_id="t").id == "a"
    made = [from_langchain(HumanMessage("x", id=none), thread_id="t").id for none in (None, "")]
    assert all(made)
    assert made[0] != made[1]
    long = HumanMessage("x", id="é" * 10_000)
    assert stored_id(long) == stored_id(long)
    assert len(stored_id(long) or "") == 64
    assert stored_and_back(long).id == long.id


def test_langchain_13393_the_time_of_writing_is_kept_beside_the_message() -> None:
    stored = from_langchain(HumanMessage("x"), thread_id="t", created_at=MOMENT)
    assert stored.created_at == MOMENT
    naive = from_langchain(HumanMessage("x"), thread_id="t", created_at=datetime(2026, 1, 1))
    assert naive.created_at == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert to_langchain(stored) == HumanMessage("x")


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("user", HumanMessage),
        ("assistant", AIMessage),
        ("system", SystemMessage),
        ("tool", ToolMessage),
        ("critic", ChatMessage),
    ],
)
def test_a_message_of_another_framework_is_read_as_role_and_text(
    role: str, kind: type[BaseMessage]
) -> None:
    payload = {"llamaindex": {"role": role, "blocks": []}}
    message = Message(role=role, text="words", thread_id="t", id="m", name="Ann", payload=payload)
    back = to_langchain(message)
    assert type(back) is kind
    assert (back.text, back.id, back.name) == ("words", "m", "Ann")
    assert role_of(back) == role


DAMAGED: list[Any] = [
    {},
    {"type": "human"},
    {"type": "human", "data": None},
    {"type": "human", "data": {"content": {"~type": "datetime", "value": "never"}}},
    {"type": "human", "data": {"content": {"~type": "decimal", "value": "x"}}},
    {"type": "human", "data": {"content": {"~type": "bytes"}}},
    {"type": "tool", "data": {"content": 5.5}},
    "text",
    None,
]


@pytest.mark.parametrize("dumped", DAMAGED)
def test_a_damaged_payload_still_gives_the_text(dumped: Any) -> None:
    message = Message(role="user", text="words", thread_id="t", payload={"langchain": dumped})
    assert to_langchain(message).text == "words"


MARKED = {"lc_source": "summarization"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("Hello"), True),
        (AIMessage("Hello"), True),
        (HumanMessage("They talked.", additional_kwargs=MARKED), False),
        (HumanMessage("Here is a summary of the conversation to date:\n\nThey talked."), False),
        (AIMessage("Here is a summary of the conversation to date:\n\nYou talked."), True),
        (HumanMessage("old", additional_kwargs={"semantic_recall": {"id": "1"}}), False),
        (RemoveMessage(id="1"), False),
    ],
)
def test_langchain_38867_what_is_part_of_the_conversation(
    message: BaseMessage, expected: bool
) -> None:
    assert is_conversation(message) == expected
