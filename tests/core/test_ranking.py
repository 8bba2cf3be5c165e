from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from semantic_recall.lending import best_of_few, best_of_many, with_previous
from semantic_recall.priors import prior_scores, wordless_change
from semantic_recall.ranking import RankingWeights, dense_scores, hybrid_scores

Floats = NDArray[np.float32]
NAN = float("nan")
INF = float("inf")


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float32)


def yes(n: int) -> NDArray[np.bool_]:
    return np.ones(n, dtype=np.bool_)


def scaled(values: list[float], among: list[bool]) -> list[float]:
    chosen = [v for v, a in zip(values, among, strict=True) if a]
    low, high = min(chosen, default=0.0), max(chosen, default=0.0)
    return [
        0.0 if not a else (v - low) / (high - low) if high > low else float(high > 0)
        for v, a in zip(values, among, strict=True)
    ]


def plain_hybrid(
    dense: list[float], lexical: list[float], sizes: list[int], searchable: list[bool], across: bool
) -> list[float]:
    known = [s and not math.isnan(d) for s, d in zip(searchable, dense, strict=True)]
    words = scaled(lexical, searchable)
    base = words
    if any(known):
        meaning = scaled(dense, known)
        # Without a vector the words count alone.
        base = [
            0.5 * (m if k else w) + 0.5 * w for m, w, k in zip(meaning, words, known, strict=True)
        ]
    scores: list[float] = []
    at = 0
    for size in sizes:
        mine = base[at : at + size]
        allowed = searchable[at : at + size]
        best = sorted((s for s, a in zip(mine, allowed, strict=True) if a), reverse=True)[:3]
        bonus = 0.2 * sum(best) / len(best) if across and best else 0.0
        scores += [s + bonus if a else -INF for s, a in zip(mine, allowed, strict=True)]
        at += size
    return scores


@st.composite
def conversations(
    draw: st.DrawFn,
) -> tuple[list[float], list[float], list[int], list[bool]]:
    sizes = draw(st.lists(st.integers(1, 6), max_size=5))
    n = sum(sizes)
    cosine = st.integers(-8, 8).map(lambda i: i / 8) | st.just(NAN)
    dense = draw(st.lists(cosine, min_size=n, max_size=n))
    lexical = draw(st.lists(st.integers(0, 6).map(float), min_size=n, max_size=n))
    return dense, lexical, sizes, draw(st.lists(st.booleans(), min_size=n, max_size=n))


@given(conversations(), st.booleans())
def test_hybrid_is_the_recipe(
    conversation: tuple[list[float], list[float], list[int], list[bool]], across: bool
) -> None:
    dense, lexical, sizes, searchable = conversation
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, dtype=np.int64)
    given_dense, given_lexical = floats(*dense), floats(*lexical)
    allowed = np.array(searchable, dtype=np.bool_)
    scores = hybrid_scores(given_dense, given_lexical, starts, allowed, across_threads=across)
    assert scores.dtype == np.float32
    expected = plain_hybrid(dense, lexical, sizes, searchable, across)
    assert scores.tolist() == pytest.approx(expected, abs=1e-5)
    # The caller's arrays are cached between recalls: they must stay as they were.
    np.testing.assert_array_equal(given_dense, floats(*dense))
    np.testing.assert_array_equal(given_lexical, floats(*lexical))
    np.testing.assert_array_equal(allowed, np.array(searchable, dtype=np.bool_))


def test_tiny_memories() -> None:
    start = np.array([0])
    one = hybrid_scores(floats(0.2), floats(0.0), start, yes(1), across_threads=True)
    assert np.isfinite(one).all()
    two = hybrid_scores(floats(0.1, 0.4), floats(0, 0), start, yes(2), across_threads=True)
    assert two[1] > two[0]
    words = hybrid_scores(floats(NAN, NAN), floats(0, 2), start, yes(2), across_threads=True)
    assert words[1] > words[0] > 0
    equal = hybrid_scores(floats(0.3, 0.3), floats(1, 1), start, yes(2), across_threads=False)
    assert equal[0] == equal[1]


