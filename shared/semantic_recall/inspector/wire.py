"""JSON in and out: strict about what it takes, able to give back every id and text.

Everything goes in bodies: an id may hold any character, also those that an address cannot carry,
and what people ask stays out of addresses.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

T = TypeVar("T")

_REQUIRED = object()


class JsonResponse(Response):
    """A JSON answer in ASCII: UTF-8 has no way to write half a surrogate pair, JSON has.

    Args:
        document: What is written.
        status: The HTTP status.
    """

    media_type = "application/json"

    def __init__(self, document: object, status: int = 200) -> None:
        super().__init__(json.dumps(document, allow_nan=False), status)


class Body:
    """The fields of a request, each asked for by name; what is wrong is a readable 400.

    Args:
        values: The JSON object.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self._asked: set[str] = set()

    @classmethod
    async def of(cls, request: Request) -> Body:
        """Read the body of a request.

        Raises:
            HTTPException: 400, it is not a JSON object.
        """
        try:
            values = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError):  # brackets nested by the thousand
            raise _wrong("The request is not JSON.") from None
        if not isinstance(values, dict):
            raise _wrong("The request must be a JSON object.")
        return cls(values)

    def text(self, name: str) -> str:
        """Return a string that must be there.

        Raises:
            HTTPException: 400, as from every method here.
        """
        return self._take(name, str, "a string", _REQUIRED)

    def optional_text(self, name: str) -> str | None:
        """Return a string, or None when it is null or missing."""
        return None if self._is_null(name) else self._take(name, str, "a string or null", None)

    def flag(self, name: str) -> bool:
        """Return true or false; false when it is missing."""
        return self._take(name, bool, "true or false", False)

    def whole(self, name: str, low: int, high: int, default: int) -> int:
        """Return a whole number from `low` to `high`."""
        allowed = f"a whole number from {low:,} to {high:,}"
        value = self._take(name, int, allowed, default)
        if isinstance(value, bool) or not low <= value <= high:
            raise _wrong(f"{name} takes {allowed}, not {_shown(value)}.")
        return value

    def optional_whole(self, name: str, low: int, high: int) -> int | None:
        """Return a whole number from `low` to `high`, or None when it is null or missing."""
        return None if self._is_null(name) else self.whole(name, low, high, low)

    def optional_number(self, name: str) -> float | None:
        """Return a number, or None when it is null or missing; its range is not checked."""
        if self._is_null(name):
            return None
        value = self._values[name]
        return float(value) if type(value) is int else self._take(name, float, "a number", None)

    def done(self) -> None:
        """Refuse what nobody asked for: a misspelt option must not be taken for its default."""
        for name in self._values.keys() - self._asked:
            raise _wrong(f"There is no field {_shown(name)} here.")

    def _is_null(self, name: str) -> bool:
        self._asked.add(name)
        return self._values.get(name) is None

    def _take(self, name: str, kind: type[T], allowed: str, default: object) -> T:
        self._asked.add(name)
        value = self._values.get(name, default)
        if value is _REQUIRED:
            raise _wrong(f"{name} is missing; it takes {allowed}.")
        if not isinstance(value, kind):
            raise _wrong(f"{name} takes {allowed}, not {_shown(value)}.")
        return value


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _wrong(said: str) -> HTTPException:
    return HTTPException(400, said)
