"""The SQL store keeps the contract: SQLite in a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.testing.message_store import MessageStoreSuite


class TestSQLite(MessageStoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SQLMessageStore]:
        store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
        yield store
        store.close()
