"""A memory to inspect, and a real browser to do it with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from semantic_recall import SemanticRecall
from tests.inspector.browsing import CHROMIUM, chromium
from tests.inspector.conversations import IDS, fill


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemanticRecall]:
    """One memory for a module: opening one takes longer than most of its tests."""
    folder = tmp_path_factory.mktemp("inspector") / "memory"
    with SemanticRecall.open(folder, embedder="hash") as opened:
        fill(opened)
        yield opened


@pytest.fixture
def memory(filled: SemanticRecall) -> Iterator[SemanticRecall]:
    """The conversations, whatever the tests before did to them."""
    yield filled
    before = [one.id for one in filled.messages()]
    if before != IDS:
        for info in filled.resources():
            if info.resource_id is not None:
                filled.forget(resource_id=info.resource_id)
        for thread in filled.threads():
            filled.forget(thread_id=thread.thread_id)
        fill(filled)


@pytest.fixture
def own_memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    """A memory for a test that does what cannot be undone."""
    with SemanticRecall.open(tmp_path / "memory", embedder="hash") as opened:
        fill(opened)
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window.

    Of a module, not of the session: its event loop must not be there when an async test runs.
    """
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    expect.set_options(timeout=20_000)  # milliseconds; on a busy machine five are not enough
    with chromium() as opened:
        yield opened
