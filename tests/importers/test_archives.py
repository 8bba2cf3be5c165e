"""Exports as a file, a folder or an archive, whole or in parts."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall import Message
from semantic_recall.errors import ImportFormatError
from semantic_recall.importers import (
    BadRecord,
    ChatGPTImporter,
    Position,
    detect,
    read,
    read_with,
)
from tests.importers.support import (
    ANY_JSON,
    DEFAULTS,
    conversation,
    good,
    node,
)
from tests.importers.test_chatgpt import chatgpt
from tests.importers.test_claude import CLAUDE, claude

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


def _objects(*keys: str) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, ANY_JSON)) | ANY_JSON


_gpt_nodes = st.fixed_dictionaries(
    {
        "message": _objects("id", "author", "create_time", "content", "recipient", "metadata"),
        "parent": st.sampled_from(["a", "b", "c", None, 1]),
    }
)

_gpt = st.fixed_dictionaries(
    {"mapping": st.dictionaries(st.sampled_from("abc"), _gpt_nodes | ANY_JSON)},
    optional={"current_node": st.sampled_from("abcd"), "title": ANY_JSON, "id": ANY_JSON},
)

_claude_messages = _objects("uuid", "sender", "text", "content", "created_at", "files")

_claude = st.fixed_dictionaries(
    {"chat_messages": st.lists(_claude_messages, max_size=4)},
    optional={"uuid": ANY_JSON, "name": ANY_JSON, "current_leaf_message_uuid": ANY_JSON},
)


@given(_gpt | ANY_JSON, _claude | ANY_JSON)
def test_any_json_is_survived(one: Any, other: Any) -> None:
    for item in [*chatgpt(one), *claude(other)]:
        assert isinstance(item, (Message, BadRecord))
