"""What speaks for a message before the words of a query are looked at: pure functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from semantic_recall.ranking import DEFAULT_WEIGHTS, RankingWeights


def prior_scores(
    starts: NDArray[np.int64],
    questions: NDArray[np.bool_],
    favoured: NDArray[np.bool_] | None = None,
    *,
    weights: RankingWeights = DEFAULT_WEIGHTS,
) -> NDArray[np.float32]:
    """Return what speaks for a message before its words are looked at.

    A message that asks something seldom answers anything, the one after it often does; and a
    query like "what did you suggest?" is about what the assistant said.

    Args:
        starts: (T,) the first position of each thread, ascending from 0.
        questions: (n,) which messages ask something (`terms.QUESTION`).
        favoured: (n,) which messages are of the role asked about; None when none is.
        weights: The weights.

    Returns:
        (n,) float32.
    """
    scores: NDArray[np.float32] = np.float32(weights.answer) * _asked(starts, questions)
    scores -= np.float32(weights.question) * questions
    return scores if favoured is None else favour(scores, favoured, weights.role)


def wordless_change(
    starts: NDArray[np.int64],
    questions: NDArray[np.bool_],
    *,
    weights: RankingWeights = DEFAULT_WEIGHTS,
) -> NDArray[np.float32]:
    """Return what is added to `prior_scores` where the words of a query do not count.

    Where vectors decide alone, an answer hears the question before it already
    (`RankingWeights.before`), so it gains nothing more; and questions resemble a query by being
    questions, so they lose twice as much.

    Args:
        starts: (T,) the first position of each thread, ascending from 0.
        questions: (n,) which messages ask something.
        weights: The weights.

    Returns:
        (n,) float32, <= 0.
    """
    change: NDArray[np.float32] = np.float32(-weights.answer) * _asked(starts, questions)
    change -= np.float32(weights.question) * questions
    return change


def favour(
    prior: NDArray[np.float32], favoured: NDArray[np.bool_], gain: float
) -> NDArray[np.float32]:
    """Return `prior` with what the favoured messages gain; a scope's own can be kept so."""
    raised: NDArray[np.float32] = prior + np.float32(gain) * favoured
    return raised


def _asked(starts: NDArray[np.int64], questions: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return 1 where the message before asks something, in the same thread, else 0."""
    asked = np.zeros(len(questions), dtype=np.float32)
    asked[1:] = questions[:-1]
    asked[starts] = 0.0
    return asked
