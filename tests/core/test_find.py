"""`find`: messages by their ids, inside a scope."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall import InvalidScopeError, SemanticRecall


@pytest.fixture
def memory(memory_path: Path) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(memory_path, embedder=None) as memory:
        for resource, thread, id in [
            ("ann", "a", "2"),
            ("ann", "a", "1"),
            ("ann", "b", "1"),
            ("bob", "a", "1"),
            (None, "a", "1"),
        ]:
            record = {"role": "user", "content": f"{resource} {thread} {id}", "id": id}
            memory.remember(record, thread_id=thread, resource_id=resource)
        yield memory


async def test_only_what_is_in_the_scope_in_the_order_of_storing(memory: SemanticRecall) -> None:
    def texts(*ids: str, thread: str | None = None, resource: str | None = None) -> list[str]:
        return [one.text for one in memory.find(ids, thread_id=thread, resource_id=resource)]

    assert texts("1", "2", "1", resource="ann") == ["ann a 2", "ann a 1", "ann b 1"]
    assert texts("1", thread="b", resource="ann") == ["ann b 1"]
    assert texts("1", thread="a") == ["None a 1"]
    assert texts("2", "x", "", "1%", resource="bob") == []
    assert texts(resource="ann") == []
    found = await memory.afind(["1"], resource_id="bob")
    assert [one.text for one in found] == ["bob a 1"]


def test_a_scope_is_needed(memory: SemanticRecall) -> None:
    with pytest.raises(InvalidScopeError):
        memory.find(["1"])
