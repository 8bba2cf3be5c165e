"""Files to import: every line becomes a message or is named with its line and reason."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall.errors import ImportFormatError
from semantic_recall.importers import (
    BadRecord,
    Defaults,
    Importer,
    JsonLinesImporter,
    OpenAIMessagesImporter,
    detect,
    named,
    read,
)
from semantic_recall.types import Message

WHEN = datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
DEFAULTS = Defaults(thread_id="t", resource_id="r", created_at=WHEN)


def lines(data: bytes | str) -> list[Message | BadRecord]:
    raw = data.encode() if isinstance(data, str) else data
    return list(JsonLinesImporter().read(io.BytesIO(raw), DEFAULTS))


def openai(data: bytes | str) -> list[Message | BadRecord]:
    raw = data.encode() if isinstance(data, str) else data
    return list(OpenAIMessagesImporter().read(io.BytesIO(raw), DEFAULTS))


def only(items: list[Message | BadRecord]) -> Message:
    (item,) = items
    assert isinstance(item, Message), item
    return item


def bad(items: list[Message | BadRecord]) -> BadRecord:
    (item,) = items
    assert isinstance(item, BadRecord), item
    return item


def texts(items: list[Message | BadRecord]) -> list[str]:
    return [item.text for item in items if isinstance(item, Message)]


def test_a_full_line_becomes_a_message_with_everything() -> None:
    record = {
        "id": "m1",
        "thread_id": "trip",
        "resource_id": "mina",
        "role": "user",
        "name": "Mina",
        "content": "안녕 [bold]",
        "created_at": "2024-05-01T10:00:00.123456+02:00",
        "metadata": {"tag": ["a"]},
        "payload": {"any": 1},
    }
    message = only(lines(json.dumps(record)))
    assert message == Message(
        id="m1",
        thread_id="trip",
        resource_id="mina",
        role="user",
        name="Mina",
        text="안녕 [bold]",
        created_at=datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=timezone.utc),
        metadata={"tag": ["a"]},
        payload={"any": 1},
    )


def test_defaults_fill_what_a_line_leaves_out() -> None:
    message = only(lines('{"role": "user", "content": "hi"}'))
    assert (message.thread_id, message.resource_id, message.created_at) == ("t", "r", WHEN)
    assert message.payload is None
    assert message.metadata == {}


def test_byte_order_mark_crlf_empty_lines_and_a_missing_last_line_end() -> None:
    data = (
        b'\xef\xbb\xbf{"role":"user","content":"a"}\r\n\r\n  \n{"role":"user","content":"b"}\r\n'
        b'{"role":"user","content":"c"}'
    )
    assert texts(lines(data)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{nope", "not JSON: "),
        ('{"role":"user","content":"a"}}', "not JSON: Extra data at position 30"),
        ("[1]", "expected a JSON object, found a list"),
        ("17", "expected a JSON object, found 17"),
        ('{"content":"a"}', '"role" is missing'),
        ('{"role":7,"content":"a"}', '"role" is 7'),
        ('{"role":"","content":"a"}', '"role" is ""'),
        ('{"role":"user","content":5}', '"content" is 5'),
        ('{"role":"user","content":[5]}', '"content" has a part that is 5'),
        ('{"role":"user","content":"a","id":""}', "message id is empty"),
        ('{"role":"user","content":"a","id":true}', '"id" is true'),
        ('{"role":"user","content":"a","id":"' + "x" * 1025 + '"}', "1025 characters"),
        ('{"role":"user","content":"a","thread_id":["t"]}', '"thread_id" is a list'),
        ('{"role":"user","content":"a","created_at":"yesterday"}', '"created_at" is "yesterday"'),
        ('{"role":"user","content":"a","created_at":true}', '"created_at" is true'),
        ('{"role":"user","content":"a","created_at":1e300}', '"created_at" is 1e+300'),
        ('{"role":"user","content":"a","created_at":""}', '"created_at" is ""'),
        ('{"role":"user","content":"a","metadata":[1]}', '"metadata" is a list'),
        ('{"role":"user","content":"a","metadata":{"x":NaN}}', "NaN is not a JSON value"),
        ('{"role":"user","content":"a","n":' + "9" * 5000 + "}", "not read: "),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_line_is_named_and_skipped(line: str, reason: str) -> None:
    good = '{"role":"user","content":"ok"}'
    first, found, last = lines(f"{good}\n{line}\n{good}\n")
    assert isinstance(first, Message)
    assert isinstance(last, Message)
    assert isinstance(found, BadRecord)
    assert found.line == 2
    assert reason in found.reason


def test_wrong_encoding_spoils_only_its_line_and_says_where() -> None:
    latin = '{"role":"user","content":"é"}'.encode("latin-1")
    first, second = lines(b'{"role":"user","content":"ok"}\n' + latin)
    assert isinstance(first, Message)
    assert second == BadRecord(
        2, "not UTF-8 (byte 0xe9 at position 27); save the file as UTF-8 and import it again"
    )


def test_a_huge_line_is_read_and_a_larger_one_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    ten_mb = json.dumps({"role": "user", "content": "x" * 10_000_000})
    assert len(only(lines(ten_mb)).text) == 10_000_000

    monkeypatch.setattr("semantic_recall.importers.jsonl.MAX_RECORD_BYTES", 2**20)
    found, after = lines(ten_mb + '\n{"role":"user","content":"after"}\n')
    assert found == BadRecord(1, "longer than 1 MiB")
    assert isinstance(after, Message)
    assert after.text == "after"


def test_a_line_of_exactly_the_limit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"role":"user","content":"abc"}\n'
    monkeypatch.setattr("semantic_recall.importers.jsonl.MAX_RECORD_BYTES", len(line))
    assert texts(lines(line * 2)) == ["abc", "abc"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-01-31", "2025-01-31T00:00:00+00:00"),
        ("2025-01-31T10:00", "2025-01-31T10:00:00+00:00"),
        ("2025-01-31 10:00:00Z", "2025-01-31T10:00:00+00:00"),
        ("2025-01-31T10:00:00.1z", "2025-01-31T10:00:00.100000+00:00"),
        ("2025-01-31T10:00:00.123456789+09:00", "2025-01-31T01:00:00.123456+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
        (-1, "1969-12-31T23:59:59+00:00"),
        (1738317600, "2025-01-31T10:00:00+00:00"),
        (1738317600.5, "2025-01-31T10:00:00.500000+00:00"),
        ("1738317600", "2025-01-31T10:00:00+00:00"),
        (1738317600_000, "2025-01-31T10:00:00+00:00"),
        (1738317600_000_000, "2025-01-31T10:00:00+00:00"),
    ],
)
def test_times(value: object, expected: str) -> None:
    line = json.dumps({"role": "user", "content": "a", "created_at": value})
    assert only(lines(line)).created_at.isoformat() == expected


def test_content_parts_become_text_and_stay_in_the_payload() -> None:
    parts: list[Any] = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
        {"type": "text", "text": {"value": "here"}},
        {"type": "refusal", "refusal": "no"},
        "bare",
    ]
    message = only(lines(json.dumps({"role": "user", "content": parts})))
    assert message.text == "look\nhere\nno\nbare"
    assert message.payload == {"message": {"content": parts}}


def test_tool_calls_without_text_are_kept_in_the_payload() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    asked, answered = openai(
        json.dumps(
            [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "content": "42", "tool_call_id": "c1"},
            ]
        )
    )
    assert isinstance(asked, Message)
    assert isinstance(answered, Message)
    assert (asked.text, asked.payload) == ("", {"message": {"tool_calls": calls}})
    assert (answered.text, answered.payload) == ("42", {"message": {"tool_call_id": "c1"}})


def test_lone_surrogates_nul_and_markup_come_through_as_they_are() -> None:
    message = only(lines('{"role":"user","content":"\\ud800 \\u0000 [red]"}'))
    assert message.text == "\ud800 \x00 [red]"
    assert len(message.id) == 32


def test_made_ids_are_stable_differ_by_place_and_change_with_the_content() -> None:
    twice = '{"role":"user","content":"a"}\n{"role":"user","content":"a"}\n'
    ids = [item.id for item in lines(twice) if isinstance(item, Message)]
    assert ids == [item.id for item in lines(twice) if isinstance(item, Message)]
    assert len(set(ids)) == 2
    changed = lines('{"role":"user","content":"b"}\n')
    assert isinstance(changed[0], Message)
    assert changed[0].id != ids[0]


def test_messages_in_an_object_among_other_keys() -> None:
    document = {
        "model": "m",
        "settings": {"messages": "not these", "deep": [1, [2]]},
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        "usage": {"total": 3},
    }
    for text in (json.dumps(document), json.dumps(document, indent=2)):
        assert texts(openai(text)) == ["a", "b"]


def test_conversations_one_after_the_other_become_threads() -> None:
    one = json.dumps({"messages": [{"role": "user", "content": "a"}]})
    items = openai(f"{one}\n{one}\n[]\n")
    assert [item.thread_id for item in items if isinstance(item, Message)] == ["t", "t-2"]


def test_a_bad_element_is_named_by_line_and_the_rest_is_read() -> None:
    data = '[\n{"role":"user","content":"a"},\n{"content":"b"},\n7,\n{"role":"user","content":"d"}]'
    items = openai(data)
    assert texts(items) == ["a", "d"]
    assert [item for item in items if isinstance(item, BadRecord)] == [
        BadRecord(3, '"role" is missing'),
        BadRecord(4, "expected a JSON object, found 7"),
    ]


def test_wrong_bytes_in_a_document_spoil_only_their_message() -> None:
    data = b'[{"role":"user","content":"a"},\n{"role":"user","content":"\xe9"},\n' + (
        b'{"role":"user","content":"c\\udce9"}]'
    )
    items = openai(data)
    assert texts(items) == ["a", "c\udce9"]
    assert items[1] == BadRecord(2, "not UTF-8 (byte 0xe9); save it as UTF-8")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ('[{"role":"user","content":"a"}', "the file ends where ',' was expected"),
        ('[{"role":"user","content":"a"} {"role', "',' expected, '{' found"),
        ('[{"role":"user","content":"a"},{"role":"us', "Unterminated string"),
        ('[{"role":"user","content":"a"},{"role":NaN}]', "NaN is not a JSON value"),
        ('[{"role":"user","content":"a"},' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_document_gives_what_came_before_and_says_where(data: str, reason: str) -> None:
    first, last = openai(data)
    assert isinstance(first, Message)
    assert isinstance(last, BadRecord)
    assert reason in last.reason
    assert "not read any further" in last.reason


def test_an_object_without_messages_is_reported() -> None:
    assert bad(openai('{"model": "m"}')) == BadRecord(1, 'an object without a "messages" list')


class _Generated(io.RawIOBase):
    """A file of any size that is never in memory whole."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


