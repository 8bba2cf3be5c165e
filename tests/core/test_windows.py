from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall.windows import Window, expand, fit, merge

sizes = st.lists(st.integers(1, 6), min_size=1, max_size=6)
RANGE = st.integers(0, 4)


def thread_of(position: int, thread_sizes: list[int]) -> int:
    owners = [thread for thread, size in enumerate(thread_sizes) for _ in range(size)]
    return owners[position]


@given(sizes, st.data(), RANGE, RANGE)
def test_windows_hold_the_neighbours_of_the_thread(
    thread_sizes: list[int], data: st.DataObject, before: int, after: int
) -> None:
    n = sum(thread_sizes)
    starts = np.cumsum([0, *thread_sizes[:-1]])
    hits = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=6))
    windows = expand(hits, starts, n, before, after)
    assert [window.hit for window in windows] == hits
    for window in windows:
        mine = thread_of(window.hit, thread_sizes)
        expected = [
            p
            for p in range(max(0, window.hit - before), min(n, window.hit + after + 1))
            if thread_of(p, thread_sizes) == mine
        ]
        assert list(range(window.first, window.last + 1)) == expected
    together = merge(windows)
    assert together == sorted(set(together))
    assert set(together) == {p for w in windows for p in range(w.first, w.last + 1)}


windows_of_20 = st.lists(
    st.integers(0, 19).flatmap(
        lambda hit: st.builds(
            Window, st.just(hit), st.integers(max(0, hit - 2), hit), st.integers(hit, hit + 2)
        )
    ),
    max_size=6,
    unique_by=lambda window: window.hit,
)


@given(windows_of_20, st.lists(st.integers(0, 9), min_size=22, max_size=22), st.integers(0, 60))
def test_fit_keeps_the_budget_and_reports_the_rest(
    windows: list[Window], costs: list[int], budget: int
) -> None:
    kept, dropped = fit(windows, costs, budget)
    assert sum(costs[position] for position in kept) <= budget
    assert sorted(kept + dropped) == merge(windows)
    assert (kept, dropped) == fit(windows, costs.__getitem__, budget)
    if windows and costs[windows[0].hit] <= budget:
        assert windows[0].hit in kept
    for window in windows:
        if window.hit in dropped:
            assert sum(costs[position] for position in kept) + costs[window.hit] > budget


def test_a_window_shrinks_to_its_hit() -> None:
    windows = [Window(1, 0, 2), Window(5, 4, 6)]
    costs = [3, 3, 3, 0, 3, 3, 3]
    assert fit(windows, costs, 18) == ([0, 1, 2, 4, 5, 6], [])
    assert fit(windows, costs, 12) == ([0, 1, 2, 5], [4, 6])
    assert fit(windows, costs, 5) == ([1], [0, 2, 4, 5, 6])
    assert fit(windows, costs, 0) == ([], [0, 1, 2, 4, 5, 6])


def test_what_is_paid_for_costs_nothing() -> None:
    assert fit([Window(1, 0, 2), Window(2, 1, 3)], [5, 5, 5, 5], 20) == ([0, 1, 2, 3], [])


def test_a_short_hit_gets_its_turn_after_a_long_one() -> None:
    assert fit([Window(0, 0, 0), Window(1, 1, 1)], [100, 5], 10) == ([1], [0])


def test_no_hits() -> None:
    assert expand([], np.array([0]), 3, 1, 1) == []
    assert merge([]) == []
    assert fit([], [], 10) == ([], [])
