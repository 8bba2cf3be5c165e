"""SQLAlchemy statements, compiled once and run on the driver's own cursor.

Core's way of running a statement costs 60 to 120 microseconds each, several times what SQLite
needs for the work, and a remembered turn is two dozen statements. So statements are written with
Core, for its dialects, and run without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from sqlalchemy import Delete, Dialect, Insert, Select, Update
from sqlalchemy.sql.compiler import SQLCompiler

from semantic_recall.stores._backend import Backend, Compiled, Cursor

Values = tuple[Any, ...]
Core: TypeAlias = Select[Any] | Insert | Update | Delete

NO_SCHEMA = "__[SCHEMA__none]"
"""Stands in the compiled SQL for the name of the schema, where a database has schemas."""


class Statement:
    """One statement, in the words of each dialect that has asked.

    Args:
        core: The statement; its parameters have names.
        columns: For an insert or update, the columns that take their values from parameters of
            the same name.
        postgresql: The statement on PostgreSQL, where it is another.
    """

    __slots__ = ("_columns", "_compiled", "_cores")

    def __init__(
        self, core: Core, columns: Sequence[str] = (), *, postgresql: Core | None = None
    ) -> None:
        self._cores = {"sqlite": core, "postgresql": core if postgresql is None else postgresql}
        self._columns = columns
        self._compiled: dict[str, Compiled] = {}

    def compiled(self, dialect: Dialect) -> Compiled:
        """Return the SQL and what puts named parameters into their places."""
        known = self._compiled.get(dialect.name)
        if known is None:
            known = self._compile(dialect)
            self._compiled[dialect.name] = known
        return known

    def on(self, dialect: Dialect) -> tuple[Core, Sequence[str]]:
        """Return the statement on a dialect, and the columns that have parameters."""
        return self._cores[dialect.name], self._columns

    def _compile(self, dialect: Dialect) -> Compiled:
        core, columns = self.on(dialect)
        compiler = core.compile(
            dialect=dialect,
            column_keys=list(columns) or None,
            schema_translate_map=None if dialect.name == "sqlite" else {None: "any"},
        )
        if not isinstance(compiler, SQLCompiler):
            raise TypeError(f"not a statement: {compiler}")
        return _positional(compiler)


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

    __slots__ = ("_cursor", "backend")

    def __init__(self, cursor: Cursor, backend: Backend) -> None:
        self._cursor = cursor
        self.backend = backend

    def all(self, statement: Statement, **parameters: object) -> Sequence[Any]:
        """Run a statement; return its rows as tuples."""
        sql, places = self.backend.compiled(statement)
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

    def run(self, statement: Statement, **parameters: object) -> None:
        """Run a statement without a result."""
        sql, places = self.backend.compiled(statement)
        self._cursor.execute(sql, places(parameters))

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement once for each row of parameters."""
        if rows:
            sql, places = self.backend.compiled(statement)
            self._many(sql, [places(row) for row in rows])

    def insert(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """Insert rows, different ones; return what each returns, in any order."""
        if self.backend.in_process:
            return [self.first(statement, **row) for row in rows]
        if not rows:
            return []
        sql, places = self.backend.compiled(statement)
        self._cursor.executemany(sql, [places(row) for row in rows])
        return self._cursor.fetchall()

    def sql(self, text: str, *values: object) -> Sequence[Any]:
        """Run text that only this database knows; return its rows, if it has any."""
        self._cursor.execute(text, values)
        return self._cursor.fetchall() if self._cursor.description else ()

    def many_sql(self, text: str, rows: Iterable[Values]) -> None:
        """Run text that only this database knows once for each row of values."""
        self._many(text, list(rows))

    def listed(self, values: Iterable[object]) -> object:
        """Return the parameter for `_lists.among`."""
        return self.backend.listed(values)

    def _many(self, text: str, rows: Sequence[Values]) -> None:
        if len(rows) == 1:  # psycopg's executemany has to ask the server three times more
            self._cursor.execute(text, rows[0])
        elif rows:
            self._cursor.executemany(text, rows)
