"""From what a search found to a `Recall`: windows, budget and order. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semantic_recall.searching import NOT_IN_SCOPE, Found
from semantic_recall.types import Message, MessageRange, RecalledMessage
from semantic_recall.windows import Window, expand, fit, merge


class Plan(NamedTuple):
    """Which positions of a view a recall wants to show."""

    windows: list[Window]
    """Best hit first."""
    positions: list[int]
    """Ascending, without what the prompt already holds."""
    places: NDArray[np.intp]
    """`positions` again."""
    keys: list[int]
    """The store's keys of `positions`."""


def planned(found: Found, message_range: MessageRange) -> Plan:
    """Return the hits with their neighbours, merged, each position once."""
    view = found.view
    windows = expand(
        found.hits, view.starts, len(view.keys), message_range.before, message_range.after
    )
    positions = merge(windows)
    if found.excluded is not None:
        positions = [position for position in positions if not found.excluded[position]]
    places = np.array(positions, np.intp)
    return Plan(windows, positions, places, view.keys[places].tolist())


def assembled(
    found: Found,
    plan: Plan,
    messages: Mapping[int, Message],
    *,
    max_tokens: int | None,
    cost: Callable[[RecalledMessage], int],
) -> tuple[list[RecalledMessage], dict[str, int]]:
    """Return what is shown, chronological, and what was dropped for which reason.

    Args:
        found: Scores by position.
        plan: What is to be shown.
        messages: The messages by key, checked by the store against the scope. What is not among
            them (deleted meanwhile, or a wrong answer of the index) is dropped and counted.
        max_tokens: The budget for everything together; None: no limit.
        cost: Tokens that a message takes in the prompt.
    """
    dropped = dict(found.dropped)
    hits = set(found.hits)
    scores, dense, lexical = (
        _finite(values[plan.places]) for values in (found.scores, found.dense, found.lexical)
    )
    recalled = {
        position: RecalledMessage(
            message=messages[key],
            is_hit=position in hits,
            score=scores[place],
            dense=dense[place],
            lexical=lexical[place],
        )
        for place, (position, key) in enumerate(zip(plan.positions, plan.keys, strict=True))
        if key in messages
    }
    if len(recalled) < len(plan.positions):
        missing = len(plan.positions) - len(recalled)
        dropped[NOT_IN_SCOPE] = dropped.get(NOT_IN_SCOPE, 0) + missing
    if max_tokens is not None:
        costs = {position: cost(message) for position, message in recalled.items()}
        kept, left_out = fit(plan.windows, lambda position: costs.get(position, 0), max_tokens)
        over = [position for position in left_out if position in recalled]
        if over:
            dropped["over max_tokens"] = len(over)
        recalled = {position: recalled[position] for position in kept if position in recalled}
    return chronological(list(recalled.values())), dropped


def chronological(messages: Sequence[RecalledMessage]) -> list[RecalledMessage]:
    """Return messages by time, but never against the order inside a thread.

    Args:
        messages: By thread, then by insertion.

    A message counts as no older than those before it in its thread: a clock that went back does
    not turn a conversation round.
    """
    latest: dict[tuple[str | None, str], datetime] = {}
    ordered = []
    for recalled in messages:
        message = recalled.message
        thread, time = (message.resource_id, message.thread_id), message.created_at
        latest[thread] = time = max(time, latest.get(thread, time))
        ordered.append((time, recalled))
    ordered.sort(key=itemgetter(0))
    return [recalled for _, recalled in ordered]


def _finite(values: NDArray[np.float32]) -> list[float | None]:
    """Return scores, None where there is none (NaN, or -inf: not searched)."""
    return [value if -math.inf < value < math.inf else None for value in values.tolist()]
