from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._bm25 import bm25
from semantic_recall.context import Layout, context_bm25
from semantic_recall.postings import Postings

Documents = list[list[int]]
documents = st.lists(st.lists(st.integers(0, 12) | st.just(2**32 - 1), max_size=8), max_size=12)


def build(texts: Documents) -> Postings:
    terms = np.array([term for text in texts for term in text], dtype=np.uint32)
    return Postings.build(terms, np.array([len(text) for text in texts], dtype=np.int64))


def plain_bm25(texts: Documents, query: list[int], k1: float, b: float) -> list[float]:
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


@given(documents, st.lists(st.integers(0, 14), max_size=5), st.floats(0, 3), st.floats(0, 1))
def test_bm25_is_the_formula(texts: Documents, query: list[int], k1: float, b: float) -> None:
    scores = bm25(build(texts), np.array(query, dtype=np.uint32), k1=k1, b=b)
    assert scores.dtype == np.float32
    assert scores.tolist() == pytest.approx(plain_bm25(texts, query, k1, b), rel=1e-4, abs=1e-6)


def test_messages_alone_in_their_threads_score_the_same_in_context() -> None:
    postings = build([[1, 2], [2], [3, 3, 2]])
    alone = np.arange(3, dtype=np.int64)
    query = np.array([2, 3], dtype=np.uint32)
    layout = Layout.of(postings.lengths, alone, alone, k1=1.2, b=0.75)
    in_context = context_bm25([postings], query, layout, n=3).scores
    assert in_context.tolist() == pytest.approx(bm25(postings, query).tolist())
