from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall import context
from semantic_recall.context import CONTEXT, Layout, Words, context_bm25
from semantic_recall.postings import Postings

Documents = list[list[int]]
HEARD = ((0, 1.0), *CONTEXT)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Documents, list[int], list[int]]:
    """Messages in conversation order, the sizes of the threads, and the rows in that order."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    text = st.lists(st.integers(0, 8), max_size=5)
    texts = draw(st.lists(text, min_size=sum(sizes), max_size=sum(sizes)))
    return texts, sizes, draw(st.permutations(range(sum(sizes))))


def scored(
    texts: Documents,
    sizes: Sequence[int],
    order: Sequence[int],
    query: list[int],
    k1: float = 1.2,
    b: float = 0.75,
) -> list[float]:
    n = len(texts)
    by_row: Documents = [[] for _ in texts]
    for position, row in enumerate(order):
        by_row[row] = texts[position]
    counts = np.array([len(text) for text in by_row], dtype=np.int64)
    cut = n // 2
    segments = [
        Postings.build(
            np.array([term for text in part for term in text], dtype=np.uint32),
            np.array([len(text) for text in part], dtype=np.int64),
            first,
        )
        for part, first in ((by_row[:cut], 0), (by_row[cut:], cut))
    ]
    starts = np.cumsum([0, *sizes[:-1]])
    lengths = counts.astype(np.float32)
    layout = Layout.of(lengths, np.array(order, dtype=np.int64), starts, k1=k1, b=b)
    scores = context_bm25(segments, np.array(query, dtype=np.uint32), layout, n=n).scores
    assert scores.dtype == np.float32
    found: list[float] = scores.tolist()
    return found


def plain(
    texts: Documents, sizes: Sequence[int], query: list[int], k1: float, b: float
) -> list[float]:
    owner = [thread for thread, size in enumerate(sizes) for _ in range(size)]

    def heard(position: int, count: list[float]) -> float:
        total = 0.0
        for offset, weight in HEARD:
            at = position - offset
            if 0 <= at < len(texts) and owner[at] == owner[position]:
                total += weight * count[at]
        return total

    lengths = [heard(i, [float(len(text)) for text in texts]) for i in range(len(texts))]
    average = sum(lengths) / max(sum(length > 0 for length in lengths), 1)
    scores = [0.0] * len(texts)
    for term in query:
        df = sum(term in text for text in texts)
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        for position in range(len(texts)):
            tf = heard(position, [float(text.count(term)) for text in texts])
            if tf:
                norm = k1 * (1 - b + b * lengths[position] / average)
                scores[position] += idf * tf * (k1 + 1) / (tf + norm)
    return scores


@given(
    conversations(),
    st.lists(st.integers(0, 10), max_size=5),
    st.floats(0.1, 3),
    st.floats(0, 1),
)
def test_context_bm25_is_the_formula(
    conversation: tuple[Documents, list[int], list[int]], query: list[int], k1: float, b: float
) -> None:
    texts, sizes, order = conversation
    found = scored(texts, sizes, order, query, k1=k1, b=b)
    assert found == pytest.approx(plain(texts, sizes, query, k1, b), rel=1e-3, abs=1e-5)


@given(conversations(), st.lists(st.integers(0, 10), max_size=5))
def test_blocks_do_not_change_the_scores(
    conversation: tuple[Documents, list[int], list[int]], query: list[int]
) -> None:
    whole = scored(*conversation, query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "_CELLS", 1)
        assert scored(*conversation, query) == pytest.approx(whole, rel=1e-4, abs=1e-6)


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    scores = scored([[9], [1], [2], [9]], [3, 1], [0, 1, 2, 3], [1])
    assert scores[1] > scores[2] > 0
    assert scores[0] > 0
    assert scores[3] == 0


def test_given_counts_stand_for_the_scope() -> None:
    postings = Postings.build(np.array([1, 2], dtype=np.uint32), np.array([1, 1]))
    layout = Layout.of(postings.lengths, np.arange(2), np.array([0, 1]))
    query = np.array([1, 2], dtype=np.uint32)
    scores, whole = context_bm25([postings], query, layout, n=100, document_counts={1: 90, 2: 1})
    assert scores[1] > 10 * scores[0] > 0
    assert whole == pytest.approx(math.log1p(10.5 / 90.5) + math.log1p(99.5 / 1.5))


def test_the_whole_is_what_an_average_message_with_every_term_would_have() -> None:
    texts: Documents = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    counts = np.array([3, 3, 3])
    postings = Postings.build(np.array(texts, dtype=np.uint32).reshape(-1), counts)
    layout = Layout.of(postings.lengths, np.arange(3), np.arange(3))

    def found(*query: int) -> Words:
        return context_bm25([postings], np.array(query, dtype=np.uint32), layout, n=3)

    every = found(1, 2, 3)
    assert every.scores.max() == pytest.approx(every.whole, rel=1e-5)
    # A term that is nowhere is missed, a repeated one counts as often, and so does nothing else.
    nowhere = found(1, 2, 3, 10)
    assert nowhere.scores.max() == pytest.approx(every.whole, rel=1e-5)
    assert nowhere.whole == pytest.approx(every.whole + math.log1p(3.5 / 0.5))
    assert found(1, 1).whole == pytest.approx(2 * found(1).whole)
    assert found(10).whole == pytest.approx(math.log1p(3.5 / 0.5))
    assert found().whole == 0
    page = found(*range(100, 300))
    assert page.whole == pytest.approx(24 * math.log1p(3.5 / 0.5))


def test_of_a_long_query_the_rarest_terms_count() -> None:
    common = list(range(1000, 1200))
    texts = [common, common, [5]]
    scores = scored(texts, [1, 1, 1], [0, 1, 2], [*common, 5])
    assert scores[2] > 0
    one = scored(texts, [1, 1, 1], [0, 1, 2], [common[0]])[0]
    assert scores[0] == pytest.approx(127 * one, rel=1e-3)


def test_an_empty_scope() -> None:
    none = np.zeros(0, dtype=np.int64)
    layout = Layout.of(np.zeros(0, dtype=np.float32), none, none)
    words = context_bm25([], np.array([1], dtype=np.uint32), layout, n=0)
    assert words.scores.tolist() == []
