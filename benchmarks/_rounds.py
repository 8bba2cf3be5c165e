"""Measures subjects on one corpus, in turns, so that all have the same good and bad times."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _postgres
from benchmarks._machine import load
from benchmarks._stock import QUESTIONS, TURNS, Stock
from benchmarks._worker import Remote, RemoteError
from benchmarks.peers import FLOOR, OURS, OURS_POSTGRES, Options, Peer

ROUNDS = 10
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Corpus:
    """The size of what is stored."""

    name: str
    messages: int
    resources: int


class Budget:
    """How many seconds each subject may still spend on storing.

    Args:
        limit: For a peer, over all corpora.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._spent: dict[str, float] = {}

    def left(self, peer: Peer) -> float:
        """Return the seconds; ours and the floor have an hour for each corpus."""
        if peer in (OURS, OURS_POSTGRES, FLOOR):
            return _HOUR
        return max(self.limit - self._spent.get(peer.name, 0.0), 0.0)

    def charge(self, peer: Peer, seconds: float) -> None:
        """Take seconds away."""
        self._spent[peer.name] = self._spent.get(peer.name, 0.0) + seconds


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Return p50, p95 and p99 of seconds, in milliseconds."""
    p50, p95, p99 = np.percentile(times, [50, 95, 99], method="inverted_cdf")
    return {"p50": _ms(p50), "p95": _ms(p95), "p99": _ms(p99)}


def with_spread(rounds: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the percentiles of all, and the quartiles of the medians of the rounds."""
    medians = [float(np.median(times)) for times in rounds]
    low, high = np.percentile(medians, [25, 75])
    return {
        **percentiles([time for times in rounds for time in times]),
        "p50_low": _ms(low),
        "p50_high": _ms(high),
    }


def measure(
    corpus: Corpus,
    peers: Sequence[Peer],
    budget: Budget,
    *,
    folder: Path,
    url: str | None,
    index: bool,
) -> dict[str, Any]:
    """Measure every peer on a corpus.

    Args:
        corpus: How much is stored.
        peers: Who stores it; those that stopped before are in `budget` with nothing left.
        budget: Is charged with the time that storing takes.
        folder: An empty one.
        url: A database's, or None.
        index: Ours writes its vector index too.

    Returns:
        `subjects`: figures by name, or a line that says where or why it stopped.
    """
    before = load()
    say(f"{corpus.name}: making the corpus")
    stock = Stock.write(folder / "stock", corpus.messages, corpus.resources)
    results: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        schema = stack.enter_context(_postgres.schema(url))
        options = Options(index=index, url=schema, large_scope=corpus.resources == 1)
        running: list[tuple[Peer, Remote]] = []
        for peer in peers:
            own = budget.left(peer)
            if own <= 0:
                results[peer.name] = {"stopped": "no time left after the smaller corpora"}
                continue
            remote = Remote(peer, folder / peer.module, stock, options)
            stack.callback(remote.end)
            results[peer.name] = _filled(peer, remote, budget, corpus)
            if "stopped" in results[peer.name]:
                remote.end()
            else:
                running.append((peer, remote))
        say(f"{corpus.name}: recalls")
        Turns(running, results, patience=budget.limit).take()
        if schema is not None and "recall" in results.get(OURS_POSTGRES.name, {}):
            results[OURS_POSTGRES.name]["disk_mb"] = round(_postgres.size(schema) / 2**20, 1)
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "name": corpus.name,
        "messages": corpus.messages,
        "resources": corpus.resources,
        "index": index,
        "load": [before, load()],
        "subjects": results,
    }


def say(line: str) -> None:
    """Tell how far it is."""
    print(line, file=sys.stderr, flush=True)


