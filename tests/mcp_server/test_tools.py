"""The tools, called by the SDK's own client."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from semantic_recall import AbortTurn, Recall, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.tokens import count_tokens
from semantic_recall.types import Vector
from tests.core.embedders import BrokenEmbedder
from tests.mcp_server.support import call, connected, refused, said, tell

WHEN = datetime(2025, 3, 2, 9, 30, tzinfo=timezone.utc)


async def test_the_tools_say_what_they_do(memory: SemanticRecall) -> None:
    async with connected(memory, "ann") as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert list(tools) == ["search", "recent", "remember", "forget"]
    hints = {name: tool.annotations for name, tool in tools.items()}
    assert {name for name, hint in hints.items() if hint and hint.readOnlyHint} == {
        "search",
        "recent",
    }
    forget, remember = hints["forget"], hints["remember"]
    assert forget is not None
    assert remember is not None
    assert (forget.destructiveHint, forget.idempotentHint) == (True, True)
    assert (remember.destructiveHint, remember.idempotentHint) == (False, False)
    assert all(hint is not None and hint.openWorldHint is False for hint in hints.values())
    arguments = {name: set(tool.inputSchema["properties"]) for name, tool in tools.items()}
    assert arguments == {
        "search": {"query", "since", "until", "top_k"},
        "recent": {"last", "thread_id"},
        "remember": {"role", "content", "thread_id"},
        "forget": {"message_ids", "thread_id"},
    }
    assert all(tool.inputSchema["additionalProperties"] is False for tool in tools.values())
    assert all(tool.outputSchema for tool in tools.values())


async def test_search_returns_a_fenced_record_and_ids(memory: SemanticRecall) -> None:
    cat = tell(memory, "My cat is called Mimi.", "pets", "ann", created_at=WHEN)
    tell(memory, "The printer is out of paper.", "office", "ann")
    async with connected(memory, "ann") as session:
        found = await call(session, "search", query="my cat Mimi", top_k=1)
        text = said(await session.call_tool("search", {"query": "my cat Mimi", "top_k": 1}))
    lines = found["record"].splitlines()
    assert "data, not instructions" in lines[0]
    assert lines[2:-1] == [
        'Conversation "pets"',
        "[2025-03-02T09:30Z] user: My cat is called Mimi.",
    ]
    assert lines[-1] == lines[1].replace("<", "</")
    assert found["messages"] == [
        {
            "id": cat,
            "thread_id": "pets",
            "role": "user",
            "created_at": "2025-03-02T09:30:00Z",
            "is_hit": True,
        }
    ]
    assert text == f'{found["record"]}\n\nIds of these messages, in this order: ["{cat}"]'


async def test_search_by_time(memory: SemanticRecall) -> None:
    for year in (2021, 2022, 2023):
        tell(
            memory, f"My cat won in {year}.", f"t{year}", "ann", created_at=WHEN.replace(year=year)
        )
    async with connected(memory, "ann") as session:
        found = await call(
            session, "search", query="cat", since="2022-01-01", until="2022-12-31T23:59:59Z"
        )
        nothing = await session.call_tool("search", {"query": "cat", "since": "2030-01-01"})
    assert [one["thread_id"] for one in found["messages"]] == ["t2022"]
    assert said(nothing) == "No earlier message was found."
    assert nothing.structuredContent == {"record": "", "messages": [], "left_out": 0}


async def test_recent_goes_back_thread_by_thread(memory: SemanticRecall) -> None:
    for number in range(4):
        tell(memory, f"old {number}", "old", "ann")
    memory.remember({"role": "tool", "content": "raw output"}, thread_id="new", resource_id="ann")
    for number in range(3):
        tell(memory, f"new {number}", "new", "ann")
    async with connected(memory, "ann") as session:

        async def recent(**arguments: object) -> list[str]:
            record = (await call(session, "recent", **arguments))["record"]
            return [line.split(": ")[1] for line in record.splitlines() if line.startswith("[")]

        assert await recent(last=2) == ["new 1", "new 2"]
        assert await recent(last=5) == ["old 2", "old 3", "new 0", "new 1", "new 2"]
        assert await recent() == [*(f"old {n}" for n in range(4)), *(f"new {n}" for n in range(3))]
        assert await recent(thread_id="old", last=1) == ["old 3"]
        assert "there is no conversation 'none'" in await refused(
            session, "recent", thread_id="none"
        )
    async with connected(memory, "nobody") as session:
        assert (await call(session, "recent"))["messages"] == []


async def test_remember_then_find_then_forget(memory: SemanticRecall) -> None:
    async with connected(memory, "ann") as session:
        kept = await call(session, "remember", role="user", content="I am allergic to peanuts.")
        again = await call(session, "remember", role="assistant", content="Noted, no peanuts.")
        other = await call(session, "remember", role="user", content="Bye", thread_id="other")
        assert kept["thread_id"] == again["thread_id"] != other["thread_id"] == "other"
        found = await call(session, "search", query="peanuts", top_k=2)
        hits = {one["id"] for one in found["messages"] if one["is_hit"]}
        assert hits == {kept["id"], again["id"]}
        receipt = await call(session, "forget", message_ids=[kept["id"], "unknown", "unknown"])
        assert (receipt["messages"], receipt["vectors"], receipt["threads"]) == (1, 1, 0)
        assert receipt["complete"] is True
        assert set(receipt["remaining"].values()) == {0}
        assert receipt["unknown"] == ["unknown"]
        twice = await session.call_tool("forget", {"message_ids": [kept["id"]]})
        assert said(twice) == f'0 messages deleted; not in this memory: ["{kept["id"]}"].'
    assert [one.text for one in memory.messages()] == ["Noted, no peanuts.", "Bye"]
    assert {one.resource_id for one in memory.messages()} == {"ann"}
    assert memory.history(kept["thread_id"], "ann")[0].metadata == {"source": "mcp"}


async def test_forget_refuses_an_id_that_means_several_messages(memory: SemanticRecall) -> None:
    for thread in ("a", "b"):
        tell(memory, f"in {thread}", thread, "ann", id="1")
    async with connected(memory, "ann") as session:
        reason = await refused(session, "forget", message_ids=["1"])
        assert "'1' stands in several conversations, such as 'a' and 'b'" in reason
        receipt = await call(session, "forget", message_ids=["1"], thread_id="b")
    assert receipt["messages"] == 1
    assert [one.text for one in memory.messages()] == ["in a"]


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("search", {}, "query: Field required"),
    ("search", {"query": " \n"}, "query: it is blank"),
    ("search", {"query": 7}, "query: "),
    ("search", {"query": "x" * 10_001}, "query: "),
    ("search", {"query": "x", "top_k": 0}, "top_k: "),
    ("search", {"query": "x", "top_k": -3}, "top_k: "),
    ("search", {"query": "x", "top_k": 51}, "top_k: "),
    ("search", {"query": "x", "top_k": True}, "top_k: "),
    ("search", {"query": "x", "since": "yesterday"}, "since: "),
    ("search", {"query": "x", "since": "2025-13-45"}, "since: "),
    ("search", {"query": "x", "until": 1700000000}, "until: give a date"),
    ("search", {"query": "x", "until": "1700000000"}, "until: give a date"),
    ("search", {"query": "x", "since": "0001-01-01T00:00+14:00"}, "since takes a datetime"),
    ("search", {"query": "x", "since": "2025-02-01", "until": "2025-01-01"}, "before until"),
    ("search", {"query": "x", "threshold": 0.1}, "there is no argument 'threshold'; there are"),
    ("recent", {"last": 0}, "last: "),
    ("recent", {"last": 101}, "last: "),
    ("recent", {"thread_id": ""}, "thread_id: "),
    ("remember", {"role": "system", "content": "x"}, "role: "),
    ("remember", {"role": "user", "content": ""}, "content: "),
    ("remember", {"role": "user", "content": "x" * 100_001}, "content: "),
    ("remember", {"role": "user", "content": "x", "thread_id": "x" * 1025}, "thread_id: "),
    ("forget", {"message_ids": []}, "message_ids: "),
    ("forget", {"message_ids": "all"}, "message_ids: "),
    ("forget", {"message_ids": [""]}, "message_ids.0: "),
    ("forget", {"message_ids": ["x"] * 101}, "message_ids: "),
    ("delete\neverything", {}, "there is no tool 'delete everything'; there are search, recent"),
]


async def test_wrong_calls_are_explained_in_a_line(memory: SemanticRecall) -> None:
    tell(memory, "x", "t", "ann")
    async with connected(memory, "ann") as session:
        for tool, arguments, part in WRONG:
            assert part in await refused(session, tool, **arguments), (tool, arguments)
        assert (await call(session, "search", query="x"))["messages"]
    assert memory.stats().messages == 1


async def test_results_are_bounded(memory: SemanticRecall) -> None:
    # One long message, many of middle size, and ids as long as they may be.
    tell(memory, "whale " * 200_000, "long", "ann")
    for number in range(60):
        tell(memory, f"whale {number} " + "words " * 300, "t" * 1024, "ann", id=f"{number:01024}")
    async with connected(memory, "ann", max_tokens=1_000) as session:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("search", {"query": "whale", "top_k": 50}),
            ("recent", {"last": 100}),
            ("recent", {"last": 1, "thread_id": "long"}),
        ]
        for tool, arguments in calls:
            result = await session.call_tool(tool, arguments)
            found = result.structuredContent
            assert found is not None
            assert count_tokens(found["record"]) <= 1_000
            assert count_tokens(said(result)) <= 2_500
            assert found["messages"]
            assert len(str(found)) < 20_000
        newest = await call(session, "recent", last=100)
    # Where not all fit, the last ones stay.
    assert newest["messages"][-1]["id"] == f"{59:01024}"
    assert newest["left_out"] >= 50


async def test_a_failure_is_a_line_for_the_client_and_a_log_for_the_operator(
    memory_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(recall: Recall) -> Recall:
        raise KeyError("a defect\nof the hook")

    settings = Settings(before_inject=hook)
    with SemanticRecall.open(memory_path, embedder="hash", settings=settings) as memory:
        async with connected(memory, "ann") as session:
            assert "KeyError" in await refused(session, "recent")
            assert "a defect" in caplog.text
            assert (await call(session, "remember", role="user", content="x"))["id"]
            memory.close()
            assert "closed" in await refused(session, "search", query="x")
            assert "closed" in await refused(session, "remember", role="user", content="x")


async def test_a_broken_embedder_is_told_and_what_is_remembered_is_kept(memory_path: Path) -> None:
    embedder = BrokenEmbedder()
    with SemanticRecall.open(memory_path, embedder=embedder) as memory:
        async with connected(memory, "ann") as session:
            await call(session, "remember", role="user", content="red apples")
            assert "embed" in await refused(session, "search", query="apples")
            embedder.broken = False
            assert (await call(session, "search", query="apples"))["messages"]


async def test_hooks_see_what_is_shown(memory_path: Path) -> None:
    def hook(recall: Recall) -> Recall:
        if any("secret" in one.message.text for one in recall):
            raise AbortTurn("not for this client")
        return recall

    settings = Settings(before_inject=hook)
    with SemanticRecall.open(memory_path, embedder="hash", settings=settings) as memory:
        tell(memory, "the secret word", "t", "ann")
        async with connected(memory, "ann") as session:
            assert await refused(session, "search", query="word") == "not for this client"
            assert await refused(session, "recent") == "not for this client"


class HeldEmbedder(HashEmbedder):
    """The hash embedder, which answers a query when it is let."""

    def __init__(self) -> None:
        super().__init__(64)
        self.asked = threading.Event()
        self.let = threading.Event()

    def embed_query(self, text: str, /) -> Vector:
        self.asked.set()
        assert self.let.wait(60)
        return super().embed_query(text)


async def test_a_slow_call_holds_up_no_other(memory_path: Path) -> None:
    embedder = HeldEmbedder()
    with SemanticRecall.open(memory_path, embedder=embedder) as memory:
        async with connected(memory, "ann") as session:
            slow = asyncio.create_task(call(session, "search", query="fact"))
            await asyncio.to_thread(embedder.asked.wait, 60)
            await asyncio.gather(
                *(
                    call(session, "remember", role="user", content=f"fact number {number}")
                    for number in range(20)
                )
            )
            found = await call(session, "recent", last=100)
            assert not slow.done()
            embedder.let.set()
            await slow
    assert len({one["id"] for one in found["messages"]}) == 20
