"""Claude's export: what the user saw becomes messages, the rest is kept or named."""

from __future__ import annotations

import io
import json
from datetime import datetime, timezone
from typing import Any

from semantic_recall import Message
from semantic_recall.importers import (
    BadRecord,
    ClaudeImporter,
)
from tests.importers.support import (
    DEFAULTS,
    good,
)

CLAUDE = {
    "uuid": "k-1",
    "name": "Sourdough",
    "created_at": "2024-05-01T10:00:00.000000Z",
    "updated_at": "2024-05-01T10:00:00.000000Z",
    "account": {"uuid": "u"},
    "chat_messages": [
        {
            "uuid": "m1",
            "text": "Why is it flat?",
            "content": [{"type": "text", "text": "Why is it flat?", "citations": []}],
            "sender": "human",
            "created_at": "2024-05-01T10:00:01.5Z",
            "attachments": [{"file_name": "a.txt", "extracted_content": "notes"}],
            "files": [],
        },
        {
            "uuid": "m2",
            "text": "This block is not supported on your current device yet.\nOld starter.",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "Old starter."},
                {"type": "tool_use", "name": "search", "input": {}},
                {"type": "text", "text": "Feed it."},
            ],
            "sender": "assistant",
            "attachments": [],
            "files": [],
        },
        {"uuid": "m3", "text": "old export", "sender": "human"},
    ],
}


def claude(*conversations: Any) -> list[Message | BadRecord]:
    data = json.dumps(conversations).encode()
    return list(ClaudeImporter().read(io.BytesIO(data), DEFAULTS))


def test_claude() -> None:
    first, second, third = good(claude(CLAUDE))
    assert first == Message(
        id="m1",
        thread_id="k-1",
        resource_id="r",
        role="user",
        text="Why is it flat?",
        created_at=datetime(2024, 5, 1, 10, 0, 1, 500_000, tzinfo=timezone.utc),
        metadata={"title": "Sourdough"},
        payload={"claude": {"attachments": [{"file_name": "a.txt", "extracted_content": "notes"}]}},
    )
    assert (second.role, second.text) == ("assistant", "Old starter.\nFeed it.")
    assert second.created_at == datetime(2024, 5, 1, 10, tzinfo=timezone.utc)
    assert second.payload is not None
    assert second.payload["claude"]["content"][0]["thinking"] == "hm"
    assert (third.text, third.payload) == ("old export", None)


def _claude_tree(**more: Any) -> dict[str, Any]:
    def said(key: str, parent: str, sender: str) -> dict[str, Any]:
        return {"uuid": key, "parent_message_uuid": parent, "sender": sender, "text": key}

    messages = [
        said("q", "00000000-0000-4000-8000-000000000000", "human"),
        said("a", "q", "assistant"),
        said("b", "q", "assistant"),
        said("c", "b", "human"),
    ]
    return {"uuid": "k", "name": "", "chat_messages": messages, **more}


def test_claude_only_the_current_branch_counts() -> None:
    assert [one.text for one in good(claude(_claude_tree()))] == ["q", "b", "c"]
    marked = claude(_claude_tree(current_leaf_message_uuid="a"))
    assert [one.text for one in good(marked)] == ["q", "a"]
    assert good(marked)[0].metadata == {}


def test_claude_bad_records_are_named_and_the_rest_is_read() -> None:
    messages = [{"uuid": "1", "text": "no sender"}, {"sender": "human", "text": "ok"}, 5]
    first, fine, last = claude({"uuid": "k", "name": "N", "chat_messages": messages})
    assert first == BadRecord(1, '"sender" is missing', "message 1 of conversation 'N', line 1")
    assert isinstance(fine, Message)
    assert isinstance(last, BadRecord)
    assert claude({"uuid": "k"}) == [BadRecord(1, 'a conversation without a "chat_messages" list')]
