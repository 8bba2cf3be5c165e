"""What the tests of the MCP server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall


@pytest.fixture
def memory(memory_path: Path) -> Iterator[SemanticRecall]:
    """A memory that searches by words, and embeds with the hash embedder."""
    with SemanticRecall.open(memory_path, embedder="hash") as memory:
        yield memory
