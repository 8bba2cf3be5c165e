"""Files of the vector index torn, emptied or deleted between two runs."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

from tests.chaos.journal import Expectations
from tests.chaos.outcomes import Outcome
from tests.chaos.processes import result_of
from tests.chaos.work import check, opened, prepare, text_for

MESSAGES = 1_300
"""Chroma moves vectors into files after a thousand."""
FILES = (
    "header.bin", "data_level0.bin", "length.bin", "link_lists.bin", "index_metadata.pickle",
    "chroma.sqlite3", "segment", "chroma",
)  # fmt: skip
WAYS = ("torn", "emptied", "deleted")


def run(folder: Path, times: int, seed: int) -> list[Outcome]:
    """Break one file after the other; each time the memory must answer and mend."""
    path = folder / "damaged"
    prepare(path)
    expected = result_of(partial(_fill, path, seed))
    picker = random.Random(seed)
    cases = [(name, way) for way in WAYS for name in FILES]
    picker.shuffle(cases)
    outcomes = {way: Outcome(f"index files {way}") for way in WAYS}
    for number in range(times):
        name, way = cases[number % len(cases)]
        outcome = outcomes[way]
        outcome.times += 1
        outcome.acknowledged = len(expected.messages)
        if not _break(path / "chroma", name, way):
            outcome.problems.append(f"there is no {name} to break")
            continue
        try:
            found = result_of(partial(_look, path, expected, f"{name} {way}"))
        except RuntimeError as error:
            outcome.problems.append(f"{name} {way}: {error}")
            continue
        for counter in ("lost", "resurrected", "crossed", "problems"):
            setattr(outcome, counter, getattr(outcome, counter) + getattr(found, counter))
    return list(outcomes.values())


def _fill(path: Path, seed: int) -> Expectations:
    picker = random.Random(seed)
    expected = Expectations()
    messages = {f"m{n}": text_for(picker, f"mark{n}") for n in range(MESSAGES)}
    with opened(path) as memory:
        memory.remember(
            [{"role": "user", "content": text, "id": id} for id, text in messages.items()],
            thread_id="t1",
            resource_id="u1",
        )
        assert memory.flush(120)
    for id, text in messages.items():
        expected.settle(("u1", "t1", id), text)
    return expected


def _look(path: Path, expected: Expectations, what: str) -> Outcome:
    """Recall at once, while the index is being rebuilt and asked; then check everything."""
    outcome = Outcome(what)
    picked = random.Random(what).sample(sorted(expected.certain.items()), 5)
    with opened(path, exact_limit=0) as memory:
        for _ in range(3):
            for (resource, _thread, id), text in picked:
                hits = memory.recall(text, resource_id=resource).hits
                outcome.lost += id not in {hit.message.id for hit in hits}
            memory.flush(60)
        report = memory.verify()
        if not report.ok or report.indexed != len(expected.messages):
            outcome.problems.append(f"{what}: not rebuilt by itself: {report}")
    check(path, expected, outcome, set())
    return outcome


def _break(index: Path, name: str, way: str) -> bool:
    segments = [entry for entry in index.iterdir() if entry.is_dir()]
    targets = {
        "chroma": [index],
        "segment": segments,
        "chroma.sqlite3": [index / name],
    }.get(name, [segment / name for segment in segments])
    broken = [target for target in targets if target.exists()]
    for target in broken:
        if target.is_dir():
            shutil.rmtree(target)
        elif way == "deleted":
            target.unlink()
        else:
            keep = target.stat().st_size // 2 if way == "torn" else 0
            target.write_bytes(target.read_bytes()[:keep])
    return bool(broken)
