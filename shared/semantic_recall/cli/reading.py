"""The commands that look into a memory: search, threads, show, stats."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from enum import Enum
from typing import Annotated

import typer
from rich.text import Text

from semantic_recall import MessageRange, Recall, RecallOverrides, SemanticRecall
from semantic_recall.cli import _output as output
from semantic_recall.cli._common import (
    DEFAULT_PATH,
    DebugOption,
    EmbedderName,
    EmbedderOption,
    JsonOption,
    PathOption,
    ResourceOption,
    find_thread,
    guarded,
    memory_at,
    owner,
)
from semantic_recall.types import RecalledMessage, as_utc

_SHOWN = 280
"""Characters of a message in a table of search results."""


class ScopeName(str, Enum):
    """What `--scope` takes."""

    resource = "resource"
    thread = "thread"


class RankingName(str, Enum):
    """What `--ranking` takes."""

    hybrid = "hybrid"
    dense = "dense"


def _parse_range(text: str) -> MessageRange:
    try:
        sides = [int(side) for side in text.split(",")]
    except ValueError:
        raise ValueError("give a number, or two with a comma: before,after") from None
    if not 1 <= len(sides) <= 2 or min(sides) < 0:
        raise ValueError("give a number, or two with a comma: before,after")
    return MessageRange(sides[0], sides[-1])


def _parse_moment(text: str) -> datetime:
    if text[-1:] in "Zz":  # Python 3.10 does not read it
        text = text[:-1] + "+00:00"
    try:
        return as_utc(datetime.fromisoformat(text))
    except ValueError:
        raise ValueError("give a date or a time, such as 2025-01-31 or 2025-01-31T18:00") from None


@guarded
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    path: PathOption = DEFAULT_PATH,
    resource: ResourceOption = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", help="The current thread; with --scope thread the only one."),
    ] = None,
    scope: Annotated[
        ScopeName | None, typer.Option("--scope", help="All threads of the resource, or one.")
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="How many hits.")] = 4,
    message_range: Annotated[
        MessageRange,
        typer.Option(
            "--range",
            parser=_parse_range,
            metavar="N|BEFORE,AFTER",
            help="Neighbours that each hit brings.",
        ),
    ] = "1",  # type: ignore[assignment]  # typer parses defaults that are text
    threshold: Annotated[
        float | None, typer.Option("--threshold", min=-1, max=1, help="Least cosine of a hit.")
    ] = None,
    ranking: Annotated[RankingName, typer.Option("--ranking")] = RankingName.hybrid,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="At most so much text.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option("--since", parser=_parse_moment, metavar="DATE", help="Not older (UTC)."),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option("--until", parser=_parse_moment, metavar="DATE", help="Older (UTC)."),
    ] = None,
    block: Annotated[
        bool, typer.Option("--block", help="Print the block as it goes into a prompt.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten the messages.")] = False,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Find the past messages that matter for QUERY, with their scores."""
    options = RecallOverrides(
        top_k=top_k,
        message_range=message_range,
        threshold=threshold,
        ranking=ranking.value,
        max_tokens=max_tokens,
        since=since,
        until=until,
    )
    with memory_at(path, embedder=embedder.argument) as memory:
        resource_id = _whose(memory, resource, thread)
        kind = scope or (ScopeName.resource if resource_id else ScopeName.thread)
        options["scope"] = kind.value
        recall = memory.recall(query, resource_id=resource_id, thread_id=thread, **options)
    if as_json:
        output.emit(_recall_document(recall, block=block))
    elif block:
        typer.echo(recall.block("all").encode())
    else:
        print_recall(recall, limit=None if full else _SHOWN)


def _whose(memory: SemanticRecall, resource: str | None, thread: str | None) -> str | None:
    """Return whose memory is searched; without `--resource` it must be plain who is meant."""
    if resource is not None:
        return owner(resource)
    if thread is not None:
        return find_thread(memory, thread, None).resource_id
    resources = memory.resources()
    if len(resources) == 1 and resources[0].resource_id is not None:
        return resources[0].resource_id
    known = ", ".join(repr(info.resource_id) for info in resources[:10] if info.resource_id)
    more = f" This memory has {known}{' and more' if len(resources) > 10 else ''}." if known else ""
    raise typer.BadParameter(f"Name the owner with --resource, or a --thread.{more}")


