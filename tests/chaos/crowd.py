"""Many processes on one memory: writers and readers, pre-fork servers, an owner that dies."""

from __future__ import annotations

import json
import os
import random
import time
from functools import partial
from pathlib import Path

from semantic_recall import SemanticRecall
from tests.chaos.journal import Expectations, Journal
from tests.chaos.outcomes import Outcome
from tests.chaos.processes import Child, result_of, start
from tests.chaos.work import check, opened, prepare, text_for

WRITERS = 4
READERS = 2
BATCH = 20
FORKED = 3


def run(folder: Path, messages: int, seed: int) -> list[Outcome]:
    """Run each crowd once, with so many messages from each writer."""
    return [
        _writers_and_readers(folder, messages, seed),
        _forked(folder, seed, used=False),
        _forked(folder, seed, used=True),
        _owner_dies(folder, seed),
    ]


def _write(path: Path, log: Path, count: int, seed: int, name: str) -> None:
    picker = random.Random(seed)
    journal = Journal(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    with opened(path) as memory:
        _write_with(memory, journal, count, picker, name)


def _write_with(
    memory: SemanticRecall, journal: Journal, count: int, picker: random.Random, name: str
) -> None:
    """Store `count` messages under look-alike resources, single ones and batches."""
    stored = 0
    while stored < count:
        size = min(count - stored, picker.choice((1, 2, BATCH, BATCH)))
        ids = [f"{name}-{stored + n}" for n in range(size)]
        texts = {id: text_for(picker, id) for id in ids}
        place = (picker.choice(("u1", "u10")), picker.choice(("t1", "t10")))
        journal.say(begin=stored, place=place, messages=texts)
        memory.remember(
            [{"role": "user", "content": text, "id": id} for id, text in texts.items()],
            thread_id=place[1],
            resource_id=place[0],
            background=picker.random() < 0.3,
        )
        journal.say(done=stored)
        stored += size


def _read(path: Path, stop: Path, seed: int) -> int:
    """Recall what is there for as long as there are writers; returns what was wrong."""
    picker = random.Random(seed)
    wrong = 0
    with opened(path) as memory:
        while not stop.exists():
            owner = picker.choice(("u1", "u10"))
            last = memory.history("t1", owner, last=20)
            if not last:
                time.sleep(0.05)
                continue
            message = picker.choice(last)
            recalled = memory.recall(message.text, resource_id=owner, top_k=3)
            wrong += {item.message.resource_id for item in recalled} != {owner}
            wrong += message.id not in {hit.message.id for hit in recalled.hits}
            time.sleep(0.01)
    return wrong


def _reader(_: Journal, path: Path, stop: Path, seed: int) -> None:
    assert _read(path, stop, seed) == 0, "a reader saw the wrong messages"


def _followed(logs: list[Path]) -> Expectations:
    expected = Expectations()
    for log in logs:
        expected.follow(json.loads(line) for line in log.read_text().splitlines())
    return expected


def _checked(path: Path, outcome: Outcome, expected: Expectations) -> Outcome:
    outcome.acknowledged = len(expected.certain)

    def body() -> Outcome:
        check(path, expected, outcome, set())
        return outcome

    try:
        return result_of(body, 600)
    except RuntimeError as error:
        outcome.problems.append(str(error))
        return outcome


def _ended(children: dict[str, Child], outcome: Outcome, seconds: float) -> None:
    for name, child in children.items():
        code = child.wait(seconds)
        if code != 0:
            outcome.problems.append(f"{name} ended with {code} (None: it hung)")
        child.kill()
        os.close(child.pipe)


def _writers_and_readers(folder: Path, messages: int, seed: int) -> Outcome:
    outcome = Outcome("four writers and two readers", times=1)
    path, stop = folder / "crowd", folder / "stop"
    prepare(path)
    logs = [folder / f"crowd-{n}.jsonl" for n in range(WRITERS)]

    def writing(_: Journal, number: int) -> None:
        _write(path, logs[number], messages, seed + number, f"w{number}")

    writers = {f"writer {n}": start(partial(writing, number=n)) for n in range(WRITERS)}
    readers = {
        f"reader {n}": start(partial(_reader, path=path, stop=stop, seed=seed + n))
        for n in range(READERS)
    }
    _ended(writers, outcome, 60 + messages)
    stop.touch()
    _ended(readers, outcome, 60)
    return _checked(path, outcome, _followed(logs))


def _forked(folder: Path, seed: int, *, used: bool) -> Outcome:
    """A server that opens the memory, perhaps uses it, and then forks its workers."""
    when = "after" if used else "before"
    outcome = Outcome(f"three workers forked {when} use", times=1)
    path = folder / f"forked-{when}"
    prepare(path)
    logs = [folder / f"forked-{when}-{n}.jsonl" for n in range(FORKED + 1)]

    def server(_: Journal) -> None:
        with opened(path) as memory:
            journal = Journal(os.open(logs[FORKED], os.O_WRONLY | os.O_CREAT | os.O_APPEND))
            if used:
                _write_with(memory, journal, 30, random.Random(seed), "before")
                assert memory.flush(60)
                assert memory.stats().owns_index

            def worker(_: Journal, number: int) -> None:
                mine = Journal(os.open(logs[number], os.O_WRONLY | os.O_CREAT | os.O_APPEND))
                _write_with(memory, mine, 100, random.Random(seed + number), f"f{number}")
                last = memory.history("t1", "u1", last=1)[0]
                hits = memory.recall(last.text, resource_id="u1").hits
                assert last.id in {hit.message.id for hit in hits}
                memory.close()

            children = {f"worker {n}": start(partial(worker, number=n)) for n in range(FORKED)}
            found = Outcome("workers")
            _ended(children, found, 120)
            assert not found.problems, found.problems
            _write_with(memory, journal, 30, random.Random(seed + 9), "after")
            assert memory.flush(60)

    _ended({"the server": start(server)}, outcome, 180)
    return _checked(path, outcome, _followed(logs))


def _owner_dies(folder: Path, seed: int) -> Outcome:
    """The process that owns the index is killed: another one takes it over, unasked."""
    outcome = Outcome("index owner killed, another takes over", times=1)
    path = folder / "owner"
    prepare(path)
    logs = [folder / f"owner-{n}.jsonl" for n in range(2)]

    def owner(journal: Journal) -> None:
        with opened(path) as memory:
            mine = Journal(os.open(logs[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND))
            _write_with(memory, mine, 50, random.Random(seed), "o")
            assert memory.flush(60)
            assert memory.stats().owns_index
            journal.say(ready=True)
            _write_with(memory, mine, 1_000_000, random.Random(seed + 1), "p")

    def heir(_: Journal) -> None:
        with opened(path) as memory:
            mine = Journal(os.open(logs[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND))
            _write_with(memory, mine, 100, random.Random(seed + 2), "h")
            deadline = time.monotonic() + 60
            while not (memory.stats().owns_index and memory.stats().index_lag == 0):
                assert time.monotonic() < deadline, "nobody took the index over"
                time.sleep(0.2)

    first = start(owner)
    os.read(first.pipe, 1)
    second = start(heir)
    time.sleep(1.0)
    first.kill()
    os.close(first.pipe)
    _ended({"the heir": second}, outcome, 120)
    return _checked(path, outcome, _followed(logs))
