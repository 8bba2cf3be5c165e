"""How follow-ups are found: `python -m benchmarks.followups`, on `own/data/followups`.

Each question is asked through the library with the current thread before it stored, once without
and once with a word about which thread that is; as the plugins do it, what the thread holds is
left out. A figure is the mean share of the evidence among the five best and in 1,000 tokens.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks._locomo import REPORT, TUNE, Question, Sample, read_samples
from benchmarks._measures import AT_KIND, share, within
from benchmarks._stored import MOST, messages_of
from benchmarks.own import build
from benchmarks.own.followups import CHANGE, FOLLOW_UP, AskedNow, asked_now
from semantic_recall import Message, SemanticRecall
from semantic_recall.embedders import EMBEDDER_NAMES, embedder_named
from semantic_recall.protocols import Embedder
from semantic_recall.stores.sql import SQLMessageStore

_NOW = "now"
"""The id of the current thread."""
_BEST = 5


class Found(NamedTuple):
    """What was found, one figure for each question, in their order."""

    best: NDArray[np.float64]
    """The share of the evidence among the five best."""
    in_tokens: NDArray[np.float64]
    """The same in 1,000 tokens."""


def own_samples() -> dict[str, Sample]:
    """Return the samples of the own set by id."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.json"
        path.write_text(json.dumps(build()), encoding="utf-8")
        return {sample.id: sample for sample in read_samples(path)}


@contextmanager
def stored(
    samples: Mapping[str, Sample], embedder: Embedder | None, *, one_thread: bool = False
) -> Iterator[SemanticRecall]:
    """Give a memory that holds the samples, one resource each.

    Args:
        samples: By id.
        embedder: None searches by words alone.
        one_thread: Each sample is one thread, which the current turns will go on with.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = SQLMessageStore.open(Path(folder) / "recall.sqlite3")
        with SemanticRecall(store, None, embedder) as memory:
            for sample in samples.values():
                messages = messages_of(sample)
                if one_thread:
                    messages = [replace(message, thread_id=_NOW) for message in messages]
                memory.remember(messages)
            yield memory


def found(
    memory: SemanticRecall,
    samples: Mapping[str, Sample],
    asked: Sequence[AskedNow],
    *,
    knows_thread: bool = True,
    one_thread: bool = False,
) -> Found:
    """Ask every question.

    Args:
        memory: From `stored`.
        samples: What it holds.
        asked: Questions.
        knows_thread: Whether recall is told which thread is the current one.
        one_thread: Search that thread alone; the memory was stored so.
    """
    figures = []
    for question in asked:
        sample = samples[question.sample]
        ranking = _ranking(memory, question, knows_thread=knows_thread, one_thread=one_thread)
        places = {turn.id: place for place, turn in enumerate(sample.turns)}
        evidence = frozenset(places[each] for each in question.evidence)
        label = Question(question.asked.text, evidence, question.asked.kind, question.split)
        costs = [turn.tokens for turn in sample.turns]
        in_budget = within(ranking, costs, sample.starts, 0, AT_KIND)
        figures.append((share(label, ranking[:_BEST]), share(label, in_budget)))
    best, in_tokens = np.array(figures, np.float64).T
    return Found(best, in_tokens)


def _ranking(
    memory: SemanticRecall, question: AskedNow, *, knows_thread: bool, one_thread: bool
) -> list[int]:
    """Return the positions of the sample's messages that recall finds, best first."""
    before = [
        Message(
            id=f"{_NOW}-{place}",
            role=line.speaker if line.speaker in ("user", "assistant") else "user",
            name=None if line.speaker in ("user", "assistant") else line.speaker,
            text=line.text,
            thread_id=_NOW,
            resource_id=question.sample,
        )
        for place, line in enumerate(question.before)
    ]
    memory.remember(before)
    ids = [message.id for message in before]
    recalled = memory.recall(
        question.asked.text,
        thread_id=_NOW if knows_thread or one_thread else None,
        resource_id=question.sample,
        scope="thread" if one_thread else "resource",
        top_k=MOST,
        message_range=0,
        exclude_ids=ids,
    )
    memory.forget(ids=ids, thread_id=_NOW, resource_id=question.sample)
    return [int(hit.message.id) for hit in recalled.hits]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.followups", description=__doc__)
    parser.add_argument("--embedder", choices=[*EMBEDDER_NAMES, "none"], default="wordllama")
    parser.add_argument("--half", choices=[TUNE, REPORT], default=REPORT)
    options = parser.parse_args(arguments)
    embedder = None if options.embedder == "none" else embedder_named(options.embedder)
    asked = [question for question in asked_now() if question.split == options.half]
    samples = own_samples()
    with stored(samples, embedder) as memory:
        for kind in (FOLLOW_UP, CHANGE):
            chosen = [question for question in asked if question.asked.kind == kind]
            for knows in (False, True):
                best, in_tokens = found(memory, samples, chosen, knows_thread=knows)
                told = "with the thread" if knows else "without it"
                print(f"{kind}, {told}: {best.mean():.3f} in the five best,", end=" ")
                print(f"{in_tokens.mean():.3f} in {AT_KIND} tokens ({len(chosen)} questions)")


if __name__ == "__main__":
    main()
