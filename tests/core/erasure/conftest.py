"""A memory with messages of others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.stores.sql import SQLMessageStore
from tests.core.erasing import (
    fill,
    opened,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory with 60 messages of others, in one collection."""
    with SQLMessageStore.open(tmp_path / "recall.sqlite3") as store:
        store.setting("index_shards", "1")
    with opened(tmp_path) as memory:
        fill(memory, 60)
        assert memory.flush()
    return tmp_path


@pytest.fixture
def memory(folder: Path) -> Iterator[SemanticRecall]:
    with opened(folder) as memory:
        yield memory
