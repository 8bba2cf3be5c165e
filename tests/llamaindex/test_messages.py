"""The converter: a chat message survives storing, whatever is in it."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
)
from llama_index.core.schema import ImageDocument
from pydantic import BaseModel

from llamaindex_semantic_recall.messages import (
    dump,
    same_message,
    text_of,
    to_chat_message,
    to_message,
)
from semantic_recall.types import Message
from tests.llamaindex.scripted import HAS_TOOL_BLOCKS, call, calls_in

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

MESSAGES: dict[str, ChatMessage] = {
    "text": ChatMessage(role="user", content="hello"),
    "empty": ChatMessage(role="user", content=""),
    "no blocks": ChatMessage(role="assistant", blocks=[]),
    "two texts": ChatMessage(blocks=[TextBlock(text="one"), TextBlock(text="two")]),
    "image bytes": ChatMessage(blocks=[TextBlock(text="see"), ImageBlock(image=PNG)]),
    "image url": ChatMessage(blocks=[ImageBlock(url="https://example.org/a.png", detail="low")]),
    "audio": ChatMessage(blocks=[AudioBlock(audio=b"RIFF1234", format="wav")]),
    "document": ChatMessage(blocks=[DocumentBlock(data=b"%PDF-1.7 x", title="x.pdf")]),
    "cache point": ChatMessage(blocks=[CachePoint(cache_control=CacheControl(type="ephemeral"))]),
    "citable": ChatMessage(
        blocks=[CitableBlock(title="t", source="s", content=[TextBlock(text="quoted")])]
    ),
    "citation": ChatMessage(
        blocks=[
            CitationBlock(
                cited_content=TextBlock(text="cited"),
                source="s",
                title="t",
                additional_location_info={"page": 3},
            )
        ]
    ),
    "tool call in additional_kwargs": ChatMessage(
        role="assistant",
        additional_kwargs={
            "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": "{}"}}]
        },
    ),
    "tool result": ChatMessage(
        role="tool", content="3", additional_kwargs={"tool_call_id": "c1", "name": "add"}
    ),
    "system": ChatMessage(role="system", content="be brief"),
    "developer": ChatMessage(role="developer", content="be brief"),
    "function": ChatMessage(role="function", content="3", additional_kwargs={"name": "add"}),
    "chatbot": ChatMessage(role="chatbot", content="hi"),
    "model": ChatMessage(role="model", content="hi"),
    "odd characters": ChatMessage(content="a\x00b \ud800 {context_str} <|endoftext|> 🧶 日本語"),
}
if HAS_TOOL_BLOCKS:
    MESSAGES |= {
        "video": ChatMessage(blocks=[types.VideoBlock(url="https://example.org/a.mp4")]),
        "thinking": ChatMessage(
            role="assistant",
            blocks=[
                types.ThinkingBlock(
                    content="hm", num_tokens=3, additional_information={"signature": "abc"}
                ),
                TextBlock(text="answer"),
            ],
        ),
        "tool call in a block": ChatMessage(
            role="assistant",
            blocks=[
                types.ToolCallBlock(
                    tool_call_id="c1", tool_name="add", tool_kwargs={"a": [1, 2.5, None]}
                )
            ],
        ),
    }


@pytest.mark.parametrize("name", MESSAGES)
def test_every_kind_of_message_comes_back_equal(name: str) -> None:
    chat = MESSAGES[name]
    stored = to_message(chat, thread_id="t", resource_id="u", id="m1")
    through_json = json.loads(json.dumps(stored.payload, allow_nan=False))
    back = to_chat_message(
        Message(
            role=stored.role,
            text=stored.text,
            thread_id="t",
            resource_id="u",
            id="m1",
            payload=through_json,
        )
    )
    assert back == chat
    assert back is not chat
    assert same_message(stored, chat)
    assert dump(back) == dump(chat)


class ProviderCall(BaseModel):
    id: str
    arguments: str


class Opaque:
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_report_20_provider_objects_are_degraded_one_by_one_and_lose_nothing_else() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    chat = ChatMessage(
        role="assistant",
        content="kept",
        additional_kwargs={
            "tool_calls": [ProviderCall(id="c1", arguments="{}")],
            "opaque": Opaque("as text"),
            "hostile": Hostile(),
            "nested": {"list": [Opaque("inside"), 1], "nan": float("nan")},
            "bytes": b"\xff\x00",
            "cycle": cycle,
            "fine": {"n": 1},
        },
    )
    stored = to_message(chat, thread_id="t")
    json.dumps(stored.payload, allow_nan=False)
    back = to_chat_message(stored)
    assert back.content == "kept"
    kwargs = back.additional_kwargs
    assert kwargs["tool_calls"] == [{"id": "c1", "arguments": "{}"}]
    assert kwargs["opaque"] == "as text"
    assert kwargs["hostile"] == "<Hostile>"
    assert kwargs["nested"] == {"list": ["inside", 1], "nan": "nan"}
    assert kwargs["bytes"] == "/wA="
    assert kwargs["fine"] == {"n": 1}
    assert same_message(stored, chat)


def test_unserialisable_tool_arguments_do_not_lose_the_call() -> None:
    chat = call("f", "c1", x="y")
    for block in chat.blocks:
        if block.block_type == "tool_call":
            block.tool_kwargs = {"x": Opaque("y")}
    for item in chat.additional_kwargs.get("tool_calls", ()):
        item["opaque"] = Opaque("y")
    back = to_chat_message(to_message(chat, thread_id="t"))
    assert calls_in(back) == [("c1", "f", {"x": "y"})]


def test_legacy_images_come_back_once() -> None:
    image = base64.b64encode(PNG).decode()
    chat = ChatMessage(content="look", additional_kwargs={"images": [ImageDocument(image=image)]})
    assert [block.block_type for block in chat.blocks] == ["text", "image"]
    back = to_chat_message(to_message(chat, thread_id="t"))
    assert back.blocks == chat.blocks
    assert back.additional_kwargs == {}


def test_nothing_is_shared_with_the_caller() -> None:
    chat = ChatMessage(role="user", content="before", additional_kwargs={"list": [1]})
    stored = to_message(chat, thread_id="t")
    chat.blocks[0] = TextBlock(text="after")
    chat.additional_kwargs["list"].append(2)
    first = to_chat_message(stored)
    first.additional_kwargs["list"].append(3)
    second = to_chat_message(stored)
    assert (second.content, second.additional_kwargs) == ("before", {"list": [1]})


def test_an_image_whose_file_is_gone_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    chat = ChatMessage(blocks=[TextBlock(text="see"), ImageBlock(path=path)])
    stored = to_message(chat, thread_id="t")
    assert to_chat_message(stored) == chat
    path.unlink()
    with caplog.at_level(logging.WARNING, logger="semantic_recall"):
        back = to_chat_message(stored)
    assert back.blocks == [TextBlock(text="see")]
    assert "cannot be read" in caplog.text


def test_a_payload_of_nonsense_falls_back_to_role_and_text() -> None:
    message = Message(
        role="assistant", text="t", thread_id="t", payload={"llamaindex": {"role": "no such role"}}
    )
    assert to_chat_message(message) == ChatMessage(role="assistant", content="t")


def test_a_message_of_langchain_reads_as_role_and_text() -> None:
    message = Message(
        role="assistant",
        text="hi",
        thread_id="t",
        payload={"langchain": {"type": "ai", "data": {"content": "hi"}}},
    )
    assert to_chat_message(message) == ChatMessage(role="assistant", content="hi")
    assert same_message(message, ChatMessage(role="assistant", content="hi"))
    assert not same_message(message, ChatMessage(role="user", content="hi"))


def test_an_unknown_role_reads_as_the_user() -> None:
    message = Message(role="moderator", text="hi", thread_id="t")
    assert to_chat_message(message).role is MessageRole.USER


def test_text_changed_by_a_hook_is_not_undone() -> None:
    stored = to_message(ChatMessage(content="my card is 4111"), thread_id="t")
    redacted = Message(
        role=stored.role, text="my card is [removed]", thread_id="t", payload=stored.payload
    )
    assert to_chat_message(redacted).content == "my card is [removed]"


@pytest.mark.parametrize(
    ("chat", "text"),
    [
        (ChatMessage(role="assistant", content="Thought: hm\nAction: f\nObservation: 3\n"
                     "Thought: I can answer.\nAnswer: It is 3.\n"), "It is 3."),
        (ChatMessage(role="assistant", content="Thought: no answer yet"), "Thought: no answer yet"),
        (ChatMessage(role="user", content="Thought: x\nAnswer: y"), "Thought: x\nAnswer: y"),
        (ChatMessage(role="assistant", content="Empty Response"), ""),
        (ChatMessage(role="user", content="Empty Response"), "Empty Response"),
        (MESSAGES["two texts"], "one\ntwo"),
        (MESSAGES["citable"], "quoted"),
        (MESSAGES["citation"], "cited"),
        (MESSAGES["image url"], ""),
        (call("add"), ""),
    ],
)  # fmt: skip
def test_what_is_worth_finding(chat: ChatMessage, text: str) -> None:
    assert text_of(chat) == text
    assert to_chat_message(to_message(chat, thread_id="t")) == chat


@pytest.mark.parametrize(
    ("role", "stored"),
    [
        ("user", "user"),
        ("assistant", "assistant"),
        ("chatbot", "assistant"),
        ("model", "assistant"),
        ("tool", "tool"),
        ("function", "tool"),
        ("system", "system"),
        ("developer", "system"),
    ],
)
def test_roles_are_stored_under_the_common_names(role: str, stored: str) -> None:
    assert to_message(ChatMessage(role=role, content="x"), thread_id="t").role == stored


def test_the_speaker_is_the_name_and_never_the_tool() -> None:
    spoken = ChatMessage(role="user", content="hi", additional_kwargs={"name": "Ada"})
    assert to_message(spoken, thread_id="t").name == "Ada"
    result = ChatMessage(role="tool", content="3", additional_kwargs={"name": "add"})
    assert to_message(result, thread_id="t").name is None
