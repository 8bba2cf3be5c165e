"""The commands that move messages: import, export."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.text import Text

from semantic_recall import Message
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
from semantic_recall.cli._importing import Imported, import_file
from semantic_recall.importers import (
    FORMATS,
    Source,
    defaults_of,
    detect,
    is_url,
    named,
    without_password,
)


@guarded
def import_(
    file: Annotated[
        str,
        typer.Argument(help="The file, folder or postgresql:// URL; - reads standard input."),
    ],
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
    LangGraph and LlamaIndex (JSON, SQLite, PostgreSQL), JSON Lines of role, content, thread_id,
    resource_id, created_at (as `export` writes them) and message lists in OpenAI's format. Records
    that cannot be read are named with place and reason and skipped; the exit code is 3 then.
    """
    with ExitStack() as stack:
        source: Source = file if is_url(file) else Path(file)
        if file == "-":
            source = stack.enter_context(_standard_input())
        importer = named(form) if form else detect(source)
        defaults = defaults_of(
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
                "file": without_password(file),
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
