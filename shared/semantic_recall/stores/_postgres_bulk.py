"""Many rows in one statement on PostgreSQL: each column as an array.

A statement for each row costs the driver and the server more than the work that is in it. So what
`Transaction.many` is given becomes `INSERT ... SELECT ... FROM unnest(...)`, and updates and
deletions are joined with the same rows. COPY would be a little faster still, but it knows neither
conflicts nor returned keys, and ends the pipeline that the rest of a transaction is sent in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Dialect,
    Float,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Text,
    Update,
    bindparam,
    func,
    select,
)
from sqlalchemy.sql import visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.types import TypeEngine

from semantic_recall.stores._postgres_types import Packed, to_byteas, to_floats, to_int8s, to_texts
from semantic_recall.stores._statements import Statement

if TYPE_CHECKING:
    from sqlalchemy.sql.visitors import ExternallyTraversible

MOST_BYTES = 64 * 2**20
"""Of the rows of one statement; the server refuses 1 GiB, and both sides hold what is sent."""

Row = TypeVar("Row")
_Pack = Callable[[Sequence[Any]], Packed]

_PACKS: tuple[tuple[type[TypeEngine[Any]], _Pack], ...] = (
    (BigInteger, to_int8s),
    (Integer, to_int8s),
    (Text, to_texts),
    (LargeBinary, to_byteas),
    (Float, to_floats),
)


class ManyRows:
    """A statement for any number of rows, made from the one for a single row.

    Args:
        statement: An insert, update or delete; no row may meet what another one has changed.
        dialect: PostgreSQL's.
        named: Puts the name of the schema into the SQL.
    """

    def __init__(self, statement: Statement, dialect: Dialect, named: Callable[[str], str]) -> None:
        core, columns = statement.on(dialect)
        if isinstance(core, Select):
            raise TypeError(f"not a statement that writes: {core}")
        one = _compiled(core.compile(dialect=dialect, column_keys=list(columns) or None))
        names = list(one.positiontup or ())
        unique = list(dict.fromkeys(names))
        self._places = [names.index(name) for name in unique]
        self._packs = [_pack(one.binds[name].type) for name in unique]
        given = (
            func.unnest(*[bindparam(name) for name in unique])
            .table_valued(*unique, name="given")
            .render_derived()
        )
        if isinstance(core, Insert):
            many: Any = core.from_select(unique, select(*given.c))
        else:
            if isinstance(core, Update) and columns:
                core = core.values({name: given.c[name] for name in columns})

            def of_row(
                element: ExternallyTraversible,
                **_: Any,  # noqa: ANN401 - as SQLAlchemy calls it
            ) -> ExternallyTraversible | None:
                return given.c[element.key] if isinstance(element, BindParameter) else None

            many = visitors.replacement_traverse(core, {}, of_row)
        compiled = many.compile(dialect=dialect, schema_translate_map={None: "any"})
        self.sql = named(_compiled(compiled).string)

    def batches(self, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Packed, ...]]:
        """Yield the parameters for one run after the other, each of a bounded size."""
        columns = list(zip(*rows, strict=True))
        packed = tuple(
            pack(columns[place]) for pack, place in zip(self._packs, self._places, strict=True)
        )
        if len(rows) == 1 or sum(map(len, packed)) <= MOST_BYTES:
            yield packed
            return
        middle = len(rows) // 2
        yield from self.batches(rows[:middle])
        yield from self.batches(rows[middle:])


def bounded(rows: Sequence[Row], sizes: Sequence[int], most: int) -> Iterator[Sequence[Row]]:
    """Yield the rows in parts whose sizes add up to `most`, or that are a single row."""
    start = total = 0
    for place, size in enumerate(sizes):
        if total + size > most and place > start:
            yield rows[start:place]
            start, total = place, 0
        total += size
    if start < len(rows):
        yield rows[start:]


def _pack(kind: TypeEngine[Any]) -> _Pack:
    for known, pack in _PACKS:
        if isinstance(kind, known):
            return pack
    raise TypeError(f"no array of {kind!r} is sent to PostgreSQL")


def _compiled(compiler: object) -> SQLCompiler:
    if not isinstance(compiler, SQLCompiler):
        raise TypeError(f"not a statement: {compiler}")
    return compiler