def _filled(peer: Peer, remote: Remote, budget: Budget, corpus: Corpus) -> dict[str, Any]:
    own = budget.left(peer)
    say(f"{corpus.name}: {peer.name} stores")
    try:
        filled = remote.call("fill", own, timeout=own * 2 + 120)
        figures = {"import_per_second": round(filled["stored"] / filled["seconds"])}
        if not filled["finished"]:
            budget.charge(peer, budget.limit)
            where = f"at {filled['stored']:,} messages, after {budget.limit:.0f} s in all"
            return {**figures, "stopped": where}
        budget.charge(peer, filled["seconds"])
        settling = remote.call("settle", timeout=1800)
    except RemoteError as error:
        budget.charge(peer, budget.limit)
        return {"stopped": str(error)}
    if peer is OURS:
        figures["indexed_per_second"] = round(corpus.messages / (filled["seconds"] + settling))
    return figures


class Turns:
    """Asks and remembers in turns; who fails is out.

    Args:
        running: Who has stored the corpus, with what is known of them.
        results: Gets the figures, by name.
        patience: The most seconds that a peer may take for one step, such as 300 recalls.
    """

    def __init__(
        self,
        running: Sequence[tuple[Peer, Remote]],
        results: dict[str, dict[str, Any]],
        *,
        patience: float,
    ) -> None:
        self._running = list(running)
        self._patience = patience
        self._results = results

    def take(self) -> None:
        """Measure everything."""
        asking, remembering = QUESTIONS // ROUNDS, TURNS // ROUNDS
        threaded = [peer.name for peer, _ in self._running if peer.threads]
        self._all("ask", lambda peer: (0, QUESTIONS, False))  # warms up
        self._all("ask", lambda peer: (0, QUESTIONS, True), only=threaded)
        self._all("cpu", lambda peer: (), into="recall_cpu", as_figure=percentiles)
        self._rounds("recall", "ask", lambda number: (number * asking, asking, False))
        self._rounds(
            "recall_thread",
            "ask",
            lambda number: (number * asking, asking, True),
            only=lambda peer: peer.threads,
        )
        self._rounds(
            "remember_turn", "remember", lambda number: (number * remembering, remembering)
        )
        self._all("memory", lambda peer: (), into="rss_mb", as_figure=_mb)
        self._all("settle", lambda peer: ())
        self._all("disk", lambda peer: (), into="disk_mb", as_figure=_mb)
        kept = [peer.name for peer, _ in self._running if peer.persistent]
        self._all("reopen", lambda peer: (), into="open_ms", as_figure=_ms, only=kept)
        self._all("cold", lambda peer: (), into="recall_cold", as_figure=percentiles, only=kept)

    def _rounds(
        self,
        name: str,
        method: str,
        arguments: Callable[[int], tuple[Any, ...]],
        only: Callable[[Peer], bool] = lambda peer: True,
    ) -> None:
        times: dict[str, list[list[float]]] = {}
        for number in range(ROUNDS):
            for peer, remote in list(self._running):
                if only(peer):
                    took = self._call(peer, remote, method, *arguments(number))
                    if took:
                        times.setdefault(peer.name, []).append(took)
        for peer, _ in self._running:
            if peer.name in times:
                self._results[peer.name][name] = with_spread(times[peer.name])

    def _all(
        self,
        method: str,
        arguments: Callable[[Peer], tuple[Any, ...]],
        *,
        into: str = "",
        as_figure: Callable[[Any], Any] = lambda value: value,
        only: Sequence[str] | None = None,
    ) -> None:
        for peer, remote in list(self._running):
            if only is None or peer.name in only:
                value = self._call(peer, remote, method, *arguments(peer))
                if into and value not in (None, []):  # with one user none is cold after the first
                    self._results[peer.name][into] = as_figure(value)

    def _call(self, peer: Peer, remote: Remote, method: str, *arguments: object) -> Any:  # noqa: ANN401
        try:
            own = peer in (OURS, OURS_POSTGRES, FLOOR)
            return remote.call(method, *arguments, timeout=_HOUR if own else self._patience)
        except RemoteError as error:
            self._results[peer.name]["stopped"] = str(error)
            self._running.remove((peer, remote))
            remote.kill()  # it may be busy for long, and the others are still measured
            return None


def _mb(size: float) -> float:
    return round(size / 2**20, 1)


def _ms(seconds: float) -> float:
    return round(float(seconds) * 1e3, 3)
