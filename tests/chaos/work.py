"""What the processes do that get killed, and how a memory is checked afterwards."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from semantic_recall import SemanticRecall, Settings, VectorSpaceMismatchError
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from tests.chaos.journal import Expectations, Journal, Key, Place
from tests.chaos.outcomes import Outcome

DIMENSIONS = (32, 48)
RESOURCES = ("u1", "u10", "U1")
THREADS = ("t1", "t10")
CHECKED = 100
"""How many old messages a check recalls; new ones are all recalled."""


def quiet() -> logging.Logger:
    """A logger of its own: warnings about a broken index are expected, and many."""
    logger = logging.getLogger("tests.chaos")
    logger.disabled = True
    return logger


def prepare(path: Path) -> None:
    """Make a memory whose index has one collection, which gets to its files the sooner."""
    path.mkdir(parents=True, exist_ok=True)
    with SQLMessageStore.open(path / "recall.sqlite3") as store:
        store.setting("index_shards", "1")


class SometimesImmediate(HashEmbedder):
    """Has its vectors committed with the messages half of the time, and after them otherwise."""

    @property
    def immediate(self) -> bool:
        """Whatever chance says."""
        return random.random() < 0.5


def opened(
    path: Path, *, exact_limit: int = 100_000, index_process: bool = False
) -> SemanticRecall:
    """Open with the embedder that the memory has at the moment."""
    settings = Settings(exact_limit=exact_limit, logger=quiet(), index_process=index_process)
    first, second = map(SometimesImmediate, DIMENSIONS)
    try:
        return SemanticRecall.open(path, embedder=first, settings=settings)
    except VectorSpaceMismatchError:
        return SemanticRecall.open(path, embedder=second, settings=settings)


def text_for(picker: random.Random, mark: str) -> str:
    words = " ".join(f"w{picker.randrange(5000)}" for _ in range(5))
    return f"{words} {mark}"


class Worker:
    """Calls a memory in random ways for ever, and keeps a journal."""

    def __init__(self, memory: SemanticRecall, journal: Journal, seed: int, name: str) -> None:
        self._memory = memory
        self._journal = journal
        self._random = random.Random(seed)
        self._name = name
        self._calls = count()
        self._made = count()
        self._mine: dict[Place, list[str]] = {}

    def remember(self) -> None:
        """Store a batch of new messages, some of them in the background; update some."""
        place = (self._random.choice(RESOURCES), self._random.choice(THREADS))
        known = self._mine.setdefault(place, [])
        ids = [f"{self._name}-{next(self._made)}" for _ in range(self._random.choice((1, 2, 15)))]
        updated = [self._random.choice(known)] if known and self._random.random() < 0.3 else []
        messages: dict[str, str | None] = {
            id: text_for(self._random, f"{id}v{next(self._made)}") for id in ids + updated
        }
        known.extend(ids)
        call = self._begin(place, messages)
        self._memory.remember(
            [{"role": "user", "content": text, "id": id} for id, text in messages.items()],
            thread_id=place[1],
            resource_id=place[0],
            background=self._random.random() < 0.5,
        )
        self._done(call)

    def forget(self) -> None:
        """Delete some messages, now and then with every byte of them."""
        places = [place for place, ids in self._mine.items() if len(ids) > 3]
        if not places:
            return self.remember()
        place = self._random.choice(places)
        ids = self._mine[place]
        self._random.shuffle(ids)
        gone, self._mine[place] = ids[:3], ids[3:]
        call = self._begin(place, dict.fromkeys(gone))
        self._memory.forget(
            ids=gone,
            thread_id=place[1],
            resource_id=place[0],
            secure=self._random.random() < 0.1,
        )
        self._done(call)

    def reindex(self) -> None:
        """Embed everything with the other embedder."""
        now = self._memory.stats().dimensions
        other = DIMENSIONS[1] if now == DIMENSIONS[0] else DIMENSIONS[0]
        self._memory.reindex(SometimesImmediate(other))

    def flush(self) -> None:
        """Bring the index up to date."""
        self._memory.flush(5)

    def repair(self) -> None:
        """Rebuild the index."""
        self._memory.verify(repair=True)

    def _begin(self, place: Place, messages: Mapping[str, str | None]) -> int:
        call = next(self._calls)
        self._journal.say(begin=call, place=place, messages=messages)
        return call

    def _done(self, call: int) -> None:
        self._journal.say(done=call)


WITH_INDEX_PROCESS = "killed with its index process"
MIXES: dict[str, tuple[str, ...]] = {
    "killed while remembering": ("remember",),
    "killed while forgetting": ("remember", "forget"),
    "killed while indexing": ("remember", "remember", "flush"),
    WITH_INDEX_PROCESS: ("remember", "remember", "flush"),
    "killed while reindexing": ("remember", "reindex"),
    "killed while repairing": ("remember", "forget", "repair"),
}


def work(path: Path, journal: Journal, kind: str, seed: int, name: str) -> None:
    """Work on a memory until the process is killed."""
    picker = random.Random(seed)
    with opened(path, index_process=kind == WITH_INDEX_PROCESS) as memory:
        worker = Worker(memory, journal, seed, name)
        journal.say(ready=True)
        while True:
            getattr(worker, picker.choice(MIXES[kind]))()


def check(path: Path, expected: Expectations, outcome: Outcome, fresh: set[Key]) -> None:
    """Compare a memory with what it must hold, and see whether its index mends.

    Args:
        path: The memory.
        expected: What was said about it; what was uncertain is settled.
        outcome: Where what is found is counted.
        fresh: Messages to recall one by one, besides some of the others.
    """
    began = time.monotonic()
    with opened(path) as memory:
        found: dict[Key, str] = {}
        for message in memory.messages():
            found[message.resource_id or "", message.thread_id, message.id] = message.text
        for key, texts in expected.messages.items():
            text = found.pop(key, None)
            if text not in texts:
                if text is None:
                    outcome.lost += 1
                elif texts == {None}:
                    outcome.resurrected += 1
                else:
                    outcome.lost += 1
                    outcome.problems.append(f"{key} has a text that it never had: {text!r}")
            expected.settle(key, text)
        outcome.problems += [f"nobody stored {key}" for key in found]
        certain = expected.certain
        picked = random.Random(len(certain)).sample(sorted(certain), min(CHECKED, len(certain)))
        wanted = {*picked, *(fresh & certain.keys())}
        recall_each(memory, {key: certain[key] for key in wanted}, expected, outcome)
        mends(memory, outcome)
    seconds = time.monotonic() - began
    outcome.problems += (
        [f"slow: {seconds:.0f} s"] if seconds > 120 + len(expected.messages) / 50 else []
    )


def recall_each(
    memory: SemanticRecall, wanted: Mapping[Key, str], expected: Expectations, outcome: Outcome
) -> None:
    """Recall messages by their own texts."""
    for (resource, thread, id), text in wanted.items():
        recalled = memory.recall(text, resource_id=resource, top_k=5)
        hits = {(hit.message.thread_id, hit.message.id): hit.message.text for hit in recalled.hits}
        if hits.get((thread, id)) != text:
            outcome.lost += 1
            outcome.problems.append(f"{resource}/{thread}/{id} is not found by its text")
        for message in (item.message for item in recalled):
            key = (message.resource_id or "", message.thread_id, message.id)
            outcome.crossed += message.resource_id != resource
            outcome.resurrected += message.text not in expected.messages.get(key, {None})


def mends(memory: SemanticRecall, outcome: Outcome) -> None:
    """See whether everything derived can be brought up to date."""
    # Chroma takes a thousand vectors in half a second, and on a busy machine in ten.
    if not memory.flush(60 + memory.stats().index_lag / 100):
        outcome.problems.append("flush did not come to an end")
    report = memory.verify()
    if not report.ok and report.problems:
        outcome.problems += report.problems
    elif not report.ok:
        memory.verify(repair=True)
        report = memory.verify()
        if not report.ok or report.missing or report.orphans:
            outcome.problems.append(f"the index was not repaired: {report}")
    if report.pending:
        outcome.problems.append(f"{report.pending} messages have no vectors")
