"""The SQL store keeps the contract: PostgreSQL."""

from collections.abc import Iterator

import pytest

from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.testing.message_store import MessageStoreSuite
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


class TestPostgres(MessageStoreSuite):
    @pytest.fixture
    def store(self, postgres_url: str) -> Iterator[SQLMessageStore]:
        store = SQLMessageStore.connect(postgres_url)
        yield store
        store.close()
