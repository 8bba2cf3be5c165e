"""How much of the evidence recall finds: `python -m benchmarks.quality --file FILE`.

FILE is in the LoCoMo format (see `_locomo.py`). Each sample is one resource, each session one
thread; every question is asked over the whole resource. Figures:

- evidence within a budget: walk down the ranking and take messages (with their neighbours, where
  the pipeline has them) until the budget of tokens, estimated as characters / 4, is full;
- evidence among the k best messages, by language (R@5);
- evidence in what the defaults of Mastra bring: the 4 best messages with neighbours 1/1.

A figure is the mean over questions of the share of their evidence messages that was found.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks._bm25 import bm25
from benchmarks._end_to_end import StoredSamples
from benchmarks._locomo import Question, Sample, read_samples
from semantic_recall.context import Layout, context_bm25
from semantic_recall.cues import role_asked_about
from semantic_recall.embedders import EMBEDDER_NAMES, embedder_named
from semantic_recall.postings import Postings
from semantic_recall.protocols import Embedder
from semantic_recall.ranking import best_of_many, dense_scores, hybrid_scores, prior_scores
from semantic_recall.terms import QUESTION, message_terms, text_terms
from semantic_recall.windows import expand, merge

Floats = NDArray[np.float32]
_R_AT = (1, 3, 5, 10)
_TOP_K = 4


class SampleIndex:
    """The arrays of one sample, as recall holds them for a scope."""

    def __init__(self, sample: Sample, embedder: Embedder | None) -> None:
        texts = [turn.indexed for turn in sample.turns]
        terms = [message_terms(text) for text in texts]
        counts = np.array([len(each) for each in terms], dtype=np.int64)
        self.sample = sample
        self.starts = sample.starts
        self.searchable = np.ones(len(texts), dtype=np.bool_)
        self.costs = [turn.tokens for turn in sample.turns]
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

    def lexical(self, question: Question) -> Floats:
        """Return the BM25 scores."""
        return bm25(self._postings, text_terms(question.text))

    def lexical_in_context(self, question: Question) -> Floats:
        """Return the BM25 scores that hear the neighbours too."""
        terms = text_terms(question.text)
        return context_bm25([self._postings], terms, self._layout, n=len(self.searchable))

    def prior(self, question: Question) -> Floats:
        """Return what speaks for a message before its words are looked at."""
        role = role_asked_about(question.text)
        return prior_scores(self.starts, self._questions, self._roles == role if role else None)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A way to rank, and how many neighbours each hit brings when a budget is filled."""

    name: str
    rank: Callable[[SampleIndex, Question], list[int]]
    neighbours: int = 0
    needs_embedder: bool = True


def _dense(index: SampleIndex, question: Question) -> Floats:
    return dense_scores(index.dense(question), index.searchable)


def _hybrid(neighbour: float, thread: float) -> Callable[[SampleIndex, Question], Floats]:
    """Return the recipe before context: BM25 of the message alone, neighbours' scores added."""

    def scores(index: SampleIndex, question: Question) -> Floats:
        mixed = hybrid_scores(
            index.dense(question),
            index.lexical(question),
            index.starts,
            index.searchable,
            across_threads=False,
        )
        mixed += np.float32(neighbour) * better_neighbour(mixed, index.starts)
        ends = np.append(index.starts[1:], len(mixed))
        best = best_of_many(mixed, index.starts, ends, index.searchable)
        return mixed + np.float32(thread) * np.repeat(best, ends - index.starts)

    return scores


def better_neighbour(scores: Floats, starts: NDArray[np.int64]) -> Floats:
    """Return max(s[i-1], s[i+1]) inside the thread; a missing neighbour counts as 0."""
    before = np.concatenate([[np.float32(0)], scores[:-1]])
    after = np.concatenate([scores[1:], [np.float32(0)]])
    before[starts] = 0.0
    after[starts[1:] - 1] = 0.0
    return np.maximum(before, after)


def _default(index: SampleIndex, question: Question) -> Floats:
    return hybrid_scores(
        index.dense(question),
        index.lexical_in_context(question),
        index.starts,
        index.searchable,
        across_threads=True,
        prior=index.prior(question),
    )


def _ranked(
    scores: Callable[[SampleIndex, Question], Floats],
) -> Callable[[SampleIndex, Question], list[int]]:
    def rank(index: SampleIndex, question: Question) -> list[int]:
        found = scores(index, question)
        # Of equal scores the newest first, as `ranking.select` does.
        order: list[int] = np.lexsort((-np.arange(len(found)), -found)).tolist()
        return order

    return rank


PIPELINES = (
    Pipeline("dense, neighbours 1/1 (Mastra's method)", _ranked(_dense), neighbours=1),
    Pipeline("BM25", _ranked(SampleIndex.lexical), needs_embedder=False),
    Pipeline("hybrid without smoothing", _ranked(_hybrid(0, 0))),
    Pipeline("hybrid with smoothing", _ranked(_hybrid(0.4, 0.3))),
    Pipeline("default", _ranked(_default), needs_embedder=False),
)


