"""Full text on SQLite: FTS5 over hashed terms, kept apart by resource.

A term is indexed as the token `<resource>x<term>` in hex, so a look-up reads the messages of one
resource only, however many others use the word; a thread is one more token, `t<thread>`. The
table is contentless and without positions: it holds no text, and a row is deleted exactly by
giving FTS5 the same tokens again, which the `terms` table knows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from semantic_recall.stores._backend import Indexed
from semantic_recall.stores._statements import Transaction

CREATE = (
    "CREATE VIRTUAL TABLE full_text USING fts5(tokens, content='', detail='none', tokenize='ascii')"
)


def insert(tx: Transaction, rows: Sequence[Indexed]) -> None:
    """Index messages."""
    tx.many_sql(
        "INSERT INTO full_text(rowid, tokens) VALUES (?, ?)",
        [(row.key, _tokens(row)) for row in rows],
    )


def delete(tx: Transaction, rows: Sequence[Indexed]) -> None:
    """Remove messages; the terms must be those they were indexed with."""
    tx.many_sql(
        "INSERT INTO full_text(full_text, rowid, tokens) VALUES ('delete', ?, ?)",
        [(row.key, _tokens(row)) for row in rows],
    )


def counts(
    tx: Transaction, resource_key: int, thread_key: int | None, terms: Sequence[int]
) -> dict[int, int]:
    """Return in how many messages of the scope each term is."""
    count = "SELECT count(*) FROM full_text WHERE full_text MATCH ?"
    return {
        term: tx.sql(count, _query(resource_key, thread_key, term))[0][0]
        for term in dict.fromkeys(terms)
    }


def matches(
    tx: Transaction, resource_key: int, thread_key: int | None, term: int
) -> NDArray[np.int64]:
    """Return the keys of the messages of the scope that have a term, ascending."""
    query = _query(resource_key, thread_key, term)
    rows = tx.sql("SELECT rowid FROM full_text WHERE full_text MATCH ?", query)
    return np.array(rows, dtype=np.int64).reshape(-1)


def left(tx: Transaction, keys: Sequence[int]) -> int:
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


def _tokens(row: Indexed) -> str:
    """Return the tokens of one message, separated by spaces."""
    # Formatting the bytes at once is ten times faster than one term after the other; tokens
    # that come twice do no harm, since positions are not kept.
    words = row.terms.astype(">u4").tobytes().hex(" ", 4)
    prefix = f" {row.resource_key:x}x"
    return f"t{row.thread_key:x}{prefix}{words.replace(' ', prefix)}"
