"""What `doctor` looks at; each check returns findings and raises nothing."""

from __future__ import annotations

import logging
import math
import os
import platform
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Literal

from semantic_recall import SemanticRecall, Stats, VerifyReport
from semantic_recall.embedders import embedder_named
from semantic_recall.errors import SemanticRecallError
from semantic_recall.opening import DATABASE
from semantic_recall.protocols import Embedder
from semantic_recall.settings import Settings
from semantic_recall.stores.sql import SQLMessageStore

if sys.platform != "win32":
    import resource

DISTRIBUTION = "chat-semantic-recall"
MIN_SQLITE = (3, 35)
MIN_FILES = 512
"""Open files that a memory needs at most: Chroma holds some per shard, the caller has its own."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;(.*))?")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>|~=)\s*([0-9.]+)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found."""

    check: str
    status: Literal["ok", "note", "problem"]
    found: str
    do: str = ""
    """What to do about it."""


def python() -> Iterator[Finding]:
    """Check the version of Python against what the installed package asks for."""
    wanted = metadata(DISTRIBUTION)["Requires-Python"]
    found = f"{platform.python_implementation()} {platform.python_version()}"
    if fits(platform.python_version(), wanted):
        yield Finding("Python", "ok", found)
    else:
        yield Finding("Python", "problem", found, f"use Python {wanted}")


def packages() -> Iterator[Finding]:
    """Check every package that is needed, and those of the extras, against their ranges."""
    extras: dict[str, list[str]] = {}
    for line in requires(DISTRIBUTION) or ():
        match = _REQUIREMENT.match(line)
        if match is None:
            continue
        name, bounds, marker = match[1], match[2].strip(), match[3] or ""
        extra = _EXTRA.search(marker)
        if extra is None:
            yield _package(name, bounds)
        elif extra[1] != "all" and not ("Windows" in marker and sys.platform == "win32"):
            found = _package(name, bounds)
            if installed(name) is not None:
                yield found
            else:
                extras.setdefault(extra[1], []).append(name)
    for extra_name, missing in sorted(extras.items()):
        yield Finding(
            f"extra {extra_name}",
            "note",
            f"{', '.join(missing)} not installed",
            f"if you want it: pip install '{DISTRIBUTION}[{extra_name}]'",
        )


def _package(name: str, bounds: str) -> Finding:
    found = installed(name)
    if found is None:
        return Finding(name, "problem", "not installed", f"pip install '{name}{bounds}'")
    if fits(found, bounds):
        return Finding(name, "ok", found)
    return Finding(
        name, "problem", f"{found} is outside {bounds}", f"pip install -U '{name}{bounds}'"
    )


def installed(name: str) -> str | None:
    """Return the version of a package, None when it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def fits(found: str, bounds: str) -> bool:
    """Tell whether a version lies in a range such as ">=1.5.9,<1.6"; releases only count."""
    ours = release(found)
    for operator, bound in _BOUND.findall(bounds):
        theirs = release(bound)
        size = max(len(ours), len(theirs))
        left, right = (one + (0,) * (size - len(one)) for one in (ours, theirs))
        holds = {
            ">=": left >= right,
            "<=": left <= right,
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
            "~=": left >= right and ours[: len(theirs) - 1] == theirs[:-1],
        }
        if not holds[operator]:
            return False
    return True


def release(text: str) -> tuple[int, ...]:
    """Return the numbers that a version starts with."""
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def sqlite() -> Iterator[Finding]:
    """Check SQLite's version, and that it was built with full-text search."""
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        least = ".".join(map(str, MIN_SQLITE))
        remedy = f"SQLite {least} or newer is needed: use a newer Python build"
        yield Finding("SQLite", "problem", sqlite3.sqlite_version, remedy)
    else:
        yield Finding("SQLite", "ok", sqlite3.sqlite_version)
    try:
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        database.close()
    except sqlite3.Error as error:
        yield Finding("FTS5", "problem", str(error), "use a Python whose SQLite has FTS5")
    else:
        yield Finding("FTS5", "ok", "present")


