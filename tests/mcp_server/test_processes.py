"""The command as a process, as a client starts it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mcp import ClientSession

from semantic_recall import SemanticRecall
from tests.core.cli_support import start
from tests.mcp_server.support import HASH, call, process


async def test_two_servers_on_one_folder_and_a_kill(memory_path: Path, tmp_path: Path) -> None:
    pid, errors = tmp_path / "pid", tmp_path / "errors"
    with errors.open("w") as log:
        async with process(memory_path, "--resource", "ann", errors=log) as lasting:
            async with process(memory_path, "--resource", "ann", errors=log, pid=pid) as killed:
                await asyncio.gather(write(killed, "apple"), write(lasting, "pear"))
                for session, others in ((killed, "pear"), (lasting, "apple")):
                    record = (await call(session, "search", query=others, top_k=20))["record"]
                    assert all(f"{others} fact {number}" in record for number in range(10))
                os.kill(int(pid.read_text()), signal.SIGKILL)
            async with process(memory_path, "--resource", "ann", errors=log) as again:
                names = [tool.name for tool in (await again.list_tools()).tools]
                assert names == ["search", "recent", "remember", "forget"]
                record = (await call(again, "search", query="apple", top_k=20))["record"]
                assert all(f"apple fact {number}" in record for number in range(10))
                found = await call(lasting, "recent", last=100)
                ids = [one["id"] for one in found["messages"]]
                assert len(ids) == 20
                assert (await call(again, "forget", message_ids=ids))["messages"] == 20
                assert (await call(lasting, "recent"))["messages"] == []
    assert "Traceback" not in errors.read_text()
    with SemanticRecall.open(memory_path, embedder="hash") as memory:
        assert memory.stats().messages == 0
        assert memory.verify().ok


async def write(session: ClientSession, what: str) -> None:
    """Remember ten facts at once."""
    calls = (
        call(session, "remember", role="user", content=f"{what} fact {number}")
        for number in range(10)
    )
    await asyncio.gather(*calls)


def test_standard_output_is_the_protocol_and_the_end_is_clean(memory_path: Path) -> None:
    arguments = ("mcp", "--path", memory_path, *HASH, "--resource", "ann")
    with ExitStack() as stack:
        servers = [
            start(
                *arguments,
                stdin=subprocess.PIPE,
                # A test run that a shell started in the background ignores interrupts, and so
                # would this.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            for _ in range(3)
        ]
        for one in servers:
            stack.enter_context(one)
            stack.callback(one.kill)
        for one in servers:
            tell(one, HELLO)
            assert heard(one)["result"]["serverInfo"]["name"] == "semantic-recall"
        ended, terminated, interrupted = servers
        # Nonsense is survived; the call after it is answered.
        tell(ended, b"not json\n\xff\xfe", b'{"jsonrpc":"2.0"}')
        tell(ended, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        tell(ended, b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}')
        while (answer := heard(ended)).get("id") != 2:
            assert answer["jsonrpc"] == "2.0"
        assert len(answer["result"]["tools"]) == 4
        terminated.send_signal(signal.SIGTERM)
        interrupted.send_signal(signal.SIGINT)
        # The first one's standard input is closed here.
        ends = [one.communicate(timeout=120) for one in servers]
        assert [one.returncode for one in servers] == [0, 0, 130]
        assert [out for out, _ in ends] == [b"", b"", b""]
        assert b"serving on standard input and output" in ends[0][1]
        assert ends[2][1].endswith(b"error: interrupted\n")
        assert not any(b"Traceback" in errors for _, errors in ends)


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
).encode()


def tell(server: subprocess.Popen[bytes], *lines: bytes) -> None:
    """Send lines to a server."""
    assert server.stdin is not None
    server.stdin.write(b"".join(line + b"\n" for line in lines))
    server.stdin.flush()


def heard(server: subprocess.Popen[bytes]) -> Any:
    """Return the next line from a server, which must be JSON."""
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line, server.communicate(timeout=120)
    return json.loads(line)
