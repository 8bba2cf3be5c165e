"""The arrays of one sample, as recall holds them for a scope: what the ablation ranks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import numpy as np
from numpy.typing import NDArray

from benchmarks._bm25 import bm25
from benchmarks._locomo import Question, Sample
from semantic_recall.context import Layout, Words, context_bm25
from semantic_recall.cues import role_asked_about
from semantic_recall.lending import thread_best
from semantic_recall.periods import microseconds, time_asked_about
from semantic_recall.postings import Postings
from semantic_recall.priors import favour, prior_scores, wordless_change
from semantic_recall.protocols import Embedder
from semantic_recall.ranking import DEFAULT_WEIGHTS, RankingWeights
from semantic_recall.terms import QUESTION, message_terms, text_terms
from semantic_recall.vectorizer import coverage

Floats = NDArray[np.float32]


class SampleIndex:
    """A sample with its vectors and terms.

    Args:
        sample: One conversation.
        embedder: None searches by words alone.
    """

    def __init__(self, sample: Sample, embedder: Embedder | None) -> None:
        texts = [turn.indexed for turn in sample.turns]
        terms = [message_terms(text) for text in texts]
        counts = np.array([len(each) for each in terms], dtype=np.int64)
        self.sample = sample
        self.starts = sample.starts
        self.searchable = np.ones(len(texts), dtype=np.bool_)
        moments = [microseconds(turn.at) if turn.at else 0 for turn in sample.turns]
        self._times = np.array(moments, dtype=np.int64)
        self._embedder = embedder
        self._postings = Postings.build(np.concatenate(terms), counts)
        positions = np.arange(len(texts))
        self._layout = Layout.of(self._postings.lengths, positions, self.starts)
        self._roles = np.array([turn.speaker for turn in sample.turns])
        self._questions = np.zeros(len(texts), dtype=np.bool_)
        self._questions[self._postings.rows_with(QUESTION)] = True
        self._vectors = _unit(embedder.embed_documents(texts)) if embedder else None

    def dense(self, question: Question) -> Floats:
        """Return the cosine similarities, NaN without an embedder."""
        if self._embedder is None or self._vectors is None:
            return np.full(len(self.searchable), np.nan, dtype=np.float32)
        query = _unit([self._embedder.embed_query(question.text)])[0]
        cosines: Floats = (self._vectors @ query).astype(np.float32)
        return cosines

    def understood(self, question: Question) -> float:
        """Return which share of the question the embedder can read."""
        return 1.0 if self._embedder is None else coverage(self._embedder, question.text)

    def lexical(self, question: Question) -> Floats:
        """Return the BM25 scores of each message alone."""
        return bm25(self._postings, text_terms(question.text))

    def lexical_in_context(self, question: Question) -> Words:
        """Return the BM25 scores that hear the neighbours too, and what the query is worth."""
        terms = text_terms(question.text)
        return context_bm25([self._postings], terms, self._layout, n=len(self.searchable))

    def prior(self, question: Question, weights: RankingWeights = DEFAULT_WEIGHTS) -> Floats:
        """Return what speaks for a message before its words are looked at."""
        role = role_asked_about(question.text)
        favoured = self._roles == role if role else None
        prior = prior_scores(self.starts, self._questions, favoured, weights=weights)
        time = time_asked_about(question.text)
        if time is not None:
            marked = time.marks(self._times, datetime.now(timezone.utc))
            prior = favour(prior, marked, weights.period)
        return prior

    def wordless(self, weights: RankingWeights = DEFAULT_WEIGHTS) -> Floats:
        """Return what is added to `prior` where words do not count."""
        return wordless_change(self.starts, self._questions, weights=weights)

    def better_neighbour(self, scores: Floats) -> Floats:
        """Return max(s[i-1], s[i+1]) inside the thread; a missing neighbour counts as 0."""
        before = np.concatenate([[np.float32(0)], scores[:-1]])
        after = np.concatenate([scores[1:], [np.float32(0)]])
        before[self.starts] = 0.0
        after[self.starts[1:] - 1] = 0.0
        better: Floats = np.maximum(before, after)
        return better

    def thread_best(self, scores: Floats) -> Floats:
        """Return for each message the mean of its thread's three best scores."""
        return thread_best(scores, self.starts, self.searchable)


def _unit(vectors: Sequence[Floats]) -> Floats:
    stacked = np.stack(vectors)
    unit: Floats = stacked / np.maximum(np.linalg.norm(stacked, axis=1, keepdims=True), 1e-12)
    return unit
