"""A server for the Model Context Protocol: a memory as tools of any MCP client.

`semantic-recall mcp` serves one over standard input and output; see docs/mcp.md. An application
that serves over another transport makes its own with `create_server`.

Whose messages the tools see is fixed when a server is made. No argument of a tool names an owner,
an unknown argument is refused, and every call goes to the memory with the fixed scope.
"""

from __future__ import annotations

from semantic_recall.errors import MissingDependencyError

try:
    import mcp  # noqa: F401 - asked for here, so that a missing extra is told in one line
except ImportError as error:
    raise MissingDependencyError(
        "the MCP server needs the package 'mcp'; run: pip install \"chat-semantic-recall[mcp]\""
    ) from error

from semantic_recall.mcp_server._results import MAX_TOKENS
from semantic_recall.mcp_server._server import create_server
from semantic_recall.mcp_server._stdio import serve_stdio

__all__ = ["MAX_TOKENS", "create_server", "serve_stdio"]
