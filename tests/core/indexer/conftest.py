"""An indexer on a real store and a real Chroma index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall.indexer import Indexer
from semantic_recall.stores.sql import SQLMessageStore
from tests.core.indexing import LOGGER, SPACE, Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
    store.add_space(SPACE, active=True)
    yield Memory(tmp_path, store)
    store.close()


@pytest.fixture
def indexer(memory: Memory) -> Iterator[Indexer]:
    indexer = Indexer(memory.store, memory.open_index, memory.embed, logger=LOGGER)
    yield indexer
    indexer.close()
