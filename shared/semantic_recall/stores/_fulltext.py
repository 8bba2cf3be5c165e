"""Full text on SQLite: FTS5 over hashed terms, kept apart by resource.

A term is indexed as the token `<resource>x<term>` in hex, so a look-up reads the messages of one
resource only, however many others use the word; a thread is one more token, `t<thread>`. The
table is contentless and without positions: it holds no text, and a row is deleted exactly by
giving FTS5 the same tokens again, which the `terms` table knows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from semantic_recall.stores._statements import Transaction

CREATE = (
    "CREATE VIRTUAL TABLE full_text USING fts5(tokens, content='', detail='none', tokenize='ascii')"
)


def tokens(resource_key: int, thread_key: int, terms: NDArray[np.uint32]) -> str:
    """Return the tokens of one message, separated by spaces."""
    # Formatting the bytes at once is ten times faster than one term after the other; tokens
    # that come twice do no harm, since positions are not kept.
    words = terms.astype(">u4").tobytes().hex(" ", 4)
    prefix = f" {resource_key:x}x"
    return f"t{thread_key:x}{prefix}{words.replace(' ', prefix)}"


def insert(tx: Transaction, rows: Iterable[tuple[int, str]]) -> None:
    """Index messages: pairs of key and `tokens`."""
    tx.many_sql("INSERT INTO full_text(rowid, tokens) VALUES (?, ?)", rows)


def delete(tx: Transaction, rows: Iterable[tuple[int, str]]) -> None:
    """Remove messages; `tokens` must be what they were indexed with."""
    tx.many_sql("INSERT INTO full_text(full_text, rowid, tokens) VALUES ('delete', ?, ?)", rows)


def count(tx: Transaction, resource_key: int, thread_key: int | None, term: int) -> int:
    """Return in how many messages of the scope a term is."""
    query = _query(resource_key, thread_key, term)
    n: int = tx.sql("SELECT count(*) FROM full_text WHERE full_text MATCH ?", query)[0][0]
    return n


def matches(
    tx: Transaction, resource_key: int, thread_key: int | None, term: int
) -> NDArray[np.int64]:
    """Return the keys of the messages of the scope that have a term, ascending."""
    query = _query(resource_key, thread_key, term)
    rows = tx.sql("SELECT rowid FROM full_text WHERE full_text MATCH ?", query)
    return np.array(rows, dtype=np.int64).reshape(-1)


def left(tx: Transaction, keys: Iterable[int]) -> int:
    """Count which of `keys` the index still holds."""
    return sum(tx.sql("SELECT count(*) FROM full_text WHERE rowid = ?", key)[0][0] for key in keys)


def total(tx: Transaction) -> int:
    """Return how many messages are indexed."""
    n: int = tx.sql("SELECT count(*) FROM full_text_docsize")[0][0]
    return n


def optimize(tx: Transaction) -> None:
    """Rewrite the index in one piece, without what was deleted."""
    tx.sql("INSERT INTO full_text(full_text) VALUES ('optimize')")


def _query(resource_key: int, thread_key: int | None, term: int) -> str:
    token = f'"{resource_key:x}x{term:08x}"'
    return token if thread_key is None else f'{token} AND "t{thread_key:x}"'
