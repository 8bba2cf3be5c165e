"""PostgreSQL: connections, its errors in plain words, its care."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import psycopg
from sqlalchemy import exc
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.pool import Pool, QueuePool

from semantic_recall.errors import StoreError
from semantic_recall.stores._backend import Compiled, Cursor, FullText, NearestVectors, VectorRows
from semantic_recall.stores._postgres_bulk import ManyRows
from semantic_recall.stores._postgres_connection import connect, pipelined, read_url
from semantic_recall.stores._postgres_fulltext import PostgresFullText
from semantic_recall.stores._postgres_schema import CREATE, EXTENSION
from semantic_recall.stores._postgres_types import Register
from semantic_recall.stores._postgres_vectors import PostgresVectors
from semantic_recall.stores._statements import NO_SCHEMA, Statement, Transaction

POOL_SECONDS = 30
"""How long a thread waits for a connection while all are busy."""
RECYCLE_SECONDS = 1800
"""Connections are renewed, so that those that a proxy or a failover left behind go away."""
LOCK_SECONDS = 30
MIGRATION_LOCK = 7_310_868_735_406_104_422
"""Of the whole database, because the extension is too."""

_DIALECT = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]

_CONFLICTS = frozenset({
    "40001",  # serialization failure
    "40P01",  # deadlock
    "23505",  # another transaction made the same resource, thread or message first
    "23503",  # another transaction removed what this one refers to
})  # fmt: skip

_REMEDIES = (
    ("53100", "the disk is full; free space and try again, nothing was half written"),
    ("53300", "the server has no connection left; lower pool_size or raise max_connections"),
    ("55P03", f"another transaction kept it locked for {LOCK_SECONDS} s; try again, or look for"
              " a stuck one in pg_stat_activity"),
    ("57014", "the statement was cancelled or took longer than statement_timeout"),
    ("25006", "the server is a read replica or read-only; give the URL of the primary"),
    ("42501", "the role lacks a privilege; see docs/postgresql.md for those that it needs"),
    ("28", "the server refused the user or the password"),
    ("3D000", "the database does not exist; create it first"),
)  # fmt: skip


class Postgres:
    """A `Backend` in one schema of a database; see there for what the methods do.

    Args:
        url: As libpq takes it (postgresql://...), and `pool_size` besides.

    Raises:
        StoreError: The URL cannot be read.
    """

    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    one_writer = in_process = False
    begin_read = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
    begin_migration = ("BEGIN", f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")

    def __init__(self, url: str) -> None:
        self._address = read_url(url)
        self._schema = self._address.schema
        self.name = self._address.name
        # With a lock that only `begin_alone` conflicts with; both are held to the end.
        lock = f"LOCK TABLE {self._schema}.spaces IN"
        begin = ("BEGIN", f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        self.begin_write = (*begin, f"{lock} ROW EXCLUSIVE MODE")
        self.begin_derived = (*self.begin_write, "SET LOCAL synchronous_commit = off")
        self.begin_alone = (*begin, f"{lock} EXCLUSIVE MODE")
        self.full_text: FullText = PostgresFullText(self._schema)
        self._vectors = PostgresVectors(self._schema)
        self.vector_rows: VectorRows = self._vectors
        self.nearest_vectors: NearestVectors | None = self._vectors
        self._new_keys = (
            f"SELECT nextval('{self._schema}.message_keys'::regclass) FROM generate_series(1, %s)"
        )
        self._register = Register()
        self._compiled: dict[Statement, Compiled] = {}
        self._writing: dict[str, Statement] = {}
        self._for_many: dict[str, ManyRows] = {}

    def pool(self) -> Pool:
        return QueuePool(
            self._connect,
            pool_size=self._address.pool_size,
            max_overflow=0,
            timeout=POOL_SECONDS,
            recycle=RECYCLE_SECONDS,
            use_lifo=True,
        )

    def _connect(self) -> Any:  # noqa: ANN401 - SQLAlchemy's name for it is not public
        return connect(self._address, self._register)

    def batch(
        self, connection: psycopg.Connection[Any], delayed: bool
    ) -> AbstractContextManager[Cursor]:
        if not delayed:
            return nullcontext(connection.cursor())
        return pipelined(connection, self._many)

    def compiled(self, statement: Statement) -> Compiled:
        known = self._compiled.get(statement)
        if known is None:
            sql, places = statement.compiled(_DIALECT)
            known = self._named(sql), places
            self._compiled[statement] = known
            self._writing[known[0]] = statement
        return known

    def _named(self, sql: str) -> str:
        return sql.replace(NO_SCHEMA, self._schema.replace("%", "%%"))

    def _many(self, sql: str) -> ManyRows | None:
        known = self._for_many.get(sql)
        if known is None and sql in self._writing:
            known = ManyRows(self._writing[sql], _DIALECT, self._named)
            self._for_many[sql] = known
        return known

    def explain(self, error: Exception) -> str:
        if isinstance(error, exc.TimeoutError):
            return (
                f"the message store {self.name} failed: all {self._address.pool_size} connections"
                f" were busy for {POOL_SECONDS} s; raise pool_size in the URL"
            )
        cause = str(error).strip().replace("\n", " ")
        code = getattr(error, "sqlstate", None) or ""
        for start, remedy in _REMEDIES:
            if code.startswith(start):
                return f"the message store {self.name} failed ({cause}): {remedy}"
        if isinstance(error, psycopg.OperationalError) and not code:
            remedy = "the server cannot be reached; check that it runs and the URL"
            return f"the message store {self.name} failed ({cause}): {remedy}"
        return f"the message store {self.name} failed: {cause}"

    def conflict(self, error: Exception) -> bool:
        return isinstance(error, psycopg.Error) and error.sqlstate in _CONFLICTS

    def lost(self, connection: Any) -> bool:  # noqa: ANN401 - see Backend
        return connection is None or bool(connection.closed)

    def listed(self, values: Iterable[object]) -> list[object]:
        return list(values)

    def new_keys(self, tx: Transaction, n: int) -> Sequence[int]:
        return [row[0] for row in tx.sql(self._new_keys, n)]

    def create(self, tx: Transaction) -> None:
        if tx.sql("SELECT current_setting('server_encoding')")[0][0] != "UTF8":
            raise StoreError(f"the database {self.name} must have the encoding UTF8")
        # Asked first, because IF NOT EXISTS needs the privilege even when there is nothing to do.
        if tx.sql("SELECT to_regnamespace(%s) IS NULL", self._schema)[0][0]:
            tx.sql(f"CREATE SCHEMA {self._schema}")
        if not tx.sql(_FIND_EXTENSION):
            self._create_extension(tx)
        vector_schema = tx.sql(_FIND_EXTENSION)[0][2]
        for statement in CREATE:
            tx.sql(statement.format(s=self._schema, v=vector_schema))

    def _create_extension(self, tx: Transaction) -> None:
        # Not into the schema of this store: dropping that would take it from all others.
        has_public = tx.sql("SELECT to_regnamespace('public') IS NOT NULL")[0][0]
        try:
            tx.sql(f"{EXTENSION} SCHEMA public" if has_public else EXTENSION)
        except psycopg.Error as error:
            raise StoreError(
                f"the database {self.name} needs the extension pgvector, and it cannot be created"
                f" ({str(error).strip()}): install pgvector on the server, and have an"
                " administrator run `CREATE EXTENSION vector` in this database"
            ) from error

    def ready(self, tx: Transaction) -> None:
        found = tx.sql(_FIND_EXTENSION)
        if not found:
            raise StoreError(f"the database {self.name} has lost the extension pgvector (vector)")
        vector, vectors, schema = found[0]
        self._register.know(vector, vectors)
        self._vectors.use(schema, vector)

    def has_table(self, tx: Transaction, name: str) -> bool:
        # Through pg_class, because `to_regclass` alone may answer from what this session knew
        # before it waited for the process that made the tables.
        found = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = to_regclass(%s))"
        return bool(tx.sql(found, f"{self._schema}.{name}")[0][0])

    def size(self, tx: Transaction) -> int:
        n: int = tx.sql(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'",
            self._schema,
        )[0][0]
        return n

    def faults(self, tx: Transaction) -> list[str]:
        return []  # PostgreSQL checks its files itself (data checksums, amcheck)

    def scrub(self, tx: Transaction) -> None:
        _wait_for_older_snapshots(tx, self.name)
        tx.sql(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        try:
            for table in _REWRITTEN:
                tx.sql(f"VACUUM (FULL, ANALYZE) {self._schema}.{table}")
        finally:
            tx.sql("RESET lock_timeout")


_REWRITTEN = (
    "messages", "terms", "full_text", "vectors", "pending", "outbox", "threads", "resources",
)  # fmt: skip
_FIND_EXTENSION = (
    "SELECT t.oid::bigint, t.typarray::bigint, quote_ident(n.nspname) FROM pg_extension e"
    " JOIN pg_namespace n ON n.oid = e.extnamespace"
    " JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = 'vector'"
    " WHERE e.extname = 'vector'"
)
_OLDER_SNAPSHOTS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND age(backend_xmin) >= age(CAST(%s AS text)::xid)"
)


def _wait_for_older_snapshots(tx: Transaction, name: str) -> None:
    """Wait until nobody can see what was deleted before: rewriting a table would keep it."""
    now = tx.sql("SELECT (pg_current_xact_id()::xid)::text")[0][0]
    deadline = time.monotonic() + LOCK_SECONDS
    while tx.sql(_OLDER_SNAPSHOTS, now)[0][0]:
        if time.monotonic() > deadline:
            raise StoreError(
                f"the deleted text may still be in the database {name}: a transaction older than"
                " the deletion has been open all the time (pg_stat_activity); scrub again later"
            )
        time.sleep(0.05)