def test_a_thread_never_lends_to_another() -> None:
    scores = hybrid_scores(
        floats(NAN, NAN, NAN),
        floats(0, 5, 0),
        np.array([0, 2]),
        yes(3),
        across_threads=True,
    )
    assert scores.tolist() == pytest.approx([0.1, 1.1, 0.0])


def test_weights_change_the_mixture() -> None:
    weights = RankingWeights(dense=1.0, thread=0.0)
    scores = hybrid_scores(
        floats(0, 0.5, 1),
        floats(9, 0, 0),
        np.array([0]),
        yes(3),
        across_threads=True,
        weights=weights,
    )
    assert scores.tolist() == [0.0, 0.5, 1.0]


def test_the_prior_favours_answers_and_the_role_asked_about() -> None:
    starts = np.array([0, 3])
    asks = np.array([True, False, True, False, True])
    weights = RankingWeights(answer=4.0, question=1.0, role=0.5)
    assert prior_scores(starts, asks, weights=weights).tolist() == [-1, 4, -1, 0, -1]
    user = np.array([True, False, True, False, False])
    favoured = prior_scores(starts, asks, user, weights=weights)
    assert favoured.tolist() == [-0.5, 4, -0.5, 0, -1]
    change = wordless_change(starts, asks, weights=weights)
    assert change.tolist() == [-1, -4, -1, 0, -1]  # no gain for answers, twice for questions
    nowhere = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_))
    assert prior_scores(*nowhere).tolist() == wordless_change(*nowhere).tolist() == []


@given(conversations())
def test_the_prior_is_added_at_the_end(
    conversation: tuple[list[float], list[float], list[int], list[bool]],
) -> None:
    dense, lexical, sizes, searchable = conversation
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, dtype=np.int64)
    arrays = (floats(*dense), floats(*lexical), starts, np.array(searchable, dtype=np.bool_))
    prior = -np.arange(len(dense), dtype=np.float32)
    plain = hybrid_scores(*arrays, across_threads=True)
    with_prior = hybrid_scores(*arrays, across_threads=True, prior=prior)
    np.testing.assert_allclose(with_prior, plain + prior, atol=1e-5)


def test_dense_scores_are_the_cosines() -> None:
    scores = dense_scores(floats(0.5, NAN, -1), np.array([True, True, True]))
    assert scores.tolist() == [0.5, -INF, -1.0]
    hidden = dense_scores(floats(0.5, 0.6), np.array([False, True]))
    assert hidden.tolist() == [-INF, pytest.approx(0.6)]


@given(
    threads=st.lists(
        st.lists(st.tuples(st.floats(0, 9, width=32), st.booleans()), min_size=1, max_size=9),
        min_size=1,
        max_size=9,
    )
)
def test_both_ways_to_the_best_of_a_thread_agree(threads: list[list[tuple[float, bool]]]) -> None:
    scores = floats(*(score for thread in threads for score, _ in thread))
    searchable = np.array([able for thread in threads for _, able in thread], dtype=np.bool_)
    ends = np.cumsum([len(thread) for thread in threads])
    starts = np.concatenate([[0], ends[:-1]])
    for which in (searchable, None):
        few = best_of_few(scores, starts, which)
        many = best_of_many(scores, starts, which)
        np.testing.assert_allclose(few, many, rtol=1e-6)


@given(st.lists(st.integers(-3, 5).map(float), max_size=60))
def test_a_complete_scope_is_scored_like_any_other(scores: list[float]) -> None:
    dense, words = floats(*scores), floats(*(abs(score) for score in reversed(scores)))
    starts = np.arange(0, len(scores), 3)
    for whole in (0.0, 3.0, 1e6):
        some, all_of_it = (
            hybrid_scores(
                dense, words, starts, yes(len(scores)),
                across_threads=True, whole=whole, complete=complete,
            )
            for complete in (False, True)
        )  # fmt: skip
        assert some.tolist() == all_of_it.tolist()


