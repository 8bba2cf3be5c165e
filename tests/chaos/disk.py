"""A disk that is full, and a folder that cannot be written."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from semantic_recall import SemanticRecall, StoreError
from tests.chaos.journal import Expectations, Key
from tests.chaos.outcomes import Outcome
from tests.chaos.processes import result_of
from tests.chaos.work import check, opened, prepare, text_for

NOBODY = 65534
ROOM = 2 * 2**20
"""How many bytes each file may still grow."""


DISK = 24
"""Megabytes of a disk of its own."""


def run(folder: Path, times: int, seed: int, *, real: bool = False) -> list[Outcome]:
    """Fill the disk and take away the right to write, again and again.

    Args:
        folder: Where to do it.
        times: How often.
        seed: Of what is written.
        real: Fill a small disk of its own too, if this user may mount one.
    """
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
    return [full, read_only, *(_real_disks(folder, times, seed) if real else ())]


def _real_disks(folder: Path, times: int, seed: int) -> Iterator[Outcome]:
    outcome = Outcome("real disk full")
    for number in range(times):
        with _mounted(folder / f"mounted-{number}") as disk:
            if disk is None:
                return  # not root, or not allowed to mount: the limit on files has to do
            outcome.times += 1
            try:
                found, expected = result_of(partial(_fill_real_disk, disk, seed + number))
                outcome.acknowledged += len(expected.certain)
                outcome.add(found)
            except RuntimeError as error:
                outcome.problems.append(str(error))
    yield outcome


@contextmanager
def _mounted(folder: Path) -> Iterator[Path | None]:
    """Mount a small disk in memory; None where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", str(folder)]
    try:
        allowed = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    try:
        yield folder if allowed else None
    finally:
        if allowed:
            subprocess.run(["umount", str(folder)], check=True)


def _fill_real_disk(disk: Path, seed: int) -> tuple[Outcome, Expectations]:
    """Let a stranger's file leave ever less room; read and go on when it is gone."""
    outcome, expected = Outcome("real disk full"), Expectations()
    path, stranger = disk / "memory", disk / "stranger"
    prepare(path)
    with opened(path) as memory:
        _write_until_full(memory, expected, outcome, f"{seed}-before", most=300)
        memory.flush(60)
        with stranger.open("wb") as file:
            left = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            file.write(bytes(max(left - 2**20, 0)))
        _write_until_full(memory, expected, outcome, f"{seed}-full", most=3_000, must_fail=True)
        _known_are_found(memory, expected, outcome)
        stranger.unlink()
        fresh = _write_until_full(memory, expected, outcome, f"{seed}-after", most=20)
    check(path, expected, outcome, fresh)
    return outcome, expected


def _fill_disk(path: Path, expected: Expectations, seed: int) -> tuple[Outcome, Expectations]:
    """Write until the limit on the size of files says no, read, and go on when there is room."""
    outcome = Outcome("disk full")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as memory:
        files = [file for file in path.rglob("*") if file.is_file()]
        largest = max(file.stat().st_size for file in files)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + ROOM, most))
        _write_until_full(memory, expected, outcome, str(seed), most=3_000, must_fail=True)
        _known_are_found(memory, expected, outcome)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        fresh = _write_until_full(memory, expected, outcome, f"{seed}-room", most=1)
    check(path, expected, outcome, fresh)
    return outcome, expected


def _write_until_full(
    memory: SemanticRecall,
    expected: Expectations,
    outcome: Outcome,
    mark: str,
    *,
    most: int,
    must_fail: bool = False,
) -> set[Key]:
    """Store messages one by one, up to the fifth that is refused; returns those that were not."""
    picker = random.Random(mark)
    stored: set[Key] = set()
    refused = 0
    for number in range(most):
        key = ("u1", "t1", f"{mark}-{number}")
        text = text_for(picker, f"mark{mark}x{number}") + " filler" * 50
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
            stored.add(key)
    if bool(refused) != must_fail:
        outcome.problems.append(f"{refused} messages were refused while writing {mark}")
    return stored


def _known_are_found(memory: SemanticRecall, expected: Expectations, outcome: Outcome) -> None:
    for (owner, _, id), text in list(expected.certain.items())[-20:]:
        hits = memory.recall(text, resource_id=owner).hits
        outcome.lost += id not in {hit.message.id for hit in hits}


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
