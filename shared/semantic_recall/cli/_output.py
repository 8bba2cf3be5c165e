"""What the commands print: JSON for programs, tables for people.

Results go to stdout, everything else to stderr. Message text is hostile until proved otherwise:
it is cleaned of control characters and never read as markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from semantic_recall.formatting import ELLIPSIS, clean
from semantic_recall.types import Message, RecalledMessage

HIT = "●"
NEIGHBOUR = "·"

Advance = Callable[[int, int], None]
"""Called with (done, total)."""


def stdout() -> Console:
    """Return the console for results."""
    return Console(highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """Return the console for errors, notes and progress."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def note(text: str, *, indent: int = 0) -> None:
    """Say something beside the result."""
    stderr().print(Text(" " * indent + one_line(text), style="dim"), soft_wrap=True)


def warn(text: str) -> None:
    """Say that something is not as it should be."""
    stderr().print(Text.assemble(("warning: ", "yellow"), one_line(text)), soft_wrap=True)


def fail(text: str) -> None:
    """Say in one line what went wrong."""
    stderr().print(Text.assemble(("error: ", "bold red"), one_line(text)), soft_wrap=True)


def one_line(text: str, limit: int | None = None) -> str:
    """Return `text` safe for a terminal, on one line, of at most `limit` characters."""
    shown = " ".join(clean(text if limit is None else text[: 4 * limit]).split())
    if limit is not None and len(shown) > limit:
        return shown[: limit - 1].rstrip() + ELLIPSIS
    return shown


def full(text: str) -> str:
    """Return `text` safe for a terminal, with its lines."""
    return clean(text).expandtabs(4)


def moment(when: datetime) -> str:
    """Return a time (UTC) as people read it."""
    return when.strftime("%Y-%m-%d %H:%M")


def number(value: float | None, digits: int = 2) -> str:
    """Return a score, or a dash for none."""
    return "–" if value is None else f"{value:.{digits}f}"


def counted(count: int, noun: str) -> str:
    """Return "1 message", "2,000 messages"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(*columns: str | tuple[str, str], title: str | None = None) -> Table:
    """Return an empty table; a column is its name, or (name, "left" or "right")."""
    made = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    for column in columns:
        name, side = (column, "left") if isinstance(column, str) else column
        made.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    return made


def emit(document: object) -> None:
    """Print one JSON document on one line."""
    typer.echo(encode(document))


def encode(document: object) -> bytes:
    """Return a JSON document as UTF-8, without a line end."""
    try:
        return json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot hold
        return json.dumps(document).encode()


def message_record(message: Message) -> dict[str, Any]:
    """Return a message as `export` writes it and `import` reads it."""
    record: dict[str, Any] = {
        "id": message.id,
        "thread_id": message.thread_id,
        "resource_id": message.resource_id,
        "role": message.role,
        "name": message.name,
        "content": message.text,
        "created_at": message.created_at.isoformat(),
        "metadata": dict(message.metadata) or None,
        "payload": None if message.payload is None else dict(message.payload),
    }
    return {key: value for key, value in record.items() if value is not None}


def recalled_record(recalled: RecalledMessage) -> dict[str, Any]:
    """Return a recalled message with its marks and scores."""
    return {
        **message_record(recalled.message),
        "is_hit": recalled.is_hit,
        "score": recalled.score,
        "dense": recalled.dense,
        "lexical": recalled.lexical,
    }


def facts(values: Mapping[str, object]) -> Table:
    """Return a table of names and values."""
    made = Table.grid(padding=(0, 2))
    for name, value in values.items():
        made.add_row(Text(name, style="bold"), Text(_shown(value)))
    return made


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else one_line(str(value))


@contextmanager
def progress_bar(what: str) -> Iterator[Advance]:
    """Show a bar on stderr while a long work goes on; nothing when it is not a terminal."""
    console = stderr()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
