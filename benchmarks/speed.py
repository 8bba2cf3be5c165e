"""How fast it is, beside other libraries: `python -m benchmarks.speed --sizes 2000,10000,100000`.

Vectors come from the hash embedder, are made beforehand and handed to everybody with the texts:
what is measured is a library, not a model. Each subject has a process of its own; they recall and
remember in turns, so that all have the same good and bad times of the machine. A peer is given so
many seconds in all to store messages (`--peer-seconds`); where it stopped is said. Times are
milliseconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import _postgres
from benchmarks._limits import limits
from benchmarks._machine import machine, versions
from benchmarks._rounds import Budget, Corpus, measure, say
from benchmarks._stock import Stock
from benchmarks.peers import ALL, FLOOR, OURS, OURS_POSTGRES, Peer
from semantic_recall import SemanticRecall
from semantic_recall.stores.sql import SQLMessageStore

_PER_RESOURCE = 100
_INDEX_UP_TO = 100_000
"""Larger corpora, and the one with a single scope, are stored without Chroma: a search inside a
scope of up to `exact_limit` messages does without, and writing it would take most of the run."""
_EXTRAS = 20_000


def corpora(sizes: Sequence[int], large: int) -> list[Corpus]:
    """Return the corpora to measure; `large` is the size of one with a single scope, 0 for none."""
    several = [Corpus(short(size), size, max(size // _PER_RESOURCE, 1)) for size in sizes]
    if large:
        several.append(Corpus(f"one scope of {short(large)}", large, 1))
    # The smaller first: peers get as far as their time lets them.
    return sorted(several, key=lambda corpus: corpus.messages)


def short(number: int) -> str:
    """Return 2k for 2,000 and 1M for 1,000,000."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


def import_ms(statement: str) -> float | None:
    """Return how long a statement takes in a new interpreter, less an empty one: best of 5."""

    def best(code: str) -> float:
        times = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
            times.append(time.perf_counter() - started)
        return min(times)

    try:
        return round((best(statement) - best("pass")) * 1e3, 1)
    except subprocess.CalledProcessError:
        return None


def store_rate(folder: Path) -> int:
    """Return messages per second of an import without vectors or an index."""
    stock = Stock.write(folder / "stock", _EXTRAS, _EXTRAS // _PER_RESOURCE)
    spent = 0.0
    with SemanticRecall(SQLMessageStore.open(folder / "recall.sqlite3")) as memory:
        for batch in stock.batches():
            started = time.perf_counter()
            memory.remember(batch.messages)
            spent += time.perf_counter() - started
    return round(_EXTRAS / spent)


def wordllama_rate(folder: Path) -> int:
    """Return messages per second of an import that embeds with the default embedder."""
    stock = Stock(folder / "stock")
    spent = 0.0
    with SemanticRecall.open(folder / "wordllama") as memory:
        for number, batch in enumerate(stock.batches()):
            started = time.perf_counter()
            memory.remember(batch.messages)
            # The first batch also loads the model.
            spent += (time.perf_counter() - started) if number else 0.0
    return round((_EXTRAS - 1000) / spent)


def run(arguments: argparse.Namespace, peers: Sequence[Peer]) -> dict[str, Any]:
    """Measure everything; returns what the file holds."""
    result: dict[str, Any] = {"machine": machine(), "versions": versions()}
    result["peer_seconds"] = arguments.peer_seconds
    budget = Budget(arguments.peer_seconds)
    sizes = [int(size) for size in arguments.sizes.split(",") if size]
    result["corpora"] = []
    with _postgres.server() as url, tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for number, corpus in enumerate(corpora(sizes, arguments.large)):
            result["corpora"].append(
                measure(
                    corpus,
                    peers,
                    budget,
                    folder=folder / f"corpus{number}",
                    url=url,
                    index=corpus.messages <= _INDEX_UP_TO and corpus.resources > 1,
                )
            )
            save(result, arguments.out)
        (folder / "extras").mkdir()
        result["store_per_second"] = store_rate(folder / "extras")
        result["import_wordllama_per_second"] = wordllama_rate(folder / "extras")
    say("imports")
    result["import_package_ms"] = import_ms("import semantic_recall")
    result["import_ms"] = {peer.name: import_ms(peer.statement) for peer in peers if peer.statement}
    result["about"] = {peer.name: {"note": peer.note, "install": peer.install} for peer in ALL}
    return result


def save(result: dict[str, Any], path: Path | None) -> None:
    """Write what there is so far: a long run that is stopped has not been for nothing."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def show(result: dict[str, Any]) -> None:
    """Print every figure, and whether the limits are met."""
    for corpus in result["corpora"]:
        print(f"\n{corpus['name']}: load {corpus['load']}")
        for name, figures in corpus["subjects"].items():
            print(f"  {name:40} {json.dumps(figures)}")
    print()
    for what, value, words, met in limits(result):
        print(f"{what:50} {value:>10.3f}  {words:12} {'met' if met else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast it is, beside other libraries.")
    parser.add_argument("--sizes", default="2000,10000,100000", help="messages, comma-separated")
    parser.add_argument("--large", type=int, default=100_000, help="messages of one large scope")
    parser.add_argument("--peer-seconds", type=float, default=300.0)
    parser.add_argument("--only", help="subjects whose names hold this, comma-separated")
    parser.add_argument("--without-peers", action="store_true", help="ours and the floor")
    parser.add_argument("--out", type=Path, help="write the JSON there")
    arguments = parser.parse_args()
    peers: tuple[Peer, ...] = (OURS, OURS_POSTGRES, FLOOR) if arguments.without_peers else ALL
    if arguments.only:
        names = arguments.only.lower().split(",")
        peers = tuple(peer for peer in ALL if any(name in peer.name.lower() for name in names))
    result = run(arguments, peers)
    save(result, arguments.out)
    show(result)


if __name__ == "__main__":
    main()
