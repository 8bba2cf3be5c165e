"""How fast the core is: `python -m benchmarks.speed --messages 100000 --resources 1000`.

Vectors come from the hash embedder, which costs next to nothing, and every recall is given its
query's vector: what is measured is the library, not a model. Each phase runs in a process of its
own, so that its memory is its own. Times are milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import multiprocessing
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from benchmarks._corpus import Corpus
from semantic_recall import Message, SemanticRecall, Settings
from semantic_recall.embedders import embedder_named
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Vector

BATCH = 1000
BUDGETS = (
    # figure, percentile or None, limit, True when more is better
    ("recall_warm", "p50", 0.6, False),
    ("recall_warm", "p95", 1.5, False),
    ("recall_cold", "p50", 4.0, False),
    ("large_scope", "p50", 30.0, False),
    ("remember_turn", "p50", 3.0, False),
    ("store_per_second", None, 10_000, True),
    ("import_wordllama_per_second", None, 5_000, True),
    ("rss_mb", None, 800, False),
    ("import_ms", None, 150, False),
)
Question = tuple[str, str, Vector]


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


def without_index(path: Path, embedder_name: str | None) -> SemanticRecall:
    """Open the folder's database alone: nothing waits for the vector index or slows down."""
    path.mkdir(parents=True, exist_ok=True)
    embedder = None if embedder_name is None else embedder_named(embedder_name)
    return SemanticRecall(SQLMessageStore.open(path / "recall.sqlite3"), None, embedder)


def fill(path: Path, messages: int, resources: int) -> dict[str, float]:
    """Store everything, then embed everything; returns messages per second of each."""
    spent = 0.0
    with without_index(path, None) as memory:
        for batch in batches(Corpus(messages, resources).messages()):
            spent += sum(timed([lambda batch=batch: memory.remember(batch)]))  # type: ignore[misc]
    started = time.perf_counter()
    with without_index(path, "hash") as memory:
        memory.flush()
    embedding = time.perf_counter() - started
    return {
        "store_per_second": round(messages / spent),
        "embed_per_second": round(messages / embedding),
    }


def index_rate(path: Path, messages: int) -> dict[str, float]:
    """Write every vector into Chroma; returns vectors per second."""
    memory = SemanticRecall.open(path, embedder="hash")
    started = time.perf_counter()
    memory.verify(repair=True)
    rate = messages / (time.perf_counter() - started)
    memory.close()
    return {"index_per_second": round(rate)}


def import_wordllama(path: Path) -> dict[str, float]:
    """Return messages per second of an import that embeds with the default embedder."""
    corpus = list(batches(Corpus(20_000, 200).messages()))
    with without_index(path, "wordllama") as memory:
        memory.remember(corpus[0])  # loads the model
        spent = sum(timed(lambda b=batch: memory.remember(b) for batch in corpus[1:]))  # type: ignore[misc]
    return {"import_wordllama_per_second": round(BATCH * (len(corpus) - 1) / spent)}


