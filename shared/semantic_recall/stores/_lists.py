"""Conditions that each database writes differently: lists as one parameter, equality of ids.

A list is one parameter for any number of values: no limit on variables, and one statement to
compile. SQLite gets it as JSON, PostgreSQL as an array.

Ids are of any length up to 1,024 characters, too long for PostgreSQL's indexes; there an index is
on the MD5 of the id, and the id itself is compared as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    ColumnElement,
    FromClause,
    LargeBinary,
    Table,
    Text,
    bindparam,
    literal_column,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeEngine

from semantic_recall.stores._schema import chunk_rows
from semantic_recall.stores._statements import Statement


class _Condition(ColumnElement[bool]):
    inherit_cache = False
    type = Boolean()

    def self_group(self, against: OperatorType | None = None) -> _Condition:
        return self  # a boolean column would become `column = 1` on SQLite


class _Among(_Condition):
    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        # Without a type, for it would be cast to that first.
        self.values: BindParameter[Any] = bindparam(name)


class _Same(_Condition):
    def __init__(self, column: ColumnElement[str], other: ColumnElement[str]) -> None:
        self.column = column
        self.other = other


class _OnePerMessage(_Condition):
    pass


class _Item(ColumnElement[Any]):
    """One side of a pair."""

    inherit_cache = False

    def __init__(self, value: ColumnElement[Any], place: int, kind: TypeEngine[Any]) -> None:
        self.value = value
        self.place = place
        self.type = kind


class _Pairs(GenericFunction[Any]):
    name = "semantic_recall_pairs"
    inherit_cache = False


def among(
    column: ColumnElement[int] | ColumnElement[str] | ColumnElement[bytes], name: str
) -> ColumnElement[bool]:
    """Return `column IN` the list bound as `name` (see `Backend.listed`; bytes: no JSON)."""
    return _Among(column, name)


def same(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Return whether an id is the one bound as `name`."""
    return _Same(column, bindparam(name, type_=Text()))


def paired(
    first: ColumnElement[int], second: ColumnElement[str], name: str
) -> tuple[FromClause, ColumnElement[bool]]:
    """Return a table of the pairs of number and id bound as `name`, and what joins them."""
    pairs = _Pairs(bindparam(name)).table_valued("value", name="pairs")
    value = pairs.c.value
    return pairs, (first == _Item(value, 0, BigInteger())) & _Same(second, _Item(value, 1, Text()))


def listed_pairs(pairs: Iterable[tuple[int, str]]) -> str:
    """Return the parameter for `paired`."""
    return json.dumps(list(pairs))


def one_per_message() -> ColumnElement[bool]:
    """Return what leaves one row of `vectors` for each message and space."""
    return _OnePerMessage()


def insert_missing(table: Table, columns: Sequence[str]) -> Statement:
    """Return an insert that leaves rows alone whose key is there already."""
    return Statement(
        sqlite.insert(table).on_conflict_do_nothing(),
        columns,
        postgresql=postgresql.insert(table).on_conflict_do_nothing(),
    )


@compiles(_Among, "sqlite")
def _among_sqlite(element: _Among, compiler: SQLCompiler, **kw: object) -> str:
    column, values = _both(compiler, element.column, element.values, kw)
    return f"{column} IN (SELECT value FROM json_each({values}))"


@compiles(_Among, "postgresql")
def _among_postgresql(element: _Among, compiler: SQLCompiler, **kw: object) -> str:
    column, values = _both(compiler, element.column, element.values, kw)
    if not isinstance(element.column.type, Text):
        kind = "bytea" if isinstance(element.column.type, LargeBinary) else "bigint"
        return f"{column} = ANY (CAST({values} AS {kind}[]))"
    texts = f"CAST({values} AS text[])"
    # The array is worked out once, so an index can be asked for each of its values.
    hashes = f"ARRAY(SELECT md5(wanted)::uuid FROM unnest({texts}) AS wanted)"
    return f"(md5({column})::uuid = ANY ({hashes}) AND {column} = ANY ({texts}))"


@compiles(_Same, "sqlite")
def _same_sqlite(element: _Same, compiler: SQLCompiler, **kw: object) -> str:
    return "{} = {}".format(*_both(compiler, element.column, element.other, kw))


@compiles(_Same, "postgresql")
def _same_postgresql(element: _Same, compiler: SQLCompiler, **kw: object) -> str:
    column, other = _both(compiler, element.column, element.other, kw)
    return f"(md5({column})::uuid = md5({other})::uuid AND {column} = {other})"


@compiles(_Pairs, "sqlite")
def _pairs_sqlite(element: _Pairs, compiler: SQLCompiler, **kw: object) -> str:
    return f"json_each({compiler.process(element.clauses, **kw)})"


@compiles(_Pairs, "postgresql")
def _pairs_postgresql(element: _Pairs, compiler: SQLCompiler, **kw: object) -> str:
    return f"json_array_elements(CAST({compiler.process(element.clauses, **kw)} AS json))"


@compiles(_Item, "sqlite")
def _item_sqlite(element: _Item, compiler: SQLCompiler, **kw: object) -> str:
    return f"json_extract({compiler.process(element.value, **kw)}, '$[{element.place}]')"


@compiles(_Item, "postgresql")
def _item_postgresql(element: _Item, compiler: SQLCompiler, **kw: object) -> str:
    kind = "bigint" if isinstance(element.type, BigInteger) else "text"
    return f"({compiler.process(element.value, **kw)} ->> {element.place})::{kind}"


@compiles(_OnePerMessage, "sqlite")
def _one_sqlite(_element: _OnePerMessage, _compiler: SQLCompiler, **_kw: object) -> str:
    return "1"


@compiles(_OnePerMessage, "postgresql")
def _one_postgresql(_element: _OnePerMessage, compiler: SQLCompiler, **kw: object) -> str:
    return compiler.process(chunk_rows.c.chunk == literal_column("0"), **kw)


def _both(
    compiler: SQLCompiler,
    first: ColumnElement[Any],
    second: ColumnElement[Any],
    kw: Mapping[str, object],
) -> tuple[str, str]:
    return compiler.process(first, **kw), compiler.process(second, **kw)
