"""The commands that look after a memory: reindex, verify, forget."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from rich.text import Text

from semantic_recall import ForgetReceipt, SemanticRecall, VerifyReport
from semantic_recall.cli import _output as output
from semantic_recall.cli._common import (
    DEFAULT_PATH,
    FAILED,
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
)
from semantic_recall.embedders import embedder_named
from semantic_recall.errors import InvalidScopeError


@guarded
def reindex(
    path: PathOption = DEFAULT_PATH,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Embed everything again with --embedder and switch to it.

    Searches use the old vectors until all are made. A stopped run goes on where it was.
    """
    name = embedder.argument
    if name is None:
        raise typer.BadParameter("reindex needs an embedder; none has no vectors")
    chosen = embedder_named(name)
    with memory_at(path) as memory, output.progress_bar("embedding") as advance:
        report = memory.reindex(chosen, progress=advance)
    if as_json:
        output.emit(dataclasses.asdict(report))
        return
    text = f"{output.counted(report.embedded, 'message')} embedded with {report.space.name}"
    output.stdout().print(Text(output.one_line(text)), soft_wrap=True)
    if report.pending:
        output.warn(f"{report.pending:,} could not be embedded; they are found by words")


@guarded
def verify(
    path: PathOption = DEFAULT_PATH,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild the vector index if it differs.")
    ] = False,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare the database with itself and with the vector index; exit code 3 tells of problems."""
    with (
        memory_at(path, embedder=embedder.argument) as memory,
        output.progress_bar("comparing") as advance,
    ):
        report = memory.verify(repair=repair, progress=advance)
    if as_json:
        output.emit({"ok": report.ok, **dataclasses.asdict(report)})
    else:
        _print_report(report)
    if not report.ok:
        raise typer.Exit(FOUND_SOMETHING)


def _print_report(report: VerifyReport) -> None:
    console = output.stdout()
    indexed = "not compared" if report.indexed is None else f"{report.indexed:,}"
    console.print(
        output.facts(
            {
                "vectors stored": report.vectors,
                "vectors in the index": indexed,
                "missing in the index": report.missing,
                "unknown to the database": report.orphans,
                "messages waiting for vectors": report.pending,
            }
        )
    )
    for problem in report.problems:
        console.print(Text.assemble(("problem: ", "bold red"), output.one_line(problem)))
    if not report.ok:
        help_ = "" if report.problems else "; `semantic-recall verify --repair` mends the index"
        console.print(Text(f"not sound{help_}", style="bold red"))
    else:
        console.print(Text("repaired" if report.repaired else "sound", style="bold green"))


@guarded
def forget(
    path: PathOption = DEFAULT_PATH,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="Only this message; may be given repeatedly.")
    ] = None,
    thread: ThreadOption = None,
    resource: ResourceOption = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="Overwrite the freed bytes too (slow).")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Delete a thread, everything of a resource, or single messages, with all made from them.

    Prints a receipt: what was removed, and what a look into every place found afterwards.
    """
    if thread is None and not resource:
        raise typer.BadParameter("Say what to forget: --thread, --resource or both.")
    with memory_at(path) as memory:
        thread_id, resource_id, what = _target(memory, thread, resource, ids)
        if not yes and not _confirmed(f"Delete {what}?"):
            output.fail("nothing was deleted")
            raise typer.Exit(FAILED)
        receipt = memory.forget(
            ids=ids or None, thread_id=thread_id, resource_id=resource_id, secure=secure
        )
    if as_json:
        output.emit({"complete": receipt.complete, **_document(receipt)})
    else:
        _print_receipt(receipt)
    if not receipt.complete:
        raise typer.Exit(FOUND_SOMETHING)


def _target(
    memory: SemanticRecall, thread: str | None, resource: str | None, ids: list[str] | None
) -> tuple[str | None, str | None, str]:
    """Return thread, resource and a description of what would be deleted."""
    if thread is not None:
        info = find_thread(memory, thread, resource)
        whose = f" of {info.resource_id!r}" if info.resource_id else ""
        place = f"thread {info.thread_id!r}{whose}"
        thread_id, resource_id, count = info.thread_id, info.resource_id, info.messages
    else:
        found = [one for one in memory.resources() if one.resource_id == resource]
        if not found:
            raise InvalidScopeError(f"there is nothing of {resource!r} in this memory")
        place = f"all {output.counted(found[0].threads, 'thread')} of {resource!r}"
        thread_id, resource_id, count = None, resource, found[0].messages
    if ids:
        return thread_id, resource_id, f"{output.counted(len(ids), 'message')} of {place}"
    return thread_id, resource_id, f"{place}, {output.counted(count, 'message')}"


def _confirmed(question: str) -> bool:
    output.stderr().print(Text(f"{output.one_line(question)} [y/N] "), end="")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:  # nobody is there to answer
        return False


def _document(receipt: ForgetReceipt) -> dict[str, object]:
    return {**dataclasses.asdict(receipt), "remaining": dict(receipt.remaining)}


def _print_receipt(receipt: ForgetReceipt) -> None:
    console = output.stdout()
    console.print(
        output.facts(
            {
                "messages removed": receipt.messages,
                "threads removed": receipt.threads,
                "vectors removed": receipt.vectors,
                **{f"left in {place}": count for place, count in receipt.remaining.items()},
            }
        )
    )
    if receipt.complete:
        scrubbed = ", the freed bytes are overwritten" if receipt.secure else ""
        console.print(Text(f"nothing of it is left{scrubbed}", style="bold green"))
    else:
        console.print(Text("not everything is gone yet; see the counts", style="bold red"))
