"""SQLAlchemy statements, compiled once and run on the driver's own cursor.

Core's way of running a statement costs 60 to 120 microseconds each, several times what SQLite
needs for the work, and a remembered turn is two dozen statements. So statements are written with
Core, for its dialects, and run without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Delete, Dialect, Insert, MetaData, Select, Update
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.compiler import SQLCompiler

Values = tuple[Any, ...]


class Statement:
    """One statement, in the words of each dialect that has asked.

    Args:
        core: The statement; its parameters have names.
        columns: For an insert or update, the columns that take their values from parameters of
            the same name.
    """

    __slots__ = ("_columns", "_compiled", "_core")

    def __init__(
        self, core: Select[Any] | Insert | Update | Delete, columns: Sequence[str] = ()
    ) -> None:
        self._core = core
        self._columns = columns
        self._compiled: dict[str, tuple[str, Callable[[Mapping[str, Any]], Values]]] = {}

    def compiled(self, dialect: Dialect) -> tuple[str, Callable[[Mapping[str, Any]], Values]]:
        """Return the SQL and what puts named parameters into their places."""
        known = self._compiled.get(dialect.name)
        if known is None:
            compiler = self._core.compile(dialect=dialect, column_keys=list(self._columns) or None)
            known = _positional(compiler)
            self._compiled[dialect.name] = known
        return known


def _positional(compiler: SQLCompiler) -> tuple[str, Callable[[Mapping[str, Any]], Values]]:
    names = tuple(compiler.positiontup or ())
    fixed = {name: bind.value for name, bind in compiler.binds.items() if not bind.required}
    if fixed:
        return compiler.string, lambda row: tuple(
            [fixed[name] if name in fixed else row[name] for name in names]
        )
    if len(names) > 1:
        return compiler.string, itemgetter(*names)
    return compiler.string, lambda row: tuple([row[name] for name in names])


class Transaction:
    """What a method of the store runs its statements in; made by `Database`."""

    __slots__ = ("_cursor", "_dialect")

    def __init__(self, cursor: DBAPICursor, dialect: Dialect) -> None:
        self._cursor = cursor
        self._dialect = dialect

    def all(self, statement: Statement, **parameters: object) -> Sequence[Any]:
        """Run a statement; return its rows as tuples."""
        sql, places = statement.compiled(self._dialect)
        self._cursor.execute(sql, places(parameters))
        return self._cursor.fetchall()

    def first(self, statement: Statement, **parameters: object) -> Any:  # noqa: ANN401 - a row
        """Run a statement; return its first row or None."""
        rows = self.all(statement, **parameters)
        return rows[0] if rows else None

    def value(self, statement: Statement, **parameters: object) -> Any:  # noqa: ANN401 - a value
        """Run a statement; return the first value of its first row, or None."""
        rows = self.all(statement, **parameters)
        return rows[0][0] if rows else None

    def run(self, statement: Statement, **parameters: object) -> int:
        """Run a statement without a result; return how many rows it touched."""
        sql, places = statement.compiled(self._dialect)
        self._cursor.execute(sql, places(parameters))
        return self._cursor.rowcount

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement once for each row of parameters."""
        if rows:
            sql, places = statement.compiled(self._dialect)
            self._cursor.executemany(sql, [places(row) for row in rows])

    def sql(self, text: str, *values: object) -> Sequence[Any]:
        """Run text that only this dialect knows; return its rows, if it has any."""
        self._cursor.execute(text, values)
        return self._cursor.fetchall() if self._cursor.description else ()

    def many_sql(self, text: str, rows: Iterable[Values]) -> None:
        """Run text that only this dialect knows once for each row of values."""
        self._cursor.executemany(text, list(rows))

    def create(self, tables: MetaData) -> None:
        """Create tables and their indexes."""
        for table in tables.sorted_tables:
            self.sql(str(CreateTable(table).compile(dialect=self._dialect)))
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                self.sql(str(CreateIndex(index).compile(dialect=self._dialect)))
