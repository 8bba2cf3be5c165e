"""Lossless passage of text, JSON and times between Python and a database."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

_ESCAPE = "\x1a"
_SPECIAL = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_MAX_DEPTH = 64


def escape(text: str) -> str:
    """Return `text` in a form that every driver takes.

    SQLite's driver refuses lone surrogates and PostgreSQL refuses NUL, so these (and the escape
    character U+001A itself) become U+001A and four hex digits. The mapping is injective: equal
    results mean equal texts, which keeps ids exact.
    """
    if text.isascii():
        if "\x00" not in text and _ESCAPE not in text:
            return text
    elif _SPECIAL.search(text) is None:
        return text
    return _SPECIAL.sub(lambda found: f"{_ESCAPE}{ord(found.group()):04x}", text)


def unescape(text: str) -> str:
    """Undo `escape`."""
    if _ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), text)


def to_json(value: Mapping[str, Any]) -> str:
    """Return `value` as JSON in ASCII; what JSON cannot hold becomes its `repr` in its place."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(_plain(value, 0))


def from_json(text: str) -> dict[str, Any]:
    """Undo `to_json`."""
    value: dict[str, Any] = json.loads(text)
    return value


def to_microseconds(moment: datetime) -> int:
    """Return an aware time as microseconds since 1970 in UTC."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """Undo `to_microseconds`; the result is in UTC."""
    return _EPOCH + timedelta(0, 0, value)  # by place: by name takes half as long again


def _plain(value: object, depth: int) -> object:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            return {str(key): _plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [_plain(item, depth + 1) for item in value]
    return _repr(value)


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a foreign __repr__ may raise anything; storing goes on
        return object.__repr__(value)