def open_files() -> Iterator[Finding]:
    """Check how many files the process may open."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = soft == resource.RLIM_INFINITY
    found = "unlimited" if unlimited else f"{soft:,}"
    if unlimited or soft >= MIN_FILES:
        yield Finding("open files", "ok", found)
    else:
        more = f"`ulimit -n {MIN_FILES}`"
        if hard != resource.RLIM_INFINITY and hard < MIN_FILES:
            more = f"ask the administrator for at least {MIN_FILES} open files"
        yield Finding("open files", "problem", found, more)


def embedder(name: str | None) -> tuple[Embedder | None, list[Finding]]:
    """Load an embedder and embed two sentences."""
    if name is None:
        return None, [Finding("embedder", "note", "none: searching by words alone")]
    started = time.perf_counter()
    try:
        chosen = embedder_named(name)
        vectors = chosen.embed_documents(["a first sentence", "and another one"])
    except (SemanticRecallError, OSError, ImportError) as error:
        remedy = "install what the message names, or choose another with --embedder"
        return None, [Finding("embedder", "problem", f"{name}: {error}", remedy)]
    seconds = time.perf_counter() - started
    found = f"{chosen.space.name}, {chosen.space.dimensions} dimensions, ready in {seconds:.1f} s"
    if all(math.isfinite(float(one)) for vector in vectors for one in vector.ravel()):
        return chosen, [Finding("embedder", "ok", found)]
    remedy = f"reinstall the package of {name}, or choose another with --embedder"
    return None, [
        Finding("embedder", "problem", f"{name} gives values that are no numbers", remedy)
    ]


def folder(path: Path) -> Iterator[Finding]:
    """Check that the memory's folder, or the one that it would be made in, can be written."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        yield Finding("folder", "problem", f"{place} is a file", "give a folder with --path")
        return
    try:
        with tempfile.TemporaryFile(dir=place) as trial:
            trial.write(b"x")
            trial.flush()
    except OSError as error:
        remedy = f"make {place} writable for this user, free space, or give another with --path"
        yield Finding("folder", "problem", f"{place}: {error.strerror}", remedy)
        return
    free = f"{path} is writable" if place == path else f"{path} can be made"
    yield Finding("folder", "ok", free)


def database(path: Path) -> tuple[bool, list[Finding]]:
    """Open the database and let it check itself; True when there is one to go on with."""
    file = path / DATABASE
    if not file.is_file():
        return False, [
            Finding("database", "note", f"no memory in {path} yet", "`semantic-recall import FILE`")
        ]
    if not os.access(file, os.R_OK | os.W_OK):
        remedy = f"make {file} readable and writable for this user"
        return False, [Finding("database", "problem", f"{file}: no permission", remedy)]
    restore = "stop what uses it and restore the file from a backup"
    try:
        store = SQLMessageStore.open(file)
        try:
            problems, size = store.check(), store.size()
        finally:
            store.close()
    except SemanticRecallError as error:
        return False, [Finding("database", "problem", str(error), restore)]
    if problems:
        return True, [Finding("database", "problem", one, restore) for one in problems]
    return True, [Finding("database", "ok", f"sound, {size['messages']:,} messages")]


def memory(path: Path, chosen: Embedder | None) -> Iterator[Finding]:
    """Check the embedder against the memory's, pending messages, and the vector index."""
    log = _Log()
    try:
        with SemanticRecall.open(
            path, embedder=None, settings=Settings(logger=log.logger)
        ) as opened:
            stats, report = opened.stats(), opened.verify()
            after = opened.stats()
    except (SemanticRecallError, OSError) as error:
        remedy = "`semantic-recall verify --repair` mends the index"
        yield Finding("vector index", "problem", str(error), remedy)
        return
    yield _vectors(stats, chosen)
    yield _index(report, after, log.warnings)


class _Log(logging.Handler):
    """Keeps the warnings of a memory: an index that cannot be opened is no error of it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warnings: list[str] = []
        self.logger = logging.Logger("semantic_recall.doctor")
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.warnings.append(record.getMessage())


def _vectors(stats: Stats, chosen: Embedder | None) -> Finding:
    used = stats.embedder
    if used and chosen and used != chosen.space.name:
        remedy = "give the embedder it was made with, or `semantic-recall reindex`"
        return Finding("vectors", "problem", f"made with {used}, not {chosen.space.name}", remedy)
    if stats.pending:
        found = f"{stats.pending:,} messages wait for their vectors"
        return Finding("vectors", "note", found, "open the memory with its embedder: it goes on")
    return Finding("vectors", "ok", f"{stats.vectors:,}, none pending")


def _index(report: VerifyReport, stats: Stats, warnings: Sequence[str]) -> Finding:
    lag = f"{stats.index_lag:,} changes behind" if stats.index_lag else "up to date"
    if report.damage or report.missing or report.orphans:
        found = report.damage or (
            f"{report.missing:,} vectors missing, {report.orphans:,} unknown to the database"
        )
        return Finding("vector index", "problem", found, "`semantic-recall verify --repair`")
    if stats.embedder is None:
        return Finding("vector index", "ok", "none yet: the memory has no vectors")
    if report.indexed is None and warnings:
        remedy = "`semantic-recall verify --repair`; see the message"
        return Finding("vector index", "problem", warnings[0], remedy)
    if report.indexed is None and stats.index_lag:
        remedy = "the process that owns it catches up"
        return Finding("vector index", "note", f"{lag}; this process does not own it", remedy)
    if report.indexed is None:
        return Finding("vector index", "ok", f"{lag}; another process owns it")
    return Finding("vector index", "ok", f"{report.indexed:,} vectors, {lag}")
