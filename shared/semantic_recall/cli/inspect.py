"""The command that shows a memory in the browser: inspect."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated
from urllib.parse import urlsplit

import typer

from semantic_recall.cli import _output as output
from semantic_recall.cli._common import (
    DEFAULT_PATH,
    DebugOption,
    EmbedderName,
    EmbedderOption,
    JsonOption,
    PathOption,
    guarded,
    memory_at,
)
from semantic_recall.opening import is_database_url


@guarded
def inspect(
    path: PathOption = DEFAULT_PATH,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the memory on a page of this machine: browse, ask, see why, forget.

    Only this machine can reach it, and only who knows the printed address. Ctrl-C ends it.
    """
    # The extra, and half a second that no other command needs.
    from semantic_recall.inspector import Inspector, open_in_browser  # noqa: PLC0415

    with (
        memory_at(path, embedder=embedder.argument) as memory,
        Inspector(memory, port=port, name=_shown(path)) as inspector,
    ):
        if as_json:
            output.emit({"url": inspector.url, "port": inspector.port})
        else:
            typer.echo(inspector.url)
            output.note("Whoever has this address can read and delete. Ctrl-C ends it.")
        with open_in_browser(inspector.url) if open_ else nullcontext():
            inspector.run()


def _shown(path: str) -> str:
    """Return the folder, or a database's address without its user and password."""
    if not is_database_url(path):
        return path
    where = urlsplit(path)
    return f"{where.scheme}://{where.hostname or ''}{where.path}"
