"""JSON Lines: every line becomes a message or is named with its number and reason."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from semantic_recall import Message
from semantic_recall.importers import (
    BadRecord,
    JsonLinesImporter,
)
from tests.importers.support import (
    DEFAULTS as FILE_DEFAULTS,
)
from tests.importers.support import (
    WHEN,
    good,
    texts,
)

DEFAULTS = replace(FILE_DEFAULTS, thread_id="t")


def lines(data: bytes | str) -> list[Message | BadRecord]:
    raw = data.encode() if isinstance(data, str) else data
    return list(JsonLinesImporter().read(io.BytesIO(raw), DEFAULTS))


def only(items: list[Message | BadRecord]) -> Message:
    (item,) = good(items)
    return item


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
