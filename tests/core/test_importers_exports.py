"""ChatGPT's and Claude's exports: what the user saw becomes messages, the rest is kept or named."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall import Message, SemanticRecall
from semantic_recall.errors import ImportFormatError
from semantic_recall.importers import (
    BadRecord,
    ChatGPTImporter,
    ClaudeImporter,
    Defaults,
    Importer,
    Position,
    detect,
    read,
    read_with,
)
from tests.core.cli_support import run_json

WHEN = datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
DEFAULTS = Defaults(thread_id="file", resource_id="r", created_at=WHEN)
START = 1738317600.25


def node(
    key: str, parent: str | None, role: str | None, *parts: Any, **message: Any
) -> dict[str, Any]:
    """Return a node of a ChatGPT conversation; without a role it holds no message."""
    if role is None:
        return {"id": key, "message": None, "parent": parent, "children": []}
    body = {
        "id": key,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": START + 60,
        "update_time": None,
        "content": {"content_type": "text", "parts": list(parts)},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **message,
    }
    return {"id": key, "message": body, "parent": parent, "children": []}


def conversation(*nodes: dict[str, Any], current: str | None, **more: Any) -> dict[str, Any]:
    mapping = {one["id"]: one for one in nodes}
    for one in nodes:
        if one["parent"] in mapping:
            mapping[one["parent"]]["children"].append(one["id"])
    return {
        "title": "Trip to Porto",
        "create_time": START,
        "update_time": START,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": current,
        "conversation_id": "c-1",
        "id": "c-1",
        **more,
    }


def chatgpt(*conversations: Any) -> list[Message | BadRecord]:
    data = json.dumps(conversations).encode()
    return list(ChatGPTImporter().read(io.BytesIO(data), DEFAULTS))


def good(items: list[Message | BadRecord]) -> list[Message]:
    assert all(isinstance(item, Message) for item in items), items
    return [item for item in items if isinstance(item, Message)]


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


EXPORTS = {
    "chatgpt": [conversation(node("q", None, "user", 'say "role": {'), current="q")],
    "claude": [CLAUDE],
}


@pytest.mark.parametrize("form", EXPORTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_detected_as_file_object_folder_and_archive(
    form: str, indent: int | None, tmp_path: Path
) -> None:
    text = json.dumps(EXPORTS[form], indent=indent)
    file = tmp_path / "conversations.json"
    file.write_text(text, encoding="utf-8")
    one = tmp_path / "single"
    one.write_text(json.dumps(EXPORTS[form][0], indent=indent), encoding="utf-8")
    archive = tmp_path / "export"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("inner/user.json", "{}")
        made.writestr("inner/conversations.json", text)
    found = [list(read(path)) for path in (file, one, tmp_path, archive)]
    assert [detect(path).name for path in (file, one, tmp_path, archive)] == [form] * 4
    expected = [one.text for one in good(found[0])]
    assert expected
    assert [[one.text for one in good(items)] for items in found] == [expected] * 4


def test_an_export_in_parts_is_read_in_order_with_the_part_in_the_place(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as made:
        for number in (1, 0):
            part = conversation(node("q", None, "user", f"part {number}"), current="q")
            made.writestr(f"conversations-00{number}.json", json.dumps([part, 3]))
    position = Position()
    items = list(read_with(detect(path), path, DEFAULTS, position))
    assert [one.text for one in items if isinstance(one, Message)] == ["part 0", "part 1"]
    places = [one.where for one in items if isinstance(one, BadRecord)]
    assert places == ["conversations-000.json, line 1", "conversations-001.json, line 1"]
    assert position.done == position.total > 0


def test_an_archive_without_conversations_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("readme.txt", "hello")
    with pytest.raises(ImportFormatError, match=r"ZIP archive without conversations\.json"):
        detect(path)
    with pytest.raises(ImportFormatError, match=r"has no conversations\.json"):
        list(read(path, importer=ChatGPTImporter()))


def test_import_twice_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    both = [conversation(node("q", None, "user", "a"), node("a", "q", "user", "b"), current="a")]
    file.write_text(json.dumps([*both, 5]), encoding="utf-8")
    arguments = ("import", file, "--path", tmp_path / "memory", "--embedder", "hash")
    first = run_json(*arguments, "--resource", "mina", code=3)
    assert (first["format"], first["messages"], first["new"]) == ("chatgpt", 2, 2)
    assert first["reasons"][0]["where"] == "line 1"
    again = run_json(*arguments, "--resource", "mina", code=3)
    assert (again["messages"], again["new"]) == (2, 0)
    with SemanticRecall.open(tmp_path / "memory", embedder=None) as memory:
        assert [one.text for one in memory.history("c-1", "mina")] == ["a", "b"]


@pytest.mark.parametrize("importer", [ChatGPTImporter(), ClaudeImporter()])
def test_memory_stays_bounded(importer: Importer, tmp_path: Path) -> None:
    path, count = tmp_path / "export", 200

    def one(number: int) -> object:
        text = f"{number} " + "x" * 900
        if importer.name == "claude":
            said = [{"uuid": str(i), "sender": "human", "text": text} for i in range(50)]
            return {"uuid": str(number), "chat_messages": said}
        nodes = [node(str(i), str(i - 1) if i else None, "user", text) for i in range(50)]
        return conversation(*nodes, current="49", conversation_id=str(number))

    def pieces() -> Iterator[str]:
        for number in range(count):
            yield ("," if number else "[") + json.dumps(one(number))
        yield "]"

    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made,
        made.open("conversations.json", "w") as member,
    ):
        for piece in pieces():
            member.write(piece.encode())
    tracemalloc.start()
    try:
        found = sum(isinstance(item, Message) for item in read(path, importer=importer))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == count * 50
    assert peak < 2 * 2**20  # the file has 10 MB


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def _objects(*keys: str) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, _values)) | _values


_gpt_nodes = st.fixed_dictionaries(
    {
        "message": _objects("id", "author", "create_time", "content", "recipient", "metadata"),
        "parent": st.sampled_from(["a", "b", "c", None, 1]),
    }
)
_gpt = st.fixed_dictionaries(
    {"mapping": st.dictionaries(st.sampled_from("abc"), _gpt_nodes | _values)},
    optional={"current_node": st.sampled_from("abcd"), "title": _values, "id": _values},
)
_claude_messages = _objects("uuid", "sender", "text", "content", "created_at", "files")
_claude = st.fixed_dictionaries(
    {"chat_messages": st.lists(_claude_messages, max_size=4)},
    optional={"uuid": _values, "name": _values, "current_leaf_message_uuid": _values},
)


@given(_gpt | _values, _claude | _values)
def test_any_json_is_survived(one: Any, other: Any) -> None:
    for item in [*chatgpt(one), *claude(other)]:
        assert isinstance(item, (Message, BadRecord))
