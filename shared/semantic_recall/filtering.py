"""Which messages of a view may become hits: pure decisions, with the reasons counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from semantic_recall.options import RecallOptions
from semantic_recall.periods import microseconds
from semantic_recall.scope_view import ScopeView

BELOW_THRESHOLD = "below threshold"
"""Why a message is dropped whose cosine is too low."""


def positions_of(view: ScopeView, keys: Iterable[int]) -> NDArray[np.bool_]:
    """Return a mask of the view's messages that have one of `keys`."""
    return np.isin(view.keys, np.fromiter(keys, np.int64))


def with_metadata(
    metadata: Mapping[int, Mapping[str, object]], wanted: Mapping[str, object]
) -> list[int]:
    """Return the keys of messages whose metadata has every wanted value.

    A wanted list, tuple or set means: one of these.
    """
    return [
        key
        for key, values in metadata.items()
        if all(_matches(values, name, value) for name, value in wanted.items())
    ]


def filtered(
    view: ScopeView,
    dense: NDArray[np.float32],
    options: RecallOptions,
    *,
    matching: NDArray[np.bool_] | None,
    excluded: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return which messages may become hits, and how many were dropped for which reason.

    Args:
        view: The messages.
        dense: Their cosines to the query.
        options: Time, roles, threshold and ranking.
        matching: What passes the metadata filter; None without a filter.
        excluded: What is in the prompt already; None: nothing. With `ranking="dense"` it may
            still become a hit and bring its neighbours, as in Mastra; it is never shown.
    """
    masks: list[tuple[str, NDArray[np.bool_]]] = []
    if options.since is not None:
        masks.append(("before since", view.created_at >= microseconds(options.since)))
    if options.until is not None:
        masks.append(("after until", view.created_at < microseconds(options.until)))
    if options.roles is not None:
        masks.append(("role", _of_roles(view, options.roles)))
    if matching is not None:
        masks.append(("filter", matching))
    if options.threshold is not None:
        # NaN compares false: what has no vector cannot pass a threshold on cosines.
        masks.append((BELOW_THRESHOLD, dense >= options.threshold))
    if excluded is not None and options.ranking == "hybrid":
        masks.append(("in the prompt", ~excluded))
    eligible = view.searchable
    dropped: dict[str, int] = {}
    for reason, mask in masks:
        lost = int(np.count_nonzero(eligible & ~mask))
        if lost:
            dropped[reason] = lost
            eligible = eligible & mask
    return eligible, dropped


def _of_roles(view: ScopeView, roles: Collection[str]) -> NDArray[np.bool_]:
    wanted = np.asarray([name in roles for name in view.role_names], np.bool_)
    return wanted[view.roles]


def _matches(values: Mapping[str, object], name: str, wanted: object) -> bool:
    if name not in values:
        return False
    if isinstance(wanted, (list, tuple, set, frozenset)):
        return values[name] in wanted
    return values[name] == wanted
