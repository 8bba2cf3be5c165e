"""Whose memory a run uses: thread and resource from arguments, context and config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from semantic_recall.errors import InvalidIdError
from semantic_recall.types import ScopeKind, check_id

THREAD_NAMES: Final = ("thread_id", "session_id")
RESOURCE_NAMES: Final = ("resource_id", "user_id")
AUTHENTICATED_USER: Final = "langgraph_auth_user_id"
"""Set by a LangGraph server for the user who logged in; a client cannot choose it."""


@dataclass(frozen=True, slots=True)
class Ids:
    """The thread and resource of one run; None for what was not given."""

    thread_id: str | None = None
    resource_id: str | None = None

    def scope(self, wanted: ScopeKind) -> ScopeKind | None:
        """Return the widest scope that these ids allow and `wanted` does not exceed, or None."""
        if wanted == "resource" and self.resource_id is not None:
            return "resource"
        return None if self.thread_id is None else "thread"


def resolve(
    configurable: Mapping[str, object],
    context: object = None,
    *,
    thread_id: object = None,
    resource_id: object = None,
) -> Ids:
    """Return the ids of a run: the first that is given wins.

    The order is: argument, authenticated user of a LangGraph server (for the resource), run
    context, `config["configurable"]`. In the last two a thread is called `thread_id` or
    `session_id`, a resource `resource_id` or `user_id`. Whole numbers and UUIDs become strings;
    None and "" count as not given.

    Args:
        configurable: `config["configurable"]`.
        context: The run's context: a mapping or any object with attributes.
        thread_id: Fixed by the application.
        resource_id: Fixed by the application.

    Raises:
        InvalidIdError: An id is of another type, or too long.
    """
    return Ids(
        _first("thread_id", [thread_id, *_named(THREAD_NAMES, context, configurable)]),
        _first(
            "resource_id",
            [
                resource_id,
                configurable.get(AUTHENTICATED_USER),
                *_named(RESOURCE_NAMES, context, configurable),
            ],
        ),
    )


def _named(names: tuple[str, ...], *places: object) -> list[object]:
    return [_read(place, name) for place in places for name in names]


def _read(place: object, name: str) -> object:
    if isinstance(place, Mapping):
        return place.get(name)
    # The context is an object of the application's own class; it may have neither attribute.
    return getattr(place, name, None)


def _first(what: str, values: list[object]) -> str | None:
    for value in values:
        if value is not None and value != "":
            return check_id(_as_text(value, what), what)
    return None


def _as_text(value: object, what: str) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, UUID)) and not isinstance(value, bool):
        return str(value)
    raise InvalidIdError(
        f"{what} must be a string, a whole number or a UUID, not {type(value).__name__}"
    )
