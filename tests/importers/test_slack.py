"""Slack's export: channels by day, people by name, bots as assistants."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall import Message
from semantic_recall.errors import ImportFormatError
from semantic_recall.importers import (
    BadRecord,
    Position,
    SlackImporter,
    detect,
    named,
    read,
    read_with,
)
from tests.importers.support import (
    ANY_JSON,
    good,
)
from tests.importers.support import (
    DEFAULTS as FILE_DEFAULTS,
)

DEFAULTS = replace(FILE_DEFAULTS, resource_id="acme")


def said(text: str, ts: str, user: str = "U1", **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": ts, **more}


FILES: dict[str, Any] = {
    "channels.json": [{"id": "C1", "name": "general", "members": ["U1", "U2"]}],
    "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
    "users.json": [
        {"id": "U1", "name": "mina", "profile": {"display_name": "Mina", "real_name": "Mina K"}},
        {"id": "U2", "name": "oskar", "profile": {"display_name": "", "real_name": "Oskar L"}},
        {"id": "B9", "name": "helper", "is_bot": True, "profile": {}},
    ],
    "integration_logs.json": [],
    "general/2024-05-02.json": [
        said("reply", "1714640400.000300", "U2", thread_ts="1714557600.000100"),
    ],
    "general/2024-05-01.json": [
        said("<@U1> has joined", "1714557500.000100", subtype="channel_join"),
        said(
            "Hi <@U2>, see <https://e.org|the plan> &amp; <#C1|general> <!here> &lt;3",
            "1714557600.000100",
            thread_ts="1714557600.000100",
        ),
        said("from a bot", "1714557700.000100", "B9"),
        {
            "type": "message",
            "subtype": "bot_message",
            "username": "deploy",
            "bot_id": "B1",
            "text": "",
            "attachments": [{"fallback": "released 1.2"}, {"text": "all &gt; fine"}],
            "ts": "1714557800.000100",
        },
        said("picture", "1714557900.000100", "UX", files=[{"name": "x.png"}], subtype="file_share"),
    ],
    "D1/2024-05-01.json": [said("psst", "1714557600.000100", "U2")],
}


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_channels_are_threads(tmp_path: Path) -> None:
    position = Position()
    importer = detect(write(tmp_path, FILES))
    assert importer.name == "slack"
    messages = good(list(read_with(importer, tmp_path, DEFAULTS, position)))
    assert position.done == position.total > 0
    assert [(one.thread_id, one.role, one.name, one.text) for one in messages] == [
        ("D1", "user", "Oskar L", "psst"),
        (
            "general",
            "user",
            "Mina",
            "Hi @Oskar L, see the plan (https://e.org) & #general @here <3",
        ),
        ("general", "assistant", "helper", "from a bot"),
        ("general", "assistant", "deploy", "released 1.2\nall > fine"),
        ("general", "user", "UX", "picture"),
        ("general", "user", "Oskar L", "reply"),
    ]
    first = messages[1]
    assert first.id == "1714557600.000100"
    assert first.created_at == datetime(2024, 5, 1, 10, 0, 0, 100, tzinfo=timezone.utc)
    assert (first.resource_id, first.payload) == ("acme", None)
    assert [one.metadata["channel"] for one in messages[:2]] == ["Mina, Oskar L", "general"]
    assert messages[4].payload == {"slack": {"files": [{"name": "x.png"}]}}


def test_replies_as_threads_of_their_own(tmp_path: Path) -> None:
    messages = good(list(read(write(tmp_path, FILES), importer=named("slack-threads"))))
    threads = [(one.thread_id, one.text[:2]) for one in messages]
    assert threads[1] == ("general/1714557600.000100", "Hi")
    assert threads[-1] == ("general/1714557600.000100", "re")
    assert threads[2] == ("general", "fr")


@pytest.mark.parametrize("inside", ["", "acme export/"])
def test_an_archive_gives_the_same_as_the_folder(inside: str, tmp_path: Path) -> None:
    folder, path = write(tmp_path / "folder", FILES), tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name, content in FILES.items():
            made.writestr(inside + name, json.dumps(content))
        made.writestr(f"{inside}attachments/x/2024-05-01.json", "not of the export")
    assert detect(path).name == "slack"
    importer, position = SlackImporter(), Position()
    from_folder = list(read_with(importer, folder, DEFAULTS, position))
    assert list(read_with(importer, path, DEFAULTS, position)) == from_folder


def test_bad_records_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    day = "general/2024-05-03.json"
    write(tmp_path, {**FILES, day: []})
    text = '[\n7,\n{"type":"message","text":"no time"},\n{"ts":"1.5","text":3},\n'
    (tmp_path / day).write_text(text + json.dumps(said("ok", "1714730400.5")) + "\n, {")
    items = [one for one in read(tmp_path) if isinstance(one, BadRecord)]
    assert [(one.where, one.reason) for one in items[:3]] == [
        (f"{day}, message 1, line 2", "the message is not an object"),
        (f"{day}, message 2, line 3", '"ts" is missing'),
        (f"{day}, message 3, line 4", '"text" is not a text'),
    ]
    assert "not read any further" in items[3].reason
    assert len(items) == 4
    assert "ok" in [one.text for one in read(tmp_path) if isinstance(one, Message)]


def test_a_damaged_archive_is_an_error_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as made:
        for name, content in FILES.items():
            made.writestr(name, json.dumps(content))
    data = bytearray(path.read_bytes())
    at = data.index(b"psst")
    data[at : at + 4] = b"PSST"
    path.write_bytes(data)
    with pytest.raises(ImportFormatError, match=r"export\.zip is a damaged.*D1/2024-05-01\.json"):
        list(read(path))
    path.write_bytes(data[:300])
    with pytest.raises(ImportFormatError, match="damaged ZIP archive"):
        detect(path)


def test_a_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"notes/2024-05-01.json": []})
    with pytest.raises(ImportFormatError, match="a folder without"):
        detect(tmp_path)
    with pytest.raises(ImportFormatError, match="no files like"):
        list(read(write(tmp_path / "b", {"users.json": []}), importer=SlackImporter()))


_KEYS = ("type", "subtype", "user", "text", "ts", "thread_ts", "attachments", "files", "username")

_message = st.fixed_dictionaries({}, optional=dict.fromkeys(_KEYS, ANY_JSON))


@given(st.lists(_message | ANY_JSON, max_size=4), ANY_JSON)
def test_any_json_is_survived(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Any], users: Any
) -> None:
    folder = tmp_path_factory.mktemp("slack")
    write(folder, {"users.json": users, "c/2024-01-01.json": messages})
    for item in read(folder, importer=SlackImporter(replies_apart=True)):
        assert isinstance(item, (Message, BadRecord))
