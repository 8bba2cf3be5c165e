"""Reaching PostgreSQL: what a URL says, connections, and how a transaction is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from semantic_recall.errors import StoreError
from semantic_recall.stores._backend import Cursor
from semantic_recall.stores._postgres_bulk import ManyRows
from semantic_recall.stores._postgres_types import Register

SCHEMA = "semantic_recall"
POOL_SIZE = 10

_DEFAULTS = {
    "application_name": "semantic-recall",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    # A server that is gone without a word: give up what was sent to it after 30 s.
    "tcp_user_timeout": "30000",
}
_ALWAYS = {"client_encoding": "utf8"}  # in which arrays of texts are packed
_SEARCH_PATH = re.compile(r"""search_path\s*=\s*(?:"([^"]+)"|([^\s,"$]+))""")


@dataclass(frozen=True, slots=True)
class Address:
    """What a URL says."""

    conninfo: str
    """For libpq, with the password."""
    name: str
    """For people, without it."""
    schema: str
    """The schema of the tables, quoted."""
    pool_size: int


def read_url(url: str) -> Address:
    """Read a URL as libpq takes it, and `pool_size` besides.

    Raises:
        StoreError: The URL cannot be read.
    """
    parameters, pool_size = _parse(url)
    found = _SEARCH_PATH.search(str(parameters.get("options") or ""))
    schema = (found[1] or found[2]) if found else SCHEMA
    return Address(
        conninfo=make_conninfo(**{**_DEFAULTS, **parameters, **_ALWAYS}),
        name="postgresql://{}:{}/{}".format(
            parameters.get("host") or "localhost",
            parameters.get("port") or 5432,
            parameters.get("dbname") or "",
        ),
        schema='"' + schema.replace('"', '""') + '"',
        pool_size=pool_size,
    )


def _parse(url: str) -> tuple[Mapping[str, Any], int]:
    """Return what libpq takes, and the size of the pool."""
    start, _, query = url.partition("?")
    scheme, separator, rest = start.partition("://")
    options = dict(parse_qsl(query, keep_blank_values=True))
    size = options.pop("pool_size", str(POOL_SIZE))
    if not size.isdecimal() or not int(size):
        raise StoreError(f"pool_size in the URL of the database must be at least 1, not {size!r}")
    plain = f"{scheme.partition('+')[0]}{separator}{rest}"
    if options:
        plain += "?" + urlencode(options, quote_via=quote)
    unreadable = StoreError(
        "the URL of the database cannot be read; it looks like"
        " postgresql://user:password@host:5432/database, with special characters in the"
        " password as %XX, and parameters of libpq or pool_size after a ?"
    )
    try:
        parameters = conninfo_to_dict(plain)
    except psycopg.Error:
        # Neither the URL nor libpq's words about it: either can hold the password.
        raise unreadable from None
    ports = str(parameters.get("port") or "").split(",")
    # A password with @, : or / in it comes apart, and parts of it would be shown as these.
    if "@" in str(parameters.get("host")) or not all(p.isdecimal() for p in ports if p):
        raise unreadable
    return parameters, int(size)


def connect(address: Address, register: Register) -> psycopg.Connection[Any]:
    """Return a fresh connection."""
    connection = psycopg.connect(address.conninfo, autocommit=True, cursor_factory=_BinaryCursor)
    register(connection)
    return connection


class _BinaryCursor(psycopg.Cursor[Any]):
    """Asks the server for its binary form, which takes no parsing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as psycopg has it
        super().__init__(*args, **kwargs)
        self.format = psycopg.pq.Format.BINARY


@contextmanager
def pipelined(
    connection: psycopg.Connection[Any], for_many: Callable[[str], ManyRows | None]
) -> Iterator[Cursor]:
    """Lend a cursor that waits only for rows that are fetched.

    So a transaction of a dozen statements asks the server three or four times.

    Args:
        connection: Nobody else uses it meanwhile.
        for_many: Finds the form for many rows of a statement, if there is one.
    """
    with connection.pipeline():
        yield _PipelineCursor(connection, for_many)


class _PipelineCursor:
    description = True  # whoever asks here is about to fetch

    def __init__(
        self, connection: psycopg.Connection[Any], for_many: Callable[[str], ManyRows | None]
    ) -> None:
        self._connection = connection
        self._for_many = for_many
        self._last: list[psycopg.Cursor[Any]] = []

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> None:
        self._run([(statement, parameters)])

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> None:
        many = self._for_many(statement)
        if many is None:
            self._run((statement, row) for row in parameters)
        else:
            self._run((many.sql, batch) for batch in many.batches(parameters))

    def fetchall(self) -> Sequence[Any]:
        return [row for cursor in self._last for row in cursor.fetchall()]

    def _run(self, statements: Iterable[tuple[str, Sequence[Any]]]) -> None:
        # Each in a cursor of its own, because results that nobody fetched would come first.
        self._last = []
        for statement, parameters in statements:
            cursor = self._connection.cursor()
            cursor.execute(statement, parameters)
            self._last.append(cursor)
