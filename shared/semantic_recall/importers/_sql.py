"""What readers of tables need from a database, whichever it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from semantic_recall.importers import _postgres, _sqlite
from semantic_recall.importers._protocols import Database, Position
from semantic_recall.importers._records import BadRecord, Defaults, RecordError, to_message
from semantic_recall.types import Message

Source: TypeAlias = "Path | str"
"""A file or folder, or the URL of a PostgreSQL database."""

_UNDECODED = re.compile("[\udc80-\udcff]")


def is_database(source: Source) -> bool:
    """Tell whether there are tables to look at: an SQLite file, or the URL of a database."""
    return _postgres.is_url(source) if isinstance(source, str) else _sqlite.is_sqlite(source)


def database_at(source: Source) -> AbstractContextManager[Database]:
    """Open a database so that nothing of it changes.

    Raises:
        ImportFormatError: It cannot be opened.
        MissingDependencyError: Its driver is not installed.
    """
    if isinstance(source, str):
        return _postgres.database_at(source)
    return _sqlite.database_at(source)


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def count(database: Database, table: str) -> int:
    """Return the number of rows."""
    (row,) = database.rows(f"SELECT count(*) FROM {quoted(table)}")
    return int(row[0])


def whole_text(value: object, column: str) -> str:
    """Return a text column's value.

    Raises:
        RecordError: It is no text, or not UTF-8.
    """
    if not isinstance(value, str):
        raise RecordError(f'"{column}" is {value!r}; a text was expected')
    bad = _UNDECODED.search(value)
    if bad:
        raise RecordError(f'"{column}" is not UTF-8 (byte 0x{ord(bad[0]) - 0xDC00:02x})')
    return value


def messages_of(
    database: Database,
    tables: Sequence[str],
    select: Callable[[str], str],
    to_record: Callable[[object, object], dict[str, Any]],
    defaults: Defaults,
    position: Position,
) -> Iterator[Message | BadRecord]:
    """Yield the messages of tables that hold one as JSON in each row.

    Args:
        database: Where the tables are.
        tables: Their names.
        select: Returns a table's query for number, thread, JSON and time, in the wanted order.
        to_record: Returns a message as `to_message` reads it, from the JSON value and the time.
        defaults: What a message gets that does not say it itself.
        position: Counts rows.
    """
    position.total = sum(count(database, table) for table in tables)
    for table in tables:
        for number, thread, data, moment in database.rows(select(table)):
            position.done += 1
            try:
                own = replace(defaults, thread_id=whole_text(thread, "thread"))
                record = to_record(_parsed(data), moment)
                record["id"] = record.get("id") or f"{table}-{number}"
                yield to_message(record, own, position=position.done)
            except RecordError as error:
                line = number if isinstance(number, int) else 0
                yield BadRecord(line, str(error), f"row {number} of table {table}")


def _parsed(data: object) -> object:
    try:
        return json.loads(whole_text(data, "message"))
    except (ValueError, RecursionError) as error:
        raise RecordError(f'"message" is not JSON: {error}') from error
