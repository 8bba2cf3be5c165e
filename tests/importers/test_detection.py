"""Which format a file is in, found by its content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from semantic_recall.errors import ImportFormatError
from semantic_recall.importers import (
    detect,
    named,
    read,
)
from tests.importers.support import (
    WHEN,
    good,
)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('{"role":"user","content":"a"}\n', "jsonl"),
        ('\n\n{"content":"a","role":"user"}\n{"role"', "jsonl"),
        ('\ufeff{"role":"user","content":"a"}', "jsonl"),
        ('broken\n{"role":"user","content":"a"}\n', "jsonl"),
        ('{"role":"user","content":"' + "x" * 100_000 + '"}\n', "jsonl"),
        ('{"role":"user","content":"say \\"messages\\": [ now"}\n', "jsonl"),
        ('{"role":"user","metadata":{"messages": [1]}}\n', "jsonl"),
        ('{"type":"session"}\n{"role":"user","content":"\u2028"}\n', "jsonl"),
        ('[{"role":"user","content":"a"}]', "openai"),
        ("[\n]\n", "openai"),
        ('[\n{"role":"user","content":"a"},\n{"role":"user","content":"b"}\n]', "openai"),
        ('{"messages": [\n{"role":"user"},\n{"role":"user"}\n]}', "openai"),
        ('{"messages": [{"role":"user","content":"a"}]}\n', "openai"),
        ('{\n "model": "m",\n "messages": [\n {"role":"user"}]}', "openai"),
        ('{"messages": [{"role":"user","content":"' + "x" * 100_000 + '"}]}', "openai"),
        ('[{"content":"' + "x" * 100 + '","role":"user"},', "openai"),
    ],
)
def test_detect(content: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    assert detect(path).name == name


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n \r\n", "is empty"),
        ('{"role":"user"}'.encode("utf-16"), "UTF-16 text; save it as UTF-8"),
        ('{"role":"user"}'.encode("utf-32"), "UTF-32 text; save it as UTF-8"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"PK\x03\x04", "ZIP"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"Hello, this is text", "jsonl"),
        (b'[{"mapping": {}}, {"mapping": {}', "openai"),
        (b'{\n "role": "user"\n}', "Known formats"),
        (b"[1, 2]", "Known formats"),
    ],
)
def test_detect_refuses_with_the_reason(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ImportFormatError, match=reason):
        detect(path)


def test_detect_names_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ImportFormatError, match="cannot be read: No such file"):
        detect(tmp_path / "missing")
    with pytest.raises(ImportFormatError, match="a folder without conversations"):
        detect(tmp_path)


def test_an_unknown_format_name_lists_the_known_ones() -> None:
    with pytest.raises(ImportFormatError, match=r"'csv'.*jsonl.*openai"):
        named("csv")


def test_read_takes_thread_and_time_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "holiday.json"
    path.write_text('[{"role":"user","content":"a"}]', encoding="utf-8")
    os.utime(path, (WHEN.timestamp(), WHEN.timestamp()))
    (message,) = good(list(read(path, resource_id="mina")))
    assert (message.thread_id, message.resource_id, message.created_at) == ("holiday", "mina", WHEN)
    assert [one.thread_id for one in good(list(read(path, thread_id="x")))] == ["x"]