def test_words_that_cover_little_of_the_query_leave_it_to_the_vectors() -> None:
    arrays = (floats(0.9, 0.1, 0.5), floats(0.0, 2.0, 1.0), np.array([0, 1, 2]), yes(3))
    weights = RankingWeights(dense=0.5, little=0.25, enough=0.75, thread=0.0)

    def scores(whole: float, understood: float = 1.0) -> list[float]:
        found: list[float] = hybrid_scores(
            *arrays, across_threads=True, whole=whole, understood=understood, weights=weights
        ).tolist()
        return found

    assert scores(0.0) == pytest.approx([0.5, 0.5, 0.5])  # not known
    assert scores(2.0) == scores(2.6) == pytest.approx([0.5, 0.5, 0.5])  # 0.75 is enough
    assert scores(4.0) == pytest.approx([0.75, 0.25, 0.5])
    assert scores(8.0) == scores(1e9) == pytest.approx([1.0, 0.0, 0.5])
    # What the embedder cannot read counts for the words again.
    assert scores(8.0, understood=0.5) == pytest.approx([0.375, 0.625, 0.5])
    assert scores(8.0, understood=0.0) == pytest.approx([0.0, 1.0, 0.5])


def test_without_vectors_the_words_decide_however_few_they_are() -> None:
    nothing = floats(NAN, NAN, NAN)
    arrays = (nothing, floats(0.0, 0.2, 0.1), np.array([0, 1, 2]), yes(3))
    scores = hybrid_scores(*arrays, across_threads=False, whole=100.0, wordless=floats(-1, -1, 0))
    assert scores.tolist() == pytest.approx([0.0, 1.0, 0.5])


def test_a_value_hears_the_one_before_it_in_its_thread() -> None:
    values, starts = floats(1, 2, 4, 8), np.array([0, 3])
    heard = with_previous(values, starts, None, 0.5)
    # The first of a thread hears itself: 1 + 1/2, 2 + 1/2, 4 + 2/2, 8 + 8/2.
    assert heard.tolist() == [1.5, 2.5, 5.0, 12.0]
    assert values.tolist() == [1, 2, 4, 8]
    partly = with_previous(values, starts, np.array([True, False, True, True]), 0.5)
    assert partly[[0, 2, 3]].tolist() == [1.5, 6.0, 12.0]
    assert np.isnan(partly[1])
    assert with_previous(floats(3), np.array([0]), None, 0.5).tolist() == [4.5]


def test_where_words_tell_little_a_cosine_hears_the_one_before() -> None:
    arrays = (floats(0.9, 0.1, 0.2, 0.3), floats(0, 0, 1, 0), np.array([0, 3]), yes(4))
    weights = RankingWeights(little=0.25, enough=0.75, before=0.5, thread=0.0)

    def scores(whole: float, dense: Floats = arrays[0]) -> list[float]:
        found: list[float] = hybrid_scores(
            dense,
            *arrays[1:],
            across_threads=True,
            whole=whole,
            wordless=floats(0, 0, -1, 0),
            weights=weights,
        ).tolist()
        return found

    # Words count: each cosine for itself, (0.9, 0.1, 0.2, 0.3) scaled and halved.
    assert scores(1.0) == pytest.approx([0.5, 0.0, 0.5625, 0.125])
    # They do not: 0.9 x 1.5, 0.1 + 0.9 / 2, 0.2 + 0.1 / 2 and 0.3 x 1.5 are scaled.
    assert scores(1e9) == pytest.approx([1.0, 0.3 / 1.1, -1.0, 0.2 / 1.1])
    # Half: a quarter of the one before; 3/4 of (1.125, 0.325, 0.225, 0.375) scaled, 1/4 words.
    assert scores(2.0) == pytest.approx([0.75, 0.75 / 9, 0.25 - 0.5, 0.125])
    # One without a vector lends nothing: 0.9 x 1.5, (none), 0.2 x 1.5, 0.3 x 1.5.
    missing = scores(1e9, floats(0.9, NAN, 0.2, 0.3))
    assert missing == pytest.approx([1.0, 0.0, -1.0, 1 / 7])


def test_differences_too_small_to_divide_by_are_none() -> None:
    tiny = floats(0.0, 1e-42)
    scores = hybrid_scores(tiny, tiny, np.array([0]), yes(2), across_threads=False)
    assert scores[0] == scores[1]
    assert np.isfinite(scores).all()