def measure(
    indexes: Sequence[SampleIndex], pipeline: Pipeline, budgets: Sequence[int]
) -> dict[str, Any]:
    """Return the figures of one pipeline: `recall_at_tokens`, `recall_at` by language, `top_k`."""
    at_tokens: dict[int, list[float]] = {budget: [] for budget in budgets}
    at_rank: dict[str, dict[int, list[float]]] = {}
    top: list[tuple[float, float, float]] = []
    for index in indexes:
        for question in index.sample.main_questions():
            ranking = pipeline.rank(index, question)
            for budget in budgets:
                got = _within(index, ranking, pipeline.neighbours, budget)
                at_tokens[budget].append(_found(question, got))
            of_language = at_rank.setdefault(index.sample.language, {k: [] for k in _R_AT})
            for k in _R_AT:
                of_language[k].append(_found(question, ranking[:k]))
            windows = expand(ranking[:_TOP_K], index.starts, len(index.costs), 1, 1)
            together = merge(windows)
            tokens = sum(index.costs[position] for position in together)
            top.append((_found(question, together), tokens, len(together)))
    recall, tokens, messages = np.array(top).mean(axis=0).tolist()
    return {
        "questions": len(top),
        "recall_at_tokens": {str(budget): _mean(found) for budget, found in at_tokens.items()},
        "recall_at": {
            language: {str(k): _mean(found) for k, found in by_k.items()}
            for language, by_k in at_rank.items()
        },
        "top_4_neighbours_1": {
            "recall": round(recall, 4),
            "tokens": round(tokens),
            "messages": round(messages, 1),
        },
    }


def _unit(vectors: Sequence[Floats]) -> Floats:
    stacked = np.stack(vectors)
    unit: Floats = stacked / np.maximum(np.linalg.norm(stacked, axis=1, keepdims=True), 1e-12)
    return unit


def _within(index: SampleIndex, ranking: Sequence[int], neighbours: int, budget: int) -> set[int]:
    got: set[int] = set()
    left = float(budget)
    for hit in ranking:
        (window,) = expand([hit], index.starts, len(index.costs), neighbours, neighbours)
        new = [p for p in range(window.first, window.last + 1) if p not in got]
        price = sum(index.costs[position] for position in new)
        if price > left:
            break
        got.update(new)
        left -= price
    return got


def _found(question: Question, positions: Iterable[int]) -> float:
    return len(question.evidence.intersection(positions)) / len(question.evidence)


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


def run(
    path: Path, budgets: Sequence[int], embedder: str, *, end_to_end: bool = False
) -> dict[str, Any]:
    """Measure every pipeline on a file.

    Args:
        path: A file in the LoCoMo format.
        budgets: Tokens.
        embedder: A name that `embedder_named` knows, or "none".
        end_to_end: Also store everything in a memory and ask `SemanticRecall.recall`.
    """
    model = None if embedder == "none" else embedder_named(embedder)
    samples = read_samples(path)
    indexes = [SampleIndex(sample, model) for sample in samples]
    figures = {
        pipeline.name: measure(indexes, pipeline, budgets)
        for pipeline in PIPELINES
        if model is not None or not pipeline.needs_embedder
    }
    if end_to_end:
        with tempfile.TemporaryDirectory() as directory:
            stored = StoredSamples(Path(directory), samples, model)
            pipeline = Pipeline(
                "SemanticRecall.recall", lambda index, q: stored.ranking(index.sample, q)
            )
            try:
                figures[pipeline.name] = measure(indexes, pipeline, budgets)
            finally:
                stored.close()
    return {
        "file": path.name,
        "embedder": embedder,
        "samples": len(indexes),
        "messages": sum(len(sample.turns) for sample in samples),
        "pipelines": figures,
    }


def _show(report: Mapping[str, Any], budgets: Sequence[int]) -> None:
    table = Table(title=f"{report['file']}, {report['embedder']}: share of the evidence found")
    table.add_column("pipeline")
    languages = sorted({name for p in report["pipelines"].values() for name in p["recall_at"]})
    for header in [
        *(f"{budget} tokens" for budget in budgets),
        *(f"R@5 {language}" for language in languages),
        "4 best + neighbours",
    ]:
        table.add_column(header, justify="right")
    for name, figures in report["pipelines"].items():
        top = figures["top_4_neighbours_1"]
        table.add_row(
            name,
            *(f"{figures['recall_at_tokens'][str(budget)]:.3f}" for budget in budgets),
            *(f"{figures['recall_at'][language]['5']:.3f}" for language in languages),
            f"{top['recall']:.3f} in {top['tokens']} tokens",
        )
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--file", type=Path, required=True, help="data in the LoCoMo format")
    parser.add_argument("--budgets", default="500,1000,2000", help="tokens, comma-separated")
    parser.add_argument("--embedder", default="wordllama", choices=[*EMBEDDER_NAMES, "none"])
    parser.add_argument(
        "--end-to-end", action="store_true", help="also through SemanticRecall.recall"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    budgets = [int(budget) for budget in options.budgets.split(",")]
    report = run(options.file, budgets, options.embedder, end_to_end=options.end_to_end)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _show(report, budgets)


if __name__ == "__main__":
    main()
