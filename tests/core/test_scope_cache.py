"""Views of hot scopes: bounded, shared, and never older than the store."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from semantic_recall import Message, Scope, SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.protocols import MessageStore
from semantic_recall.scope_cache import ScopeCache
from semantic_recall.scope_view import ScopeView


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(tmp_path / "memory", embedder=HashEmbedder(64)) as memory:
        yield memory


def add(memory: SemanticRecall, resource: str, *texts: str) -> list[Message]:
    return memory.remember(
        [{"role": "user", "content": text} for text in texts], thread_id="t", resource_id=resource
    )


def look(cache: ScopeCache, memory: SemanticRecall, resource: str) -> ScopeView:
    store: MessageStore = memory._store
    scope = Scope(resource)
    state = store.state(scope)
    assert state is not None
    return cache.view(scope, HashEmbedder(64).space, state)


def test_an_unchanged_scope_is_loaded_once(memory: SemanticRecall) -> None:
    cache = ScopeCache(memory._store, limit_bytes=10**6)
    add(memory, "r", "one", "two")
    assert look(cache, memory, "r") is look(cache, memory, "r")
    add(memory, "other", "elsewhere")
    first = look(cache, memory, "r")
    add(memory, "r", "three")
    assert len(first.keys) == 2
    assert len(look(cache, memory, "r").keys) == 3


def test_what_is_edited_or_deleted_is_gone_from_the_view(memory: SemanticRecall) -> None:
    cache = ScopeCache(memory._store, limit_bytes=10**6)
    stored = add(memory, "r", "one", "two", "three")
    before = look(cache, memory, "r")
    memory.remember(
        Message(id=stored[0].id, role="user", text="uno", thread_id="t", resource_id="r")
    )
    after = look(cache, memory, "r")
    assert set(after.digests) != set(before.digests)
    memory.forget(ids=[stored[1].id], thread_id="t", resource_id="r")
    assert len(look(cache, memory, "r").keys) == 2
    memory.remember(
        Message(id=stored[2].id, role="tool", text="three", thread_id="t", resource_id="r")
    )
    assert len(look(cache, memory, "r").keys) == 1


def test_the_bytes_are_bounded_and_the_oldest_goes_first(memory: SemanticRecall) -> None:
    for resource in ("a", "b", "c"):
        add(memory, resource, *(f"text {n} of the resource" for n in range(50)))
    big = ScopeCache(memory._store, limit_bytes=10**9)
    each = look(big, memory, "a").nbytes
    cache = ScopeCache(memory._store, limit_bytes=2 * each + each // 2)
    first, second = look(cache, memory, "a"), look(cache, memory, "b")
    assert look(cache, memory, "a") is first
    look(cache, memory, "c")
    assert cache.nbytes <= 2 * each + each // 2
    assert look(cache, memory, "a") is first
    assert look(cache, memory, "b") is not second


def test_a_view_larger_than_the_cache_is_not_kept(memory: SemanticRecall) -> None:
    add(memory, "r", "one")
    cache = ScopeCache(memory._store, limit_bytes=0)
    assert len(look(cache, memory, "r").keys) == 1
    assert cache.nbytes == 0


def test_dropping_and_clearing(memory: SemanticRecall) -> None:
    add(memory, "a", "one")
    add(memory, "b", "two")
    cache = ScopeCache(memory._store, limit_bytes=10**6)
    first, second = look(cache, memory, "a"), look(cache, memory, "b")
    cache.drop("a")
    assert look(cache, memory, "b") is second
    assert look(cache, memory, "a") is not first
    cache.clear()
    assert cache.nbytes == 0
    assert look(cache, memory, "b") is not second


def test_many_threads_get_one_view(memory: SemanticRecall) -> None:
    add(memory, "r", *(f"text {n}" for n in range(200)))
    # The background thread may be embedding the same messages: its write makes a new version.
    assert memory.flush()
    cache = ScopeCache(memory._store, limit_bytes=10**7)
    with ThreadPoolExecutor(8) as pool:
        views = list(pool.map(lambda _: look(cache, memory, "r"), range(32)))
    assert len({id(view) for view in views}) == 1
