"""What a ranking is worth: the share of a question's evidence that reaches the prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._bootstrap import estimate
from benchmarks._locomo import REPORT, Question, Sample
from semantic_recall.windows import expand, merge

BUDGETS = (250, 500, 1000, 2000, 4000)
"""Tokens, estimated as characters / 4."""
AT_KIND = 1000
"""The budget at which kinds of questions and pipelines are compared."""
R_AT = (1, 3, 5, 10)
TOP_K = 4

Rank = Callable[[Sample, Question], Sequence[int]]
"""Returns the positions of a sample's messages that answer a question, best first."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one pipeline found, question by question."""

    figures: Mapping[str, NDArray[np.float64]]
    """(q,) by name: "@500" of the evidence in a budget, "R@5", "top", "tokens", "messages"."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """All questions of a set, in the order of the figures."""

    samples: NDArray[np.int64]
    """(q,) the number of the sample, which is what intervals are clustered by."""
    kinds: Sequence[str]
    languages: Sequence[str]
    reported: NDArray[np.bool_]
    """(q,) True in the half that figures are quoted from."""

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Asked:
        """Return the questions of `samples`, sample by sample."""
        each = [(i, sample, q) for i, sample in enumerate(samples) for q in sample.questions]
        return cls(
            samples=np.array([i for i, _, _ in each], dtype=np.int64),
            kinds=[question.kind for _, _, question in each],
            languages=[sample.language for _, sample, _ in each],
            reported=np.array([question.half == REPORT for _, _, question in each]),
        )


def outcome(
    samples: Sequence[Sample], rank: Rank, *, neighbours: int = 0, window: int = 1
) -> Outcome:
    """Ask every question.

    Args:
        samples: A set.
        rank: The pipeline.
        neighbours: How many come with each hit, on both sides, while a budget is filled.
        window: The same for the 4 best messages (`message_range` of the defaults).
    """
    found: dict[str, list[float]] = {}
    for sample in samples:
        costs = [turn.tokens for turn in sample.turns]
        starts = sample.starts
        for question in sample.questions:
            ranking = rank(sample, question)
            for budget in BUDGETS:
                got = within(ranking, costs, starts, neighbours, budget)
                found.setdefault(f"@{budget}", []).append(share(question, got))
            for k in R_AT:
                found.setdefault(f"R@{k}", []).append(share(question, ranking[:k]))
            together = merge(expand(ranking[:TOP_K], starts, len(costs), window, window))
            found.setdefault("top", []).append(share(question, together))
            found.setdefault("tokens", []).append(sum(costs[position] for position in together))
            found.setdefault("messages", []).append(len(together))
    return Outcome({name: np.array(values, np.float64) for name, values in found.items()})


def within(
    ranking: Sequence[int],
    costs: Sequence[float],
    starts: NDArray[np.int64],
    neighbours: int,
    budget: float,
) -> set[int]:
    """Return the messages that fit a budget: best first, each with its neighbours, until full."""
    got: set[int] = set()
    left = float(budget)
    for hit in ranking:
        (window,) = expand([hit], starts, len(costs), neighbours, neighbours)
        new = [p for p in range(window.first, window.last + 1) if p not in got]
        price = sum(costs[position] for position in new)
        if price > left:
            break
        got.update(new)
        left -= price
    return got


def share(question: Question, positions: Iterable[int]) -> float:
    """Return how much of the question's evidence is among `positions`, 0 to 1."""
    return len(question.evidence.intersection(positions)) / len(question.evidence)


def summary(asked: Asked, found: Outcome, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the figures of a pipeline over the chosen questions; each a list, see `Estimate`."""

    def figure(name: str, among: NDArray[np.bool_]) -> list[float]:
        return estimate(found.figures[name][among], asked.samples[among]).rounded()

    def groups(labels: Sequence[str], name: str) -> dict[str, Any]:
        of_group = {}
        for label in sorted({label for label, one in zip(labels, chosen, strict=True) if one}):
            among = chosen & np.array([other == label for other in labels])
            of_group[label] = {"questions": int(among.sum()), "found": figure(name, among)}
        return of_group

    return {
        "questions": int(chosen.sum()),
        "evidence": {str(budget): figure(f"@{budget}", chosen) for budget in BUDGETS},
        "recall_at": {str(k): figure(f"R@{k}", chosen) for k in R_AT},
        "top_4": {
            "found": figure("top", chosen),
            "tokens": round(float(found.figures["tokens"][chosen].mean())),
            "messages": round(float(found.figures["messages"][chosen].mean()), 1),
        },
        "kinds": groups(asked.kinds, f"@{AT_KIND}"),
        "languages": groups(asked.languages, "R@5"),
    }


def difference(
    asked: Asked, found: Outcome, other: Outcome, chosen: NDArray[np.bool_]
) -> list[float]:
    """Return how much more of the evidence `found` has than `other` in `AT_KIND` tokens.

    The interval is that of the differences question by question, which is narrower than those of
    the two means.
    """
    name = f"@{AT_KIND}"
    more = (found.figures[name] - other.figures[name])[chosen]
    return estimate(more, asked.samples[chosen]).rounded()
