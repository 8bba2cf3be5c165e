"""ChatGPT's export: what the user saw becomes messages, the rest is kept or named."""

from __future__ import annotations

import io
import json
from datetime import datetime, timezone
from typing import Any

import pytest

from semantic_recall import Message
from semantic_recall.importers import (
    BadRecord,
    ChatGPTImporter,
)
from tests.importers.support import (
    DEFAULTS,
    START,
    WHEN,
    conversation,
    good,
    node,
)


def chatgpt(*conversations: Any) -> list[Message | BadRecord]:
    data = json.dumps(conversations).encode()
    return list(ChatGPTImporter().read(io.BytesIO(data), DEFAULTS))


def test_chatgpt_only_the_open_branch_counts() -> None:
    (first, second) = good(
        chatgpt(
            conversation(
                node("root", None, None),
                node("sys", "root", "system", ""),
                node("q1", "sys", "user", "first wording"),
                node("a1", "q1", "assistant", "answer to the first wording"),
                node("q2", "sys", "user", "second wording"),
                node("a2", "q2", "assistant", "thrown away"),
                node("a3", "q2", "assistant", "the answer that stands"),
                current="a3",
            )
        )
    )
    assert (first.text, second.text) == ("second wording", "the answer that stands")
    assert first == Message(
        id="q2",
        thread_id="c-1",
        resource_id="r",
        role="user",
        text="second wording",
        created_at=datetime(2025, 1, 31, 10, 1, 0, 250_000, tzinfo=timezone.utc),
        metadata={"title": "Trip to Porto"},
    )


@pytest.mark.parametrize("current", [None, "not there", 7])
def test_chatgpt_without_current_node_takes_the_newest_end(current: Any) -> None:
    items = chatgpt(
        conversation(
            node("q", None, "user", "q"),
            node("new", "q", "assistant", "newest", create_time=START + 99),
            node("old", "q", "assistant", "older"),
            current=current,
        )
    )
    assert [one.text for one in good(items)] == ["q", "newest"]


def test_chatgpt_a_circle_of_parents_ends() -> None:
    items = chatgpt(
        conversation(node("a", "b", "user", "a"), node("b", "a", "user", "b"), current="b")
    )
    assert [one.text for one in good(items)] == ["a", "b"]


def test_chatgpt_images_voice_and_files_are_kept_in_the_payload() -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    voice = {"content_type": "audio_transcription", "text": "spoken words"}
    content = {"content_type": "multimodal_text", "parts": [image, "look", voice]}
    attachments = [{"id": "f", "name": "plan.pdf"}]
    (message,) = good(
        chatgpt(
            conversation(
                node("q", None, "user", content=content, metadata={"attachments": attachments}),
                current="q",
            )
        )
    )
    assert message.text == "look\nspoken words"
    assert message.payload == {"chatgpt": {"content": content, "attachments": attachments}}


def test_chatgpt_tools_thoughts_and_instructions() -> None:
    def kind(name: str, **content: Any) -> dict[str, Any]:
        return {"content_type": name, **content}

    messages = good(
        chatgpt(
            conversation(
                node("i", None, "user", content=kind("user_editable_context", user_profile="P")),
                node("q", "i", "user", "how many?"),
                node("t", "q", "assistant", content=kind("thoughts", thoughts=[{"content": "hm"}])),
                node("c", "t", "assistant", content=kind("code", text="1+1"), recipient="python"),
                node(
                    "r",
                    "c",
                    "tool",
                    content=kind("execution_output", text="2"),
                    author={"role": "tool", "name": "python"},
                ),
                node("a", "r", "assistant", "Two \ue200cite\ue202turn0search1\ue201."),
                current="a",
            )
        )
    )
    assert [(one.role, one.name, one.text) for one in messages] == [
        ("system", None, "P"),
        ("user", None, "how many?"),
        ("assistant", None, ""),
        ("assistant", None, ""),
        ("tool", "python", "2"),
        ("assistant", None, "Two."),
    ]
    kept = [one.payload for one in messages]
    assert kept[3] == {"chatgpt": {"content": kind("code", text="1+1"), "recipient": "python"}}
    assert kept[5] is not None
    assert "turn0search1" in kept[5]["chatgpt"]["content"]["parts"][0]


def test_chatgpt_missing_dates_come_from_the_conversation_or_the_file() -> None:
    undated = node("q", None, "user", "a", create_time=None)
    (first,) = good(chatgpt(conversation(undated, current="q")))
    assert first.created_at == datetime(2025, 1, 31, 10, 0, 0, 250_000, tzinfo=timezone.utc)
    (second,) = good(chatgpt(conversation(undated, current="q", create_time=None)))
    assert second.created_at == WHEN


def test_chatgpt_a_conversation_without_an_id_gets_a_stable_one() -> None:
    one = conversation(node("q", None, "user", "a"), current="q", id=None, conversation_id=None)
    other = {**one, "create_time": 5}
    threads = [message.thread_id for message in good(chatgpt(one, other, one))]
    assert threads[0] == threads[2] != threads[1]


def test_chatgpt_bad_records_are_named_by_place_and_the_rest_is_read() -> None:
    broken = conversation(
        {"id": "x", "message": 7, "parent": None, "children": []},
        node("y", "x", "user", "fine"),
        node("z", "y", "user", "no role", author={}),
        current="z",
    )
    data = json.dumps([{"title": "no mapping"}, broken, 5], indent=0).encode()
    items = list(ChatGPTImporter().read(io.BytesIO(data), DEFAULTS))
    lines = data.count(b"\n")
    reasons = [(one.where, one.reason) for one in items if isinstance(one, BadRecord)]
    assert reasons == [
        ("line 2", 'a conversation without a "mapping" of messages'),
        ("message 'x' of conversation 'Trip to Porto', line 5", "the message is not an object"),
        ("message 'z' of conversation 'Trip to Porto', line 5", '"role" is missing'),
        (f"line {lines}", 'a conversation without a "mapping" of messages'),
    ]
    assert [one.text for one in items if isinstance(one, Message)] == ["fine"]


def test_chatgpt_a_broken_file_gives_what_came_before() -> None:
    data = json.dumps([conversation(node("q", None, "user", "a"), current="q")])[:-1] + ', {"ti'
    first, last = ChatGPTImporter().read(io.BytesIO(data.encode()), DEFAULTS)
    assert isinstance(first, Message)
    assert isinstance(last, BadRecord)
    assert "not read any further" in last.reason
