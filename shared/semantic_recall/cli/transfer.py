"""The commands that move messages: import, export."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.text import Text

from semantic_recall import Message, SemanticRecall
from semantic_recall.cli import _output as output
from semantic_recall.cli._common import (
    DEFAULT_PATH,
    FOUND_SOMETHING,
    DebugOption,
    EmbedderName,
    EmbedderOption,
    JsonOption,
    PathOption,
    ResourceOption,
    ThreadOption,
    find_thread,
    guarded,
    memory_at,
    owner,
)
from semantic_recall.importers import (
    FORMATS,
    AnyImporter,
    BadRecord,
    Defaults,
    Position,
    detect,
    named,
    read_with,
)

BATCH = 1_000
_REASONS_SHOWN = 20
_TICK = 0.5
"""Seconds between two moves of the progress bar."""


@dataclass(slots=True)
class Imported:
    """What an import did so far."""

    messages: int = 0
    new: int = 0
    skipped: list[BadRecord] = field(default_factory=list)
    """The first ones only; `skips` counts all."""
    skips: int = 0
    pending: int = 0
    """Messages that wait for their vectors; counted in the whole memory, as is `index_lag`."""
    index_lag: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds if self.seconds else 0.0


@guarded
def import_(
    file: Annotated[str, typer.Argument(help="The file or folder; - reads standard input.")],
    path: PathOption = DEFAULT_PATH,
    resource: Annotated[
        str | None, typer.Option("--resource", help="The owner of messages that name none.")
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread", help="The thread of messages that name none; else the file's name."
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; found by the content if not given."),
    ] = None,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Store the messages of a file and embed them. Doing it twice changes nothing.

    Reads exports of ChatGPT, Claude and Slack (ZIP archive or folder), messages of LangChain,
    LangGraph and LlamaIndex (JSON and SQLite), JSON Lines of role, content, thread_id,
    resource_id, created_at (as `export` writes them) and message lists in OpenAI's format. Records
    that cannot be read are named with place and reason and skipped; the exit code is 3 then.
    """
    with ExitStack() as stack:
        source = stack.enter_context(_standard_input()) if file == "-" else Path(file)
        importer = named(form) if form else detect(source)
        defaults = Defaults.of_file(
            source,
            thread_id="stdin" if file == "-" and thread is None else thread,
            resource_id=owner(resource),
        )
        memory = stack.enter_context(memory_at(path, embedder=embedder.argument, create=True))
        try:
            done = import_file(memory, source, importer, defaults)
        except KeyboardInterrupt:
            output.note("what was stored stays; import the file again to go on")
            raise
    if as_json:
        output.emit(
            {
                "file": file,
                "format": importer.name,
                "path": path,
                "messages": done.messages,
                "new": done.new,
                "skipped": done.skips,
                "reasons": [
                    {"line": bad.line, "where": bad.where, "reason": bad.reason}
                    for bad in done.skipped
                ],
                "pending": done.pending,
                "index_lag": done.index_lag,
                "seconds": round(done.seconds, 3),
                "messages_per_second": round(done.rate, 1),
            }
        )
    else:
        _print_imported(done, path)
    if done.skips:
        raise typer.Exit(FOUND_SOMETHING)


def import_file(
    memory: SemanticRecall, source: Path, importer: AnyImporter, defaults: Defaults
) -> Imported:
    """Store a file's messages in batches, embed and index them, and count.

    Raises:
        StoreError: The database failed; the batches before are stored.
        ImportFormatError: The file cannot be read any further; the batches before are stored.
    """
    started = time.perf_counter()
    before = memory.stats().messages
    done = Imported()
    position = Position()
    with output.progress_bar("storing") as advance:
        messages = _good(read_with(importer, source, defaults, position), done)
        while batch := list(islice(messages, BATCH)):
            memory.remember(batch, background=True)
            done.messages += len(batch)
            advance(position.done, position.total)
    _flush(memory, done.messages)
    stats = memory.stats()
    done.new = stats.messages - before
    done.pending, done.index_lag = stats.pending, stats.index_lag
    done.seconds = time.perf_counter() - started
    return done


def _flush(memory: SemanticRecall, messages: int) -> None:
    """Embed and index what was stored, with a progress bar."""
    with output.progress_bar("embedding and indexing") as advance:
        while True:
            began = time.monotonic()
            # False before the time is over means that the index failed, which the library has
            # logged; it catches up when the memory is next used.
            if memory.flush(timeout=_TICK) or time.monotonic() - began < _TICK:
                return
            waiting = memory.stats()
            left = min(messages, waiting.pending + waiting.index_lag)
            advance(messages - left, messages)


def _good(items: Iterable[Message | BadRecord], done: Imported) -> Iterator[Message]:
    for item in items:
        if isinstance(item, Message):
            yield item
            continue
        done.skips += 1
        if len(done.skipped) < _REASONS_SHOWN:
            done.skipped.append(item)


def _print_imported(done: Imported, path: str) -> None:
    console = output.stdout()
    console.print(
        Text.assemble(
            (output.counted(done.messages, "message"), "bold"),
            f" stored in {output.one_line(path)} ({done.new:,} new) in {done.seconds:.1f} s, ",
            f"{done.rate:,.0f} messages/s",
        ),
        soft_wrap=True,
    )
    if done.pending:
        output.warn(
            f"{output.counted(done.pending, 'message')} could not be embedded yet; they are found "
            "by words, and embedding is tried again when the memory is next opened"
        )
    if done.index_lag:
        output.note(
            f"{output.counted(done.index_lag, 'change')} not in the vector index yet; searches do "
            "not depend on it, and it catches up when the memory is used"
        )
    if done.skips:
        output.warn(f"{output.counted(done.skips, 'record')} skipped:")
        for bad in done.skipped:
            output.note(f"{bad.where}: {output.one_line(bad.reason, 200)}", indent=2)
        if done.skips > len(done.skipped):
            output.note(f"and {done.skips - len(done.skipped):,} more", indent=2)


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Copy standard input to a file, because its start is read twice."""
    with tempfile.TemporaryDirectory(prefix="semantic-recall-") as folder:
        path = Path(folder, "stdin")
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield path


@guarded
def export(
    path: PathOption = DEFAULT_PATH,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; standard output if not given.")
    ] = None,
    resource: ResourceOption = None,
    thread: ThreadOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write the messages as JSON Lines that `import` reads back to the same memory."""
    with memory_at(path) as memory:
        if thread is not None:
            info = find_thread(memory, thread, resource)
            messages = memory.messages(thread_id=info.thread_id, resource_id=info.resource_id)
        else:
            messages = memory.messages(resource_id=owner(resource))
        if file is None:
            _write(messages, sys.stdout.buffer)
            return
        count = _write_file(messages, file)
    if as_json:
        output.emit({"file": str(file), "messages": count})
    else:
        output.note(f"{output.counted(count, 'message')} written to {file}")


def _write(messages: Iterable[Message], stream: BinaryIO) -> int:
    count = 0
    for message in messages:
        count += 1
        stream.write(output.encode(output.message_record(message)) + b"\n")
    stream.flush()
    return count


def _write_file(messages: Iterable[Message], file: Path) -> int:
    """Write a whole file or none."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as stream:
            count = _write(messages, stream)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return count
