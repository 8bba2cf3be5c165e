"""Recall in Chinese and Korean: questions and the messages that answer them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semantic_recall.context import Layout, context_bm25
from semantic_recall.cues import role_asked_about
from semantic_recall.embedders import embedder_named
from semantic_recall.postings import Postings
from semantic_recall.priors import prior_scores, wordless_change
from semantic_recall.protocols import Embedder
from semantic_recall.ranking import hybrid_scores, select
from semantic_recall.terms import QUESTION, message_terms, text_terms
from semantic_recall.vectorizer import coverage

PAIRS = Path(__file__).parents[1] / "data" / "cjk.json"


def ranks(language: str, embedder: Embedder | None, *, one_thread: bool) -> list[int]:
    """Return for each question the rank of its message, from 0.

    They were written apart: in one thread a message's neighbours have nothing to do with it.
    """
    data: dict[str, Any] = json.loads(PAIRS.read_text(encoding="utf-8"))[language]
    texts = [f"user: {pair['message']}" for pair in data["pairs"]]
    texts += [f"user: {text}" for text in data["distractors"]]
    n = len(texts)
    everything, all_positions = np.ones(n, dtype=np.bool_), np.arange(n)
    terms = [message_terms(text) for text in texts]
    counts = np.array([len(each) for each in terms], dtype=np.int64)
    postings = Postings.build(np.concatenate(terms), counts)
    starts = all_positions[:1] if one_thread else all_positions
    layout = Layout.of(postings.lengths, all_positions, starts)
    asks = np.isin(all_positions, postings.rows_with(QUESTION))
    vectors = None if embedder is None else np.stack(embedder.embed_documents(texts))
    found = []
    for position, pair in enumerate(data["pairs"]):
        question = pair["question"]
        dense = np.full(n, np.nan, dtype=np.float32)
        if embedder is not None and vectors is not None:
            dense = vectors @ embedder.embed_query(question)
        favoured = everything if role_asked_about(question) == "user" else None
        words = context_bm25([postings], text_terms(question), layout, n=n)
        scores = hybrid_scores(
            dense,
            words.scores,
            starts,
            everything,
            across_threads=True,
            whole=words.whole,
            understood=1.0 if embedder is None else coverage(embedder, question),
            prior=prior_scores(starts, asks, favoured),
            wordless=wordless_change(starts, asks),
        )
        ranking = select(scores, everything, n, digests=None, newest=all_positions[::-1])
        found.append(ranking.index(position))
    return found


@pytest.mark.parametrize("one_thread", [False, True])
@pytest.mark.parametrize(
    ("language", "embedder", "first", "among_three"),
    [
        # How many of the 10 questions find their message first, and among the three best, at
        # least: (each message a thread of its own, all in one thread).
        ("zh", None, (5, 5), (6, 5)),
        ("ko", None, (5, 5), (6, 5)),
        ("zh", "wordllama", (7, 6), (7, 7)),
        ("ko", "wordllama", (5, 4), (6, 6)),
        ("zh", "multilingual", (9, 9), (10, 10)),
        ("ko", "multilingual", (8, 8), (10, 10)),
    ],
)
def test_questions_find_their_messages(
    language: str,
    embedder: str | None,
    first: tuple[int, int],
    among_three: tuple[int, int],
    one_thread: bool,
) -> None:
    model = None if embedder is None else embedder_named(embedder)
    found = ranks(language, model, one_thread=one_thread)
    assert len(found) == 10
    assert sum(rank < 1 for rank in found) >= first[one_thread]
    assert sum(rank < 3 for rank in found) >= among_three[one_thread]
