"""What the messages of a thread lend one another: pure functions over arrays.

Arrays are in *conversation order*: by thread, and inside a thread by insertion.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

FEW = 500
"""Up to so many messages a loop over threads is quicker than array operations."""
_NEVER = np.float32(-np.inf)
_LAST_PLACES = np.array([1, 2, 3])
_ONE, _SHIFT = np.uint64(1), np.uint64(32)


def with_previous(
    values: NDArray[np.float32],
    starts: NDArray[np.int64],
    known: NDArray[np.bool_] | None,
    weight: float,
) -> NDArray[np.float32]:
    """Return each value + `weight` x that of the message before it in its thread.

    Where there is none, or its value is not known, a message's own value stands in for it: the
    first message of a thread neither gains nor loses by that.

    Args:
        values: (n,) with n >= 1.
        starts: (T,) the first position of each thread, ascending from 0.
        known: (n,) which values count; None: all do.
        weight: How much of the message before is heard.

    Returns:
        (n,) float32; what is not known is NaN.
    """
    if known is not None:
        values = np.where(known, values, np.float32(np.nan))
    earlier = np.empty_like(values)
    earlier[1:] = values[:-1]
    earlier[starts] = values[starts]
    if known is not None:
        earlier = np.where(np.isnan(earlier), values, earlier)
    earlier *= np.float32(weight)
    earlier += values
    return earlier


def thread_best(
    scores: NDArray[np.float32], starts: NDArray[np.int64], searchable: NDArray[np.bool_] | None
) -> NDArray[np.float32]:
    """Return for each message the mean of its thread's three best searchable scores, else 0.

    Args:
        scores: (n,), >= 0 where searchable.
        starts: (T,) the first position of each thread, ascending from 0.
        searchable: (n,) which scores count; None: all do.
    """
    best = best_of_few if len(scores) <= FEW else best_of_many
    return best(scores, starts, searchable)


def best_of_few(
    scores: NDArray[np.float32], starts: NDArray[np.int64], searchable: NDArray[np.bool_] | None
) -> NDArray[np.float32]:
    """Do what `thread_best` does, for few messages, as most scopes have."""
    counting = scores if searchable is None else np.where(searchable, scores, _NEVER)
    values = counting.tolist()
    bounds = [*starts.tolist(), len(values)]
    means, sizes = [], []
    for begin, end in itertools.pairwise(bounds):
        best = sorted(values[begin:end])[-3:]
        if best[0] < 0:  # not searchable
            best = [value for value in best if value >= 0] or [0.0]
        means.append(sum(best) / len(best))
        sizes.append(end - begin)
    return np.array(means, np.float32).repeat(sizes)


def best_of_many(
    scores: NDArray[np.float32], starts: NDArray[np.int64], searchable: NDArray[np.bool_] | None
) -> NDArray[np.float32]:
    """Do what `thread_best` does without a loop over threads.

    The bits of a float >= 0, read as a whole number, are in the order of the floats: thread and
    score make one number, so a single plain sort orders every thread.
    """
    ends = np.append(starts[1:], len(scores))
    ranks = scores.view(np.uint32).astype(np.uint64) + _ONE
    if searchable is not None:
        ranks[~searchable] = 0
    ranks |= np.repeat(np.arange(len(starts), dtype=np.uint64) << _SHIFT, ends - starts)
    ranks.sort()
    places = ends[:, None] - _LAST_PLACES
    bits = ranks[np.maximum(places, 0)].astype(np.uint32)
    there = (places >= starts[:, None]) & (bits > 0)
    best = np.where(there, (bits - np.uint32(1)).view(np.float32), np.float32(0.0))
    means = best.sum(axis=1) / np.maximum(there.sum(axis=1), 1).astype(np.float32)
    return np.repeat(means.astype(np.float32, copy=False), ends - starts)
