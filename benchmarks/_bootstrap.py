"""How sure a mean over questions is: percentile intervals from resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its intervals."""

    mean: float
    low: float
    """The interval when questions are drawn; `low` and `high` hold 95% of the means."""
    high: float
    low_clustered: float
    """The interval when whole conversations are drawn, as wide as the next set may differ."""
    high_clustered: float

    def rounded(self) -> list[float]:
        """Return mean, low, high, low and high by conversation, for a file."""
        values = (self.mean, self.low, self.high, self.low_clustered, self.high_clustered)
        return [round(value, 4) for value in values]


def estimate(
    values: Sequence[float] | NDArray[np.float64],
    clusters: Sequence[int] | NDArray[np.int64],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Return the mean of `values` and how far it would move with other questions.

    Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979): percentile intervals.

    Args:
        values: (q,) one figure per question; for a paired comparison their differences.
        clusters: (q,) the conversation of each question.
        resamples: How often a set of the same size is drawn, with replacement.
        seed: Equal seeds give equal intervals.

    Raises:
        ValueError: There are no values, or as many clusters do not come with them.
    """
    figures = np.asarray(values, dtype=np.float64)
    groups = np.asarray(clusters, dtype=np.int64)
    if not len(figures) or len(figures) != len(groups):
        raise ValueError(f"{len(figures)} values in {len(groups)} clusters")
    low, high = _interval(_draws(len(figures), resamples, seed) @ figures / len(figures))
    _, members = np.unique(groups, return_inverse=True)
    sums, sizes = np.bincount(members, weights=figures), np.bincount(members)
    clusters_drawn = _draws(len(sums), resamples, seed)
    wide_low, wide_high = _interval((clusters_drawn @ sums) / (clusters_drawn @ sizes))
    return Estimate(float(figures.mean()), low, high, wide_low, wide_high)


@lru_cache(maxsize=16)
def _draws(n: int, resamples: int, seed: int) -> NDArray[np.float32]:
    """Return how often each of n things is drawn in each sample, (resamples, n).

    That is all that a mean needs to know. Every figure of a set shares them, which saves the time
    and lets figures be compared.
    """
    random = np.random.default_rng(seed)
    counts = np.empty((resamples, n), dtype=np.float32)
    for row in counts:
        row[:] = np.bincount(random.integers(0, n, n), minlength=n)
    return counts


def _interval(means: NDArray[np.float64]) -> tuple[float, float]:
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
