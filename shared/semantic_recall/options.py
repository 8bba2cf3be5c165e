"""The options of a recall and their defaults: the one place that states them."""

from __future__ import annotations

import dataclasses
import difflib
import math
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, SupportsIndex, get_args

from typing_extensions import TypedDict, Unpack

from semantic_recall.errors import InvalidOptionError
from semantic_recall.types import MessageRange, Ranking, ScopeKind, as_utc


class RecallOverrides(TypedDict, total=False):
    """The options of `RecallOptions`, each of which a single call may override."""

    top_k: int
    message_range: int | tuple[int, int] | MessageRange
    scope: ScopeKind
    threshold: float | None
    ranking: Ranking
    max_tokens: int | None
    exclude_ids: Collection[str]
    since: datetime | None
    until: datetime | None
    roles: Collection[str] | None
    filter: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """What a recall looks for and how much of it comes back.

    Raises:
        InvalidOptionError: A value that the option cannot have; names the option, the value and
            what is allowed.
    """

    top_k: int = 4
    """How many messages are found; with 0 or less nothing is recalled."""
    message_range: int | tuple[int, int] | MessageRange = MessageRange(1, 1)  # noqa: RUF009 - frozen
    """Neighbours that each hit brings from its thread: a number for both sides, or (before,
    after). It is stored as a `MessageRange`."""
    scope: ScopeKind = "resource"
    """"resource": all threads of the resource; "thread": the current thread alone."""
    threshold: float | None = None
    """Least cosine similarity of a hit, -1 to 1; None: no limit."""
    ranking: Ranking = "hybrid"
    """"hybrid": meaning and words together; "dense": cosine similarity alone."""
    max_tokens: int | None = None
    """What may be added to the prompt at most; 0 or less: nothing; None: no limit."""
    exclude_ids: Collection[str] = ()
    """Ids of messages that are not recalled, such as those the prompt already holds. A lone
    string is one id. It is stored as a frozenset, as `roles` is."""
    since: datetime | None = None
    """Only hits created at this time or later; a naive value is taken as UTC."""
    until: datetime | None = None
    """Only hits created before this time; a naive value is taken as UTC."""
    roles: Collection[str] | None = None
    """Only hits with one of these roles; a lone string is one role; None: every role."""
    filter: Mapping[str, Any] | None = field(default=None, hash=False)
    """Only hits whose metadata has these values; a list means any of its members."""

    def __post_init__(self) -> None:
        values = {
            "top_k": _whole("top_k", self.top_k),
            "message_range": _range(self.message_range),
            "threshold": _cosine(self.threshold),
            "exclude_ids": _strings("exclude_ids", self.exclude_ids),
            "since": _moment("since", self.since),
            "until": _moment("until", self.until),
            "filter": _filter(self.filter),
        }
        _one_of("scope", self.scope, get_args(ScopeKind))
        _one_of("ranking", self.ranking, get_args(Ranking))
        if self.max_tokens is not None:
            values["max_tokens"] = _whole("max_tokens", self.max_tokens, " or None")
        if self.roles is not None:
            values["roles"] = _strings("roles", self.roles)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def replace(self, **overrides: Unpack[RecallOverrides]) -> RecallOptions:
        """Return these options with some values changed.

        Raises:
            InvalidOptionError: There is no such option, or it cannot have the value.
        """
        if not overrides:
            return self
        kinds = tuple(map(type, overrides.values()))
        if _PLAIN.issuperset(kinds):
            return _replaced(self, kinds, **overrides)  # type: ignore[arg-type] # plain: hashable
        return self._changed(overrides)

    def _changed(self, overrides: RecallOverrides) -> RecallOptions:
        names = RecallOverrides.__annotations__
        for name in overrides:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
                raise InvalidOptionError(f"there is no recall option {name!r}; {hint}")
        return dataclasses.replace(self, **overrides)


_PLAIN = frozenset({int, float, str, type(None), MessageRange})


@lru_cache(maxsize=256)
def _replaced(
    options: RecallOptions, kinds: tuple[type, ...], **overrides: Unpack[RecallOverrides]
) -> RecallOptions:
    """Return options with some values changed; most calls change the same ones to the same values.

    Args:
        options: What is changed.
        kinds: The types of the values, for 1 equals True and 1.0, which are refused.
        **overrides: Plain values.
    """
    return options._changed(overrides)


def _refuse(name: str, value: object, allowed: str) -> InvalidOptionError:
    shown = repr(value)
    return InvalidOptionError(
        f"{name} takes {allowed}, not {shown if len(shown) <= 80 else shown[:79] + '…'}"
    )


def _whole(name: str, value: SupportsIndex, more: str = "") -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise _refuse(name, value, f"a whole number{more}")


def _range(value: object) -> MessageRange:
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(value, (int, tuple, MessageRange)):
        return MessageRange.of(value)
    raise _refuse("message_range", value, "a whole number >= 0 or a pair (before, after)")


def _cosine(value: float | None) -> float | None:
    if value is None:
        return None
    allowed = "None or a cosine similarity from -1 to 1"
    if isinstance(value, (bool, str, bytes)):
        raise _refuse("threshold", value, allowed)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _refuse("threshold", value, allowed) from None
    if math.isnan(number) or not -1.0 <= number <= 1.0:
        raise _refuse("threshold", value, allowed)
    return number


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise _refuse(name, value, " or ".join(f'"{word}"' for word in allowed))


def _strings(name: str, value: Collection[str]) -> frozenset[str]:
    if isinstance(value, str):  # a string is a collection of its letters, which nobody means
        value = (value,)
    try:
        members = frozenset(value)
    except TypeError:
        raise _refuse(name, value, "strings") from None
    for member in members:
        if not isinstance(member, str) or not member:
            raise _refuse(name, member, "non-empty strings")
    return members


def _moment(name: str, value: datetime | None) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise _refuse(name, value, "a datetime or None")
    try:
        return as_utc(value)
    except OverflowError:
        raise _refuse(name, value, "a datetime that UTC can express") from None


def _filter(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _refuse("filter", value, "a mapping of metadata names to values, or None")
    for name, wanted in value.items():
        if name.startswith("$") or (isinstance(wanted, Mapping) and _has_operator(wanted)):
            # Read as plain equality, {"$gt": 3} would match nothing and nobody would know why.
            raise _refuse("filter", {name: wanted}, "values to be equal to, no $ operators")
    return {
        name: list(wanted) if isinstance(wanted, (tuple, set, frozenset)) else wanted
        for name, wanted in value.items()
    } or None


def _has_operator(value: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in value)
