"""A disk that is full, and a folder that cannot be written."""

from __future__ import annotations

import os
import random
import resource
from functools import partial
from pathlib import Path

from semantic_recall import StoreError
from tests.chaos.journal import Expectations
from tests.chaos.outcomes import Outcome
from tests.chaos.processes import result_of
from tests.chaos.work import check, opened, prepare, text_for

NOBODY = 65534
ROOM = 2 * 2**20
"""How many bytes each file may still grow."""


def run(folder: Path, times: int, seed: int) -> list[Outcome]:
    """Fill the disk and take away the right to write, again and again."""
    path = folder / "disk"
    prepare(path)
    full, read_only = Outcome("disk full"), Outcome("read-only folder")
    expected = Expectations()
    for number in range(times):
        for outcome, fault in (
            (full, partial(_fill_disk, path, seed=seed + number)),
            (read_only, partial(_read_only, path)),
        ):
            outcome.times += 1
            try:
                found, expected = result_of(partial(fault, expected))
            except RuntimeError as error:
                outcome.problems.append(str(error))
                continue
            outcome.acknowledged = len(expected.certain)
            outcome.add(found)
    return [full, read_only]


def _fill_disk(path: Path, expected: Expectations, seed: int) -> tuple[Outcome, Expectations]:
    """Write until the limit on the size of files says no, read, and go on when there is room."""
    picker = random.Random(seed)
    outcome = Outcome("disk full")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as memory:
        files = [file for file in path.rglob("*") if file.is_file()]
        largest = max(file.stat().st_size for file in files)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + ROOM, most))
        refused = 0
        for number in range(3_000):
            key = ("u1", "t1", f"{seed}-{number}")
            text = text_for(picker, f"mark{seed}x{number}") + " filler" * 50
            try:
                memory.remember(
                    {"role": "user", "content": text, "id": key[2]},
                    thread_id=key[1],
                    resource_id=key[0],
                )
            except StoreError as error:
                refused += 1
                expected.messages[key] = {None, text}
                if "full" not in str(error) and "disk" not in str(error):
                    outcome.problems.append(f"not a clear error: {error}")
                if refused == 5:
                    break
            else:
                expected.settle(key, text)
        if not refused:
            outcome.problems.append("the disk was never full")
        known = list(expected.certain.items())[-20:]
        for (owner, _, id), text in known:
            hits = memory.recall(text, resource_id=owner).hits
            outcome.lost += id not in {hit.message.id for hit in hits}
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        key = ("u1", "t1", f"{seed}-room")
        memory.remember(
            {"role": "user", "content": f"room again {seed}", "id": key[2]},
            thread_id=key[1],
            resource_id=key[0],
        )
        expected.settle(key, f"room again {seed}")
    check(path, expected, outcome, {key})
    return outcome, expected


def _read_only(path: Path, expected: Expectations) -> tuple[Outcome, Expectations]:
    """Without the right to write it says so at once, and leaves everything as it was."""
    outcome = Outcome("read-only folder")
    paths = [path, *path.rglob("*")]
    modes = {entry: entry.stat().st_mode for entry in paths}
    try:
        for entry in paths:
            entry.chmod(0o555 if entry.is_dir() else 0o444)
        said = result_of(partial(_write_as_nobody, path), 60)
        if said is None:
            outcome.problems.append("a read-only memory took a message")
        elif not any(word in said for word in ("read-only", "readonly", "cannot be opened")):
            outcome.problems.append(f"not a clear error: {said}")
    finally:
        for entry, mode in modes.items():
            entry.chmod(mode)
    check(path, expected, outcome, set())
    return outcome, expected


def _write_as_nobody(path: Path) -> str | None:
    """Try to store something; returns the error, None when there was none."""
    if os.geteuid() == 0:  # root may write everywhere
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        with opened(path) as memory:
            memory.remember({"role": "user", "content": "no"}, thread_id="t1", resource_id="u1")
    except StoreError as error:
        return str(error)
    return None
