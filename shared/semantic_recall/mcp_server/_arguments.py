"""What a model may say to each tool: never whose memory."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from semantic_recall.errors import ConfigurationError
from semantic_recall.types import MAX_ID_LENGTH

MOST_HITS = 50
MOST_RECENT = 100
MOST_FORGOTTEN = 100
LONGEST_QUERY = 10_000
LONGEST_MESSAGE = 100_000
_REASON = 200
"""Characters of an explanation; a validator repeats what it was given."""


def _not_blank(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("it is blank")
    return value


def _written(value: object) -> object:
    # A bare number would be read as seconds since 1970, which no model means.
    if not isinstance(value, str) or value.strip().isdigit():
        raise ValueError('give a date or a time, such as "2025-01-31" or "2025-01-31T18:00Z"')
    return value


Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]
Moment = Annotated[datetime, BeforeValidator(_written)]


class Arguments(BaseModel):
    """Unknown arguments are refused: a model that names an owner shall learn that it cannot."""

    model_config = ConfigDict(extra="forbid")


class SearchArguments(Arguments):
    """Of `search`."""

    query: Annotated[
        str,
        BeforeValidator(_not_blank),
        Field(max_length=LONGEST_QUERY, description="What to look for: a sentence or a few words."),
    ]
    since: Annotated[
        Moment | None, Field(description="Only messages from this time on (ISO 8601, UTC).")
    ] = None
    until: Annotated[
        Moment | None, Field(description="Only messages before this time (ISO 8601, UTC).")
    ] = None
    top_k: Annotated[
        int | None, Field(ge=1, le=MOST_HITS, strict=True, description="How many to find at most.")
    ] = None


class RecentArguments(Arguments):
    """Of `recent`."""

    last: Annotated[
        int,
        Field(ge=1, le=MOST_RECENT, strict=True, description="How many messages at most."),
    ] = 20


class RecentOfThreadArguments(RecentArguments):
    """Of `recent` where there are several threads."""

    thread_id: Annotated[
        Id | None, Field(description="Only this conversation; the newest ones if not given.")
    ] = None


class ForgetArguments(Arguments):
    """Of `forget`."""

    message_ids: Annotated[
        list[Id],
        Field(
            min_length=1,
            max_length=MOST_FORGOTTEN,
            description="Ids of messages, as search and recent give them.",
        ),
    ]


class ForgetOfThreadArguments(ForgetArguments):
    """Of `forget` where there are several threads."""

    thread_id: Annotated[
        Id | None,
        Field(description="Their conversation; needed if an id stands in several."),
    ] = None


class RememberArguments(Arguments):
    """Of `remember`."""

    role: Annotated[
        Literal["user", "assistant"], Field(description="Who said it: the user or you.")
    ]
    content: Annotated[
        str,
        BeforeValidator(_not_blank),
        Field(max_length=LONGEST_MESSAGE, description="What was said, understandable by itself."),
    ]


class RememberInThreadArguments(RememberArguments):
    """Of `remember` where there are several threads."""

    thread_id: Annotated[
        Id | None,
        Field(description="The conversation that it belongs to; this session's if not given."),
    ] = None


A = TypeVar("A", bound=Arguments)


def parse(model: type[A], given: dict[str, Any]) -> A:
    """Return the arguments of a call.

    Raises:
        ConfigurationError: They are wrong; one line says which and why.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError(
            "; ".join(_explained(one["loc"], one["msg"], model) for one in error.errors())[:_REASON]
        ) from error


def _explained(place: tuple[int | str, ...], why: str, model: type[Arguments]) -> str:
    if why.startswith("Extra inputs"):
        known = ", ".join(model.model_fields)
        return f"there is no argument {str(place[0])[:60]!r}; there are {known}"
    where = ".".join(map(str, place))
    return f"{where}: {why.removeprefix('Value error, ')}"
