"""The command that shows what a threshold would do to a memory: calibrate."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.text import Text

from semantic_recall import Message, Scope, SemanticRecall
from semantic_recall.cli import _output as output
from semantic_recall.cli._common import (
    DEFAULT_PATH,
    DebugOption,
    EmbedderName,
    EmbedderOption,
    JsonOption,
    PathOption,
    ResourceOption,
    guarded,
    memory_at,
    owner,
)
from semantic_recall.embedders import embedder_named
from semantic_recall.errors import ConfigurationError, VectorSpaceMismatchError
from semantic_recall.opening import DATABASE
from semantic_recall.protocols import Embedder
from semantic_recall.records import ScopeRows
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Vector

STEP = 0.05
"""Width of a bar of the histogram, and distance of two thresholds; cosines are -1 to 1."""
_EDGES = np.round(np.arange(-1, 1 + STEP / 2, STEP), 2)
_BAR = 30
_SHORTEST = 15
"""Characters of a message that is worth asking with: "yes, please" says nothing."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, where."""

    text: str
    scope: Scope
    id: str | None = None
    """The message that it is taken from, which must not find itself."""


@dataclass(slots=True)
class Scores:
    """How many messages have a cosine in each bar of the histogram."""

    hits: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_EDGES) - 1, np.int64))
    others: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_EDGES) - 1, np.int64))
    best: list[float] = field(default_factory=list)
    """The highest cosine of a hit, by query."""
    queries: int = 0

    def add(self, hits: Sequence[float], scores: NDArray[np.float32]) -> None:
        """Count the answers to one query.

        Args:
            hits: The cosines of the messages that were found.
            scores: The cosines of all messages that could have been, those included.
        """
        found, everything = _histogram(hits), _histogram(scores)
        self.queries += 1
        self.hits += found
        # A hit's cosine may lie a rounding error beside an edge.
        self.others += np.maximum(everything - found, 0)
        if hits:
            self.best.append(max(hits))

    def kept(self, threshold: float) -> dict[str, float]:
        """Return which part of the hits, the others and the queries a threshold would keep."""
        above = _EDGES[:-1] >= threshold - STEP / 10
        return {
            "threshold": threshold,
            "hits": _share(self.hits[above].sum(), self.hits.sum()),
            "others": _share(self.others[above].sum(), self.others.sum()),
            "queries": _share(sum(one >= threshold for one in self.best), self.queries),
        }

    @property
    def shown(self) -> range:
        """The bars between the lowest and the highest score."""
        used = np.flatnonzero(self.hits + self.others)
        return range(int(used[0]), int(used[-1]) + 1) if len(used) else range(0)


def _histogram(scores: Sequence[float] | NDArray[np.float32]) -> NDArray[np.int64]:
    clipped = np.clip(np.asarray(scores, np.float64), -1, 1)
    return np.histogram(clipped, bins=_EDGES)[0].astype(np.int64)


def _share(part: float, whole: float) -> float:
    return round(float(part) / float(whole), 4) if whole else 0.0


