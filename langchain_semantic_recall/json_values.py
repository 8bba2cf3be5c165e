"""Python values -> JSON values and back, without loss for what JSON cannot say.

What a message carries besides text is anybody's: datetimes in `response_metadata`, bytes in content
blocks, any object as a tool's artifact. Values that JSON has no form for become a small tagged
mapping; an object of an unknown class becomes its `repr`, so that nothing here raises.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from pydantic import BaseModel

JSON: TypeAlias = Any
"""None, bool, int, float, str, list or dict with str keys; nested."""

_TAG = "~type"
_MAX_DEPTH = 64
_SAFE_INT = 2**63

_Encoder: TypeAlias = Callable[[Any], JSON]


def _seconds(value: timedelta) -> JSON:
    return [value.days, value.seconds, value.microseconds]


# Checked in this order: a datetime is also a date.
_SCALARS: tuple[tuple[type, str, _Encoder], ...] = (
    (datetime, "datetime", datetime.isoformat),
    (date, "date", date.isoformat),
    (time, "time", time.isoformat),
    (timedelta, "timedelta", _seconds),
    (bytes, "bytes", lambda value: base64.b64encode(value).decode("ascii")),
    (bytearray, "bytes", lambda value: base64.b64encode(value).decode("ascii")),
    (UUID, "uuid", str),
    (Decimal, "decimal", str),
    (complex, "complex", lambda value: [encode(value.real), encode(value.imag)]),
)

_DECODERS: Mapping[str, Callable[[JSON], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda value: timedelta(*value),
    "bytes": base64.b64decode,
    "uuid": UUID,
    "decimal": Decimal,
    "complex": lambda value: complex(decode(value[0]), decode(value[1])),
    "float": float,
    "int": int,
    "tuple": lambda value: tuple(decode(item) for item in value),
    "set": lambda value: {decode(item) for item in value},
    "frozenset": lambda value: frozenset(decode(item) for item in value),
    "dict": lambda value: {decode(key): decode(item) for key, item in value},
    "object": lambda value: value["repr"],
}


def encode(value: object, _path: tuple[int, ...] = ()) -> JSON:
    """Return `value` as JSON values; never raises.

    Pydantic models and dataclasses become mappings; other unknown objects, and what is nested
    deeper than 64 levels or contains itself, become their `repr`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        whole = int(value)
        # PostgreSQL and fast JSON libraries stop at 64 bits.
        return whole if -_SAFE_INT <= whole < _SAFE_INT else _tagged("int", str(whole))
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else _tagged("float", repr(number))
    for kind, tag, encoder in _SCALARS:
        if isinstance(value, kind):
            return _tagged(tag, encoder(value))
    if id(value) in _path or len(_path) >= _MAX_DEPTH:
        return _described(value)
    return _encode_container(value, (*_path, id(value)))


def decode(value: JSON) -> Any:  # noqa: ANN401 - whatever was encoded
    """Return what `encode` was given (an unknown object as its `repr`).

    Raises:
        ValueError: A tagged value does not hold what its tag says.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    decoder = _DECODERS.get(value.get(_TAG, ""))
    if decoder is None:
        return {key: decode(item) for key, item in value.items()}
    return decoder(value["value"])


def _encode_container(value: object, path: tuple[int, ...]) -> JSON:
    if isinstance(value, Mapping):
        return _encode_mapping(value, path)
    if isinstance(value, list):
        return [encode(item, path) for item in value]
    for kind, tag in ((tuple, "tuple"), (frozenset, "frozenset"), (set, "set")):
        if isinstance(value, kind):
            return _tagged(tag, [encode(item, path) for item in value])
    if isinstance(value, BaseModel):
        return _encode_mapping({**value.__dict__, **(value.model_extra or {})}, path)
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return _encode_mapping(named, path)
    return _described(value)


def _encode_mapping(value: Mapping[Any, Any], path: tuple[int, ...]) -> JSON:
    if _TAG not in value and all(type(key) is str for key in value):
        return {key: encode(item, path) for key, item in value.items()}
    return _tagged("dict", [[encode(key, path), encode(item, path)] for key, item in value.items()])


def _tagged(tag: str, value: JSON) -> JSON:
    return {_TAG: tag, "value": value}


def _described(value: object) -> JSON:
    kind = type(value)
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the repr of a foreign object can raise anything
        text = f"<{kind.__qualname__}>"
    return _tagged("object", {"class": f"{kind.__module__}.{kind.__qualname__}", "repr": text})
