"""The tenants of `test_tenants` in PostgreSQL: a few short lives, for every step asks a server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.core.test_tenants import Tenants
from tests.postgres import postgres_server, with_schema

__all__ = ["postgres_server"]


class TenantsInPostgres(Tenants):
    server: ClassVar[str]
    """The URL of a server, while the tests of this module run."""

    def __init__(self) -> None:
        super().__init__()
        self.schema = f"tenants_{uuid.uuid4().hex}"

    def place(self, *, is_new: bool) -> str:
        return with_schema(self.server, self.schema)

    def teardown(self) -> None:
        super().teardown()
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")


@pytest.fixture(autouse=True)
def server(postgres_server: str) -> Iterator[None]:
    TenantsInPostgres.server = postgres_server
    yield
    del TenantsInPostgres.server


TenantsInPostgres.TestCase.settings = settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.generate],
    stateful_step_count=20,
    suppress_health_check=[HealthCheck.too_slow],
)
TestTenantsInPostgres = TenantsInPostgres.TestCase
