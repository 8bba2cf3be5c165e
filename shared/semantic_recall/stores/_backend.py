"""What the store asks of a database in its own way, and not through SQLAlchemy's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.pool import Pool

if TYPE_CHECKING:
    from semantic_recall.stores._statements import Statement, Transaction

Compiled = tuple[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]]
"""SQL, and what puts named parameters into their places."""


class Cursor(Protocol):
    """What a `Transaction` needs of a driver's cursor."""

    @property
    def description(self) -> Any:  # noqa: ANN401 - only asked whether there is one
        """None if the last statement has no rows."""
        ...

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> object:
        """Run a statement."""
        ...

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> object:
        """Run a statement without rows once for each of many parameters."""
        ...

    def fetchall(self) -> Sequence[Any]:
        """Return the rows of the last statement."""
        ...


class Indexed(NamedTuple):
    """The terms of one message for the full text."""

    key: int
    resource_key: int
    thread_key: int
    terms: NDArray[np.uint32]


class NewVectors(NamedTuple):
    """The vectors of one message to be stored."""

    key: int
    resource_key: int
    thread_key: int
    vectors: NDArray[np.float32]
    """Shape (chunks, dimensions)."""


class FullText(Protocol):
    """Full text over hashed terms, kept apart by resource."""

    def insert(self, tx: Transaction, rows: Sequence[Indexed]) -> None:
        """Index messages."""
        ...

    def delete(self, tx: Transaction, rows: Sequence[Indexed]) -> None:
        """Remove messages; the terms must be those they were indexed with."""
        ...

    def counts(
        self, tx: Transaction, resource_key: int, thread_key: int | None, terms: Sequence[int]
    ) -> dict[int, int]:
        """Return in how many messages of the scope each term is."""
        ...

    def matches(
        self, tx: Transaction, resource_key: int, thread_key: int | None, term: int
    ) -> NDArray[np.int64]:
        """Return the keys of the messages of the scope that have a term."""
        ...

    def left(self, tx: Transaction, keys: Sequence[int]) -> int:
        """Count which of `keys` the index still holds."""
        ...

    def total(self, tx: Transaction) -> int:
        """Return how many messages are indexed."""
        ...


class VectorRows(Protocol):
    """How vectors stand in their table."""

    def insert_vectors(self, tx: Transaction, space_key: int, rows: Iterable[NewVectors]) -> None:
        """Write the vectors of messages that have none in the space."""
        ...

    def decode(
        self, rows: Sequence[Sequence[Any]], dimensions: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the message of each vector and the vectors from rows (key, chunks, data)."""
        ...

    def by_digests(
        self, tx: Transaction, space_key: int, digests: Sequence[bytes], dimensions: int
    ) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors of any one message for each digest that has some."""
        ...


class NearestVectors(Protocol):
    """Vectors of which the database itself finds the nearest."""

    def nearest(
        self, tx: Transaction, place: tuple[int, int | None], space_key: int,
        vector: NDArray[np.float32], limit: int,
    ) -> Sequence[Sequence[Any]]:  # fmt: skip
        """Return the nearest chunks of a scope, best first: rows (key, chunk, cosine)."""
        ...


class Backend(Protocol):
    """One kind of database: how to reach it, what its errors mean, what only it knows."""

    @property
    def name(self) -> str:
        """Names the database in errors; holds no password."""
        ...

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The driver's errors."""
        ...

    @property
    def one_writer(self) -> bool:
        """Whether writers wait for each other, whatever they write."""
        ...

    @property
    def in_process(self) -> bool:
        """Whether many small statements cost less than a large one: no server is asked."""
        ...

    @property
    def begin_read(self) -> Sequence[str]:
        """Begins a transaction that sees one snapshot."""
        ...

    @property
    def begin_write(self) -> Sequence[str]:
        """Begins a transaction that writes."""
        ...

    @property
    def begin_derived(self) -> Sequence[str]:
        """Begins one that writes what can be made anew; a power loss may undo it as a whole."""
        ...

    @property
    def begin_alone(self) -> Sequence[str]:
        """Begins one beside which no other writes."""
        ...

    @property
    def begin_migration(self) -> Sequence[str]:
        """Begins one beside which no other migrates."""
        ...

    @property
    def full_text(self) -> FullText:
        """The full text."""
        ...

    @property
    def vector_rows(self) -> VectorRows:
        """The vectors."""
        ...

    @property
    def nearest_vectors(self) -> NearestVectors | None:
        """The same, if the database can find the nearest of them."""
        ...

    def pool(self) -> Pool:
        """Return a new pool of connections that begin no transaction by themselves."""
        ...

    def batch(
        self, connection: Any,  # noqa: ANN401 - a driver's own connection
        delayed: bool,
    ) -> AbstractContextManager[Cursor]:  # fmt: skip
        """Lend a cursor.

        With `delayed` it need not wait for statements whose rows nobody fetches; they are done,
        or have failed, when the context ends.
        """
        ...

    def compiled(self, statement: Statement) -> Compiled:
        """Return a statement in this database's words."""
        ...

    def explain(self, error: Exception) -> str:
        """Return one sentence with what failed and the remedy."""
        ...

    def conflict(self, error: Exception) -> bool:
        """Tell whether a transaction failed because of another and may succeed when repeated."""
        ...

    def lost(self, connection: Any) -> bool:  # noqa: ANN401 - a driver's own connection
        """Tell whether a connection cannot be used any more."""
        ...

    def listed(self, values: Iterable[object]) -> object:
        """Return the parameter for `among`."""
        ...

    def new_keys(self, tx: Transaction, n: int) -> Sequence[int]:
        """Return `n` message keys, ascending, that were never given out."""
        ...

    def create(self, tx: Transaction) -> None:
        """Create every table of the first migration."""
        ...

    def ready(self, tx: Transaction) -> None:
        """Look up what is needed of a database that is up to date."""
        ...

    def has_table(self, tx: Transaction, name: str) -> bool:
        """Tell whether a table exists."""
        ...

    def size(self, tx: Transaction) -> int:
        """Return the bytes that the store takes in the database."""
        ...

    def faults(self, tx: Transaction) -> list[str]:
        """Return what the database finds wrong with its own files."""
        ...

    def scrub(self, tx: Transaction) -> None:
        """Overwrite freed bytes, as far as the database can; without a transaction."""
        ...
