"""The ways to rank that `quality.py` compares, over the arrays of a sample.

The ablation takes each weight of `RankingWeights` away in turn, whatever weights there are, and
what no weight stands for: words, vectors, the context of words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks._index import Floats, SampleIndex
from benchmarks._locomo import Question, Sample
from benchmarks._measures import Rank
from semantic_recall.protocols import Embedder
from semantic_recall.ranking import DEFAULT_WEIGHTS, RankingWeights, dense_scores, hybrid_scores

Scores = Callable[[SampleIndex, Question], Floats]

DEFAULT = "default"
MASTRA = "Mastra's method (dense, neighbours 1/1)"

# Not "heard": no question of these sets has a current thread (see `own/followups.py`).
_ABOUT = {
    "dense": "vectors",
    "little": "a floor for what words found",
    "enough": "a look at whether words found anything",
    "before": "the meaning of the message before",
    "thread": "the thread's best",
    "answer": "answers after questions",
    "question": "questions count less",
    "period": "the time asked about",
    "role": "the role asked about",
}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A way to rank, and how many neighbours each hit brings when a budget is filled."""

    name: str
    group: str
    """"reference", "ours" or "ablation"; peers have their own."""
    scores: Scores
    neighbours: int = 0
    needs_embedder: bool = True

    def over(self, indexes: Sequence[SampleIndex]) -> Rank:
        """Return the ranking over samples that are indexed."""
        by_id = {id(index.sample): index for index in indexes}

        def rank(sample: Sample, question: Question) -> list[int]:
            found = self.scores(by_id[id(sample)], question)
            # Of equal scores the newest first, as `ranking.select` does.
            order: list[int] = np.lexsort((-np.arange(len(found)), -found)).tolist()
            return order

        return rank


def indexed(samples: Sequence[Sample], embedder: Embedder | None) -> list[SampleIndex]:
    """Return the arrays of each sample."""
    return [SampleIndex(sample, embedder) for sample in samples]


def dense(index: SampleIndex, question: Question) -> Floats:
    """Rank by cosine similarity alone."""
    return dense_scores(index.dense(question), index.searchable)


def weighted(
    index: SampleIndex,
    question: Question,
    *,
    weights: RankingWeights = DEFAULT_WEIGHTS,
    context: bool = True,
) -> Floats:
    """Rank as recall does, with other weights, or with BM25 of each message alone."""
    words = index.lexical_in_context(question)
    return hybrid_scores(
        index.dense(question),
        words.scores if context else index.lexical(question),
        index.starts,
        index.searchable,
        across_threads=True,
        whole=words.whole,
        understood=index.understood(question),
        prior=index.prior(question, weights),
        wordless=index.wordless(weights),
        weights=weights,
    )


def smoothed(index: SampleIndex, question: Question, *, neighbour: float, thread: float) -> Floats:
    """Rank by the recipe before words had context: BM25 alone, neighbours' scores added."""
    mixed = hybrid_scores(
        index.dense(question),
        index.lexical(question),
        index.starts,
        index.searchable,
        across_threads=False,
    )
    mixed += np.float32(neighbour) * index.better_neighbour(mixed)
    scores: Floats = mixed + np.float32(thread) * index.thread_best(mixed)
    return scores


def fused_by_rank(index: SampleIndex, question: Question, *, k: int = 60) -> Floats:
    """Rank by reciprocal ranks (Cormack, Clarke, Buettcher, SIGIR 2009): what most hybrids do."""

    def ranks(scores: Floats) -> NDArray[np.int64]:
        return np.argsort(np.argsort(-scores, kind="stable"), kind="stable")

    dense_ranks, lexical_ranks = ranks(index.dense(question)), ranks(index.lexical(question))
    fused: Floats = (1.0 / (k + 1 + dense_ranks) + 1.0 / (k + 1 + lexical_ranks)).astype(np.float32)
    return fused


def _ablation() -> list[Pipeline]:
    without = [
        Pipeline(
            f"without {_ABOUT[field.name]}",
            "ablation",
            partial(weighted, weights=replace(DEFAULT_WEIGHTS, **{field.name: 0.0})),
        )
        for field in fields(RankingWeights)
        if isinstance(field.default, float) and field.default and field.name in _ABOUT
    ]
    words = partial(weighted, weights=replace(DEFAULT_WEIGHTS, dense=1.0))
    alone = partial(weighted, context=False)
    return [
        *without,
        Pipeline("without words", "ablation", words),
        Pipeline("words without context", "ablation", alone),
    ]


PIPELINES = (
    Pipeline(MASTRA, "reference", dense, neighbours=1),
    Pipeline("dense, no neighbours", "reference", dense),
    Pipeline("BM25", "reference", SampleIndex.lexical, needs_embedder=False),
    Pipeline("BM25, neighbours 1/1", "reference", SampleIndex.lexical, 1, needs_embedder=False),
    Pipeline("reciprocal rank fusion", "reference", fused_by_rank),
    Pipeline("mixed, no context", "reference", partial(smoothed, neighbour=0.0, thread=0.0)),
    Pipeline("mixed and smoothed", "reference", partial(smoothed, neighbour=0.4, thread=0.3)),
    Pipeline(DEFAULT, "ours", weighted, needs_embedder=False),
    *_ablation(),
)
