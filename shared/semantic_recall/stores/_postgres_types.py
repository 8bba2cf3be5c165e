"""Numbers, arrays and vectors in PostgreSQL's binary form, without a Python object for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

_INT8 = 20
_INT8_ARRAY = 1016
_ARRAY_HEADER = np.dtype(
    [("dimensions", ">i4"), ("nulls", ">i4"), ("of", ">i4"), ("n", ">i4"), ("first", ">i4")]
)
_ITEM = np.dtype([("bytes", ">i4"), ("value", ">i8")])
_VECTOR_HEADER = np.dtype([("dimensions", ">i2"), ("unused", ">i2")])
_FLOAT = np.dtype(">f4")


class Int8s(bytes):
    """An array of bigint."""


class Vector(bytes):
    """A pgvector."""


def to_int8s(values: NDArray[np.int64]) -> Int8s:
    """Return an array of bigint as a parameter."""
    header = np.array([(1, 0, _INT8, len(values), 1)], dtype=_ARRAY_HEADER)
    items = np.empty(len(values), dtype=_ITEM)
    items["bytes"] = 8
    items["value"] = values
    return Int8s(header.tobytes() + items.tobytes())


def from_int8s(data: bytes) -> NDArray[np.int64]:
    """Return the numbers in an array of bigint without NULL, as the server sends it."""
    if len(data) <= _ARRAY_HEADER.itemsize:
        return np.zeros(0, dtype=np.int64)
    return np.frombuffer(data, dtype=_ITEM, offset=_ARRAY_HEADER.itemsize)["value"].astype(np.int64)


def to_vector(vector: NDArray[np.float32]) -> Vector:
    """Return a vector as a parameter."""
    header = np.array([(len(vector), 0)], dtype=_VECTOR_HEADER)
    return Vector(header.tobytes() + vector.astype(_FLOAT).tobytes())


def from_vectors(rows: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Return vectors as the server sends them, shape (n, dimensions)."""
    # The header is as wide as a number, so all is read and turned round in one go.
    words = np.frombuffer(b"".join(rows), dtype=_FLOAT).reshape(-1, 1 + dimensions)
    return words[:, 1:].astype(np.float32)


class _Ready(Dumper):
    """Passes on what is in binary form already."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:  # noqa: ANN401 - as psycopg has it
        return bytes(obj)


class _Int8sDumper(_Ready):
    oid = _INT8_ARRAY


class Register:
    """Teaches connections these types; whole numbers are always sent as bigint.

    psycopg would send the smallest type that holds a number, and have the server plan a
    statement anew for each.
    """

    def __init__(self) -> None:
        class VectorDumper(_Ready):
            oid = 0

        self._vector_dumper = VectorDumper

    @property
    def vector_oid(self) -> int:
        """The type of pgvector in this database; 0 until it is known."""
        return self._vector_dumper.oid

    @vector_oid.setter
    def vector_oid(self, oid: int) -> None:
        self._vector_dumper.oid = oid

    def __call__(self, connection: Connection[Any]) -> None:
        """Prepare a fresh connection."""
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        connection.adapters.register_dumper(Int8s, _Int8sDumper)
        connection.adapters.register_dumper(Vector, self._vector_dumper)
