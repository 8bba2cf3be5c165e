"""SIGKILL at random points of everything that writes."""

from __future__ import annotations

import os
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from tests.chaos.journal import Expectations, Journal, Key, read_lines
from tests.chaos.outcomes import Outcome
from tests.chaos.processes import Child, result_of, start
from tests.chaos.work import MIXES, check, prepare, quiet, work

READY_SECONDS = 60


class Site:
    """One memory that is hit again and again, and what it must hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.expected = Expectations()
        prepare(path)

    def killed(self, kind: str, seed: int, *, workers: int = 1) -> Outcome:
        """Start processes, kill them after a random time, and check what they left."""
        picker = random.Random(seed)
        outcome = Outcome(kind, times=1)
        names = [f"{seed}{chr(97 + n)}" for n in range(workers)]
        children = [
            start(partial(self._work, kind=kind, seed=seed + n, name=name))
            for n, name in enumerate(names)
        ]
        lines: list[list[dict[str, Any]]] = []
        first = [_wait_until_ready(child) for child in children]
        time.sleep(picker.uniform(0.0, 1.2))
        for child, line in zip(children, first, strict=True):
            if not line:
                outcome.problems.append("a process did not open the memory")
            elif child.wait(0.0) is not None:
                outcome.problems.append("a process ended by itself")
            child.kill()
            lines.append(read_lines(child.pipe))
            time.sleep(picker.uniform(0.0, 0.4))  # the next takes over what this one owned
        touched: set[Key] = set()
        for said in lines:
            touched |= self.expected.follow(said)
        outcome.acknowledged = len(touched & self.expected.certain.keys())
        self.check(outcome, touched)
        return outcome

    def _work(self, journal: Journal, kind: str, seed: int, name: str) -> None:
        work(self.path, journal, kind, seed, name)

    def check(self, outcome: Outcome, fresh: set[Key]) -> None:
        """Check in a process of its own, which also settles what was uncertain."""

        def body() -> tuple[Outcome, Expectations]:
            check(self.path, self.expected, outcome, fresh)
            return outcome, self.expected

        try:
            checked, self.expected = result_of(body)
        except RuntimeError as error:
            outcome.problems.append(f"the check failed: {error}")
            return
        for name in ("acknowledged", "lost", "resurrected", "crossed", "problems"):
            setattr(outcome, name, getattr(checked, name))


def _wait_until_ready(child: Child) -> bool:
    """Read the first line, byte by byte: the rest stays in the pipe."""
    os.set_blocking(child.pipe, False)
    deadline = time.monotonic() + READY_SECONDS
    got = b""
    try:
        while time.monotonic() < deadline and not got.endswith(b"\n"):
            try:
                part = os.read(child.pipe, 1)
            except BlockingIOError:
                time.sleep(0.002)
                continue
            if not part:
                return False
            got += part
    finally:
        os.set_blocking(child.pipe, True)
    return got.endswith(b"\n")


def killed_while_opening(folder: Path, seed: int) -> Outcome:
    """A new memory whose first opening (folder, tables, settings) is cut off."""
    picker = random.Random(seed)
    outcome = Outcome("killed while migrating", times=1)
    path = folder / f"new-{seed}"

    def begin(_: Journal) -> None:
        message = {"role": "user", "content": "first words", "id": "first"}
        with _new(path) as memory:
            memory.remember(message, thread_id="t", resource_id="r")
            memory.flush()

    child = start(begin)
    time.sleep(picker.uniform(0.0, 0.25))
    child.kill()
    os.close(child.pipe)

    def look() -> list[str]:
        with _new(path) as memory:
            message = {"role": "user", "content": f"second words {seed}", "id": "second"}
            memory.remember(message, thread_id="t", resource_id="r")
            found = memory.recall(f"second words {seed}", resource_id="r", top_k=1)
            assert found.hits[0].message.id == "second"
            assert memory.flush(60)
            report = memory.verify()
            return [] if report.ok else [str(report)]

    try:
        outcome.problems += result_of(look, 60)
        outcome.acknowledged = 1
    except RuntimeError as error:
        outcome.lost += 1
        outcome.problems.append(str(error))
    return outcome


def _new(path: Path) -> SemanticRecall:
    return SemanticRecall.open(path, embedder=HashEmbedder(32))


def run(folder: Path, rounds: int, seed: int) -> list[Outcome]:
    """Kill `rounds` times, in turn while each kind of work is done."""
    quiet()
    site = Site(folder / "killed")
    outcomes = {kind: Outcome(kind) for kind in (*MIXES, "killed while migrating")}
    crowd = Outcome("owner killed beside three others")
    for number in range(rounds):
        picked = list(outcomes)[number % len(outcomes)]
        if picked == "killed while migrating":
            outcomes[picked].add(killed_while_opening(folder, seed + number * 101))
        else:
            outcomes[picked].add(site.killed(picked, seed + number * 101))
        if number % 12 == 11:
            crowd.add(site.killed("killed while indexing", seed + number * 101 + 50, workers=4))
    return [*outcomes.values(), crowd]
