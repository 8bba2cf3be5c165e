"""The command that serves a memory to MCP clients: mcp."""

from __future__ import annotations

from typing import Annotated

import typer

from semantic_recall import Scope, SemanticRecall
from semantic_recall.cli import _output as output
from semantic_recall.cli._common import (
    DEFAULT_PATH,
    DebugOption,
    EmbedderName,
    EmbedderOption,
    PathOption,
    guarded,
    memory_at,
    owner,
)
from semantic_recall.errors import InvalidScopeError


@guarded
def mcp(
    path: PathOption = DEFAULT_PATH,
    resource: Annotated[
        str | None, typer.Option("--resource", help="Whose messages are served (a user, a tenant).")
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", help="Serve this thread of theirs only.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="No tools that write: remember and forget.")
    ] = False,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=200, help="At most so much text in a result.")
    ] = 4_000,
    embedder: EmbedderOption = EmbedderName.wordllama,
    debug: DebugOption = False,
) -> None:
    """Serve the memory to an MCP client over standard input and output.

    The client starts this command and gets the tools search, recent, remember and forget. Whose
    messages they see is fixed here; no argument of a tool can widen it. docs/mcp.md shows how
    clients are configured.
    """
    # Loaded here because it needs the extra, and no other command does.
    from semantic_recall.mcp_server import create_server, serve_stdio  # noqa: PLC0415

    if not resource and thread is None:
        raise typer.BadParameter("Say whose messages are served: --resource, --thread or both.")
    with memory_at(path, embedder=embedder.argument, create=not read_only) as memory:
        scope = Scope(owner(resource), thread)
        if resource is None:
            _refuse_owned(memory, scope)
        output.note("serving on standard input and output; an MCP client is expected there")
        serve_stdio(create_server(memory, scope, read_only=read_only, max_tokens=max_tokens))


def _refuse_owned(memory: SemanticRecall, scope: Scope) -> None:
    """Refuse a thread that only stands under owners: nothing of it would be found."""
    owners = {one.resource_id for one in memory.threads() if one.thread_id == scope.thread_id}
    if owners and None not in owners:
        known = ", ".join(sorted(repr(one) for one in owners))
        raise InvalidScopeError(
            f"thread {scope.thread_id!r} belongs to {known}; name the owner with --resource"
        )
