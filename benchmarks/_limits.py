"""What is promised of our own speed, and whether a result keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.peers import OURS, PEERS

LIMITS = (
    # corpus, figure, percentile or None, limit, True when more is better
    ("100k", "recall", "p50", 0.6, False),
    ("100k", "recall", "p95", 1.5, False),
    ("100k", "recall_cold", "p50", 4.0, False),
    ("one scope of 100k", "recall", "p50", 30.0, False),
    ("100k", "remember_turn", "p50", 3.0, False),
    ("1M", "rss_mb", None, 800, False),
    ("", "store_per_second", None, 10_000, True),
    ("", "import_wordllama_per_second", None, 5_000, True),
    ("", "import_package_ms", None, 150, False),
)
_GROWTH = 1.2
_TIMES_FASTER = 10


class Line(NamedTuple):
    """One figure with a limit."""

    what: str
    value: float
    limit: str
    met: bool


def limits(result: Mapping[str, Any]) -> list[Line]:
    """Return the figures with a limit, those that were measured."""
    return [*_own(result), *_ratios(result)]


def _own(result: Mapping[str, Any]) -> Iterator[Line]:
    for corpus, name, share, limit, more in LIMITS:
        value = (
            _subjects(result, corpus).get(OURS.name, {}).get(name) if corpus else result.get(name)
        )
        if isinstance(value, dict):
            value = value.get(share)
        if value is not None:
            what = " ".join(filter(None, (corpus, name, share)))
            yield _line(what, float(value), limit, more=more)


def _ratios(result: Mapping[str, Any]) -> Iterator[Line]:
    ours, large = (_recall(_subjects(result, size).get(OURS.name)) for size in ("100k", "1M"))
    if ours is None:
        return
    if large is not None:
        yield _line("1M recall p50 / that at 100k", large / ours, _GROWTH, more=False)
    subjects = _subjects(result, "100k")
    theirs = [(_recall(subjects.get(peer.name)), peer.name) for peer in PEERS]
    known = [(recall, name) for recall, name in theirs if recall is not None]
    if known:
        fastest, name = min(known)
        yield _line(f"100k recall p50 of {name} / ours", fastest / ours, _TIMES_FASTER, more=True)


def _line(what: str, value: float, limit: float, *, more: bool) -> Line:
    met = value >= limit if more else value <= limit
    return Line(what, value, f"{'>=' if more else '<='} {limit}", met)


def _subjects(result: Mapping[str, Any], corpus: str) -> Mapping[str, Any]:
    for measured in result["corpora"]:
        if measured["name"] == corpus:
            subjects: Mapping[str, Any] = measured["subjects"]
            return subjects
    return {}


def _recall(figures: Mapping[str, Any] | None) -> float | None:
    median: float | None = (figures or {}).get("recall", {}).get("p50")
    return median