def _recall_document(recall: Recall, *, block: bool) -> dict[str, object]:
    document: dict[str, object] = {
        "query": recall.query,
        "resource_id": recall.resource_id,
        "thread_id": recall.thread_id,
        "hits": [hit.message.id for hit in recall.hits],
        "messages": [output.recalled_record(one) for one in recall],
        "tokens": recall.tokens,
        "dropped": dict(recall.dropped),
        "timings": dict(recall.timings),
    }
    return {**document, "block": recall.block("all")} if block else document


def print_recall(recall: Recall, *, limit: int | None) -> None:
    """Print what was recalled as a table, thread by thread."""
    console = output.stdout()
    if not recall.messages:
        console.print(Text(", ".join(["Nothing found", *_left_out(recall)]), style="yellow"))
        return
    shown = output.table(
        "", ("score", "right"), ("dense", "right"), ("words", "right"), "time (UTC)", "message"
    )
    shown.columns[4].no_wrap = True
    shown.columns[5].ratio = 1
    thread: tuple[str | None, str] | None = None
    for recalled in recall:
        message = recalled.message
        if thread != (message.resource_id, message.thread_id):
            thread = (message.resource_id, message.thread_id)
            current = " (current)" if message.thread_id == recall.thread_id else ""
            title = output.one_line(message.thread_id, 60) + current
            shown.add_row("", "", "", "", "", Text(title, style="bold cyan"))
        shown.add_row(*_row(recalled, limit))
    console.print(shown)
    summary = [
        output.counted(len(recall.hits), "hit") + f" {output.HIT}",
        output.counted(len(recall.messages) - len(recall.hits), "neighbour")
        + f" {output.NEIGHBOUR}",
        output.counted(recall.tokens, "token"),
        *_left_out(recall),
    ]
    console.print(Text(", ".join(summary), style="dim"))


def _left_out(recall: Recall) -> list[str]:
    return [f"{count:,} left out: {reason}" for reason, count in recall.dropped.items()]


def _row(recalled: RecalledMessage, limit: int | None) -> list[Text]:
    message, style = recalled.message, "" if recalled.is_hit else "dim"
    text = output.full(message.text) if limit is None else output.one_line(message.text, limit)
    speaker = output.one_line(message.name or message.role, 40)
    cells = (
        output.HIT if recalled.is_hit else output.NEIGHBOUR,
        output.number(recalled.score),
        output.number(recalled.dense),
        output.number(recalled.lexical, 1),
        output.moment(message.created_at),
    )
    said = Text.assemble((f"{speaker}: ", "bold" if recalled.is_hit else style), (text, style))
    return [*(Text(cell, style=style) for cell in cells), said]


@guarded
def threads(
    path: PathOption = DEFAULT_PATH,
    resource: ResourceOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List the threads, the newest first."""
    with memory_at(path) as memory:
        found = memory.threads(owner(resource))
    if resource == "":
        found = [info for info in found if info.resource_id is None]
    if as_json:
        output.emit([_jsonable(dataclasses.asdict(info)) for info in found])
        return
    shown = output.table("resource", "thread", ("messages", "right"), "first (UTC)", "last (UTC)")
    for info in found:
        shown.add_row(
            Text(output.one_line(info.resource_id or "–", 60)),
            Text(output.one_line(info.thread_id, 60), style="cyan"),
            f"{info.messages:,}",
            output.moment(info.first_at),
            output.moment(info.last_at),
        )
    output.stdout().print(shown)


@guarded
def show(
    thread: Annotated[str, typer.Argument(help="The thread.", metavar="THREAD")],
    path: PathOption = DEFAULT_PATH,
    resource: ResourceOption = None,
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=1, help="Only the last so many messages.")
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print the messages of a thread, oldest first."""
    with memory_at(path) as memory:
        info = find_thread(memory, thread, resource)
        messages = memory.history(info.thread_id, info.resource_id, last=last)
    if as_json:
        output.emit([output.message_record(message) for message in messages])
        return
    console = output.stdout()
    for message in messages:
        speaker = output.one_line(message.name or message.role, 40)
        when = (output.moment(message.created_at), "dim")
        console.print(Text.assemble(when, " ", (f"{speaker}: ", "bold"), output.full(message.text)))


@guarded
def stats(
    path: PathOption = DEFAULT_PATH, as_json: JsonOption = False, debug: DebugOption = False
) -> None:
    """Print the size and state of a memory."""
    with memory_at(path) as memory:
        values = dataclasses.asdict(memory.stats())
    if as_json:
        output.emit(values)
    else:
        output.stdout().print(output.facts({"path": path, **values}))


def _jsonable(values: dict[str, object]) -> dict[str, object]:
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in values.items()
    }
