"""LangGraph's store on SQLite with sqlite-vec."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from langgraph.store.sqlite import SqliteStore

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import NotRunnableError, Options
from benchmarks.peers._langchain_embeddings import MemoEmbeddings
from benchmarks.peers.langgraph_memory import StoreSubject


class SqliteSubject(StoreSubject):
    """A store with its connection."""

    def __init__(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        super().__init__(store)
        self._connection = connection

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> SqliteSubject:
    """Open a store in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "store.sqlite3" if options.durable else ":memory:"
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    if not hasattr(connection, "enable_load_extension"):
        raise NotRunnableError("this Python's sqlite3 cannot load extensions")
    store = SqliteStore(
        connection,
        index={
            "dims": embedder.space.dimensions,
            "embed": MemoEmbeddings(embedder),
            "fields": ["text"],
        },
    )
    store.setup()
    return SqliteSubject(store, connection)
