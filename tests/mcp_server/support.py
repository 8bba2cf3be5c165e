"""How the tests reach a server: over pipes as a process of its own, or in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CallToolResult, TextContent

from semantic_recall import Scope, SemanticRecall
from semantic_recall.mcp_server import create_server

HASH = ("--embedder", "hash")

# Writes down who it is before it becomes the server: the SDK's client keeps the process to itself.
_ANNOUNCED = (
    "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


@asynccontextmanager
async def process(
    path: Path, *options: str, errors: TextIO = sys.stderr, pid: Path | None = None
) -> AsyncIterator[ClientSession]:
    """Start `semantic-recall mcp` and connect the SDK's client to it."""
    arguments = ["-m", "semantic_recall.cli", "mcp", "--path", str(path), *HASH, *options]
    if pid is not None:
        arguments = ["-c", _ANNOUNCED, str(pid), *arguments]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    async with stdio_client(server, errors) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def connected(
    memory: SemanticRecall, resource: str | None, thread: str | None = None, **options: Any
) -> AsyncIterator[ClientSession]:
    """Connect the SDK's client to a server in this process."""
    server = create_server(memory, Scope(resource, thread), **options)
    async with create_connected_server_and_client_session(server) as session:
        yield session


async def call(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed; returns its structured result."""
    result = await session.call_tool(tool, arguments)
    assert not result.isError, said(result)
    assert result.structuredContent is not None
    return result.structuredContent


async def refused(session: ClientSession, tool: str, **arguments: Any) -> str:
    """Call a tool that must fail; returns the reason, which is one readable line."""
    result = await session.call_tool(tool, arguments)
    reason = said(result)
    assert result.isError, reason
    assert reason == reason.strip() != ""
    assert reason.isprintable()
    assert len(reason) <= 500
    assert "Traceback" not in reason
    return reason


def said(result: CallToolResult) -> str:
    """Return the text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def tell(
    memory: SemanticRecall, text: str, thread: str, resource: str | None, **more: object
) -> str:
    """Store a user's message; returns its id."""
    record = {"role": "user", "content": text, **more}
    (message,) = memory.remember(record, thread_id=thread, resource_id=resource)
    return message.id
