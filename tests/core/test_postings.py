from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall.postings import Postings

Documents = list[list[int]]
documents = st.lists(st.lists(st.integers(0, 12) | st.just(2**32 - 1), max_size=8), max_size=12)


def build(texts: Documents, first_row: int = 0) -> Postings:
    terms = np.array([term for text in texts for term in text], dtype=np.uint32)
    return Postings.build(terms, np.array([len(t) for t in texts], dtype=np.int64), first_row)


@given(documents)
def test_build_holds_every_count(texts: Documents) -> None:
    postings = build(texts, 5)
    assert (np.diff(postings.terms.astype(np.int64)) > 0).all()
    assert postings.starts[-1] == len(postings.rows) == len(postings.tfs)
    found = {
        (int(term), int(postings.rows[at]) - 5): int(postings.tfs[at])
        for i, term in enumerate(postings.terms)
        for at in range(postings.starts[i], postings.starts[i + 1])
    }
    expected = {(t, row): n for row, text in enumerate(texts) for t, n in Counter(text).items()}
    assert found == expected
    assert postings.lengths.tolist() == [len(text) for text in texts]


@given(documents, documents, st.integers(0, 3))
def test_merging_is_building_at_once(first: Documents, second: Documents, gap: int) -> None:
    whole = build(first + [[]] * gap + second, 2)
    parts = [build(first, 2), build(second, 2 + len(first) + gap)]
    for merged in (Postings.merge(*parts), Postings.merge(*parts[::-1])):
        assert merged.first_row == 2
        for name in ("terms", "starts", "rows", "tfs", "lengths"):
            one, other = getattr(merged, name), getattr(whole, name)
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()


def test_wrong_counts_and_overlapping_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to 2"):
        Postings.build(np.zeros(3, dtype=np.uint32), np.array([1, 1]), 0)
    with pytest.raises(ValueError, match="overlap"):
        Postings.merge(build([[1], [2]], 0), build([[3]], 1))


def test_counts_above_the_largest_are_cut() -> None:
    postings = build([[7] * 70_000])
    assert postings.tfs.tolist() == [65_535]
    assert postings.lengths.tolist() == [70_000]


@given(documents, st.integers(0, 14) | st.just(2**32 - 1))
def test_rows_with_a_term(texts: Documents, term: int) -> None:
    expected = [3 + row for row, text in enumerate(texts) if term in text]
    assert build(texts, 3).rows_with(term).tolist() == expected


def test_nbytes_is_the_sum_of_the_arrays() -> None:
    postings = build([[1, 2], [2]])
    # terms 2 x 4, starts 3 x 8, rows 3 x 4, tfs 3 x 2, lengths 2 x 4
    assert postings.nbytes == 8 + 24 + 12 + 6 + 8
