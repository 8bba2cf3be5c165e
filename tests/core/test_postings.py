from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from semantic_recall.postings import Postings, bm25

Documents = list[list[int]]
documents = st.lists(st.lists(st.integers(0, 12) | st.just(2**32 - 1), max_size=8), max_size=12)
queries = st.lists(st.integers(0, 14), max_size=5)


def build(texts: Documents, first_row: int = 0) -> Postings:
    terms = np.array([term for text in texts for term in text], dtype=np.uint32)
    return Postings.build(terms, np.array([len(t) for t in texts], dtype=np.int64), first_row)


def lengths_of(texts: Documents) -> NDArray[np.float32]:
    return np.array([len(text) for text in texts], dtype=np.float32)


def plain_bm25(texts: Documents, query: list[int], k1: float = 1.2, b: float = 0.75) -> list[float]:
    known = [text for text in texts if text]
    average = sum(map(len, known)) / max(len(known), 1)
    scores = []
    for text in texts:
        tf = Counter(text)
        score = 0.0
        for term in query:
            df = sum(term in other for other in texts)
            idf = math.log(1 + (len(known) - df + 0.5) / (df + 0.5))
            if tf[term]:
                norm = k1 * (1 - b + b * len(text) / average)
                score += idf * tf[term] * (k1 + 1) / (tf[term] + norm)
        scores.append(score)
    return scores


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


@given(documents, queries, st.integers(0, 12), st.floats(0, 3), st.floats(0, 1))
def test_bm25_is_the_formula(
    texts: Documents, query: list[int], cut: int, k1: float, b: float
) -> None:
    cut = min(cut, len(texts))
    segments = [build(texts[:cut]), build(texts[cut:], cut)]
    scores = bm25(segments, np.array(query, dtype=np.uint32), lengths_of(texts), k1=k1, b=b)
    assert scores.dtype == np.float32
    assert scores.tolist() == pytest.approx(plain_bm25(texts, query, k1, b), rel=1e-4, abs=1e-6)


@given(documents, queries)
def test_given_statistics_stand_for_the_scope(texts: Documents, query: list[int]) -> None:
    whole = [*texts, [1, 2], [2, 3], [3, 3, 4]]
    counts = {term: sum(term in text for text in whole) for term in range(15)}
    known = [text for text in whole if text]
    scores = bm25(
        [build(texts)],
        np.array(query, dtype=np.uint32),
        lengths_of(texts),
        n=len(known),
        document_counts=counts,
        average=sum(map(len, known)) / len(known),
    )
    expected = plain_bm25(whole, query)[: len(texts)]
    assert scores.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_nothing_to_search() -> None:
    none = np.zeros(0, dtype=np.uint32)
    assert bm25([], none, np.zeros(0, dtype=np.float32)).tolist() == []
    assert bm25([build([[1]])], none, lengths_of([[1]])).tolist() == [0.0]
    assert bm25([build([[], []])], np.array([1], np.uint32), lengths_of([[], []])).tolist() == [
        0,
        0,
    ]


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
