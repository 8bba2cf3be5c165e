"""Numbers, arrays and vectors in PostgreSQL's binary form, without a Python object for each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

_BYTEA, _INT8, _TEXT, _FLOAT8 = 17, 20, 25, 701
_ARRAY_HEADER = np.dtype(
    [("dimensions", ">i4"), ("nulls", ">i4"), ("of", ">i4"), ("n", ">i4"), ("first", ">i4")]
)
_INT8_ITEM = np.dtype([("bytes", ">i4"), ("value", ">i8")])
_FLOAT8_ITEM = np.dtype([("bytes", ">i4"), ("value", ">f8")])
_VECTOR_HEADER = np.dtype([("dimensions", ">i2"), ("unused", ">i2")])
_FLOAT = np.dtype(">f4")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)


class Packed(bytes):
    """A value in binary form; each class below is a type of PostgreSQL."""


class Int8s(Packed):
    """An array of bigint."""


class Texts(Packed):
    """An array of text."""


class Byteas(Packed):
    """An array of bytea."""


class Floats(Packed):
    """An array of double precision."""


class Vector(Packed):
    """A pgvector."""


class Vectors(Packed):
    """An array of pgvector."""


def to_int8s(values: Sequence[int] | NDArray[np.int64]) -> Int8s:
    """Return an array of bigint as a parameter."""
    items = np.empty(len(values), dtype=_INT8_ITEM)
    items["bytes"] = 8
    items["value"] = values
    return Int8s(_header(_INT8, len(values)) + items.tobytes())


def to_floats(values: Sequence[float]) -> Floats:
    """Return an array of double precision as a parameter."""
    items = np.empty(len(values), dtype=_FLOAT8_ITEM)
    items["bytes"] = 8
    items["value"] = values
    return Floats(_header(_FLOAT8, len(values)) + items.tobytes())


def to_texts(values: Sequence[str | None]) -> Texts:
    """Return an array of text as a parameter; the connection must speak UTF-8."""
    return Texts(_sized(_TEXT, [None if value is None else value.encode() for value in values]))


def to_byteas(values: Sequence[bytes | None]) -> Byteas:
    """Return an array of bytea as a parameter."""
    return Byteas(_sized(_BYTEA, values))


def from_int8s(data: bytes) -> NDArray[np.int64]:
    """Return the numbers in an array of bigint without NULL, as the server sends it."""
    if len(data) <= _ARRAY_HEADER.itemsize:
        return np.zeros(0, dtype=np.int64)
    items = np.frombuffer(data, dtype=_INT8_ITEM, offset=_ARRAY_HEADER.itemsize)
    return items["value"].astype(np.int64)


def to_vector(vector: NDArray[np.float32]) -> Vector:
    """Return a vector as a parameter."""
    header = np.array([(len(vector), 0)], dtype=_VECTOR_HEADER)
    return Vector(header.tobytes() + vector.astype(_FLOAT).tobytes())


def to_vectors(vectors: NDArray[np.float32], oid: int) -> Vectors:
    """Return the rows of a matrix as a parameter; `oid` is the type of pgvector."""
    n, dimensions = vectors.shape
    item = np.dtype([("bytes", ">i4"), ("header", _VECTOR_HEADER), ("data", _FLOAT, dimensions)])
    items = np.zeros(n, dtype=item)
    items["bytes"] = item.itemsize - _LENGTH.size
    items["header"]["dimensions"] = dimensions
    items["data"] = vectors.reshape(items["data"].shape)
    return Vectors(_header(oid, n) + items.tobytes())


def from_vectors(rows: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Return vectors as the server sends them, shape (n, dimensions)."""
    # The header is as wide as a number, so all is read and turned round in one go.
    words = np.frombuffer(b"".join(rows), dtype=_FLOAT).reshape(-1, 1 + dimensions)
    return words[:, 1:].astype(np.float32)


def _header(oid: int, n: int, *, nulls: bool = False) -> bytes:
    return np.array([(1, nulls, oid, n, 1)], dtype=_ARRAY_HEADER).tobytes()


def _sized(oid: int, values: Sequence[bytes | None]) -> bytes:
    parts = [_header(oid, len(values), nulls=None in values)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(_LENGTH.pack(len(value)))
            parts.append(value)
    return b"".join(parts)


class _Ready(Dumper):
    """Passes on what is in binary form already."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:  # noqa: ANN401 - as psycopg has it
        return bytes(obj)


class _Int8sDumper(_Ready):
    oid = 1016


class _TextsDumper(_Ready):
    oid = 1009


class _ByteasDumper(_Ready):
    oid = 1001


class _FloatsDumper(_Ready):
    oid = 1022


class Register:
    """Teaches connections these types; whole numbers are always sent as bigint.

    psycopg would send the smallest type that holds a number, and have the server plan a
    statement anew for each.
    """

    def __init__(self) -> None:
        class VectorDumper(_Ready):
            oid = 0

        class VectorsDumper(_Ready):
            oid = 0

        self._vector_dumper = VectorDumper
        self._vectors_dumper = VectorsDumper

    def know(self, vector: int, vectors: int) -> None:
        """Tell which types pgvector and arrays of it are in this database."""
        self._vector_dumper.oid = vector
        self._vectors_dumper.oid = vectors

    def __call__(self, connection: Connection[Any]) -> None:
        """Prepare a fresh connection."""
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        connection.adapters.register_dumper(Int8s, _Int8sDumper)
        connection.adapters.register_dumper(Texts, _TextsDumper)
        connection.adapters.register_dumper(Byteas, _ByteasDumper)
        connection.adapters.register_dumper(Floats, _FloatsDumper)
        connection.adapters.register_dumper(Vector, self._vector_dumper)
        connection.adapters.register_dumper(Vectors, self._vectors_dumper)