@guarded
def calibrate(
    path: PathOption = DEFAULT_PATH,
    query: Annotated[
        list[str] | None,
        typer.Option("--query", "-q", help="Ask this; may be given repeatedly."),
    ] = None,
    resource: ResourceOption = None,
    samples: Annotated[
        int, typer.Option("--samples", "-n", min=1, help="How many of the users' messages to ask.")
    ] = 50,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="How many hits.")] = 4,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the cosines of what is found and of everything else, and what a threshold would keep.

    Asks with messages that users wrote, which do not find themselves, or with --query. A hit is
    what recall finds without a threshold: whether it was worth finding only you can tell.
    """
    if embedder.argument is None:
        raise typer.BadParameter("calibrate needs an embedder; without vectors there is no cosine")
    chosen = embedder_named(embedder.argument)
    with memory_at(path) as memory:
        queries = _given(query, memory, resource) if query else _sampled(memory, resource, samples)
        if not queries:
            raise ConfigurationError(
                "there is nothing to ask with: no message of a user has a sentence; give a --query"
            )
    with SemanticRecall.open(path, embedder=chosen) as memory:
        scores = measure(memory, Path(path, DATABASE), chosen, queries, top_k)
    thresholds = [scores.kept(float(_EDGES[bar])) for bar in scores.shown]
    if as_json:
        output.emit(_document(scores, thresholds))
    else:
        _print(scores, thresholds)


def _given(texts: Sequence[str], memory: SemanticRecall, resource: str | None) -> list[Query]:
    owners = [resource] if resource else [one.resource_id for one in memory.resources()]
    scopes = [Scope(one) for one in owners if one is not None]
    if len(scopes) != 1:
        raise typer.BadParameter("Name the owner with --resource: --query asks one owner's memory.")
    return [Query(text, scopes[0]) for text in texts]


def _sampled(memory: SemanticRecall, resource: str | None, count: int) -> list[Query]:
    """Return messages of users, every one with the same chance; the same each time."""
    chance = random.Random(0)
    chosen: list[Query] = []
    for number, message in enumerate(_askable(memory.messages(resource_id=owner(resource)))):
        scope = (
            Scope(message.resource_id)
            if message.resource_id is not None
            else Scope(None, message.thread_id)
        )
        one = Query(message.text, scope, message.id)
        if number < count:  # reservoir sampling: one pass, whatever the size of the memory
            chosen.append(one)
        elif (place := chance.randrange(number + 1)) < count:
            chosen[place] = one
    return chosen


def _askable(messages: Iterable[Message]) -> Iterable[Message]:
    return (one for one in messages if one.role == "user" and len(one.text.strip()) >= _SHORTEST)


def measure(
    memory: SemanticRecall, file: Path, embedder: Embedder, queries: Sequence[Query], top_k: int
) -> Scores:
    """Ask every query, and compare it with every message of its scope.

    Args:
        memory: The memory.
        file: Its database.
        embedder: What it was embedded with.
        queries: What to ask; at least one.
        top_k: How many hits a query brings.

    Raises:
        VectorSpaceMismatchError: The memory was embedded with something else.
    """
    scores, store = Scores(), SQLMessageStore.open(file)
    try:
        if embedder.space not in [info.space for info in store.spaces() if info.active]:
            raise VectorSpaceMismatchError(
                f"this memory was not embedded with {embedder.space.name}; give its embedder with "
                "--embedder, or change it with `semantic-recall reindex`"
            )
        with output.progress_bar("asking") as advance:
            # One owner after the other: only one's vectors are in memory.
            ordered = sorted(queries, key=lambda one: repr(one.scope))
            for scope, asked in groupby(ordered, key=lambda one: one.scope):
                rows = store.rows(scope, embedder.space)
                for query in asked:
                    vector = embedder.embed_query(query.text)
                    own = store.keys(scope, [query.id] if query.id else []).values()
                    hits = _hits(memory, query, vector, top_k)
                    scores.add(hits, _cosines(rows, vector, [key for keys in own for key in keys]))
                    advance(scores.queries, len(queries))
    finally:
        store.close()
    return scores


def _hits(memory: SemanticRecall, query: Query, vector: Vector, top_k: int) -> list[float]:
    recall = memory.recall(
        query.text,
        resource_id=query.scope.resource_id,
        thread_id=query.scope.thread_id,
        query_vector=vector,
        scope="thread" if query.scope.resource_id is None else "resource",
        top_k=top_k,
        message_range=0,
        exclude_ids=[query.id] if query.id else [],
    )
    return [hit.dense for hit in recall.hits if hit.dense is not None]


def _cosines(rows: ScopeRows, vector: Vector, without: Sequence[int]) -> NDArray[np.float32]:
    """Return the cosine of every message that could be a hit; of its best chunk."""
    if not len(rows.vector_keys):
        return np.zeros(0, np.float32)
    lengths = np.linalg.norm(rows.vectors, axis=1) * float(np.linalg.norm(vector))
    cosines = (rows.vectors @ vector) / np.maximum(lengths, np.float32(1e-12))
    keys, starts = np.unique(rows.vector_keys, return_index=True)
    best = np.maximum.reduceat(cosines, starts)
    return np.asarray(best[~np.isin(keys, without)], np.float32)


def _document(scores: Scores, thresholds: Sequence[dict[str, float]]) -> dict[str, object]:
    bars = [
        {
            "from": float(_EDGES[bar]),
            "to": float(_EDGES[bar + 1]),
            "hits": int(scores.hits[bar]),
            "others": int(scores.others[bar]),
        }
        for bar in scores.shown
    ]
    return {
        "queries": scores.queries,
        "hits": int(scores.hits.sum()),
        "others": int(scores.others.sum()),
        "histogram": bars,
        "thresholds": list(thresholds),
    }


def _print(scores: Scores, thresholds: Sequence[dict[str, float]]) -> None:
    console = output.stdout()
    shown = output.table(
        ("threshold", "right"), ("keeps hits", "right"), ("others", "right"),
        ("queries answered", "right"), "hits (█) and everything else (░) from here on",
    )  # fmt: skip
    tallest_hit, tallest = max(scores.hits.max(), 1), max(scores.others.max(), 1)
    for bar, kept in zip(scores.shown, thresholds, strict=True):
        graph = Text("█" * round(_BAR * scores.hits[bar] / tallest_hit), style="green")
        graph.append(f" {scores.hits[bar]:,}\n")
        graph.append("░" * round(_BAR * scores.others[bar] / tallest), style="dim")
        graph.append(f" {scores.others[bar]:,}", style="dim")
        cells = (f"{kept[name]:.0%}" for name in ("hits", "others", "queries"))
        shown.add_row(f"{kept['threshold']:.2f}", *cells, graph)
    console.print(shown)
    asked = output.counted(scores.queries, "query").replace("querys", "queries")
    console.print(
        Text(f"{asked}, {int(scores.hits.sum()):,} hits; bars of the two kinds differ in scale.")
    )
