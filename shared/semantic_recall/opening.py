"""The only place that chooses parts: from a path to a store, an index and an embedder."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from semantic_recall.embedders import embedder_named
from semantic_recall.errors import StoreError
from semantic_recall.protocols import Embedder, MessageStore, VectorIndex

DEFAULT_EMBEDDER = "wordllama"
DATABASE = "recall.sqlite3"
INDEX_FOLDER = "chroma"
DEFAULT_INDEX_NAME = "memory"
DEFAULT_SHARDS = 16
"""Collections of a new vector index; the store fixes the number for good."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a memory is made from."""

    store: MessageStore
    index: Callable[[], VectorIndex]
    """Opens the index, or raises `IndexLockedError` while another process owns it."""
    embedder: Embedder | None


_URL = re.compile(r"postgres(ql)?(\+psycopg)?://")


def is_database_url(path: str) -> bool:
    """Tell whether `path` is the URL of a database and not a folder."""
    return _URL.match(path) is not None


def parts(
    path: str | Path,
    embedder: Embedder | str | None,
    index_name: str | None,
    *,
    index_process: bool,
) -> Parts:
    """Return the parts of the memory in a folder, which is created if it is missing.

    Or of the memory in a PostgreSQL database, if `path` is its URL (postgresql://...).

    Raises:
        StoreError: The folder or the database cannot be opened.
        InvalidOptionError: There is no embedder of that name.
        MissingDependencyError: The embedder's or the database's extra is not installed.
    """
    if isinstance(embedder, str):
        embedder = embedder_named(embedder)
    if isinstance(path, str) and is_database_url(path):
        return _in_postgresql(path, embedder)
    # Absolute, so that it stays the same folder when the process changes its directory.
    folder = Path(path).absolute()
    return _in_folder(folder, embedder, index_name or DEFAULT_INDEX_NAME, index_process)


def _in_folder(
    folder: Path, embedder: Embedder | None, index_name: str, index_process: bool
) -> Parts:
    # The drivers are loaded here, when a memory is opened, to keep the import quick.
    from semantic_recall.stores.sql import SQLMessageStore  # noqa: PLC0415

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be made or is a file: {error}") from error
    store = SQLMessageStore.open(folder / DATABASE)
    shards = int(store.setting("index_shards", str(DEFAULT_SHARDS)))

    def open_index() -> VectorIndex:
        keep = [info.space for info in store.spaces()]
        if index_process:
            from semantic_recall.indexes.process import (  # noqa: PLC0415
                ProcessVectorIndex,
                can_start_processes,
            )

            if can_start_processes():
                return ProcessVectorIndex(
                    folder / INDEX_FOLDER, shards=shards, prefix=index_name, keep=keep
                )
        from semantic_recall.indexes.chroma import ChromaVectorIndex  # noqa: PLC0415

        return ChromaVectorIndex.embedded(
            folder / INDEX_FOLDER, shards=shards, prefix=index_name, keep=keep
        )

    return Parts(store, open_index, embedder)


def _in_postgresql(url: str, embedder: Embedder | None) -> Parts:
    from semantic_recall.indexes.pgvector import PgVectorIndex  # noqa: PLC0415 - see above
    from semantic_recall.stores.sql import SQLMessageStore  # noqa: PLC0415 - see above

    # The index searches the store's own rows, so there is nothing to queue for it.
    store = SQLMessageStore.connect(url, outbox=False)
    return Parts(store, lambda: PgVectorIndex(store), embedder)
