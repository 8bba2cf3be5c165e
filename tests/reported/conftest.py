"""What the tests of reports share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    """A memory without a vector index, which opens in no time."""
    store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
    with SemanticRecall(store, None, HashEmbedder(64)) as memory:
        yield memory
