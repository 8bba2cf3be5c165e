"""How fast the core is: `python -m benchmarks.speed --messages 100000 --resources 1000`.

Vectors come from the hash embedder, which costs next to nothing, and every recall is given its
query's vector: what is measured is the library, not a model. Times are milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks._corpus import Corpus
from semantic_recall import Message, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Vector

BATCH = 1000
BUDGETS = {
    "recall warm p50": 0.6,
    "recall warm p95": 1.5,
    "recall cold p50": 4.0,
    "large scope p50": 30.0,
    "remember turn p50": 3.0,
}


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Return p50, p95 and p99 of `times` in milliseconds."""
    ordered = sorted(times)
    return {
        f"p{share}": round(ordered[min(len(ordered) - 1, len(ordered) * share // 100)] * 1e3, 3)
        for share in (50, 95, 99)
    }


def timed(calls: Iterable[Callable[[], object]]) -> list[float]:
    """Return the seconds that each call took."""
    times = []
    for call in calls:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def batches(messages: Iterator[Message]) -> Iterator[list[Message]]:
    while batch := list(itertools.islice(messages, BATCH)):
        yield batch


def store_all(memory: SemanticRecall, messages: Iterator[Message]) -> dict[str, float]:
    """Store and embed everything; returns messages per second, without and with the embedder."""
    stored = 0
    spent = 0.0
    for batch in batches(messages):
        started = time.perf_counter()
        memory.remember(batch, background=True)
        spent += time.perf_counter() - started
        stored += len(batch)
    return {"messages": stored, "store_per_second": round(stored / spent)}


def questions(
    memory: SemanticRecall, corpus: Corpus, embedder: HashEmbedder, count: int
) -> list[tuple[str, str, Vector]]:
    """Return (resource, query, vector): a third of the words of a message of the resource."""
    picker = random.Random(11)
    asked = []
    for number in range(count):
        resource = f"r{picker.randrange(len(corpus.sizes))}"
        thread = picker.choice(memory.threads(resource))
        message = picker.choice(memory.history(thread.thread_id, resource, last=None))
        words = message.text.split()
        query = " ".join(picker.sample(words, max(3, len(words) // 3))) + f" q{number}"
        asked.append((resource, query, embedder.embed_query(query)))
    return asked


def recall_times(
    memory: SemanticRecall, asked: Sequence[tuple[str, str, Vector]]
) -> dict[str, float]:
    return percentiles(
        timed(
            lambda r=resource, q=query, v=vector: memory.recall(q, resource_id=r, query_vector=v)  # type: ignore[misc]
            for resource, query, vector in asked
        )
    )


def measure(folder: Path, messages: int, resources: int, index: bool) -> dict[str, Any]:
    embedder = HashEmbedder()
    corpus = Corpus(messages, resources)
    results: dict[str, Any] = {"messages": messages, "resources": resources}
    path = folder / "memory"

    memory = SemanticRecall.open(path, embedder=None)
    results["import"] = store_all(memory, corpus.messages())
    memory.close()

    started = time.perf_counter()
    memory = SemanticRecall.open(path, embedder=embedder)
    if index:
        memory.flush()
        results["embed_and_index_per_second"] = round(messages / (time.perf_counter() - started))
    else:
        while memory.stats().pending:
            time.sleep(0.05)
    asked = questions(memory, corpus, embedder, 1000)
    recall_times(memory, asked[:1000])
    gc.collect()
    results["recall warm"] = recall_times(memory, asked)
    results["rss_mb"] = round(psutil.Process().memory_info().rss / 2**20)
    results["remember turn"] = remember_times(memory, embedder)
    memory.close()

    started = time.perf_counter()
    memory = SemanticRecall.open(path, embedder=embedder, settings=Settings(cache_bytes=0))
    results["open_ms"] = round((time.perf_counter() - started) * 1e3, 1)
    results["recall cold"] = recall_times(memory, asked[:300])
    memory.close()
    results["disk_mb"] = round(
        sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) / 2**20
    )
    return results


def remember_times(memory: SemanticRecall, embedder: HashEmbedder) -> dict[str, float]:
    """Return the times of a turn of two messages, less what the embedder takes for them."""
    times = []
    for number in range(300):
        turn = [
            {"role": "user", "content": f"what about the plan number {number} for next week"},
            {"role": "assistant", "content": f"plan {number} is on thursday and costs {number}"},
        ]
        started = time.perf_counter()
        embedder.embed_documents([f"{message['role']}: {message['content']}" for message in turn])
        own = time.perf_counter() - started
        started = time.perf_counter()
        memory.remember(turn, thread_id=f"turn{number // 20}", resource_id=f"r{number % 50}")
        times.append(time.perf_counter() - started - own)
    return percentiles(times)


def large_scope(folder: Path, messages: int) -> dict[str, float]:
    """Return the times of a recall in one resource of `messages` messages."""
    embedder = HashEmbedder()
    corpus = Corpus(messages, 1)
    settings = Settings(exact_limit=2 * messages)
    memory = SemanticRecall.open(folder / "large", embedder=None, settings=settings)
    store_all(memory, corpus.messages())
    memory.close()
    memory = SemanticRecall.open(folder / "large", embedder=embedder, settings=settings)
    while memory.stats().pending:
        time.sleep(0.05)
    asked = questions(memory, corpus, embedder, 60)
    recall_times(memory, asked[:10])
    times = recall_times(memory, asked)
    memory.close()
    return times


def import_ms() -> float:
    """Return how long `import semantic_recall` takes, less an empty interpreter: best of 5."""

    def best(code: str) -> float:
        return min(timed([lambda: subprocess.run([sys.executable, "-c", code], check=True)] * 5))

    return round((best("import semantic_recall") - best("pass")) * 1e3, 1)


def report(results: dict[str, Any]) -> None:
    for name, value in results.items():
        print(f"{name:28} {json.dumps(value)}")
    print()
    for budget, limit in BUDGETS.items():
        name, _, share = budget.rpartition(" ")
        if name in results:
            value = results[name][share]
            verdict = "met" if value <= limit else "MISSED"
            print(f"{budget:28} {value:8.3f} ms, must be <= {limit} ms: {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--resources", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=100_000, help="messages of the large scope")
    parser.add_argument("--index", action="store_true", help="wait for the vector index as well")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="semantic-recall-bench-"))
    try:
        results = measure(folder, arguments.messages, arguments.resources, arguments.index)
        if arguments.large:
            results["large scope"] = large_scope(folder, arguments.large)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    results["import_ms"] = import_ms()
    results["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    if arguments.json:
        print(json.dumps(results))
    else:
        report(results)


if __name__ == "__main__":
    main()
