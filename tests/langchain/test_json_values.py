"""What a message carries besides text survives JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    ToolMessage,
)
from pydantic import BaseModel

from langchain_semantic_recall.json_values import decode, encode
from tests.langchain.test_messages import stored_and_back


class _Table(BaseModel):
    rows: int


@dataclass
class _Point:
    x: float


class _Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    ("artifact", "expected"),
    [
        (_Table(rows=3), {"rows": 3}),
        (_Point(x=1.5), {"x": 1.5}),
        (_Silent(), "<_Silent>"),
        (len, "<built-in function len>"),
        (_Table, f"<class '{__name__}._Table'>"),
    ],
    ids=["pydantic", "dataclass", "repr raises", "function", "class"],
)
def test_an_artifact_of_any_class_never_fails(artifact: object, expected: object) -> None:
    back = stored_and_back(ToolMessage("x", tool_call_id="c", artifact=artifact))
    assert isinstance(back, ToolMessage)
    assert back.artifact == expected


def test_an_artifact_that_contains_itself_never_fails() -> None:
    loop: list[Any] = [1]
    loop.extend([loop, loop])
    back = stored_and_back(ToolMessage("x", tool_call_id="c", artifact=loop))
    assert isinstance(back, ToolMessage)
    assert back.artifact == [1, "[1, [...], [...]]", "[1, [...], [...]]"]


def test_a_very_deep_artifact_never_fails() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    back = stored_and_back(ToolMessage("x", tool_call_id="c", artifact=deep))
    assert back.content == "x"
    while deep:  # Python itself overflows when it frees such a list at once
        deep = deep.pop()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(timezone.utc))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.just("~type"), inner)
        | st.dictionaries(st.integers(), inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_every_value_survives_json(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value), allow_nan=False))) == value


@pytest.mark.parametrize(
    "value",
    [
        {1, "a"},
        frozenset({2.5}),
        bytearray(b"ab"),
        complex(1, -2),
        date(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        time(1, 2),
        UUID(int=5),
        Decimal("1.10"),
    ],
)
def test_other_values_survive_json(value: object) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_nan_survives_json() -> None:
    assert math.isnan(decode(json.loads(json.dumps(encode(math.nan), allow_nan=False))))
