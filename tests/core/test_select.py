"""Choosing the hits: the best, of equal scores the newest, of equal texts the newest."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall.ranking import select

NAN = float("nan")
INF = float("inf")


def plain_select(
    scores: list[float], eligible: list[bool], k: int, digests: list[int] | None, keys: list[int]
) -> list[int]:
    able = [i for i, s in enumerate(scores) if eligible[i] and not math.isnan(s) and s > -INF]
    if digests is not None:
        newest = {digests[i]: i for i in sorted(able, key=lambda i: keys[i])}
        able = sorted(newest.values())
    return sorted(able, key=lambda i: (-scores[i], -keys[i]))[: max(k, 0)]


@st.composite
def selections(
    draw: st.DrawFn,
) -> tuple[list[float], list[bool], list[int] | None, list[int]]:
    n = draw(st.integers(0, 60))
    score = st.integers(-3, 5).map(float) | st.sampled_from([NAN, -INF])
    return (
        draw(st.lists(score, min_size=n, max_size=n)),
        draw(st.lists(st.booleans() | st.just(True), min_size=n, max_size=n)),
        draw(st.none() | st.lists(st.integers(0, 9), min_size=n, max_size=n)),
        draw(st.permutations(range(n))),
    )


@given(selections(), st.integers(-1, 8) | st.just(1000))
def test_select_is_sorting(
    selection: tuple[list[float], list[bool], list[int] | None, list[int]], k: int
) -> None:
    scores, eligible, digests, keys = selection
    repeated = None if digests is None else np.array([digests.count(d) > 1 for d in digests])
    everything = all(eligible) and all(map(math.isfinite, scores))
    for known in (None, repeated):
        for able in (np.array(eligible, dtype=np.bool_), *([None] if everything else [])):
            found = select(
                np.array(scores, dtype=np.float32),
                able,
                k,
                digests=None if digests is None else np.array(digests, dtype=np.int64),
                newest=np.argsort(-np.array(keys, dtype=np.int64)),
                repeated=known,
            )
            assert found == plain_select(scores, eligible, k, digests, keys)


def test_many_repetitions_do_not_hide_the_rest() -> None:
    n = 5_000
    scores = np.linspace(2, 1, n, dtype=np.float32)
    digests = np.full(n, 7)
    digests[-3:] = [1, 2, 3]
    found = select(
        scores, np.ones(n, dtype=np.bool_), 3, digests=digests, newest=np.arange(n)[::-1]
    )
    assert found == [n - 4, n - 3, n - 2]
