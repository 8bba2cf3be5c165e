"""What every importer shares: one JSON object of a file becomes one `Message`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from semantic_recall.errors import ConfigurationError
from semantic_recall.types import Message, as_utc

MAX_RECORD_BYTES = 64 * 2**20
"""A longer record is reported and skipped, so that memory stays bounded."""

_EARLIEST_MILLISECONDS = 10**11  # as seconds this would be the year 5138
_EARLIEST_MICROSECONDS = 10**14

_OFFSET = re.compile(r"([+-]\d\d):?(\d\d)?\Z")

# Keys that have a place in `Message`; the others are kept in its payload.
_OWN_KEYS = frozenset(
    {
        "role",
        "content",
        "text",
        "id",
        "name",
        "created_at",
        "metadata",
        "payload",
        "thread_id",
        "resource_id",
    }
)


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read; the import goes on with the next one."""

    line: int
    """Where the record starts in the file; the first line is 1. In a table: its row."""
    reason: str
    place: str = ""
    """What a line number alone would not say: the file in an archive, the table, the message."""

    @property
    def where(self) -> str:
        """The place in words, for people."""
        return self.place or f"line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a record gets that does not say it itself."""

    thread_id: str
    resource_id: str | None = None
    created_at: datetime

    @classmethod
    def of_file(
        cls, path: Path, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> Defaults:
        """Return the defaults for a file.

        Args:
            path: The file; its time of change becomes the default time.
            thread_id: The default thread; the file's name without its ending when not given.
            resource_id: The default resource; none when not given.

        Raises:
            OSError: The file cannot be looked at.
        """
        changed = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
        return cls(
            thread_id=path.stem if thread_id is None else thread_id,
            resource_id=resource_id,
            created_at=changed,
        )

    @classmethod
    def of_database(
        cls, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> Defaults:
        """Return the defaults for a database, whose formats name the threads: the time is now."""
        return cls(
            thread_id=thread_id or "database",
            resource_id=resource_id,
            created_at=datetime.now(timezone.utc),
        )


class RecordError(Exception):
    """A record cannot be read; the text says why. Never leaves this package."""


def to_message(record: object, defaults: Defaults, *, position: int) -> Message:
    """Return the message that a JSON value describes.

    Args:
        record: An object with `role` and `content` (a string, null or a list of parts), and, if
            present, `id`, `name`, `thread_id`, `resource_id`, `created_at`, `metadata` and
            `payload`. Parts and other keys, such as `tool_calls`, go into the payload, as
            `SemanticRecall.remember` does it with mappings.
        defaults: What it gets where it says nothing.
        position: Its place in the conversation; part of the id of a record without an id.

    Raises:
        RecordError: It is not an object, has no role, or a field has a value it cannot have.
    """
    if not isinstance(record, dict):
        raise RecordError(f"expected a JSON object, found {_kind(record)}")
    role = record.get("role")
    if not isinstance(role, str) or not role:
        raise RecordError('"role" is missing' if role is None else f'"role" is {_kind(role)}')
    thread_id = _text_field(record, "thread_id", defaults.thread_id)
    id_ = _text_field(record, "id", None)
    moment = record.get("created_at")
    if moment is None:
        moment = _timestamp(record)
    try:
        return Message(
            role=role,
            text=text_of(_content(record)),
            thread_id=thread_id,
            resource_id=_text_field(record, "resource_id", defaults.resource_id),
            id=stable_id(record, thread_id, position) if id_ is None else id_,
            name=_text_field(record, "name", None),
            created_at=defaults.created_at if moment is None else to_time(moment),
            metadata=_object_field(record, "metadata") or {},
            payload=_payload(record),
        )
    except ConfigurationError as error:
        raise RecordError(str(error)) from error


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, null, or a list of parts.

    Parts without text (images, audio, files) add nothing.

    Raises:
        RecordError: It is something else.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(_text_of_part, content) if text)
    raise RecordError(f'"content" is {_kind(content)}; a text or a list of parts was expected')


def _text_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise RecordError(f'"content" has a part that is {_kind(part)}')
    for key in ("text", "refusal"):
        text = part.get(key)
        if isinstance(text, dict):  # OpenAI's Assistants: {"text": {"value": "..."}}
            text = text.get("value")
        if isinstance(text, str):
            return text
    return ""


def to_time(value: object) -> datetime:
    """Return the moment that an ISO 8601 date or a number since 1970 means, in UTC.

    A naive date is taken as UTC. Numbers are seconds; those too large for that are milliseconds
    or microseconds.

    Raises:
        RecordError: It is neither, or outside the years 1 to 9999.
    """
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _from_epoch(value)
        if isinstance(value, str):
            return _from_text(value.strip())
        if isinstance(value, datetime):
            return as_utc(value)
    except (ValueError, OverflowError, OSError) as error:
        raise RecordError(_bad_time(value)) from error
    raise RecordError(_bad_time(value))


def _timestamp(record: Mapping[str, Any]) -> datetime | None:
    """Return the time under the other usual name; what it means is not promised by any format."""
    try:
        return to_time(record.get("timestamp"))
    except RecordError:
        return None


def _bad_time(value: object) -> str:
    return f'"created_at" is {_short(value)}; an ISO 8601 date or seconds since 1970 was expected'


def _from_epoch(number: float) -> datetime:
    if abs(number) >= _EARLIEST_MICROSECONDS:
        number /= 1_000_000
    elif abs(number) >= _EARLIEST_MILLISECONDS:
        number /= 1_000
    return datetime.fromtimestamp(number, timezone.utc)


def _from_text(text: str) -> datetime:
    if text.replace(".", "", 1).isdigit() and len(text) > 8:  # 20240518 is a date
        return _from_epoch(float(text))
    if text[-1:] in "Zz":  # Python 3.10 does not read it
        text = text[:-1] + "+00:00"
    head, dot, rest = text.partition(".")
    if dot:  # Python 3.10 reads 3 or 6 digits only
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        text = f"{head}.{digits[:6]:0<6}{rest[len(digits) :]}"
    # ... and no offset without minutes, such as PostgreSQL's.
    if ":" in text:
        text = _OFFSET.sub(lambda found: f"{found[1]}:{found[2] or '00'}", text)
    return as_utc(datetime.fromisoformat(text))


def stable_id(record: Mapping[str, Any], thread_id: str, position: int) -> str:
    """Return an id that is the same each time the same file is imported.

    Made from the thread, the position and what the message says.
    """
    said = [record["role"], _content(record), record.get("name"), _rest(record)]
    named = json.dumps([thread_id, position, said], sort_keys=True)
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def _content(record: Mapping[str, Any]) -> object:
    return record.get("content", record.get("text"))


def _rest(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the text alone would lose."""
    rest = {key: value for key, value in record.items() if key not in _OWN_KEYS}
    content = _content(record)
    if isinstance(content, list):
        rest["content"] = content
    return rest


def _payload(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    own = _object_field(record, "payload")
    if own is not None:
        return own
    rest = _rest(record)
    return {"message": rest} if rest else None


_T = TypeVar("_T", str, "str | None")


def _text_field(record: Mapping[str, Any], key: str, default: _T) -> str | _T:
    value = record.get(key)
    if value is None:
        return default
    if isinstance(value, str):
        return value  # an empty one too: `Message` refuses it, and nothing is guessed
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # ids out of a database
    raise RecordError(f'"{key}" is {_kind(value)}; a text was expected')


def _object_field(record: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = record.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise RecordError(f'"{key}" is {_kind(value)}; an object was expected')


def _kind(value: object) -> str:
    """Name a JSON value for a person."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return _short(value)


def _short(value: object) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
