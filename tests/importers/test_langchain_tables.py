"""LangChain's tables in an SQLite file, which is only read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import pytest
from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    message_to_dict,
)

from langchain_semantic_recall.messages import to_langchain
from semantic_recall import Message
from semantic_recall.errors import ImportFormatError
from semantic_recall.importers import (
    BadRecord,
    Position,
    detect,
    read,
    read_with,
)
from tests.importers.support import (
    DEFAULTS,
    WHEN,
    good,
    query,
    said,
)
from tests.importers.test_langchain import SAID, TURN, without_ids


def history(path: Path, messages: Sequence[BaseMessage], *, postgres: bool = False) -> None:
    """Write a table as SQLChatMessageHistory or PostgresChatMessageHistory lays it out."""
    more = ", created_at TEXT" if postgres else ""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT"
            f"{more})"
        )
        rows = [
            (
                f"s{number % 2}",
                json.dumps(message_to_dict(one)),
                *(["2024-05-01 10:00:00+02"] * postgres),
            )
            for number, one in enumerate(messages)
        ]
        names = "session_id, message" + (", created_at" if postgres else "")
        marks = ", ".join("?" * (2 + postgres))
        database.executemany(f"INSERT INTO message_store ({names}) VALUES ({marks})", rows)


@pytest.mark.parametrize("postgres", [False, True])
def test_langchain_tables(postgres: bool, tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, TURN, postgres=postgres)
    importer, position = detect(path), Position()
    assert importer.name == "langchain-sql"
    messages = good(list(read_with(importer, path, DEFAULTS, position)))
    assert (position.done, position.total) == (6, 6)
    assert said(messages) == SAID
    assert [one.thread_id for one in messages] == ["s0", "s1"] * 3
    assert [one.id for one in messages[:2]] == ["message_store-1", "h"]
    moment = datetime(2024, 5, 1, 8, tzinfo=timezone.utc) if postgres else WHEN
    assert {one.created_at for one in messages} == {moment}
    assert without_ids(list(map(to_langchain, messages))) == without_ids(TURN)


def test_bad_rows_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, [HumanMessage("a"), HumanMessage("b")])
    insert = "INSERT INTO message_store (session_id, message) VALUES (?, CAST(? AS TEXT))"
    for session, value in [("s", "{nope"), ("s", None), (None, "{}"), ("s", b'{"type":"\xff"}')]:
        query(path, insert, session, value)
    items = list(read(path))
    assert [one.text for one in items if isinstance(one, Message)] == ["a", "b"]
    found = [(one.where, one.reason) for one in items if isinstance(one, BadRecord)]
    assert [where for where, _ in found] == [
        f"row {n} of table message_store" for n in (3, 4, 5, 6)
    ]
    for (_, reason), part in zip(
        found, ["not JSON", '"message" is None', '"thread" is None', "not UTF-8"], strict=True
    ):
        assert part in reason


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_database_is_only_read(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    history(path, TURN)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
    before = path.read_bytes()
    assert len(list(read(path))) == 6
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["chat.db"]


def test_a_database_in_use_is_read_with_what_is_only_in_its_log(tmp_path: Path) -> None:
    path = tmp_path / "a ?#%41.db"
    history(path, TURN)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(
            "INSERT INTO message_store (session_id, message) VALUES ('s', ?)",
            [json.dumps(message_to_dict(HumanMessage("fresh")))],
        )
        assert [one.text for one in good(list(read(path)))][-1] == "fresh"


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    query(path, "CREATE TABLE notes (id, session_id)")
    with pytest.raises(ImportFormatError, match="without tables of a known chat history"):
        detect(path)