def questions(memory: SemanticRecall, resources: int, count: int) -> list[Question]:
    """Return (resource, query, vector): a third of the words of a message of the resource."""
    picker = random.Random(11)
    embedder = HashEmbedder()
    asked = []
    for number in range(count):
        resource = f"r{picker.randrange(resources)}"
        thread = picker.choice(memory.threads(resource))
        message = picker.choice(memory.history(thread.thread_id, resource, last=None))
        words = message.text.split()
        query = " ".join(picker.sample(words, max(3, len(words) // 3))) + f" q{number}"
        asked.append((resource, query, embedder.embed_query(query)))
    return asked


def recall_times(memory: SemanticRecall, asked: Sequence[Question]) -> dict[str, float]:
    return percentiles(
        timed(
            lambda r=resource, q=query, v=vector: memory.recall(q, resource_id=r, query_vector=v)  # type: ignore[misc]
            for resource, query, vector in asked
        )
    )


def recalls(path: Path, resources: int) -> dict[str, Any]:
    """Recall over random resources: warm, cold, and the memory that it takes."""
    with SemanticRecall.open(path, embedder="hash") as memory:
        asked = questions(memory, resources, 1000)
        recall_times(memory, asked)
        gc.collect()
        warm = recall_times(memory, asked)
        rss = round(psutil.Process().memory_info().rss / 2**20)
    started = time.perf_counter()
    with SemanticRecall.open(path, embedder="hash", settings=Settings(cache_bytes=0)) as memory:
        opened = round((time.perf_counter() - started) * 1e3, 1)
        cold = recall_times(memory, asked[:300])
    return {"recall_warm": warm, "recall_cold": cold, "rss_mb": rss, "open_ms": opened}


def remember_turns(path: Path) -> dict[str, Any]:
    """Return the times of a turn of two messages, less what the embedder takes for them."""
    embedder = HashEmbedder()
    times = []
    with SemanticRecall.open(path, embedder=embedder) as memory:
        for number in range(300):
            turn = [
                {"role": "user", "content": f"what about the plan number {number} for next week"},
                {
                    "role": "assistant",
                    "content": f"plan {number} is on friday, it costs {number}",
                },
            ]
            texts = [f"{message['role']}: {message['content']}" for message in turn]
            own = sum(timed([lambda texts=texts: embedder.embed_documents(texts)]))  # type: ignore[misc]
            started = time.perf_counter()
            memory.remember(turn, thread_id=f"turn{number // 20}", resource_id=f"r{number % 50}")
            times.append(time.perf_counter() - started - own)
    return {"remember_turn": percentiles(times)}


def large_scope(path: Path, messages: int) -> dict[str, Any]:
    """Return the times of a recall in one resource of `messages` messages."""
    fill(path, messages, 1)
    settings = Settings(exact_limit=2 * messages)
    with SemanticRecall.open(path, embedder="hash", settings=settings) as memory:
        asked = questions(memory, 1, 60)
        recall_times(memory, asked[:10])
        return {"large_scope": recall_times(memory, asked)}


def import_ms() -> float:
    """Return how long `import semantic_recall` takes, less an empty interpreter: best of 5."""

    def best(code: str) -> float:
        return min(timed([lambda: subprocess.run([sys.executable, "-c", code], check=True)] * 5))

    return round((best("import semantic_recall") - best("pass")) * 1e3, 1)


def alone(phase: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Run a phase in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(phase, *arguments).result()


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    path, messages, resources = folder / "memory", arguments.messages, arguments.resources
    results: dict[str, Any] = {"messages": messages, "resources": resources}
    results |= alone(fill, path, messages, resources)
    results |= alone(recalls, path, resources)
    results["disk_mb"] = round(sum(f.stat().st_size for f in path.rglob("*")) / 2**20)
    if arguments.index:
        results |= alone(index_rate, path, messages)
    results |= alone(remember_turns, path)
    results |= alone(import_wordllama, folder / "wordllama")
    if arguments.large:
        results |= alone(large_scope, folder / "large", arguments.large)
    results["import_ms"] = import_ms()
    results["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    return results


def report(results: dict[str, Any]) -> None:
    for name, value in results.items():
        print(f"{name:28} {json.dumps(value)}")
    print()
    for name, share, limit, more in BUDGETS:
        if name in results:
            value = results[name] if share is None else results[name][share]
            met = value >= limit if more else value <= limit
            wanted = f"{'>=' if more else '<='} {limit}"
            print(f"{name} {share or '':4} {value:>10}  {wanted:10} {'met' if met else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the core is.")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--resources", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=100_000, help="messages of the large scope")
    parser.add_argument("--index", action="store_true", help="measure the vector index as well")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="semantic-recall-bench-"))
    try:
        results = measure(folder, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        print(json.dumps(results))
    else:
        report(results)


if __name__ == "__main__":
    main()
