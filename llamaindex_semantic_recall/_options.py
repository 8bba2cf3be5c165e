"""Recall options as a call's overrides and as JSON values."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from semantic_recall import SemanticRecall
from semantic_recall.options import RecallOptions, RecallOverrides
from semantic_recall.types import MessageRange, Scope

_logger = logging.getLogger("semantic_recall")


def overrides(options: RecallOptions, resource_id: str | None) -> RecallOverrides:
    """Return options as overrides of a call; without a resource only the thread is searched."""
    if resource_id is None and options.scope == "resource":
        _logger.info("no resource_id was given: only the thread itself is recalled")
        options = options.replace(scope="thread")
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return cast("RecallOverrides", values)


def scoped(
    recall: SemanticRecall,
    thread_id: str | None,
    resource_id: str | None,
    wanted: RecallOverrides,
) -> RecallOverrides:
    """Return the overrides for a search whose scope is fixed.

    Raises:
        InvalidScopeError: The id that the scope needs is missing.
        InvalidIdError: An id cannot be used.
        InvalidOptionError: An option cannot have its value.
    """
    chosen = overrides(recall.options.replace(**wanted), resource_id)
    Scope.of(chosen["scope"], resource_id=resource_id, thread_id=thread_id)
    return chosen


def to_json(options: RecallOptions) -> dict[str, Any]:
    """Return options as JSON values; `from_json` reads them."""
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    message_range = MessageRange.of(options.message_range)
    values["message_range"] = [message_range.before, message_range.after]
    values["exclude_ids"] = sorted(options.exclude_ids)
    values["roles"] = None if options.roles is None else sorted(options.roles)
    for name in ("since", "until"):
        moment: datetime | None = values[name]
        values[name] = None if moment is None else moment.isoformat()
    return values


def from_json(values: Mapping[str, Any]) -> RecallOptions:
    """Return the options that `to_json` wrote.

    Raises:
        InvalidOptionError: A value cannot be one.
    """
    moments = {
        name: datetime.fromisoformat(values[name]) for name in ("since", "until") if values[name]
    }
    return RecallOptions(**{**values, "since": None, "until": None, **moments})
