"""Message lists in OpenAI's format: one conversation in a file, or several."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall import Message
from semantic_recall.importers import (
    BadRecord,
    OpenAIMessagesImporter,
)
from tests.importers.support import (
    DEFAULTS as FILE_DEFAULTS,
)
from tests.importers.support import (
    texts,
)
from tests.importers.test_jsonl import lines

DEFAULTS = replace(FILE_DEFAULTS, thread_id="t")


def openai(data: bytes | str) -> list[Message | BadRecord]:
    raw = data.encode() if isinstance(data, str) else data
    return list(OpenAIMessagesImporter().read(io.BytesIO(raw), DEFAULTS))


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
    assert openai('{"model": "m"}') == [BadRecord(1, 'an object without a "messages" list')]


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
