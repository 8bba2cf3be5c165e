"""What the tests of the importers share: defaults, exports, any JSON, memory."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from semantic_recall import Message
from semantic_recall.importers import BadRecord, Defaults

WHEN = datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
DEFAULTS = Defaults(thread_id="file", resource_id="r", created_at=WHEN)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def good(items: Sequence[Message | BadRecord]) -> list[Message]:
    """Return the messages; there must be nothing else."""
    assert all(isinstance(item, Message) for item in items), items
    return [item for item in items if isinstance(item, Message)]


def bad(items: Sequence[Message | BadRecord]) -> list[BadRecord]:
    """Return what could not be read."""
    return [item for item in items if isinstance(item, BadRecord)]


def texts(items: Sequence[Message | BadRecord]) -> list[str]:
    """Return the texts of the messages."""
    return [item.text for item in items if isinstance(item, Message)]


def said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return roles and texts."""
    return [(one.role, one.text) for one in messages]


def query(path: Path, statement: str, *values: object) -> None:
    """Run a statement in an SQLite file."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


def peak(work: Callable[[], object]) -> int:
    """Return how many bytes of Python objects a work holds at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


START = 1738317600.25
"""When the conversation of `conversation` was begun."""


def node(
    key: str, parent: str | None, role: str | None, *parts: Any, **message: Any
) -> dict[str, Any]:
    """Return a node of a ChatGPT conversation; without a role it holds no message."""
    if role is None:
        return {"id": key, "message": None, "parent": parent, "children": []}
    body = {
        "id": key,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": START + 60,
        "update_time": None,
        "content": {"content_type": "text", "parts": list(parts)},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **message,
    }
    return {"id": key, "message": body, "parent": parent, "children": []}


def conversation(*nodes: dict[str, Any], current: str | None, **more: Any) -> dict[str, Any]:
    """Return a conversation of ChatGPT's export."""
    mapping = {one["id"]: one for one in nodes}
    for one in nodes:
        if one["parent"] in mapping:
            mapping[one["parent"]]["children"].append(one["id"])
    return {
        "title": "Trip to Porto",
        "create_time": START,
        "update_time": START,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": current,
        "conversation_id": "c-1",
        "id": "c-1",
        **more,
    }