@pytest.mark.parametrize("importer", [JsonLinesImporter(), OpenAIMessagesImporter()])
def test_memory_stays_bounded(importer: Importer) -> None:
    form = importer.name
    record = json.dumps({"role": "user", "content": "x" * 1000}).encode()
    count = 8_000

    def pieces() -> Iterator[bytes]:
        yield b"[" if form == "openai" else b""
        for number in range(count):
            yield record
            if form == "jsonl":
                yield b"\n"
            elif number < count - 1:
                yield b",\n"
        yield b"]" if form == "openai" else b"\n"

    stream = io.BufferedReader(_Generated(piece for piece in pieces() if piece))
    tracemalloc.start()
    try:
        read_ = sum(isinstance(item, Message) for item in importer.read(stream, DEFAULTS))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read_ == count
    assert peak < 2 * 2**20  # the file has 8 MB


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_KEYS = ("content", "id", "name", "created_at", "metadata", "thread_id", "resource_id")
_records = st.fixed_dictionaries(
    {"role": _values},
    optional=dict.fromkeys(_KEYS, _values),
)


@given(st.lists(_records | _values, max_size=6), st.integers(1, 40))
def test_any_json_gives_one_item_per_record_whatever_the_chunks(
    records: list[Any], size: int
) -> None:
    class Dribble(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            return super().read(size)

    listed = json.dumps(records, ensure_ascii=False).encode("utf-8", "surrogatepass")
    found = list(OpenAIMessagesImporter().read(Dribble(listed), DEFAULTS))
    assert len(found) == len(records)
    assert found == openai(listed)
    by_line = lines("\n".join(json.dumps(record) for record in records))
    assert [type(item) for item in by_line] == [type(item) for item in found]


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data: bytes) -> None:
    for item in [*lines(data), *openai(data), *openai(b"[" + data), *openai(b'{"a":' + data)]:
        assert isinstance(item, (Message, BadRecord))


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
    message = only(list(read(path, resource_id="mina")))
    assert (message.thread_id, message.resource_id, message.created_at) == ("holiday", "mina", WHEN)
    assert only(list(read(path, thread_id="x"))).thread_id == "x"
