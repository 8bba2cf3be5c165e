from __future__ import annotations

import numpy as np
import pytest

from benchmarks._bootstrap import estimate


def test_the_interval_is_that_of_a_mean() -> None:
    values = np.random.default_rng(5).normal(0.6, 0.2, 400)
    found = estimate(values, np.arange(400))
    expected = 1.96 * values.std() / np.sqrt(400)
    assert found.mean == pytest.approx(values.mean())
    assert found.high - found.mean == pytest.approx(expected, rel=0.1)
    assert found.mean - found.low == pytest.approx(expected, rel=0.1)


def test_each_question_its_own_conversation_is_the_same_as_none() -> None:
    values = np.random.default_rng(6).random(200)
    found = estimate(values, np.arange(200))
    assert (found.low_clustered, found.high_clustered) == pytest.approx((found.low, found.high))


def test_conversations_that_differ_widen_the_interval() -> None:
    clusters = np.repeat(np.arange(8), 50)
    values = np.where(clusters % 2, 0.9, 0.3)
    found = estimate(values, clusters)
    assert found.high_clustered - found.low_clustered > 3 * (found.high - found.low)
    assert found.low_clustered >= 0.3
    assert found.high_clustered <= 0.9


def test_equal_values_leave_no_doubt() -> None:
    found = estimate([0.5] * 20, [0] * 10 + [1] * 10)
    assert found.rounded() == [0.5] * 5


def test_equal_seeds_give_equal_intervals() -> None:
    values = [0.0, 1.0, 0.5, 0.25]
    assert estimate(values, [0, 0, 1, 1]) == estimate(values, [0, 0, 1, 1])


@pytest.mark.parametrize(("values", "clusters"), [([], []), ([0.5, 0.5], [1])])
def test_nothing_to_estimate_is_refused(values: list[float], clusters: list[int]) -> None:
    with pytest.raises(ValueError, match="clusters"):
        estimate(values, clusters)
