"""Full text on SQLite: FTS5 over hashed terms, kept apart by resource.

A term is indexed as the token `<resource>x<term>` in hex, so a look-up reads the messages of one
resource only, however many others use the word; a thread is one more token, `t<thread>`. The
table is contentless and without positions: it holds no text, and a row is deleted exactly by
giving FTS5 the same tokens again, which the `terms` table knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

CREATE = (
    "CREATE VIRTUAL TABLE full_text USING fts5(tokens, content='', detail='none', tokenize='ascii')"
)


def tokens(resource_key: int, thread_key: int, terms: NDArray[np.uint32]) -> str:
    """Return the tokens of one message, separated by spaces."""
    prefix = f"{resource_key:x}x"
    distinct = dict.fromkeys(terms.tolist())
    return " ".join([f"t{thread_key:x}", *[f"{prefix}{term:x}" for term in distinct]])


def insert(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
    """Index messages: pairs of key and `tokens`."""
    if rows:
        connection.exec_driver_sql("INSERT INTO full_text(rowid, tokens) VALUES (?, ?)", list(rows))


def delete(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
    """Remove messages; `tokens` must be what they were indexed with."""
    if rows:
        connection.exec_driver_sql(
            "INSERT INTO full_text(full_text, rowid, tokens) VALUES ('delete', ?, ?)", list(rows)
        )


def count(connection: Connection, resource_key: int, thread_key: int | None, term: int) -> int:
    """Return in how many messages of the scope a term is."""
    found = connection.exec_driver_sql(
        "SELECT count(*) FROM full_text WHERE full_text MATCH ?",
        (_query(resource_key, thread_key, term),),
    )
    return int(found.scalar_one())


def matches(
    connection: Connection, resource_key: int, thread_key: int | None, term: int
) -> NDArray[np.int64]:
    """Return the keys of the messages of the scope that have a term, ascending."""
    found = connection.exec_driver_sql(
        "SELECT rowid FROM full_text WHERE full_text MATCH ?",
        (_query(resource_key, thread_key, term),),
    )
    keys = [row[0] for row in found.cursor] if found.cursor is not None else []
    return np.array(keys, dtype=np.int64)


def left(connection: Connection, keys: Iterable[int]) -> int:
    """Count which of `keys` the index still holds."""
    return sum(
        connection.exec_driver_sql(
            "SELECT count(*) FROM full_text WHERE rowid = ?", (key,)
        ).scalar_one()
        for key in keys
    )


def optimize(connection: Connection) -> None:
    """Rewrite the index in one piece, without what was deleted."""
    connection.exec_driver_sql("INSERT INTO full_text(full_text) VALUES ('optimize')")


def _query(resource_key: int, thread_key: int | None, term: int) -> str:
    token = f'"{resource_key:x}x{term:x}"'
    return token if thread_key is None else f'{token} AND "t{thread_key:x}"'
