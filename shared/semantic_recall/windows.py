"""Neighbours of the hits, merged, within a token budget.

Positions count the *recallable* messages of a scope in conversation order (by thread, then by
insertion). Tool and system messages and messages without text are HIDDEN: they have no position
at all, so a window steps over them, they are not counted as neighbours, and a tool call is never
separated from its results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Window(NamedTuple):
    """A hit with its neighbours: the positions `first` to `last`, both included."""

    hit: int
    first: int
    last: int


def expand(
    hits: Sequence[int],
    starts: NDArray[np.int64] | Sequence[int],
    n: int,
    before: int,
    after: int,
) -> list[Window]:
    """Return the window of each hit, clipped to the hit's thread, in the order of the hits.

    Args:
        hits: Positions, best first.
        starts: (T,) the first position of each thread, ascending, from 0.
        n: The number of positions.
        before: How many neighbours before the hit, at least 0.
        after: How many neighbours after the hit, at least 0.
    """
    windows = []
    for hit in hits:  # a handful: array operations would take longer
        following = bisect_right(starts, hit)
        begin = int(starts[following - 1])
        end = int(starts[following]) if following < len(starts) else n
        windows.append(Window(hit, max(begin, hit - before), min(end - 1, hit + after)))
    return windows


def merge(windows: Iterable[Window]) -> list[int]:
    """Return every position of the windows once, ascending."""
    positions: set[int] = set()
    for window in windows:
        positions.update(range(window.first, window.last + 1))
    return sorted(positions)


def fit(
    windows: Sequence[Window], costs: Callable[[int], int] | Sequence[int], max_tokens: int
) -> tuple[list[int], list[int]]:
    """Choose what fits into a budget of tokens, the windows of the best hits first.

    A window that does not fit shrinks to its hit; a hit that does not fit either is left out, and
    worse but shorter ones still get their turn. A position that an earlier window paid for costs
    nothing.

    Args:
        windows: Best first.
        costs: Tokens by position: a function or something indexed by position.
        max_tokens: The budget; nothing fits into 0 or less.

    Returns:
        The positions kept and the positions left out, both ascending.
    """
    cost = costs if callable(costs) else costs.__getitem__
    kept: set[int] = set()
    left = max_tokens
    for window in windows:
        for positions in (range(window.first, window.last + 1), (window.hit,)):
            new = [position for position in positions if position not in kept]
            price = sum(int(cost(position)) for position in new)
            if price <= left:
                kept.update(new)
                left -= price
                break
    return sorted(kept), [position for position in merge(windows) if position not in kept]
