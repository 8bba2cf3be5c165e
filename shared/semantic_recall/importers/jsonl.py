"""JSON Lines: one message per line, as `semantic-recall export` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from semantic_recall.importers._records import (
    MAX_RECORD_BYTES,
    BadRecord,
    Defaults,
    RecordError,
    to_message,
)
from semantic_recall.types import Message

_BOM = b"\xef\xbb\xbf"
_TELLING_KEY = re.compile(r'(?<!\\)"(role|messages)"\s*:')


class JsonLinesImporter:
    """Reads `{"role", "content", "thread_id", "resource_id", "created_at", ...}` per line.

    Only `role` is required. Lines may end in LF or CRLF, empty ones are passed over, and the file
    may start with a byte order mark. A line without an id gets one made from its thread, its line
    number and its text, so importing the same file twice stores nothing twice.
    """

    name = "jsonl"
    description = 'JSON Lines, one {"role", "content", "thread_id", ...} per line'

    def recognises(self, head: str) -> bool:
        """Tell whether one of the first whole lines is an object with a role."""
        if head.lstrip().startswith("["):  # a list, perhaps with an element per line
            return False
        lines = head.strip().split("\n")
        key = _TELLING_KEY.search(head)
        if key and key[1] == "messages" and not _is_whole(lines[0]):
            return False
        for line in lines[:20]:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and not record.keys().isdisjoint(("role", "messages")):
                return "role" in record
        # The first line may be longer than the head: its first telling key decides.
        return len(lines) == 1 and lines[0].startswith("{") and bool(key and key[1] == "role")

    def read(self, stream: BinaryIO, defaults: Defaults) -> Iterator[Message | BadRecord]:
        """Yield the message of each line, or a `BadRecord` with the line's number.

        A line longer than 64 MiB is reported and skipped.
        """
        for number, line in _lines(stream):
            item = _read_line(number, line, defaults)
            if item is not None:
                yield item


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _read_line(number: int, line: bytes | None, defaults: Defaults) -> Message | BadRecord | None:
    """Return what a line holds; None for an empty one."""
    try:
        if line is None:
            raise RecordError(f"longer than {MAX_RECORD_BYTES // 2**20} MiB")
        return to_message(_parse(line), defaults, position=number) if line.strip() else None
    except RecordError as error:
        return BadRecord(number, str(error))


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield each line with its number; None for one that is too long."""
    number = 0
    while line := stream.readline(MAX_RECORD_BYTES):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.endswith(b"\n") or len(line) < MAX_RECORD_BYTES:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(2**20)
        yield number, None


def _parse(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        found = line[error.start]
        raise RecordError(
            f"not UTF-8 (byte 0x{found:02x} at position {error.start + 1}); "
            "save the file as UTF-8 and import it again"
        ) from error
    except json.JSONDecodeError as error:
        raise RecordError(f"not JSON: {error.msg} at position {error.pos + 1}") from error
    except RecursionError as error:
        raise RecordError("not read: nested too deeply") from error
    except ValueError as error:  # NaN, or a number of thousands of digits
        raise RecordError(f"not read: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")
