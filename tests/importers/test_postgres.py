"""Tables of LangChain and LlamaIndex in a real PostgreSQL, which is only read."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import BaseMessage, HumanMessage, message_to_dict

from langchain_semantic_recall.messages import to_langchain
from semantic_recall import Message, SemanticRecall
from semantic_recall.errors import ImportFormatError, MissingDependencyError
from semantic_recall.importers import Position, defaults_of, detect, named, read, read_with
from semantic_recall.importers import without_password as shown
from tests.core.cli_support import run, run_json
from tests.importers.support import bad, good, peak, said
from tests.importers.test_langchain import SAID, TURN, without_ids

SESSION = str(uuid.UUID(int=7))


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to an empty schema of its own."""
    with closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        (schema,) = connection.execute("SHOW search_path").fetchone() or ("",)
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        yield connection


def community(connection: psycopg.Connection[Any], name: str = "message_store") -> None:
    """Make the table of langchain_community's PostgresChatMessageHistory."""
    connection.execute(
        f"""CREATE TABLE IF NOT EXISTS {name} (
            id SERIAL PRIMARY KEY, session_id TEXT NOT NULL, message JSONB NOT NULL);""".encode()
    )


def own_package(connection: psycopg.Connection[Any]) -> None:
    """Make the table of langchain_postgres's PostgresChatMessageHistory."""
    connection.execute(
        b"""CREATE TABLE IF NOT EXISTS chat_history (
            id SERIAL PRIMARY KEY, session_id UUID NOT NULL, message JSONB NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP);"""
    )


def put(
    connection: psycopg.Connection[Any], table: str, messages: list[BaseMessage], **more: object
) -> None:
    """Add messages as the histories do it."""
    names = ", ".join(["session_id", "message", *more])
    marks = ", ".join(["%s"] * (2 + len(more)))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {table} ({names}) VALUES ({marks})".encode(),
            [(SESSION, json.dumps(message_to_dict(one)), *more.values()) for one in messages],
        )


def test_the_table_of_langchain_postgres(
    connection: psycopg.Connection[Any], postgres_url: str
) -> None:
    own_package(connection)
    put(connection, "chat_history", TURN, created_at="2024-05-01 12:00:00.5+02")
    importer, position = detect(postgres_url), Position()
    assert importer.name == "langchain-sql"
    items = read_with(importer, postgres_url, defaults_of(postgres_url), position)
    messages = good(list(items))
    assert (position.done, position.total) == (6, 6)
    assert said(messages) == SAID
    assert {one.thread_id for one in messages} == {SESSION}
    assert {one.created_at.isoformat() for one in messages} == {"2024-05-01T10:00:00.500000+00:00"}
    assert [one.id for one in messages[:2]] == ["chat_history-1", "h"]
    assert without_ids(list(map(to_langchain, messages))) == without_ids(TURN)


def test_rows_without_a_time_keep_that_of_their_first_import(
    connection: psycopg.Connection[Any], postgres_url: str, tmp_path: Path
) -> None:
    community(connection)
    put(connection, "message_store", TURN)
    path = tmp_path / "memory"
    arguments = ("import", postgres_url, "--path", path, "--resource", "mina")
    first = run_json(*arguments, "--embedder", "none")
    assert (first["format"], first["messages"], first["new"]) == ("langchain-sql", 6, 6)
    before = stored(path)
    put(connection, "message_store", [HumanMessage("one more")])
    again = run_json(*arguments, "--embedder", "none")
    assert (again["messages"], again["new"]) == (7, 1)
    assert stored(path)[:6] == before
    assert stored(path)[6].text == "one more"
    # Nothing of the source was changed.
    (count,) = connection.execute("SELECT count(*) FROM message_store").fetchone() or (0,)
    assert count == 7


def stored(path: Path) -> list[Message]:
    with SemanticRecall.open(path, embedder=None) as memory:
        return list(memory.messages())


def test_a_bad_row_is_named_and_the_rest_is_read(
    connection: psycopg.Connection[Any], postgres_url: str
) -> None:
    community(connection, '"odd ""name"')
    put(connection, '"odd ""name"', [HumanMessage("a")])
    connection.execute(
        b'INSERT INTO "odd ""name" (session_id, message) VALUES (\'s\', \'{"type": "human"}\')'
    )
    put(connection, '"odd ""name"', [HumanMessage("b")])
    items = list(read(postgres_url.replace("postgresql://", "postgresql+psycopg://")))
    assert [one.text for one in items if isinstance(one, Message)] == ["a", "b"]
    assert [one.where for one in bad(items)] == ['row 2 of table odd "name']


def test_the_table_of_a_llamaindex_chat_store(
    connection: psycopg.Connection[Any], postgres_url: str
) -> None:
    # As SQLAlchemyChatStore makes it; its own engine for PostgreSQL needs another driver.
    connection.execute(
        b"""CREATE TABLE llama_index_memory (
            id SERIAL PRIMARY KEY, key VARCHAR NOT NULL, timestamp BIGINT NOT NULL,
            role VARCHAR NOT NULL, status VARCHAR NOT NULL, data JSON NOT NULL)"""
    )
    for number, text in enumerate(["second", "first"]):
        chat = {"role": "user", "blocks": [{"block_type": "text", "text": text}]}
        connection.execute(
            b"INSERT INTO llama_index_memory (key, timestamp, role, status, data) "
            b"VALUES ('k', %s, 'user', 'active', %s)",
            ((1714557600 - number) * 10**9, json.dumps(chat)),
        )
    assert detect(postgres_url).name == "llamaindex-sql"
    messages = good(list(read(postgres_url)))
    assert [(one.thread_id, one.text) for one in messages] == [("k", "first"), ("k", "second")]
    assert messages[1].created_at.isoformat() == "2024-05-01T10:00:00+00:00"


def test_what_is_not_there_is_one_line_without_the_password(
    connection: psycopg.Connection[Any], postgres_url: str, tmp_path: Path
) -> None:
    with pytest.raises(ImportFormatError, match="no tables of a known chat history"):
        detect(postgres_url)
    with pytest.raises(ImportFormatError, match="jsonl is a format of files"):
        list(read(postgres_url, importer=named("jsonl")))
    with pytest.raises(ImportFormatError, match="no SQLite database and no postgresql:// URL"):
        list(read(tmp_path, importer=named("langchain-sql")))
    url = "postgresql://me:s3cret@127.0.0.1:1/db?password=s3cret&x=1"
    result = run("import", url, "--path", tmp_path / "memory", "--embedder", "none", code=1)
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: postgresql://me:***@127.0.0.1:1/db?password=***&x=1 ")
    assert "s3cret" not in result.stderr
    assert not (tmp_path / "memory").exists()
    assert shown("postgresql://me@host/db") == "postgresql://me@host/db"
    assert shown("chats.jsonl") == "chats.jsonl"


def test_without_psycopg_the_pip_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "chat-semantic-recall\[postgr'):
        detect("postgresql://127.0.0.1:1/db")


def test_memory_stays_bounded(connection: psycopg.Connection[Any], postgres_url: str) -> None:
    community(connection)
    connection.execute(
        b"""INSERT INTO message_store (session_id, message) SELECT 's' || n, json_build_object(
            'type', 'human', 'data', json_build_object('content', repeat('x', 900)))
            FROM generate_series(1, 8000) AS n"""
    )

    def work() -> None:
        assert sum(isinstance(one, Message) for one in read(postgres_url)) == 8_000

    assert peak(work) < 2 * 2**20  # the table has 8 MB
